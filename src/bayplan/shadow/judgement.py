"""Whether the node that a scheduler chose is one that Bayplan would choose.

`judge` compares one decision with an attempt in a model of the cluster.

A scheduler decides about one pod after the other, but its bindings travel side by side: they may
arrive in another order than the decisions were made. The state on which a decision was made is then
not the state before its binding arrived. It lacks bindings that arrived earlier and were decided
later, and has bindings that arrived later and were decided earlier. `states` lists the likely ones,
and the decision is judged again on each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal, final

import numpy as np

from bayplan.api.objects import NODE, POD, Pod
from bayplan.engine.cycle import Cycle
from bayplan.framework.scoring import ScoreTable
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.objects.workloads import pod_name

# ---- one decision on one state --------------------------------------------------------------


#: ``best``: no node has a higher total. ``lower``: the node is feasible, and another one has a
#: higher total. ``rejected``: the node is not feasible. ``untried``: no attempt reached the nodes.
Result = Literal["best", "lower", "rejected", "untried"]

_NO_NODE = "the node is not in the shadow's cluster"


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What Bayplan's attempt says about one node."""

    result: Result
    #: The node that the other scheduler chose.
    node: str
    #: The node that Bayplan chooses; "" for none.
    own_node: str = ""
    #: How many nodes have the highest total.
    best_count: int = 0
    feasible_count: int = 0
    #: By how much the total of Bayplan's node is higher.
    points: int = 0
    #: Plugin → weighted score of Bayplan's node minus that of the chosen node, where they differ.
    plugin_points: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The plugin that rejects the node; "" for what no plugin decides.
    plugin: str = ""
    #: Why the node is rejected, or why the pod was not tried.
    message: str = ""

    @property
    def agrees(self) -> bool:
        return self.result == "best"


def judge(model: ClusterModel, pod: str, node: str) -> Verdict:
    """One attempt at a pending pod, compared with a choice. The model stays as it is.

    ``pod``: "namespace/name". Raises KeyError for a pod that does not wait for the scheduler.
    """
    verdicts: list[Verdict] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.key == pod:
            verdicts.append(_verdict(cycle, node, has_node=model.get(NODE, "", node) is not None))

    attempt = model.attempt(pod, look)
    if attempt.result in ("gated", "error") or not verdicts:
        return Verdict("untried", node, attempt.node, message=_untried(attempt))
    # A group may be tried in several domains; the last attempt at the pod counts.
    return verdicts[-1]


def _untried(attempt: Attempt) -> str:
    return attempt.message or f"the attempt ended without a node: {attempt.result}"


def _verdict(cycle: Cycle, node: str, *, has_node: bool) -> Verdict:
    choice, feasible_count = cycle.choice, cycle.feasible_count
    own_node = "" if choice is None else choice.node_name
    if choice is not None and own_node == node:
        return Verdict("best", node, node, choice.tied_count, feasible_count)
    table = cycle.score_table()
    position = None if table is None else table.nodes.position(node)
    if table is None or position is None:
        plugin, message = _rejection(cycle, node) if has_node else ("", _NO_NODE)
        return Verdict(
            "rejected",
            node,
            own_node,
            0 if choice is None else choice.tied_count,
            feasible_count,
            plugin=plugin,
            message=message,
        )
    best = table.best()
    best_count = int(np.count_nonzero(best))
    if best[position]:
        return Verdict("best", node, own_node, best_count, feasible_count)
    own_position = table.nodes.position(own_node)
    if own_position is None:
        own_position = int(best.argmax())
    return Verdict(
        "lower",
        node,
        own_node,
        best_count,
        feasible_count,
        points=int(table.totals[own_position] - table.totals[position]),
        plugin_points=_differences(table, own_position, position),
    )


def _rejection(cycle: Cycle, node: str) -> tuple[str, str]:
    """The plugin that rejects a node, and its message."""
    status = cycle.node_to_status().get(node)
    if status.plugin or status.message:
        return status.plugin or ", ".join(sorted(cycle.narrowing)), status.message
    if cycle.status is not None:
        return cycle.status.plugin, cycle.status.message
    return "", "the attempt did not look at the node"


def _differences(table: ScoreTable, own: int, chosen: int) -> dict[str, int]:
    scores = {each.plugin: each.weighted for each in table.line_at(own).plugins}
    for each in table.line_at(chosen).plugins:
        scores[each.plugin] = scores.get(each.plugin, 0) - each.weighted
    return {plugin: points for plugin, points in scores.items() if points}


# ---- states that a reordering of bindings allows --------------------------------------------


#: How many bindings on each side of a decision count as in flight with it, at most.
BINDINGS_MAX: Final = 512
#: Bindings that arrive further apart are not in flight together.
SECONDS_MAX: Final = 30.0
#: How many bindings on each side are left out or added one after the other.
_STEPS_MAX: Final = 4
#: On how many states a decision is compared again, if the order of the queue is one of them.
STATES_MAX: Final = 8
#: On how many states the order of the queue is tried, if the time of the decision is not known.
_ORDERS_MAX: Final = 32


@final
@dataclass(frozen=True, slots=True)
class NodeArrival:
    """The arrival of one pod's node."""

    #: The pod in the version in which it waited.
    pod: Pod
    node: str
    at_seconds: float
    #: The place in the scheduler's queue: higher priority first, then the order of arrival.
    queue_place: tuple[int, int]
    #: Since when the pod waited.
    since_seconds: float

    @property
    def arrival_number(self) -> int:
        return self.queue_place[1]

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid or ""

    @property
    def key(self) -> str:
        return pod_name(self.pod)


@final
@dataclass(frozen=True, slots=True)
class Review:
    """A decision that disagrees, and the bindings in flight with it."""

    binding: NodeArrival
    verdict: Verdict
    #: Bindings that arrived before it, the nearest last.
    before: Sequence[NodeArrival]
    #: Bindings that arrived after it, the nearest first.
    after: Sequence[NodeArrival]


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

    They are: the orders of the scheduler's queue; with the changes that arrived meanwhile; without
    one binding to the chosen node that arrived before; with one binding to the shadow's node that
    arrived after; without the last bindings before, one to four; with the next bindings, one to
    four. At most `STATES_MAX` of them, and further orders of the queue.
    """
    own, before, after = review.binding, review.before, review.after
    orders = _queue_orders(review)
    later = _uids(after)
    candidates = [later]
    candidates += [later | {each.uid} for each in reversed(before) if each.node == own.node]
    to_own_node = (each for each in after if each.node == review.verdict.own_node)
    candidates += [later - {each.uid} for each in to_own_node]
    for count in range(1, _STEPS_MAX + 1):
        if count <= len(before):
            candidates.append(later | _uids(before[-count:]))
        if count <= len(after):
            candidates.append(_uids(after[count:]))
    count_max = len(orders) - 1 + STATES_MAX
    return list(dict.fromkeys([*orders, *candidates]))[:count_max]


def _queue_orders(review: Review) -> list[frozenset[str]]:
    """The states that a scheduler may have had which takes pods in the order of its queue.

    Of equal priority, pods are decided in the order of arrival. The time of the decision is not
    known; it lies between the arrivals of the pod and of its binding. So two kinds of pods may have
    been decided before or after: pods of lower priority that arrived earlier (those decided before
    are the first in the queue), and pods of higher priority that arrived later (those decided
    before are the first that arrived). Not covered: pods that are tried again after a failure, and
    lower pods of several priorities that overtook one another.
    """
    own, others = review.binding, (*review.before, *review.after)
    behind = [each for each in others if each.queue_place > own.queue_place]
    # The queue is known to be decided up to here when the pod arrived.
    decided = max(
        (each.queue_place for each in behind if each.at_seconds < own.since_seconds),
        default=own.queue_place,
    )
    unsure, surely_after = list[NodeArrival](), list[NodeArrival]()
    for each in behind:
        if each.arrival_number > own.arrival_number:
            surely_after.append(each)
        elif each.queue_place > decided:
            unsure.append(each)
    # The decision was made before the first binding of a pod that was decided later.
    end = min(each.at_seconds for each in (own, *surely_after))
    overtaking: list[NodeArrival] = []
    for each in others:
        if each.queue_place < own.queue_place and each.arrival_number > own.arrival_number:
            (surely_after if each.since_seconds > end else overtaking).append(each)
    unsure.sort(key=lambda each: each.queue_place)
    overtaking.sort(key=lambda each: each.arrival_number, reverse=True)
    lacking = _uids(surely_after)
    # How many are decided before of the first, and how many after of the second.
    counts = product(range(len(unsure) + 1), range(min(len(overtaking), _ORDERS_MAX) + 1))
    likeliest = sorted(counts, key=sum)[:_ORDERS_MAX]
    return [lacking | _uids(unsure[i:]) | _uids(overtaking[:j]) for i, j in likeliest]


def _uids(bindings: Iterable[NodeArrival]) -> frozenset[str]:
    return frozenset(each.uid for each in bindings)


def _judged_without(model: ClusterModel, binding: NodeArrival, lacking: frozenset[str]) -> Verdict:
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
