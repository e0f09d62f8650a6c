"""What a pod's own affinity terms ask for, compiled once per shape: sets of pods and topology keys.

A term means the pods of some namespaces that its selector matches. Where labels of namespaces
decide which, the names are looked up when the pod is tried; everything else is settled here, so
that the sets are found again by the counts kept for them.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any

from msgspec import Struct

from bayplan.api.affinity import AffinityTerm
from bayplan.api.selectors import NOTHING, Selector, with_requirements
from bayplan.framework.handle import Objects
from bayplan.state.domain_counts import PodSet
from bayplan.state.pods import PodInfo, PodShape

#: Where a pod states terms → upstream's name for that list.
_LISTS = {
    "spec.affinity.podAffinity.required": "requiredAffinityTerms",
    "spec.affinity.podAntiAffinity.required": "requiredAntiAffinityTerms",
    "spec.affinity.podAffinity.preferred": "preferredAffinityTerms",
    "spec.affinity.podAntiAffinity.preferred": "preferredAntiAffinityTerms",
}


class Want(Struct, frozen=True):
    """One term of a pod. ``weight`` is negative where the pod would rather keep away."""

    term: AffinityTerm
    weight: int
    #: The pods that the term selects; None if this depends on the labels of namespaces.
    settled: PodSet | None

    @property
    def key(self) -> str:
        return self.term.topology_key

    def pods(self, namespaces: Objects) -> PodSet:
        """The pods that the term selects in the present namespaces."""
        if self.settled is not None:
            return self.settled
        selector = self.term.namespace_selector
        listed: Sequence[Any] = namespaces.list()
        namespaces_selected = {
            n.metadata.name for n in listed if selector.matches(n.metadata.labels or {})
        }
        return PodSet(self.term.namespaces | namespaces_selected, self.term.selector)


class OwnTerms(Struct, frozen=True):
    """All terms of a pod."""

    #: One pod must match all of these at once.
    together: tuple[Want, ...]
    apart: tuple[Want, ...]
    #: Of affinity and of anti-affinity.
    preferred: tuple[Want, ...]
    #: The distinct topology keys of ``together``.
    keys: tuple[str, ...]
    #: The pods that match all of ``together``; None where that takes labels of namespaces.
    settled: PodSet | None
    #: What does not parse, in upstream's words.
    error: str
    #: Whether it is a required term that does not parse.
    is_unclear: bool

    def matching_all(self, namespaces: Objects) -> PodSet:
        if self.settled is not None:
            return self.settled
        return _intersection(want.pods(namespaces) for want in self.together)


def own_terms(pod: PodInfo) -> OwnTerms:
    return pod.shape.once("InterPodAffinity.own", partial(_compiled, _want))


def own_terms_before_1_37(pod: PodInfo) -> OwnTerms:
    """The terms as older versions read them: see `Behaviour.selector_limits_namespaces`."""
    return pod.shape.once("InterPodAffinity.own before 1.37", partial(_compiled, _want_before_1_37))


def _compiled(want: Callable[[AffinityTerm, int], Want], shape: PodShape) -> OwnTerms:
    together = tuple(want(term, 1) for term in shape.affinity.required)
    preferred = (want(weighted.term, weighted.weight) for weighted in shape.affinity.preferred)
    dislikes = (want(weighted.term, -weighted.weight) for weighted in shape.anti_affinity.preferred)
    settled = [each.settled for each in together if each.settled is not None]
    problems = _problems(shape.errors)
    return OwnTerms(
        together=together,
        apart=tuple(want(term, 1) for term in shape.anti_affinity.required),
        preferred=(*preferred, *dislikes),
        keys=tuple(dict.fromkeys(each.key for each in together)),
        settled=_intersection(settled) if together and len(settled) == len(together) else None,
        error=_aggregate(problems),
        is_unclear=any(problem.startswith("required") for problem in problems),
    )


def _want(term: AffinityTerm, weight: int) -> Want:
    if term.namespace_selector.is_everything:
        settled = PodSet(None, term.selector)
    elif term.namespace_selector.nothing:
        settled = PodSet(term.namespaces, term.selector)
    else:
        settled = None
    return Want(term, weight, settled)


def _want_before_1_37(term: AffinityTerm, weight: int) -> Want:
    """A selector was compared with no labels, whatever those of the namespace: one that accepts
    them selected every namespace."""
    if term.namespace_selector.matches({}):
        return Want(term, weight, PodSet(None, term.selector))
    return _want(term, weight)


def _intersection(sets: Iterable[PodSet]) -> PodSet:
    return reduce(_both, sets)


def _both(one: PodSet, other: PodSet) -> PodSet:
    if one.namespaces is None or other.namespaces is None:
        namespaces = other.namespaces if one.namespaces is None else one.namespaces
    else:
        namespaces = one.namespaces & other.namespaces
    return PodSet(namespaces, _conjunction(one.selector, other.selector))


def _conjunction(one: Selector, other: Selector) -> Selector:
    return NOTHING if other.nothing else with_requirements(one, other.requirements)


def _problems(errors: Iterable[str]) -> list[str]:
    """A shape's errors about affinity under upstream's names, in upstream's order."""
    parts = [error.partition(": ") for error in errors]
    return [
        f"{name}: {text}"
        for list_path, name in _LISTS.items()
        for where, _, text in parts
        if where.startswith(f"{list_path}[")
    ]


def _aggregate(problems: Sequence[str]) -> str:
    """As upstream's NewAggregate prints them: one as it is, several in brackets."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
