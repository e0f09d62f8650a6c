"""A decision once more, on the states that a reordering of bindings in flight allows.

A scheduler decides about one pod after the other, but its bindings travel side by side: they may
arrive in another order than the decisions were made. The state on which a decision was made is then
not the state before its binding arrived. It lacks bindings that arrived earlier and were decided
later, and has bindings that arrived later and were decided earlier. `states` lists the likely ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from bayplan.api.objects import POD, Pod
from bayplan.model.cluster_model import ClusterModel
from bayplan.shadow.judgement import Verdict, judge

#: How many bindings on each side of a decision count as in flight with it, at most.
BINDINGS_MAX: Final = 64
#: Bindings that arrive further apart are not in flight together.
SECONDS_MAX: Final = 1.0
#: How many bindings on each side are left out or added one after the other.
_STEPS_MAX: Final = 4
#: On how many states a decision is compared again.
STATES_MAX: Final = 8


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """The arrival of one pod's node."""

    #: The pod as it waited.
    pod: Pod
    node: str
    at_seconds: float
    #: The place in the scheduler's queue: higher priority first, then the order of arrival.
    queue_place: tuple[int, int]

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid or ""

    @property
    def key(self) -> str:
        return f"{self.pod.metadata.namespace or ''}/{self.pod.metadata.name}"


@final
@dataclass(slots=True)
class Review:
    """A decision that disagrees, and the bindings around it."""

    binding: Binding
    verdict: Verdict
    #: Bindings that arrived before it, and after it, nearest last and nearest first.
    before: Sequence[Binding]
    after: list[Binding] = field(default_factory=list[Binding])

    def is_due(self, now_seconds: float) -> bool:
        """Whether no further binding counts as in flight with the decision."""
        late = now_seconds - self.binding.at_seconds > SECONDS_MAX
        return late or len(self.after) >= BINDINGS_MAX


def agrees_when_reordered(model: ClusterModel, review: Review) -> bool:
    """Whether the decision agrees on one of the states. The model stays as it is.

    Other changes that arrived since the decision are part of these states.
    """
    present = model.pod(review.binding.key)
    if present is not None and present.metadata.uid != review.binding.uid:
        return False
    for lacking in states(review):
        verdict = _judged_without(model, review.binding, lacking)
        if verdict.agrees:
            return True
    return False


def states(review: Review) -> list[frozenset[str]]:
    """The states to compare on: of each the uids of pods whose bindings it lacks, likeliest first.

    They are: the order of the scheduler's queue; with the changes that arrived meanwhile; without
    one binding to the chosen node that arrived before; with one binding to the shadow's node that
    arrived after; without the last bindings before, one to four; with the next bindings, one to
    four. At most `STATES_MAX` of them.
    """
    own, before, after = review.binding, review.before, review.after
    later = _uids(after)
    candidates = [
        _uids(each for each in (*before, *after) if each.queue_place > own.queue_place),
        later,
    ]
    candidates += [later | {each.uid} for each in reversed(before) if each.node == own.node]
    to_own_node = (each for each in after if each.node == review.verdict.own_node)
    candidates += [later - {each.uid} for each in to_own_node]
    for count in range(1, _STEPS_MAX + 1):
        if count <= len(before):
            candidates.append(later | _uids(before[-count:]))
        if count <= len(after):
            candidates.append(_uids(after[count:]))
    return list(dict.fromkeys(candidates))[:STATES_MAX]


def _uids(bindings: Iterable[Binding]) -> frozenset[str]:
    return frozenset(each.uid for each in bindings)


def _judged_without(model: ClusterModel, binding: Binding, lacking: frozenset[str]) -> Verdict:
    namespace, name = binding.pod.metadata.namespace or "", binding.pod.metadata.name
    with model.trial():
        for uid in lacking:
            pod = model.scheduler.cache.pod(uid)
            if pod is not None:
                model.remove(POD, pod.namespace, pod.name)
        if model.pod(binding.key) is not None:
            model.remove(POD, namespace, name)
        model.add(POD, binding.pod)
        return judge(model, binding.key, binding.node)
