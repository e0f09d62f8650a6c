"""The machine searches for a sequence of events after which trees of groups are placed wrongly.

Hypothesis draws nodes, pods, and the objects of two trees and of a single group, which come, change
and go: with their minima, disruption modes and racks. Each attempt is compared with `naive_trees`:
a placement is that of the naive scheduler, a tree that is refused does not fit, and victims are
whole units, less important, sufficient, and none of them leaves for nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import initialize, precondition, rule

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from bayplan.api.objects import Node, Pod
from bayplan.framework.types import QueuedPodInfo
from bayplan.ports import BindPod, Effect, EventType, Perform
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.testing import node
from tests.engine.engine_machine import EngineMachine, nth
from tests.engine.kit import Engine, waiting_pod
from tests.engine.naive_trees import Group, NaiveTrees, TreePod
from tests.kit.ports import RecordingPort
from tests.scenarios.gangs import UPSTREAM
from tests.scenarios.trees import GATES, PLUGINS

#: Group → the group above it. Groups without pods are groups of groups.
PARENTS = {
    "t": "",
    "ta": "t",
    "tm": "t",
    "tma": "tm",
    "tmb": "tm",
    "u": "",
    "ua": "u",
    "ub": "u",
    "s": "",
}
COMPOSITES = ("t", "tm", "u")
LEAVES = tuple(name for name in PARENTS if name not in COMPOSITES)
PRIORITIES = (0, 5, 10)
#: Longer than the longest delay after failures.
LATER_SECONDS = 11.0

some = st.integers(0, 40)
#: Attempts after an event.
then = st.sampled_from((9, 0, 1, 2))
cpus = st.sampled_from((1000, 500, 2000))
minima = st.sampled_from((2, 1, 1, 2, 3))
modes = st.sampled_from((False, False, True))


class TreeMachine(EngineMachine):
    def __init__(self) -> None:
        super().__init__()
        self.naive = NaiveTrees()
        #: By name, all pods that have not ended.
        self.pods: dict[str, TreePod] = {}
        #: By the first letter of a group's name.
        self.priorities: dict[str, int] = {}
        self._popped: list[TreePod] = []
        #: The root that was tried; "" for a pod alone.
        self._root = ""

    @initialize(
        sizes=st.lists(some, min_size=2, max_size=4),
        levels=st.lists(st.sampled_from(PRIORITIES), min_size=3, max_size=3),
        drawn=st.lists(st.tuples(minima, modes, some), min_size=9, max_size=9),
    )
    def begin(
        self, sizes: list[int], levels: list[int], drawn: list[tuple[int, bool, int]]
    ) -> None:
        self.engine = Engine(
            plugins=[*PLUGINS, "DefaultPreemption"], gates=GATES, tie_break=["NodeNameOrder"]
        )
        queue = self.engine.scheduler.queue
        pop = queue.pop

        def noted(uid: str | None = None) -> QueuedPodInfo | None:
            popped = pop(uid)
            is_group = isinstance(popped, QueuedPodGroupInfo)
            self._root = popped.key.name if is_group else ""
            queued = [] if popped is None else [popped]
            queued = list(popped.members.values()) if is_group else queued
            self._popped = [self.pods[each.pod.name] for each in queued]
            return popped

        setattr(queue, "pop", noted)  # noqa: B010 - to see what is tried
        self.priorities = dict(zip("tus", levels, strict=True))
        for size in sizes:
            self._put_node(self._name("n"), size)
        for name, (minimum, is_whole, place) in zip(PARENTS, drawn, strict=True):
            self._put_group(name, minimum, is_whole, is_on_rack=place % 4 == 0)

    def teardown(self) -> None:
        if self.engine is not None:
            self.engine.scheduler.close()

    # ---- nodes ----------------------------------------------------------------------------

    @rule(size=some, attempts=then)
    def a_node_comes(self, size: int, attempts: int) -> None:
        self._put_node(self._name("n"), size)
        self._did("a node came", attempts)

    @precondition(lambda self: len(self.naive.nodes) > 1)
    @rule(place=some, attempts=then)
    def a_node_goes(self, place: int, attempts: int) -> None:
        name = nth(self.naive.nodes, place)
        for pod_name in [n for n, (_, where) in self.naive.on.items() if where == name]:
            self._remove(pod_name)
        self._it.delete(self._node(name))
        del self.naive.nodes[name]
        self._did("a node went", attempts)

    def _put_node(self, name: str, size: int) -> None:
        self.naive.nodes[name] = ((1000, 2000, 3000, 4000)[size % 4], "ab"[size % 2])
        self._it.add(self._node(name))

    def _node(self, name: str) -> Node:
        cpu_milli, rack = self.naive.nodes[name]
        return node(name, cpu=f"{cpu_milli}m", pods=110, labels={"rack": rack})

    # ---- groups ---------------------------------------------------------------------------

    @rule(place=some, minimum=minima, is_whole=modes, attempts=then)
    def a_group_comes_or_changes(
        self, place: int, minimum: int, is_whole: bool, attempts: int
    ) -> None:
        name = nth(PARENTS, place)
        is_new = name not in self.naive.groups
        self._put_group(name, minimum, is_whole, is_on_rack=place % 4 == 0)
        self._did("a group came" if is_new else "a group changed", attempts)

    @precondition(lambda self: len(self.naive.groups) > len(PARENTS) - 2)
    @rule(place=some, attempts=then)
    def a_group_goes(self, place: int, attempts: int) -> None:
        name = nth(self.naive.groups, place)
        self._tell(self.naive.groups.pop(name), EventType.DELETED)
        self._did("a group went", attempts)

    def _put_group(self, name: str, minimum: int, is_whole: bool, *, is_on_rack: bool) -> None:
        is_composite = name in COMPOSITES
        is_on_rack = is_on_rack and not PARENTS[name]
        is_new = name not in self.naive.groups
        group = Group(name, PARENTS[name], minimum, is_composite, is_whole, is_on_rack)
        self.naive.groups[name] = group
        self._tell(group, EventType.ADDED if is_new else EventType.MODIFIED)

    def _tell(self, group: Group, event: EventType) -> None:
        count = "minGroupCount" if group.is_composite else "minCount"
        spec: dict[str, Any] = {
            "schedulingPolicy": {"gang": {count: group.minimum}},
            "priority": self.priorities[group.name[0]],
            "disruptionMode": {"all" if group.is_whole else "single": {}},
        }
        if group.parent:
            spec["parentCompositePodGroupName"] = group.parent
        if group.is_on_rack:
            spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
        metadata = {"name": group.name, "namespace": "default", "uid": f"uid-{group.name}"}
        kind = COMPOSITE_POD_GROUP if group.is_composite else UPSTREAM
        self._it.put(kind, {"metadata": metadata, "spec": spec}, event)

    # ---- pods -----------------------------------------------------------------------------

    @rule(place=some, count=st.integers(1, 3), cpu_milli=cpus, attempts=then)
    def pods_of_a_group_come(self, place: int, count: int, cpu_milli: int, attempts: int) -> None:
        group = LEAVES[place % len(LEAVES)]
        for _ in range(count):
            self._add_pod(group, cpu_milli, self.priorities[group[0]])
        self._did("pods of a group came", attempts)

    @rule(cpu_milli=cpus, counts=st.lists(st.integers(0, 2), min_size=5, max_size=5), attempts=then)
    def pods_of_all_groups_of_a_tree_come(
        self, cpu_milli: int, counts: list[int], attempts: int
    ) -> None:
        for group, count in zip(LEAVES, counts, strict=False):
            for _ in range(count):
                self._add_pod(group, cpu_milli, self.priorities[group[0]])
        self._did("pods of all groups of a tree came", attempts)

    @rule(cpu_milli=cpus, place=some, attempts=then)
    def a_pod_without_a_group_comes(self, cpu_milli: int, place: int, attempts: int) -> None:
        self._add_pod("", cpu_milli, PRIORITIES[place % len(PRIORITIES)])
        self._did("a pod without a group came", attempts)

    @precondition(lambda self: self.pods)
    @rule(place=some, attempts=then)
    def a_pod_goes(self, place: int, attempts: int) -> None:
        self._remove(nth(self.pods, place))
        self._did("a pod went", attempts)

    def _add_pod(self, group: str, cpu_milli: int, priority: int) -> None:
        pod = TreePod(self._name("p"), group, cpu_milli, priority)
        self.pods[pod.name] = pod
        self._it.add(self._pod(pod))

    def _remove(self, name: str) -> None:
        pod = self.pods.pop(name)
        _, where = self.naive.on.pop(name, (pod, ""))
        self._it.delete(self._pod(pod, where))

    def _pod(self, pod: TreePod, where: str = "") -> Pod:
        options: dict[str, Any] = {"cpu": f"{pod.cpu_milli}m", "priority": pod.priority}
        if pod.group:
            options["spec"] = {"schedulingGroup": {"podGroupName": pod.group}}
        if where:
            options |= {"node": where, "status": {"phase": "Running"}}
        return waiting_pod(pod.name, **options)

    # ---- time and attempts ----------------------------------------------------------------

    @rule(attempts=then)
    def time_passes(self, attempts: int) -> None:
        self._it.until(self._it.clock.now() + LATER_SECONDS)
        self._did("time passed", attempts)

    @precondition(lambda self: self.pods)
    @rule()
    def all_is_quiet(self) -> None:
        """After a long time no tree and no pod waits that would fit."""
        for _ in range(6):
            while self._try():
                pass
            self._it.until(self._it.clock.now() + LATER_SECONDS)
        while self._try():
            pass
        self._read_nominations()
        for root in {self.naive.root_of(name) for name in LEAVES} - {""}:
            waiting = self._waiting(root)
            pods = [pod for each in waiting.values() for pod in each]
            if self.naive.is_met(root, self.naive.counts(pods)):
                assert not self.naive.tried(root, waiting), f"{root} waits and would fit"
        for pod in self.pods.values():
            if not pod.group and pod.name not in self.naive.on:
                world = self.naive.copy()
                world.nominated.pop(pod.name, None)
                assert not world.choice(pod, sorted(world.nodes)), f"{pod} waits and would fit"
        self._did("all was quiet")

    def _waiting(self, root: str) -> dict[str, list[TreePod]]:
        leaves = {leaf.name: list[TreePod]() for leaf in self.naive.leaves(root)}
        for pod in self.pods.values():
            if pod.group in leaves and pod.name not in self.naive.on:
                leaves[pod.group].append(pod)
        return leaves

    def _try(self) -> bool:
        """Run one attempt and compare it with the naive scheduler."""
        self._read_nominations()
        before = self.naive.copy()
        was_busy = self._it.scheduler.schedule_one()
        popped, self._popped = self._popped, []
        effects = self._it.scheduler.take_effects()
        bound = {e.pod.name: e.node_name for e in effects if isinstance(e, BindPod)}
        victims = self._evicted(effects)
        if popped:
            self._read_nominations()
            self._compare(before, popped, bound, victims)
        for name, where in bound.items():
            self.naive.on[name] = (self.pods[name], where)
            self._it.update(self._pod(self.pods[name], where))
            self._it.finish(name)
        for name in victims:
            self._remove(name)
        return was_busy

    def _evicted(self, effects: Sequence[Effect]) -> list[str]:
        """Perform the evictions, of which the last one follows the others. Returns the names of the
        victims."""
        port = RecordingPort()
        while effects:
            for effect in effects:
                if isinstance(effect, Perform):
                    asyncio.run(effect.run(port))
            effects = self._it.scheduler.take_effects()
        return [key.partition("/")[2] for key in port.deleted]

    def _read_nominations(self) -> None:
        self.naive.nominated = {
            pod_name: (self.pods[pod_name], name)
            for name in self.naive.nodes
            for pod_name in self._it.nominated_on(name)
            if pod_name not in self.naive.on
        }

    def _compare(
        self,
        before: NaiveTrees,
        pods: Sequence[TreePod],
        bound: Mapping[str, str],
        victims: Sequence[str],
    ) -> None:
        root, priority = self._root, pods[0].priority
        what = "pods alone" if not root else "trees" if root in COMPOSITES else "groups"
        possible = _possible(before, root, pods)
        if bound:
            assert bound in possible, f"{bound} is none of {possible}"
            self._did(f"{what} placed")
            return
        assert not possible, f"{root or pods[0].name} would fit"
        self._did(f"{what} refused")
        emptier = before.without_less_important(priority)
        if not victims:
            is_helped = emptier.on != before.on and _possible(emptier, root, pods)
            assert not is_helped, f"{root or pods[0].name} evicts no pod"
            return
        names = {pod.name for pod in pods}
        placed = {n: one for n, one in self.naive.nominated.items() if n in names}
        problems = before.problems_of_victims(victims, placed, priority)
        assert not problems, f"{problems}: {victims} for {placed}"
        if root:
            after = before.without(victims)
            assert after.is_met(root, after.counts(pod for pod, _ in placed.values()))
        self._did(f"{what} preempted")
        if len(victims) > len({before.unit_of(before.on[name][0]) for name in victims}):
            self._did("whole groups evicted")


def _possible(world: NaiveTrees, root: str, pods: Sequence[TreePod]) -> list[dict[str, str]]:
    """The placements of which an attempt makes one."""
    if root:
        waiting = {name: [pod for pod in pods if pod.group == name] for name in LEAVES}
        return world.tried(root, waiting)
    world = world.copy()
    world.nominated.pop(pods[0].name, None)
    where = world.choice(pods[0], sorted(world.nodes))
    return [{pods[0].name: where}] if where else []
