"""Pod affinity terms, compiled: namespaces, a selector and a topology key.

Upstream: framework.AffinityTerm. A term without namespaces and without namespace selector means
the pod's own namespace; an empty namespace selector means all namespaces. (mis)matchLabelKeys are
merged into the selector by the API server, never here.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from bayplan.api.objects import PodAffinity, PodAffinityTerm
from bayplan.api.selectors import NOTHING, Selector, SelectorError, label_selector


class AffinityTerm(Struct, frozen=True):
    """The pods that a term selects, and the topology key."""

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str
    namespace_selector: Selector = NOTHING

    def covers_namespace(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term selects a pod with these labels in a namespace with these labels."""
        return self.covers_namespace(namespace, namespace_labels) and self.selector.matches(labels)


class WeightedTerm(Struct, frozen=True):
    term: AffinityTerm
    weight: int


class AffinityTerms(Struct, frozen=True):
    """The compiled terms of one podAffinity or podAntiAffinity."""

    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()


NO_TERMS = AffinityTerms()


def compile_terms(
    affinity: PodAffinity | None, namespace: str, path: str, errors: list[str]
) -> AffinityTerms:
    """The compiled terms. A term that does not parse is added to ``errors`` with its path.

    As in upstream's NewPodInfo, one wrong term makes the list of required, or of preferred, terms
    empty.
    """
    if affinity is None:
        return NO_TERMS
    required = _compiled(affinity.required or (), namespace, f"{path}.required", errors)
    preferred = affinity.preferred or ()
    bare = [entry.pod_affinity_term for entry in preferred]
    terms = _compiled(bare, namespace, f"{path}.preferred", errors)
    weights = [entry.weight for entry in preferred]
    return AffinityTerms(required, tuple(map(WeightedTerm, terms, weights)))


def _compiled(
    terms: Iterable[PodAffinityTerm], namespace: str, path: str, errors: list[str]
) -> tuple[AffinityTerm, ...]:
    """All terms compiled; an empty tuple if a term does not parse."""
    compiled: list[AffinityTerm] = []
    for index, term in enumerate(terms):
        try:
            compiled.append(affinity_term(term, namespace))
        except SelectorError as problem:
            errors.append(f"{path}[{index}]: {problem}")
            return ()
    return tuple(compiled)


def affinity_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """One compiled term. Raises SelectorError."""
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((namespace,))
    return AffinityTerm(
        namespaces=namespaces,
        selector=label_selector(term.label_selector),
        topology_key=term.topology_key,
        namespace_selector=label_selector(term.namespace_selector),
    )
