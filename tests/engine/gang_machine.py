"""The machine searches for a sequence of events after which groups are placed wrongly.

Hypothesis draws the events of pods, groups, nodes and bindings. Each attempt is compared with
`naive_gangs`: a placement must fit and reach the quorum, and a refused group must not fit member
by member in the order of the queue. `GangChecker` checks after every turn.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import initialize, precondition, rule

from bayplan.api.objects import Node, Pod
from bayplan.api.pod_groups import (
    COSCHEDULING_GROUP,
    COSCHEDULING_LABEL,
    EXCLUSIVE_TOPOLOGY,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    TOPOLOGY_SLICES,
    GroupKey,
)
from bayplan.engine.cache_check import differences
from bayplan.framework.status import Code, Status
from bayplan.framework.types import QueuedPodInfo
from bayplan.ports import BindPod, EventType
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.sim.world.checkers import GangChecker
from bayplan.testing import PodOptions, node
from tests.engine.engine_machine import EngineMachine, nth
from tests.engine.kit import Engine, waiting_pod
from tests.engine.naive_gangs import Member, NaiveCluster, Room

KIND = f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup"
ZONE = "topology.kubernetes.io/zone"
FILTERS = ("NodeAffinity", "TaintToleration", "InterPodAffinity")
CPU_ONLY = {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 1}]}
LONER = {
    "labelSelector": {"matchLabels": {"loner": "yes"}},
    "topologyKey": "kubernetes.io/hostname",
}
ALONE = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LONER]}}
LOST = Status(Code.ERROR, ("lost",), "DefaultBinder")

GROUPS = ("g0", "g1", "g2")
#: The members of a slice.
SLICE = 2
#: Longer than the longest delay after failures.
LATER_SECONDS = 11.0

some = st.integers(0, 40)
#: Attempts after an event.
then = st.sampled_from((9, 0, 1, 2))
cpus = st.sampled_from((500, 100, 1000, 1500, 3000))
topologies = st.sampled_from(
    (
        "",
        "",
        REQUIRED_TOPOLOGY,
        PREFERRED_TOPOLOGY,
        EXCLUSIVE_TOPOLOGY,
        TOPOLOGY_SLICES,
        TOPOLOGY_SLICES,
    )
)
wishes = st.sampled_from(("", "", "", "loner", "tolerates", "a", "b"))


class GangMachine(EngineMachine):
    def __init__(self) -> None:
        super().__init__()
        self.naive = NaiveCluster()
        #: By name, all pods that have not ended.
        self.pods: dict[str, Member] = {}
        #: Name → its minimum and the annotation about its topology. An exclusive group requires a
        #: zone, too.
        self.groups: dict[str, tuple[int, str]] = {}
        #: Pods with a binding in flight.
        self.binding: list[str] = []
        #: Each attempt, with the members in their order at that time.
        self._popped: list[tuple[QueuedPodInfo, list[Member]]] = []

    @initialize(
        is_spreading=st.booleans(),
        sizes=st.lists(some, min_size=2, max_size=5),
        minima=st.lists(st.integers(1, 5), min_size=len(GROUPS), max_size=len(GROUPS)),
        topologies=st.lists(topologies, min_size=len(GROUPS), max_size=len(GROUPS)),
    )
    def begin(
        self, is_spreading: bool, sizes: list[int], minima: list[int], topologies: list[str]
    ) -> None:
        self.naive.is_spreading = is_spreading
        score = [("NodeResourcesFit", 1)] if is_spreading else ["NodeResourcesFit"]
        self.engine = Engine(
            plugins=[*FILTERS, *score],
            args={"NodeResourcesFit": {"scoringStrategy": CPU_ONLY}},
            tie_break=["NodeNameOrder"],
        )
        self.checker = GangChecker(self.engine.scheduler)
        queue = self.engine.scheduler.queue
        pop = queue.pop

        def noted(uid: str | None = None) -> QueuedPodInfo | None:
            popped = pop(uid)
            self._popped = [] if popped is None else [(popped, self._members(popped))]
            return popped

        setattr(queue, "pop", noted)  # noqa: B010 - to see what is tried
        for size in sizes:
            self._put_node(self._name("n"), size)
        for name, minimum, topology in zip(GROUPS, minima, topologies, strict=True):
            self.groups[name] = (minimum, topology)
            self._tell_group(name, EventType.ADDED)

    def teardown(self) -> None:
        if self.engine is not None:
            self.engine.scheduler.close()
            self.tally["decisions looked at by the checker"] += self.checker.placement_check_count

    # ---- nodes ----------------------------------------------------------------------------

    @rule(size=some, attempts=then)
    def a_node_comes(self, size: int, attempts: int) -> None:
        self._put_node(self._name("n"), size)
        self._did("a node came", attempts)

    @precondition(lambda self: self.naive.nodes)
    @rule(place=some, size=some, attempts=then)
    def a_node_changes(self, place: int, size: int, attempts: int) -> None:
        self._put_node(nth(self.naive.nodes, place), size)
        self._did("a node changed", attempts)

    @precondition(lambda self: len(self.naive.nodes) > 1)
    @rule(place=some, takes_pods=st.booleans(), attempts=then)
    def a_node_goes(self, place: int, takes_pods: bool, attempts: int) -> None:
        name = nth(self.naive.nodes, place)
        there = self.naive.there(name)
        self._it.delete(self._node(name))
        del self.naive.nodes[name]
        for member in there if takes_pods else ():
            self._remove(member.name)
        self._did("a node went", attempts)

    def _put_node(self, name: str, size: int) -> None:
        """Add or replace a node of a drawn size in one of two zones."""
        room = Room((1000, 2000, 4000)[size % 3], (3, 110)[size % 2], "ab"[size % 2], size % 7 == 0)
        is_new = name not in self.naive.nodes
        self.naive.nodes[name] = room
        (self._it.add if is_new else self._it.update)(self._node(name))

    def _node(self, name: str) -> Node:
        room = self.naive.nodes[name]
        taints = ["dirty=yes:NoSchedule"] if room.is_tainted else []
        cpu = f"{room.cpu_milli}m"
        return node(name, cpu=cpu, pods=room.pods, zone=room.zone, taints=taints)

    # ---- groups ---------------------------------------------------------------------------

    @rule(
        place=some,
        minimum=st.integers(1, 5),
        topology=topologies,
        attempts=then,
    )
    def a_group_comes_or_changes(
        self, place: int, minimum: int, topology: str, attempts: int
    ) -> None:
        name = GROUPS[place % len(GROUPS)]
        is_new = name not in self.groups
        self.groups[name] = (minimum, topology)
        self._tell_group(name, EventType.ADDED if is_new else EventType.MODIFIED)
        self._did("a group came" if is_new else "a group changed", attempts)

    @precondition(lambda self: self.groups)
    @rule(place=some, attempts=then)
    def a_minimum_is_lowered(self, place: int, attempts: int) -> None:
        name = nth(self.groups, place)
        minimum, topology = self.groups[name]
        self.groups[name] = (max(1, minimum - 1), topology)
        self._tell_group(name, EventType.MODIFIED)
        self._did("a minimum was lowered", attempts)

    @precondition(lambda self: self.groups)
    @rule(place=some, attempts=then)
    def a_group_goes(self, place: int, attempts: int) -> None:
        """The group object is deleted; its pods stay."""
        name = nth(self.groups, place)
        self._tell_group(name, EventType.DELETED)
        del self.groups[name]
        self._did("a group went", attempts)

    def _tell_group(self, name: str, event: EventType) -> None:
        minimum, topology = self.groups[name]
        self.naive.exclusive.discard(name)
        if topology == EXCLUSIVE_TOPOLOGY and event is not EventType.DELETED:
            self.naive.exclusive.add(name)
        metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        if topology:
            metadata["annotations"] = {topology: ZONE}
        if topology == EXCLUSIVE_TOPOLOGY:
            metadata["annotations"][REQUIRED_TOPOLOGY] = ZONE
        if topology == TOPOLOGY_SLICES:
            metadata["annotations"] = {TOPOLOGY_SLICES: f"{ZONE}={SLICE}"}
        content = {"metadata": metadata, "spec": {"minMember": minimum}}
        self._it.put(KIND, content, event)

    # ---- pods -----------------------------------------------------------------------------

    @rule(group=some, count=st.integers(1, 5), cpu_milli=cpus, wish=wishes, attempts=then)
    def members_come(
        self, group: int, count: int, cpu_milli: int, wish: str, attempts: int
    ) -> None:
        for _ in range(count):
            self._add_pod(GROUPS[group % len(GROUPS)], cpu_milli, wish)
        self._did("members came", attempts)

    @rule(group=some, sizes=st.lists(cpus, min_size=2, max_size=6), attempts=then)
    def unlike_members_come(self, group: int, sizes: list[int], attempts: int) -> None:
        for cpu_milli in sizes:
            self._add_pod(GROUPS[group % len(GROUPS)], cpu_milli, "")
        self._did("unlike members came", attempts)

    @rule(cpu_milli=cpus, wish=wishes, attempts=then)
    def a_pod_without_a_group_comes(self, cpu_milli: int, wish: str, attempts: int) -> None:
        self._add_pod("", cpu_milli, wish)
        self._did("a pod without a group came", attempts)

    def _add_pod(self, group: str, cpu_milli: int, wish: str) -> None:
        zone = wish if wish in "ab" else ""
        is_tolerant, is_loner = wish == "tolerates", wish == "loner"
        member = Member(self._name("p"), group, cpu_milli, zone, is_tolerant, is_loner)
        self.pods[member.name] = member
        self._it.add(self._pod(member))

    @precondition(lambda self: self.pods)
    @rule(place=some, attempts=then)
    def a_pod_goes(self, place: int, attempts: int) -> None:
        self._remove(nth(self.pods, place))
        self._did("a pod went", attempts)

    @precondition(lambda self: self._running())
    @rule(place=some, attempts=then)
    def a_pod_ends(self, place: int, attempts: int) -> None:
        name = nth(self._running(), place)
        member, where = self.naive.on.pop(name)
        del self.pods[name]
        self._it.update(self._pod(member, where, "Succeeded"))
        self._did("a pod ended", attempts)

    def _remove(self, name: str) -> None:
        member = self.pods.pop(name)
        _, where = self.naive.on.pop(name, (member, ""))
        is_binding = name in self.binding
        self._it.delete(self._pod(member, "" if is_binding else where))
        if is_binding:
            self.binding.remove(name)
            self._it.finish(name, LOST)

    def _pod(self, member: Member, where: str = "", phase: str = "Pending") -> Pod:
        options: PodOptions = {"cpu": f"{member.cpu_milli}m", "labels": {}}
        labels = {"loner": "yes"} if member.is_loner else {}
        if member.group:
            labels[COSCHEDULING_LABEL] = member.group
        options["labels"] = labels
        if member.is_loner:
            options["affinity"] = ALONE
        if member.zone:
            options["node_selector"] = {ZONE: member.zone}
        if member.tolerates:
            options["tolerations"] = [{"key": "dirty", "operator": "Exists"}]
        if where:
            options["node"] = where
            options["status"] = {"phase": "Running" if phase == "Pending" else phase}
        return waiting_pod(member.name, **options)

    def _running(self) -> list[str]:
        return [name for name in self.naive.on if name not in self.binding]

    # ---- bindings -------------------------------------------------------------------------

    @precondition(lambda self: self.binding)
    @rule(place=some, is_reported_first=st.booleans(), attempts=then)
    def a_binding_succeeds(self, place: int, is_reported_first: bool, attempts: int) -> None:
        self._succeed(self.binding[place % len(self.binding)], is_reported_first=is_reported_first)
        self._did("a binding succeeded", attempts)

    def _succeed(self, name: str, *, is_reported_first: bool = True) -> None:
        self.binding.remove(name)
        pod_info = self._pod(*self.naive.on[name])
        if is_reported_first:
            self._it.update(pod_info)
        self._it.finish(name)
        if not is_reported_first:
            self._it.update(pod_info)

    @precondition(lambda self: self.binding)
    @rule(place=some, attempts=then)
    def a_binding_fails(self, place: int, attempts: int) -> None:
        name = self.binding[place % len(self.binding)]
        self.binding.remove(name)
        del self.naive.on[name]
        self._it.finish(name, LOST)
        self._did("a binding failed", attempts)

    # ---- time and attempts ----------------------------------------------------------------

    @rule(attempts=then)
    def time_passes(self, attempts: int) -> None:
        self._it.until(self._it.clock.now() + LATER_SECONDS)
        self._did("time passed", attempts)

    @precondition(lambda self: self.pods)
    @rule()
    def all_is_quiet(self) -> None:
        """After a long time every waiting pod has a reason, and no pod is lost."""
        for _ in range(4):
            while self.binding:
                self._succeed(self.binding[0])
            while self._try():
                pass
            self._it.until(self._it.clock.now() + LATER_SECONDS)
        while self._try():
            pass
        for name in list(self.binding):
            self._succeed(name)
        nodes = [self._node(name) for name in self.naive.nodes]
        on = self.naive.on
        pods = [self._pod(*on.get(name, (member, ""))) for name, member in self.pods.items()]
        assert not differences(self._it.scheduler, nodes, pods)
        self._check_waiting_pods()
        self._did("all was quiet")

    def _try(self) -> bool:
        """Run one attempt and compare it with the naive scheduler."""
        before = self.naive.copy()
        was_busy = self._it.scheduler.schedule_one()
        popped, self._popped = self._popped, []
        effects = self._it.scheduler.take_effects()
        bound = {e.pod.name: e.node_name for e in effects if isinstance(e, BindPod)}
        for name, where in bound.items():
            self.naive.on[name] = (self.pods[name], where)
            self.binding.append(name)
        assert not self.naive.problems({name: self.naive.on[name] for name in bound})
        for queued, members in popped:
            if isinstance(queued, QueuedPodGroupInfo):
                self._compare(before, queued.key.name, members, bound)
            else:
                assert before.placed(members, self._names_for(before, members[0])) == bound
                self._did("pods placed alone" if bound else "pods refused alone")
        return was_busy

    def _names_for(self, before: NaiveCluster, alone: Member) -> list[str]:
        """Nodes for a member that is tried alone: those in the domain of its placed siblings."""
        _, topology = self.groups.get(alone.group, (0, ""))
        if topology not in _REQUIRING or not before.placed_members(alone.group):
            return sorted(before.nodes)
        domains = before.domains(alone.group, is_narrow=True)
        return domains[0] if domains else []

    def _members(self, queued: QueuedPodInfo) -> list[Member]:
        """The members in the order of the queue."""
        if not isinstance(queued, QueuedPodGroupInfo):
            return [self.pods[queued.pod.name]]
        return [self.pods[each.pod.name] for each in queued.members.values()]

    def _compare(
        self,
        before: NaiveCluster,
        group: str,
        members: Sequence[Member],
        bound: Mapping[str, str],
    ) -> None:
        """Compare an attempt at a group."""
        minimum, topology = self.groups[group]
        needed_count = max(1, minimum - len(before.placed_members(group)))
        domains = before.domains(group, is_narrow=topology in _REQUIRING)
        if topology == TOPOLOGY_SLICES:
            self._check_slices(before, group, bound)
            return
        if not bound:
            assert before.most(members, domains) < needed_count, f"{group} would fit"
            self._did("groups refused")
            if before.most_in_any_order(members, domains) >= needed_count:
                self._did("groups refused that would fit in another order")
            return
        assert len(bound) >= needed_count
        self._did("groups placed")
        if topology in _REQUIRING:
            assert any(set(bound.values()) <= set(names) for names in domains)
        if not topology:
            in_order = before.placed(members, before.nodes)
            if len(in_order) >= needed_count:
                assert in_order == bound
            else:
                self._did("groups placed in another order than that of the queue")

    def _check_slices(self, before: NaiveCluster, group: str, bound: Mapping[str, str]) -> None:
        """New members complete slices first. Then they are whole slices, and a smaller last one."""
        lacking_count = _odd_zones(before, before.placed_members(group))
        after = _odd_zones(before, [*before.placed_members(group), *bound.values()])
        assert after <= max(0, lacking_count - len(bound)) + 1, f"{group} breaks slices"
        self._did("groups placed in slices" if bound else "groups in slices refused")

    def _check_waiting_pods(self) -> None:
        """Check that no waiting group and no waiting single pod would fit."""
        groups = self._it.scheduler.queue.groups
        for group, (minimum, topology) in self.groups.items():
            entry = groups.get(GroupKey(COSCHEDULING_GROUP, "default", group))
            if entry is None or entry.group is None or not entry.group.is_complete:
                continue
            if topology == TOPOLOGY_SLICES:
                continue  # the naive scheduler does not divide groups
            members = self._members(entry.group)
            domains = self.naive.domains(group, is_narrow=topology in _REQUIRING)
            needed_count = max(1, minimum - len(self.naive.placed_members(group)))
            result = self.naive.most(members, domains)
            assert result < needed_count, f"{group} waits, and {result} of its members would fit"
        for name, member in self.pods.items():
            if not member.group and name not in self.naive.on:
                assert not self.naive.choice(member, self.naive.nodes), (
                    f"{name} waits and would fit"
                )


#: Annotations of groups that stay in one zone.
_REQUIRING = (REQUIRED_TOPOLOGY, EXCLUSIVE_TOPOLOGY)


def _odd_zones(cluster: NaiveCluster, names: Sequence[str]) -> int:
    """The zones with a slice that lacks a member, if members are on these nodes."""
    zones = Counter(cluster.nodes[name].zone for name in names if name in cluster.nodes)
    return sum(count % SLICE for count in zones.values())
