"""The machine searches for a sequence of events after which reuse changes a decision.

Hypothesis draws the events from few values, so that signatures are equal, nodes fill up, and one
plugin changes what another one reads. Each rule ends with some attempts and a comparison of
everything visible.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bayplan.api.objects import SERVICE, ZONE_LABEL, Pod, decode
from bayplan.api.pod_groups import COSCHEDULING_GROUP, COSCHEDULING_LABEL, REQUIRED_TOPOLOGY
from bayplan.framework.status import Code, Status, unschedulable
from bayplan.ports import BindPod, EventType
from bayplan.testing import NodeOptions, PodOptions, api_pod, node
from tests.engine.reuse_kinds import CHANGES, EQUAL_NODES, KINDS, NODE_KINDS, is_on
from tests.engine.reuse_pair import FIRST, SECOND, Fault, Pair, no_fault
from tests.engine.reuse_storage import DEVICES, STORAGE

NODES_MAX = 18
GROUP = f"{COSCHEDULING_GROUP}/v1alpha1 PodGroup"

some = st.integers(0, 40)
then = st.sampled_from((1, 0, 2, 4))

_LARGE, _TINY = 1 << 26, 12_000
#: Upstream's profile, and a plugin that answers by the node that a pod names.
WITH_PINS: Mapping[str, Any] = {
    "is_plain": True,
    "has_keys": False,
    "bytes_max": _LARGE,
    "refuses": False,
    "has_pins": True,
}
#: Options of the pair: most profiles can rank, some can cache next to nothing, some sample nodes,
#: and in some a plugin reads another's scores.
FLAVOURS: Sequence[Mapping[str, Any]] = (
    {"is_plain": False, "has_keys": False, "bytes_max": _LARGE},
    {"is_plain": True, "has_keys": False, "bytes_max": _LARGE},
    {"is_plain": False, "has_keys": False, "bytes_max": _LARGE},
    {"is_plain": False, "has_keys": True, "bytes_max": _LARGE},
    {"is_plain": False, "has_keys": False, "bytes_max": _TINY},
    {"is_plain": False, "has_keys": False, "bytes_max": _TINY},
    {"is_plain": False, "has_keys": False, "bytes_max": _LARGE, "has_graph": True},
    {"is_plain": False, "has_keys": False, "bytes_max": _LARGE, "percentage": 40},
    {"is_plain": False, "has_keys": False, "bytes_max": _LARGE, "has_extenders": True},
    {"is_plain": True, "has_keys": False, "bytes_max": _LARGE, "has_extenders": True},
    {"is_plain": False, "has_keys": True, "bytes_max": _LARGE, "has_extenders": True},
    {"is_plain": False, "has_keys": False, "bytes_max": _TINY, "has_extenders": True},
    {"is_plain": True, "has_keys": False, "bytes_max": _TINY, "has_extenders": True},
    {"is_plain": False, "has_keys": False, "bytes_max": _LARGE, "refuses": False},
    {"is_plain": True, "has_keys": False, "bytes_max": _LARGE, "refuses": False},
    {"is_plain": True, "has_keys": False, "bytes_max": _TINY, "refuses": False},
    WITH_PINS,
)

#: A high priority: these pods are tried first, the newest first, one right after another.
_FIRST_OF_ALL = 100
#: Kinds of the rows of pods that events interrupt, with every normaliser.
_RANKED = ("all normalisers", "most", "fewest", "between", "small", "fails and ranks")
_RANKS = ("0", "5", "7", "9")


class ReuseMachine(RuleBasedStateMachine):
    """``tally``, ``fault`` and ``pool`` are the run's: a subclass per run holds them."""

    tally: ClassVar[Counter[str]] = Counter()
    fault: ClassVar[Fault] = staticmethod(no_fault)
    #: Kinds of pods that are drawn from.
    pool: ClassVar[Sequence[str]] = sorted(KINDS)

    def __init__(self) -> None:
        super().__init__()
        self.pair: Pair | None = None
        #: By name.
        self.nodes: dict[str, NodeOptions] = {}
        self.gone: dict[str, NodeOptions] = {}
        #: By name: options, and the node if it exists already.
        self.pods: dict[str, PodOptions] = {}
        self.kinds: Sequence[str] = ()
        #: Pods with a binding in flight, with their nodes.
        self.binding: dict[str, str] = {}
        self.services: set[str] = set()
        #: Whether extenders answer in a later step.
        self.are_extenders_slow = False
        #: Storage and devices, by kind and name.
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._names = 0

    @initialize(
        flavour=st.sampled_from(FLAVOURS),
        kinds=st.lists(st.integers(0, 10_000), min_size=2, max_size=6),
        node_kinds=st.lists(some, min_size=3, max_size=8),
    )
    def begin(self, flavour: Mapping[str, Any], kinds: list[int], node_kinds: list[int]) -> None:
        self.pair = Pair(self.tally, type(self).fault, **flavour)
        self._did(f"a score graph: {flavour.get('has_graph', False)}")
        self._did(f"nodes to score: {flavour.get('percentage', 100)}")
        pool = type(self).pool
        self.kinds = [pool[number % len(pool)] for number in kinds]
        for kind in node_kinds:
            self._add_node(f"n{len(self.nodes)}", kind)

    def teardown(self) -> None:
        if self.pair is not None:
            self.pair.close()

    def _did(self, what: str) -> None:
        self.tally[what] += 1

    def _after(self, attempts: int) -> None:
        """Try some pods and compare the schedulers."""
        assert self.pair is not None
        self.tally["steps"] += 1
        self.pair.schedule(attempts)
        if not self.are_extenders_slow:
            self.pair.answer_extenders()
        for effect in self.pair.compare([uid(name) for name in self.pods]):
            if isinstance(effect, BindPod):
                self.binding[effect.pod.name] = effect.node_name

    # ---- pods -----------------------------------------------------------------------------

    @rule(place=some, count=st.sampled_from((1, 2, 3, 6)), attempts=then)
    def pods_come(self, place: int, count: int, attempts: int) -> None:
        kind = self.kinds[place % len(self.kinds)]
        for _ in range(count):
            self._new_pod(KINDS[kind])
        self._did("pods came")
        self._after(attempts)

    @rule(place=some, count=st.sampled_from((1, 3)))
    def pods_come_and_are_tried(self, place: int, count: int) -> None:
        """One after another, so that only the row of each placement is evaluated again."""
        kind = self.kinds[place % len(self.kinds)]
        for _ in range(count):
            self._new_pod(KINDS[kind])
            self._after(1)

    @rule(
        kind=st.sampled_from((*_RANKED[:5], "web", "lone", "pinned", "too large", "")),
        place=some,
        profile=st.sampled_from((FIRST, SECOND)),
        count=st.sampled_from((4, 8, 20)),
        pause=st.sampled_from((0, 3, 7)),
    )
    def a_run_of_pods_comes(
        self, kind: str, place: int, profile: str, count: int, pause: int
    ) -> None:
        """Equal pods are tried one right after another; a comparison interrupts the run."""
        assert self.pair is not None
        kind = kind or self.kinds[place % len(self.kinds)]
        options = {**KINDS[kind], "scheduler_name": profile, "priority": _FIRST_OF_ALL}
        self._end_nominations()
        for _ in range(count):
            self._new_pod(options)
        self._did("a run of pods came")
        self._after(pause)
        self.pair.schedule_run(count, is_watched=pause == 3)
        self._after(2)

    @rule(
        count=st.sampled_from((4, 8)),
        facet=st.sampled_from(("cordons", "taints", "allocatable", "labels")),
        value=some,
    )
    def pods_of_one_node_come(self, count: int, facet: str, value: int) -> None:
        """Equal pods name their node, and the node changes between two of them."""
        name = self._add_equal_node()
        options = {**KINDS["small"], "affinity": is_on(name), "priority": _FIRST_OF_ALL}
        self._end_nominations()
        for further in range(count):
            if further == count // 2:
                self._change_node(name, facet, value)
            self._new_pod(options)
            self._after(1)

    @rule(
        kind=st.sampled_from(("small", "port", "tolerant", "web")),
        count=st.sampled_from((4, 12, 24)),
        facet=st.sampled_from(("cordons", "taints", "allocatable", "labels")),
        value=some,
    )
    def pods_of_a_daemon_set_come(self, kind: str, count: int, facet: str, value: int) -> None:
        """Equal pods name one node each, in turn, and a node changes before its pod comes."""
        names = sorted(self.nodes)
        self._end_nominations()
        for further in range(count):
            name = names[further % len(names)]
            if further == count // 2:
                self._change_node(name, facet, value)
            self._new_pod({**KINDS[kind], "affinity": is_on(name), "priority": _FIRST_OF_ALL})
            self._after(1)
        self._did("pods of a DaemonSet came")

    @precondition(lambda self: self.pair is not None and self.pair.has_extenders)
    @rule(
        kind=st.sampled_from(("licensed", "small")),
        count=st.sampled_from((1, 2, 3)),
        are_extenders_slow=st.booleans(),
        new_nodes=st.sampled_from((0, 1, 2)),
    )
    def pods_come_for_extenders(
        self, kind: str, count: int, are_extenders_slow: bool, new_nodes: int
    ) -> None:
        """Pods with equal requests, and without extender calls, arrive in between. Nodes with room
        leave extenders a choice."""
        self.are_extenders_slow = are_extenders_slow
        for _ in range(min(new_nodes, NODES_MAX - len(self.nodes))):
            self._add_equal_node()
        self._row_of("licensed", count)
        self._row_of(kind, count)

    @rule(place=some, attempts=then)
    def a_pod_comes_for_the_second_profile(self, place: int, attempts: int) -> None:
        kind = self.kinds[place % len(self.kinds)]
        self._new_pod({**KINDS[kind], "scheduler_name": SECOND})
        self._did("a second profile's pod came")
        self._after(attempts)

    @rule(place=some, where=some, attempts=then)
    def a_pod_is_on_a_node(self, place: int, where: int, attempts: int) -> None:
        """Another scheduler bound the pod; the node may be unknown."""
        names = [*sorted({**self.nodes, **self.gone}), "elsewhere"]
        kind = self.kinds[place % len(self.kinds)]
        self._new_pod({**KINDS[kind], "node": names[where % len(names)], "gates": ()})
        self._did("another's pod came")
        self._after(attempts)

    @rule(
        kind=st.sampled_from(("small", "web", "apart", "all normalisers")),
        count=st.sampled_from((2, 3, 6)),
        minimum=st.sampled_from((2, 3, 4)),
        topology=st.sampled_from(("", ZONE_LABEL)),
        app_labels=st.sampled_from(((), (), ("web", "lone"))),
        attempts=then,
    )
    def a_group_comes(
        self,
        kind: str,
        count: int,
        minimum: int,
        topology: str,
        app_labels: Sequence[str],
        attempts: int,
    ) -> None:
        """Its members are placed together, or not at all if there are too few. They differ in a
        label that nothing reads, and by ``app_labels`` in one that other pods and services read.
        Nobody watches the attempt, so that equal members are chosen for together."""
        assert self.pair is not None
        self._end_nominations()
        self._names += 1
        name = f"g{self._names}"
        annotations = {REQUIRED_TOPOLOGY: topology} if topology else {}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        content = {
            "metadata": {**metadata, "annotations": annotations},
            "spec": {"minMember": minimum},
        }
        self.pair.tell(EventType.ADDED, GROUP, decode(GROUP, content))
        labels = {**KINDS[kind].get("labels", {}), COSCHEDULING_LABEL: name}
        for index in range(count):
            labels = {**labels, "index": str(index % 4)}
            if app_labels:
                labels["app"] = app_labels[index % len(app_labels)]
            self._new_pod({**KINDS[kind], "labels": labels, "priority": _FIRST_OF_ALL})
        self._did("a group came")
        self.pair.schedule_run(1, is_watched=False)
        self._after(attempts)

    @precondition(lambda self: self.pods)
    @rule(place=some, attempts=then)
    def a_pod_goes(self, place: int, attempts: int) -> None:
        name = sorted(self.pods)[place % len(self.pods)]
        self._tell_pod(EventType.DELETED, name)
        del self.pods[name]
        self.binding.pop(name, None)
        self._did("a pod went")
        self._after(attempts)

    @precondition(lambda self: self._pending())
    @rule(place=some, where=some, attempts=then)
    def a_pod_is_nominated(self, place: int, where: int, attempts: int) -> None:
        name = self._one_pending(place)
        names = [*sorted(self.nodes), ""]
        self._change_pod(name, nominated_node=names[where % len(names)])
        self._did("a pod was nominated")
        self._after(attempts)

    @precondition(lambda self: self._pending())
    @rule(place=some, kind=some, attempts=then)
    def a_pod_changes(self, place: int, kind: int, attempts: int) -> None:
        """The pod becomes one of another kind and loses its gates."""
        name = self._one_pending(place)
        options = KINDS[self.kinds[kind % len(self.kinds)]]
        old_options = {
            key: value
            for key, value in self.pods[name].items()
            if key in ("nominated_node", "scheduler_name")
        }
        self.pods[name] = PodOptions(**{**options, **old_options, "gates": ()})
        self._tell_pod(EventType.MODIFIED, name)
        self._did("a pod changed")
        self._after(attempts)

    # ---- bindings -------------------------------------------------------------------------

    @precondition(lambda self: self.binding)
    @rule(place=some, is_reported_first=st.booleans(), attempts=then)
    def a_binding_succeeds(self, place: int, is_reported_first: bool, attempts: int) -> None:
        """The watch reports the binding before or after the call returns."""
        assert self.pair is not None
        name = sorted(self.binding)[place % len(self.binding)]
        where = self.binding.pop(name)
        if is_reported_first:
            self._change_pod(name, node=where)
            self.pair.finish(uid(name), None)
        else:
            self.pair.finish(uid(name), None)
            self._change_pod(name, node=where)
        self._did("a binding was confirmed by the watch")
        self._after(attempts)

    @precondition(lambda self: self.binding)
    @rule(place=some, is_rejected=st.booleans(), attempts=then)
    def a_binding_fails(self, place: int, is_rejected: bool, attempts: int) -> None:
        assert self.pair is not None
        name = sorted(self.binding)[place % len(self.binding)]
        del self.binding[name]
        failure = unschedulable("no room after all").with_plugin("Refuses")
        self.pair.finish(
            uid(name), failure if is_rejected else Status(Code.ERROR, ("lost",), "DefaultBinder")
        )
        self._did("a binding failed")
        self._after(attempts)

    @rule(place=some, is_allowed=st.booleans(), count=st.sampled_from((1, 2)), attempts=then)
    def a_wait_ends(self, place: int, is_allowed: bool, count: int, attempts: int) -> None:
        assert self.pair is not None
        self._row_of("waits", count)
        for _ in range(count):
            if self.pair.end_wait(place, is_allowed=is_allowed):
                self._did("a wait at Permit ended")
        self._after(attempts)

    @rule(kind=st.sampled_from(("reserve", "permit")), attempts=then)
    def a_pod_is_turned_down(self, kind: str, attempts: int) -> None:
        """Reserve or Permit rejects the pod after the choice of its node."""
        self._row_of(kind, 1)
        self._after(attempts)

    # ---- evictions ------------------------------------------------------------------------

    @rule(
        place=some,
        rank=st.integers(1, 4),
        profile=st.sampled_from((FIRST, SECOND)),
        count=st.sampled_from((1, 2)),
        are_evicted=st.booleans(),
    )
    def pods_preempt(
        self, place: int, rank: int, profile: str, count: int, are_evicted: bool
    ) -> None:
        """Equal pods arrive at nodes that are full of less important pods."""
        names = sorted(self.nodes)
        for further in range(4):
            where = names[(place + further) % len(names)]
            self._new_pod({**KINDS["evictable"], "node": where, "priority": further % rank})
        expected = {**KINDS["makes room"], "priority": _FIRST_OF_ALL * rank}
        for _ in range(count):
            self._new_pod({**expected, "scheduler_name": profile})
            self._after(1)
            if are_evicted:
                self._evict()
        self._after(1)

    @precondition(lambda self: self.pair is not None and self.pair.writes)
    @rule(attempts=then)
    def victims_go(self, attempts: int) -> None:
        self._evict()
        self._after(attempts)

    def _evict(self) -> None:
        """Perform the writes, and delete the evicted pods."""
        assert self.pair is not None
        for name in self.pair.perform():
            if name in self.pods:
                self._tell_pod(EventType.DELETED, name)
                del self.pods[name]
                self.binding.pop(name, None)
                self._did("a pod was evicted")

    # ---- events that interrupt a row of equal pods ---------------------------------------------

    @rule(kind=st.sampled_from(_RANKED), count=st.sampled_from((2, 3)), value=some)
    def much_changes_in_between(self, kind: str, count: int, value: int) -> None:
        self._row_of(kind, count)
        for further in (0, 3):
            self._change_many("labels", value + further)
            self._row_of(kind, 2)

    @rule(kind=st.sampled_from(_RANKED[:4]), place=some, rank=st.sampled_from(_RANKS))
    def an_extreme_moves_in_between(self, kind: str, place: int, rank: str) -> None:
        self._row_of(kind, 3)
        name = sorted(self.nodes)[place % len(self.nodes)]
        self._label_node(name, rank=rank)
        self._row_of(kind, 2)

    @rule(kind=st.sampled_from((*_RANKED, "looks")), name=st.sampled_from(("red", "blue")))
    def a_service_comes_in_between(self, kind: str, name: str) -> None:
        self._row_of(kind, 3)
        self._toggle_service(name)
        self._row_of(kind, 1)

    @rule(where=some)
    def a_term_comes_in_between(self, where: int) -> None:
        """A plugin that skipped takes part for some attempts."""
        self._row_of("lone", 3)
        for further in (0, 1):
            other = sorted(self.nodes)[(where + further) % len(self.nodes)]
            name = self._new_pod({**KINDS["apart from lone"], "node": other})
            self._row_of("lone", 1)
            self._tell_pod(EventType.DELETED, name)
            del self.pods[name]
            self._row_of("lone", 2)

    @rule(kind=st.sampled_from(("fails", "fails and ranks")), place=some, rank=some)
    def a_plugin_fails_in_between(self, kind: str, place: int, rank: int) -> None:
        self._row_of(kind, 2)
        for further in range(6):
            name = sorted(self.nodes)[(place + further) % len(self.nodes)]
            self._label_node(name, broken=("filter", "score")[(rank + further) % 2])
            self._row_of(kind, 1)
            self._label_node(name, broken="no")
            self._row_of(kind, 2)

    @rule(seconds=st.sampled_from((0.5, 2.0, 6.0, 400.0)), attempts=then)
    def time_passes(self, seconds: float, attempts: int) -> None:
        assert self.pair is not None
        self.pair.wait(seconds)
        self._did("time passed")
        self._after(attempts)

    # ---- nodes ----------------------------------------------------------------------------

    @precondition(lambda self: len(self.nodes) < NODES_MAX)
    @rule(kind=some, attempts=then)
    def a_node_comes(self, kind: int, attempts: int) -> None:
        self._names += 1
        self._add_node(f"m{self._names}", kind)
        self._did("a node came")
        self._after(attempts)

    @precondition(lambda self: len(self.nodes) + 3 <= NODES_MAX)
    @rule(kind=st.sampled_from(("small", "large", "two ports")), count=st.sampled_from((6, 12)))
    def equal_nodes_fill_up(self, kind: str, count: int) -> None:
        """Equal pods make nodes equivalent that differed by one pod."""
        for _ in range(3):
            self._add_equal_node()
        self._row_of(kind, count)

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(place=some, kind=some, is_back=st.booleans(), attempts=then)
    def a_node_goes(self, place: int, kind: int, is_back: bool, attempts: int) -> None:
        """Sometimes another node with the same name is added at once."""
        assert self.pair is not None
        name = sorted(self.nodes)[place % len(self.nodes)]
        self.gone[name] = self.nodes.pop(name)
        self.pair.node(EventType.DELETED, node(name, **self.gone[name]))
        self._did("a node went")
        self._after(attempts)
        if is_back:
            self._back(name, kind)

    @rule(place=some, kind=some, attempts=then)
    def a_node_is_replaced(self, place: int, kind: int, attempts: int) -> None:
        """The new node gets its row if no pod is on it."""
        assert self.pair is not None
        name = sorted(self.nodes)[place % len(self.nodes)]
        self.gone[name] = self.nodes.pop(name)
        self.pair.node(EventType.DELETED, node(name, **self.gone[name]))
        self._names += 1
        self._add_node(f"m{self._names}", kind)
        self._did("a node was replaced")
        self._after(attempts)

    @precondition(lambda self: self.gone)
    @rule(place=some, kind=some, attempts=then)
    def a_node_comes_back(self, place: int, kind: int, attempts: int) -> None:
        self._back(sorted(self.gone)[place % len(self.gone)], kind)
        self._after(attempts)

    @rule(
        place=some,
        facets=st.lists(st.sampled_from(sorted(CHANGES)), min_size=2, max_size=5, unique=True),
        value=some,
        attempts=then,
    )
    def a_node_changes(self, place: int, facets: list[str], value: int, attempts: int) -> None:
        name = sorted(self.nodes)[place % len(self.nodes)]
        for facet in facets:
            self._change_node(name, facet, value)
            self._did(f"a node changed: {facet}")
        self._after(attempts)

    @rule(facet=st.sampled_from(("labels", "taints")), value=some, attempts=then)
    def many_nodes_change(self, facet: str, value: int, attempts: int) -> None:
        """More nodes change than are evaluated row by row."""
        self._change_many(facet, value)
        self._did("many nodes changed")
        self._after(attempts)

    # ---- other objects --------------------------------------------------------------------

    @rule(name=st.sampled_from(("red", "web", "blue")), attempts=then)
    def a_service_comes_or_goes(self, name: str, attempts: int) -> None:
        """A service selects pods for default spreading, and a plugin looks up its name."""
        self._toggle_service(name)
        self._after(attempts)

    @rule(place=some, state=st.integers(0, 3), count=st.sampled_from((0, 0, 3)), attempts=then)
    def storage_or_devices_change(self, place: int, state: int, count: int, attempts: int) -> None:
        """A claim, a volume, a class, a slice comes, changes or goes; sometimes while pods without
        any are ranked."""
        kind = _RANKED[place % len(_RANKED)]
        self._row_of(kind, count)
        for further in range(2):
            self._put(STORAGE[(place + further) % len(STORAGE)], state)
            self._row_of(kind, count // 2)
        self._put(DEVICES[place % len(DEVICES)], state)
        self._did("storage and devices changed")
        self._after(attempts)

    # ---- inside ---------------------------------------------------------------------------

    def _put(self, states: Sequence[Mapping[str, Any]], state: int) -> None:
        """Set the state of an object, or delete it if there is no such state."""
        assert self.pair is not None
        first_state = states[0]
        kind = f"{first_state['apiVersion']} {first_state['kind']}"
        key = (kind, first_state["metadata"]["name"])
        self._names += 1
        if state % (len(states) + 1) < len(states):
            content = dict(states[state % (len(states) + 1)])
            meta = {**content["metadata"], "resourceVersion": str(self._names)}
            event = EventType.MODIFIED if key in self.objects else EventType.ADDED
            self.objects[key] = {**content, "metadata": meta}
            self.pair.tell(event, kind, decode(kind, self.objects[key]))
        elif key in self.objects:
            self.pair.tell(EventType.DELETED, kind, decode(kind, self.objects.pop(key)))

    def _add_equal_node(self) -> str:
        """A node like all nodes that this method adds."""
        assert self.pair is not None
        self._names += 1
        name = f"e{self._names}"
        self.nodes[name] = EQUAL_NODES
        self.pair.node(EventType.ADDED, node(name, **EQUAL_NODES))
        return name

    def _row_of(self, kind: str, count: int) -> None:
        """Equal pods that are tried one after another, without nominations of other pods."""
        self._end_nominations()
        options = {**KINDS[kind], "priority": _FIRST_OF_ALL}
        for _ in range(count):
            self._new_pod(options)
            self._after(1)

    def _end_nominations(self) -> None:
        for name in self._pending():
            if self.pods[name].get("nominated_node"):
                self._change_pod(name, nominated_node="")

    def _new_pod(self, options: Mapping[str, Any]) -> str:
        self._names += 1
        name = f"p{self._names}"
        self.pods[name] = PodOptions(**{"scheduler_name": FIRST, **options})
        self._tell_pod(EventType.ADDED, name)
        return name

    def _change_pod(self, name: str, **changes: Any) -> None:
        self.pods[name] = PodOptions(**{**self.pods[name], **changes})
        self._tell_pod(EventType.MODIFIED, name)

    def _tell_pod(self, kind: EventType, name: str) -> None:
        assert self.pair is not None
        self.pair.pod(kind, pod_of(name, self.pods[name]))

    def _pending(self) -> list[str]:
        return [
            name
            for name, options in sorted(self.pods.items())
            if not options.get("node") and name not in self.binding
        ]

    def _one_pending(self, place: int) -> str:
        pending = self._pending()
        return pending[place % len(pending)]

    def _add_node(self, name: str, kind: int) -> None:
        assert self.pair is not None
        self.nodes[name] = NODE_KINDS[kind % len(NODE_KINDS)]
        self.pair.node(EventType.ADDED, node(name, **self.nodes[name]))

    def _back(self, name: str, kind: int) -> None:
        del self.gone[name]
        self._add_node(name, kind)
        self._did("a node came back")

    def _change_node(self, name: str, facet: str, value: int) -> None:
        values = CHANGES[facet]
        self._set_node(name, {**self.nodes[name], **values[value % len(values)]})

    def _label_node(self, name: str, **labels: str) -> None:
        options = self.nodes[name]
        self._set_node(name, {**options, "labels": {**options.get("labels", {}), **labels}})

    def _set_node(self, name: str, options: Mapping[str, Any]) -> None:
        assert self.pair is not None
        self.nodes[name] = NodeOptions(**options)
        self.pair.node(EventType.MODIFIED, node(name, **self.nodes[name]))

    def _change_many(self, facet: str, value: int) -> None:
        names = sorted(self.nodes)
        for index in range(20):
            self._change_node(names[index % len(names)], facet, value + index)

    def _toggle_service(self, name: str) -> None:
        assert self.pair is not None
        metadata = {"name": name, "namespace": "default"}
        content = {"metadata": metadata, "spec": {"selector": {"app": name}}}
        kind = EventType.DELETED if name in self.services else EventType.ADDED
        self.services ^= {name}
        self.pair.tell(kind, SERVICE, decode(SERVICE, content))
        self._did("a service came or went")


def uid(name: str) -> str:
    """The uid that the factory derives from a name."""
    return f"uid-default/{name}"


def pod_of(name: str, options: PodOptions) -> Pod:
    return api_pod(name, **options)
