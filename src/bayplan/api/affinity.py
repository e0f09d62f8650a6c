"""Pod affinity terms, compiled: namespaces, a selector and a topology key.

Upstream: framework.AffinityTerm. A term without namespaces and without namespace selector means
the pod's own namespace; an empty namespace selector means all namespaces. (mis)matchLabelKeys are
merged into the selector by the API server, never here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bayplan.api.objects import PodAffinity, PodAffinityTerm
from bayplan.api.selectors import NOTHING, Selector, SelectorError, label_selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Which pods a term speaks of, and within which topology."""

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str
    namespace_selector: Selector = NOTHING

    def covers_namespace(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether a pod with these labels, in this namespace with its labels, is meant."""
        return self.covers_namespace(namespace, namespace_labels) and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    term: AffinityTerm
    weight: int


@dataclass(frozen=True, slots=True)
class AffinityTerms:
    """The compiled terms of one podAffinity or podAntiAffinity."""

    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()


NO_TERMS = AffinityTerms()


def compile_terms(
    affinity: PodAffinity | None, namespace: str, path: str, errors: list[str]
) -> AffinityTerms:
    """Terms that do not parse are left out and named in ``errors`` with their path."""
    if affinity is None:
        return NO_TERMS
    required = _compiled(affinity.required or (), namespace, f"{path}.required", errors)
    preferred = affinity.preferred or ()
    weighted: list[WeightedTerm] = []
    for index, entry in enumerate(preferred):
        where = f"{path}.preferred[{index}]"
        terms = _compiled((entry.pod_affinity_term,), namespace, where, errors)
        weighted += [WeightedTerm(term, entry.weight) for term in terms]
    return AffinityTerms(tuple(required), tuple(weighted))


def _compiled(
    terms: Iterable[PodAffinityTerm], namespace: str, path: str, errors: list[str]
) -> list[AffinityTerm]:
    compiled: list[AffinityTerm] = []
    for index, term in enumerate(terms):
        try:
            compiled.append(affinity_term(term, namespace))
        except SelectorError as problem:
            errors.append(f"{path}[{index}]: {problem}")
    return compiled


def affinity_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """Raises SelectorError."""
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((namespace,))
    return AffinityTerm(
        namespaces=namespaces,
        selector=label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespace_selector=label_selector(term.namespace_selector),
    )
