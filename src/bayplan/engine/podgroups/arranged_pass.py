"""A pass whose members are restricted to the nodes of an arrangement.

A group needs an arrangement if members placed one after another do not fit, or if it is divided
into slices. This module states the problem in the terms of `arrangement`, and runs the pass that
tries the answer: each member may use only the nodes that the arrangement has for it, and all
plugins decide as in any other pass.

Members of one shape are one kind. A kind fits alone where all Filter plugins of the profile accept
a member of it now. Amounts and host ports are counted; everything else that members do to one
another shows in the pass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import numpy as np

from bayplan.api.pod_groups import PodGroup, TopologySlice
from bayplan.api.pod_requests import PODS
from bayplan.engine.cycle import Cycle
from bayplan.engine.podgroups.arrangement import (
    Arrangement,
    ArrangementProblem,
    Layer,
    MemberKind,
    NoArrangement,
    arrange,
    suffices_alone,
)
from bayplan.engine.podgroups.trial import PodGroupTrial, TrialSetup
from bayplan.engine.reservations import restrict_to_unreserved
from bayplan.framework.placements import Placement
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.cache import Snapshot, Trial
from bayplan.state.columns import Int64s, Mask
from bayplan.state.nodes import NodeView
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodShape


def may_search(setup: TrialSetup, group: PodGroup, members: Sequence[QueuedPodInfo]) -> bool:
    """Whether an arrangement may place members that do not fit one after another. Equal members
    without slices fit in any order, or in none."""
    if group.slices:
        return True
    settings = setup.settings
    if not settings.search_steps:
        return False
    if group.is_upstream and not settings.search_for_kubernetes_groups:
        return False
    return len({id(queued.pod.shape) for queued in members}) > 1


@final
class ArrangedPass:
    """The search for an arrangement of the members within the domains of one key."""

    def __init__(
        self,
        setup: TrialSetup,
        members: Sequence[QueuedPodInfo],
        state: GroupState,
        *,
        key: str,
        domains: Sequence[Placement],
        needed_count: int,
        masks: "AloneMasks",
    ) -> None:
        """``key``: the node label whose value all members share; "": none. ``domains``: the domains
        of the key that may be used. ``masks``: where members fit on the nodes as they are. If
        slices of the group lack members, the first members go there, and the others are
        arranged."""
        snapshot, group = setup.cluster.loan, state.group
        assert snapshot is not None and group is not None
        self._setup = setup
        self._snapshot = snapshot
        self._members = members
        self._group = group
        self._key = key
        self._domains = domains
        self._needed_count = needed_count
        self._masks = masks
        gaps = setup.domains.lacking(snapshot, state)
        parts: Sequence[tuple[frozenset[str], int]] = gaps.parts
        self._slices = group.slices
        if parts and gaps.layer + 1 < len(group.slices):
            # If a slice lacks whole slices of the next layer, the first of these slices is
            # completed.
            nodes, count = parts[0]
            self._domains, self._slices = [Placement("", nodes)], group.slices[gaps.layer + 1 :]
            members, parts = members[:count], ()
        #: For each missing member, the nodes of the domain that lacks it.
        self._lacking_nodes = [nodes for nodes, count in parts for _ in range(count)]
        lacking_count = len(self._lacking_nodes)
        self._late, self._others = members[:lacking_count], members[lacking_count:]
        #: Number of members to arrange → the problem.
        self._problems: dict[int, ArrangementProblem | None] = {}
        self._answers: dict[int, Arrangement | NoArrangement | None] = {}
        #: The result of the search in words; "": it placed the members, or there was no search.
        self.problem = ""

    def promising_domains(self) -> Sequence[Placement]:
        """The domains in which a pass may place all members. The other domains have too few
        places."""
        is_whole = self._needed_count == len(self._members) and not self._late
        if len(self._domains) < 2 or not is_whole:
            return self._domains
        problem = self._problem(len(self._others))
        if problem is None:
            return self._domains
        suffices, nodes = suffices_alone(problem), self._snapshot.nodes
        positions = self._setup.runner.domain_rows.positions
        return [
            domain
            for domain in self._domains
            if domain.nodes and suffices[positions(domain.nodes, nodes)].any()
        ]

    @property
    def has_one_kind(self) -> bool:
        """Whether all members need the same amounts and fit on the same nodes."""
        problem = self._problem(len(self._others))
        return problem is not None and len(problem.kinds) == 1

    def run(self, trial: Trial) -> PodGroupTrial | None:
        """Place all members, or as many as the group needs. None: too few members have nodes, and
        the trial is as before."""
        for count in self._counts():
            answer = self._answer(count)
            if not isinstance(answer, Arrangement):
                return None
            group_trial = self._tried(trial, answer)
            if group_trial.fits(self._needed_count) and self._are_whole(count, group_trial):
                self.problem = ""
                return group_trial
            group_trial.undo()
            self.problem = "an arrangement was found, but plugins reject it."
        return None

    def _are_whole(self, count: int, group_trial: PodGroupTrial) -> bool:
        """Whether the new slices are whole. Only the last slice may be smaller, if no other slice
        lacks members. Plugins may reject a member that has a place in the arrangement."""
        slices = self._slices
        if not slices:
            return True
        has_smaller = count % slices[-1].size > 0
        placed = {one.pod.uid for one in group_trial.placed}
        whole = [*self._others[:count], *(self._late if has_smaller else ())]
        return all(queued.pod.uid in placed for queued in whole)

    def _counts(self) -> Iterator[int]:
        """The numbers of members for which there is an arrangement, in the order in which they are
        tried. The first is all of them; then, without slices, as many as are needed, and with
        slices the largest possible number of whole slices of the outermost layer."""
        count = len(self._others)
        least_count = max(0, self._needed_count - len(self._late))
        if isinstance(self._answer(count), Arrangement):
            yield count
        if not self._slices:
            if least_count != count and isinstance(self._answer(least_count), Arrangement):
                yield least_count
            return
        size = self._slices[0].size
        low, high = -(-least_count // size), (count - 1) // size
        if low > high or not isinstance(self._answer(low * size), Arrangement):
            return
        while low < high:
            middle = (low + high + 1) // 2
            if isinstance(self._answer(middle * size), Arrangement):
                low = middle
            else:
                high = middle - 1
        if low or self._late:
            yield low * size

    def _answer(self, count: int) -> Arrangement | NoArrangement | None:
        """The arrangement of the first ``count`` members; None: a member is rejected as a whole."""
        if count not in self._answers:
            problem = self._problem(count) if count else None
            answer = Arrangement(()) if not count else None
            if problem is not None:
                answer = arrange(problem, self._setup.settings.search_steps)
                if isinstance(answer, NoArrangement):
                    self.problem = _problem_text(answer, problem, self._keys())
            self._answers[count] = answer
        return self._answers[count]

    def _tried(self, trial: Trial, answer: Arrangement) -> PodGroupTrial:
        """The pass in which each member may use the nodes of the arrangement alone."""
        pairs = zip(self._late, self._lacking_nodes, strict=False)
        within = {queued.pod.uid: nodes for queued, nodes in pairs}
        within |= _within(self._snapshot, self._others, answer)
        group_trial = PodGroupTrial(self._setup, trial, frozenset(), within_by_uid=within)
        group_trial.run(self._members, self._needed_count)
        group_trial.domain = _domain(self._snapshot, self._key, answer)
        return group_trial

    def _keys(self) -> list[str]:
        """The node labels of the layers."""
        return [*([self._key] if self._key else []), *(part.key for part in self._slices)]

    def _problem(self, count: int) -> ArrangementProblem | None:
        if count not in self._problems:
            self._problems[count] = _problem(
                self._masks,
                self._snapshot,
                self._others[:count],
                self._group,
                slices=self._slices,
                key=self._key,
                allowed=self._allowed(),
            )
        return self._problems[count]

    def _allowed(self) -> Mask:
        """bool [nodes]: the nodes of the domains."""
        nodes, positions = self._snapshot.nodes, self._setup.runner.domain_rows.positions
        allowed = np.zeros(len(nodes), np.bool_)
        for domain in self._domains:
            allowed[... if domain.nodes is None else positions(domain.nodes, nodes)] = True
        return allowed


def _within(
    snapshot: Snapshot, members: Sequence[QueuedPodInfo], answer: Arrangement
) -> dict[str, frozenset[str]]:
    """The names of the nodes that the arrangement has for each member that it places, by uid."""
    names = snapshot.nodes.names()
    sets: dict[int, frozenset[str]] = {}
    within: dict[str, frozenset[str]] = {}
    for queued, positions in zip(members, answer.nodes, strict=False):
        if id(positions) not in sets:
            rows: list[int] = positions.tolist()
            sets[id(positions)] = frozenset(names[row] for row in rows)
        within[queued.pod.uid] = sets[id(positions)]
    return within


def _domain(snapshot: Snapshot, key: str, answer: Arrangement) -> str:
    """The value of the label that the nodes of an arrangement share."""
    if not key or not answer.nodes:
        return ""
    labels, first = snapshot.nodes.labels, int(answer.nodes[0][0])
    return labels.values(key)[int(labels.ids(key)[first])]


def _problem_text(answer: NoArrangement, problem: ArrangementProblem, keys: Sequence[str]) -> str:
    """Why the members were not arranged, in words. ``keys``: the node labels of the layers."""
    count = len(problem.members)
    text = f"no arrangement of {count} members exists"
    if not answer.is_proven:
        text = f"no arrangement of {count} members was found within {answer.step_count:,} steps"
    parts = [
        f"{fitting_count} of {-(-count // layer.size)} slices of {layer.size} fit by {key}"
        for fitting_count, layer, key in zip(
            answer.fitting_counts, problem.layers, keys, strict=False
        )
    ]
    return f"{text} ({'; '.join(parts)})." if parts else f"{text}."


# ---- the problem ---------------------------------------------------------------------------


@final
class AloneMasks:
    """Where each member fits if it is the only one, while the nodes stay as they are."""

    def __init__(self, setup: TrialSetup, are_equal: Callable[[], bool]) -> None:
        """``are_equal``: whether all members fit on the same nodes."""
        assert setup.cluster.loan is not None
        self._setup = setup
        self._snapshot = setup.cluster.loan
        self._are_equal = are_equal
        #: The masks by the shape of a member; by None for equal members.
        self._masks: dict[PodShape | None, Mask | None] = {}

    def of(self, queued: QueuedPodInfo) -> Mask | None:
        """bool [nodes]; None: the member is rejected as a whole, or an extender decides about
        it."""
        key = None if self._are_equal() else queued.pod.shape
        if key not in self._masks:
            self._masks[key] = _feasible(self._setup, self._snapshot, queued)
        return self._masks[key]


def _problem(
    masks: AloneMasks,
    snapshot: Snapshot,
    members: Sequence[QueuedPodInfo],
    group: PodGroup,
    *,
    slices: Sequence[TopologySlice],
    key: str,
    allowed: Mask,
) -> ArrangementProblem | None:
    """The problem to solve. ``allowed``: bool [nodes], the nodes of the domains. None: a member is
    rejected as a whole, or an extender decides about it."""
    nodes = snapshot.nodes
    shapes = {id(queued.pod.shape): queued for queued in members}
    amounts = {each: _amounts(queued.pod.shape) for each, queued in shapes.items()}
    resources = sorted({name for of_shape in amounts.values() for name in of_shape})
    #: Members of several shapes that fit on the same nodes are of one kind.
    kinds: list[MemberKind] = []
    places_of_kinds: dict[tuple[bytes, bytes], int] = {}
    places: dict[int, int] = {}
    for each, queued in shapes.items():
        feasible = masks.of(queued)
        if feasible is None:
            return None
        of_shape = amounts[each]
        wanted = np.array([of_shape.get(name, 0) for name in resources], np.int64)
        kind = MemberKind(wanted, feasible & allowed)
        key_of_kind = wanted.tobytes(), kind.feasible.tobytes()
        places[each] = places_of_kinds.setdefault(key_of_kind, len(kinds))
        if places[each] == len(kinds):
            kinds.append(kind)
    layers = [Layer(part.size, _ids(nodes, part.key)) for part in slices]
    if key:
        # The group is one slice of its own size.
        layers.insert(0, Layer(len(members), _ids(nodes, key)))
    return ArrangementProblem(
        kinds,
        [places[id(queued.pod.shape)] for queued in members],
        np.column_stack([_free(nodes, name) for name in resources]),
        layers,
        group.is_balanced,
    )


def _ids(nodes: NodeView, key: str) -> Int64s:
    return nodes.labels.ids(key).astype(np.int64)


def _amounts(shape: PodShape) -> Mapping[str, int]:
    """What a node gives to a pod of this shape. A host port is given once."""
    ports = {f"port {port}": 1 for port in shape.host_ports}
    return {**shape.requests, PODS: 1, **ports}


def _free(nodes: NodeView, resource: str) -> Int64s:
    """int64 [nodes]: what is free. Filter says where a host port is taken now."""
    if resource.startswith("port "):
        return np.ones(len(nodes), np.int64)
    return nodes.allocatable(resource) - nodes.requested(resource)


def _feasible(setup: TrialSetup, snapshot: Snapshot, queued: QueuedPodInfo) -> Mask | None:
    """bool [nodes]: where a member fits, if it is the only one."""
    framework = setup.frameworks[queued.pod.scheduler_name]
    cycle = Cycle(queued, framework, snapshot, setup.telemetry.clock.now())
    # The cycle of a nominated member would look at its nominated node alone.
    cycle.extender_round.give_up_nominated_node()
    restrict_to_unreserved(cycle, setup.reservations)
    if setup.runner.run(cycle) is not None:
        return None
    outcome = cycle.filter_outcome()
    if outcome is None or outcome.error is not None:
        return None
    nodes = snapshot.nodes
    if len(outcome.nodes) == len(nodes):
        return np.asarray(outcome.feasible)
    feasible = np.zeros(len(nodes), np.bool_)
    feasible[nodes.positions(outcome.nodes.take(outcome.feasible).names())] = True
    return feasible
