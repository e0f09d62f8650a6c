"""Watch events change the cache and the queue."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.api.objects import POD, Node, Pod, Unstructured
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.engine.event_handlers import NEWEST_SHAPES_MAX
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.status import unschedulable
from bayplan.ports import EventType, WatchEvent
from bayplan.queue.entry import State
from bayplan.state.pods import PodInfo
from bayplan.testing import api_pod, node
from tests.engine.kit import Engine, uid, waiting_pod
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE

STORAGE_CLASS = "storage.k8s.io/v1 StorageClass"
HintCalls = list[tuple[str, Any, Any]]


class RefusedPod:
    """A scheduler with a pod p that is refused until `opened`, and all calls of p's hints."""

    def __init__(self, *, kubernetes: KubernetesVersion = NEWEST, **pod: Any) -> None:
        self.hint_calls: HintCalls = []
        self.opened = False
        self.answer = QueueingHint.QUEUE_SKIP
        #: The actions to which the hints answer so.
        self.actions = ActionType.ADD | ActionType.DELETE | UPDATE
        resources = [r for r in EventResource if r is not EventResource.WILDCARD]
        events = [
            ClusterEventWithHint(ClusterEvent(resource, action), self._hint(resource, action))
            for resource in resources
            for action in (ActionType.ADD, ActionType.DELETE, UPDATE)
        ]
        plugin = answering("A", filter_node=self._filter, events_to_register=events)
        self.engine = Engine(plugins=["A"], classes=[plugin], kubernetes=kubernetes)
        self.engine.add(node("n1"), waiting_pod(**pod))
        self.engine.run()
        self.hint_calls.clear()

    def _filter(self, state: Any, pod: Any, info: Any) -> Any:
        return None if self.opened or pod.name != "p" else unschedulable("closed")

    def _hint(self, resource: str, action: ActionType) -> Any:
        def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
            if pod.name == "p":
                self.hint_calls.append(
                    (ClusterEvent(resource, action).label, _name(old), _name(new))
                )
            return self.answer if action & self.actions else QueueingHint.QUEUE_SKIP

        return hint

    def take_hint_calls(self) -> HintCalls:
        """The calls of p's hints since the last call of this method, by registered event."""
        calls, self.hint_calls[:] = list(self.hint_calls), []
        return sorted(calls, key=str)


def _name(obj: Any) -> Any:
    if isinstance(obj, PodInfo):
        return obj.name
    return obj.metadata.name if isinstance(obj, Node) else obj and "object"


# ---- nodes ----------------------------------------------------------------------------------


def test_a_node_is_added_updated_and_deleted() -> None:
    world = RefusedPod()
    engine = world.engine
    engine.add(node("n2"))
    assert world.take_hint_calls() == [("NodeAdd", None, "n2")]
    engine.update(node("n2", labels={"colour": "blue"}))
    assert world.take_hint_calls() == [("NodeUpdate", "n2", "n2")]
    engine.delete(node("n2"))
    assert world.take_hint_calls() == [("NodeDelete", "n2", None)]
    assert engine.scheduler.cache.node("n2") is None


def test_a_node_update_without_a_relevant_change_is_ignored() -> None:
    world = RefusedPod()
    world.engine.update(node("n1"))
    world.engine.delete(node("ghost"))
    assert world.take_hint_calls() == []


def test_the_cache_changes_before_queueing_hints_run() -> None:
    seen: list[bool] = []

    def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
        seen.append(engine.scheduler.cache.node("n2") is not None)
        return QueueingHint.QUEUE_SKIP

    added = ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD), hint)
    plugin = answering("A", filter_node=unschedulable("no"), events_to_register=[added])
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod())
    engine.run()
    engine.add(node("n2"))
    assert seen == [True]


def test_an_invalid_node_is_ignored_and_noted() -> None:
    world = RefusedPod()
    engine = world.engine
    for kind in (engine.add, engine.update):
        kind(node("n1", cpu="many"))
        kind(node("n9", cpu="many"))
    assert world.take_hint_calls() == []
    assert engine.scheduler.cache.node("n9") is None
    assert sum("ignored" in text for text in engine.texts()) == 4
    engine.add(node("n9"))
    assert world.take_hint_calls() == [("NodeAdd", None, "n9")]


# ---- pending pods ---------------------------------------------------------------------------


def test_pods_of_other_schedulers_are_ignored() -> None:
    engine = Engine()
    engine.add(api_pod("other"), waiting_pod("ours"))
    states = [engine.state_of(name) for name in ("other", "ours")]
    assert states == [State.ABSENT, State.ACTIVE]
    engine.update(api_pod("other", labels={"a": "b"}))
    engine.delete(api_pod("other"))
    assert engine.state_of("other") is State.ABSENT


def test_an_update_of_a_pod_may_activate_the_pod() -> None:
    world = RefusedPod()
    world.engine.update(waiting_pod(labels={"colour": "blue"}))
    assert world.take_hint_calls() == [("PodUpdate", "p", "p"), ("TargetPodUpdate", "p", "p")]
    queued = world.engine.scheduler.queue.find(uid("p"))
    assert queued is not None
    assert queued.pod.labels == {"colour": "blue"}


def test_an_event_with_a_resource_version_seen_before_is_ignored() -> None:
    world = RefusedPod()
    engine = world.engine

    def at(version: str | None, **options: Any) -> Pod:
        return with_version(waiting_pod(**options), version)

    engine.update(at("7"))
    world.take_hint_calls()
    engine.update(at("7", labels={"a": "b"}))
    assert world.take_hint_calls() == []
    engine.update(at("8", labels={"a": "b"}))
    assert len(world.take_hint_calls()) == 2
    # Objects of tests have no versions, so each of them counts as new.
    engine.update(waiting_pod())
    assert len(world.take_hint_calls()) == 2


def with_version(pod: Pod, version: str | None) -> Pod:
    metadata = replace(pod.metadata, resource_version=version)
    return replace(pod, metadata=metadata)


def test_a_deleted_pod_leaves_the_queue() -> None:
    world = RefusedPod()
    world.engine.delete(waiting_pod())
    assert world.engine.state_of("p") is State.ABSENT
    world.engine.delete(waiting_pod())


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_counts_as_deleted(phase: str) -> None:
    world = RefusedPod()
    world.engine.update(waiting_pod(status={"phase": phase}))
    assert world.engine.state_of("p") is State.ABSENT
    world.engine.add(waiting_pod("q", status={"phase": phase}))
    assert world.engine.state_of("q") is State.ABSENT


def test_an_invalid_pod_is_noted() -> None:
    engine = Engine()
    engine.add(waiting_pod("q", cpu="many"), waiting_pod("anonymous", uid=""))
    assert engine.state_of("q") is State.ABSENT
    texts = engine.texts()
    assert len(texts) == 2
    assert "many" in texts[0]
    assert texts[1] == "ignored: it has no uid"


# ---- placed pods ----------------------------------------------------------------------------


def test_a_placed_pod_is_added_updated_and_deleted() -> None:
    world = RefusedPod()
    engine = world.engine
    engine.add(api_pod("r", node="n1"))
    assert world.take_hint_calls() == [("AssignedPodAdd", None, "r"), ("PodAdd", None, "r")]
    assert engine.placed_on("r") == "n1"
    engine.update(api_pod("r", node="n1", labels={"a": "b"}))
    assert world.take_hint_calls() == [("AssignedPodUpdate", "r", "r"), ("PodUpdate", "r", "r")]
    engine.delete(api_pod("r", node="n1"))
    assert world.take_hint_calls() == [("AssignedPodDelete", "r", None), ("PodDelete", "r", None)]
    assert engine.placed_on("r") == ""


def test_a_placed_pod_that_ends_releases_its_resources() -> None:
    world = RefusedPod()
    world.engine.add(api_pod("r", node="n1"))
    world.take_hint_calls()
    world.engine.update(api_pod("r", node="n1", status={"phase": "Succeeded"}))
    assert world.take_hint_calls() == [("AssignedPodDelete", "r", None), ("PodDelete", "r", None)]
    assert world.engine.placed_on("r") == ""


@pytest.mark.parametrize(
    ("reason", "scheduler", "count"),
    [
        ("OutOfcpu", PROFILE, 1),
        ("NodeAffinity", PROFILE, 1),
        ("Evicted", PROFILE, 0),
        ("OutOfcpu", "another", 0),
    ],
)
def test_a_pod_that_its_kubelet_rejects_is_counted_once(
    reason: str, scheduler: str, count: int
) -> None:
    engine = RefusedPod().engine
    placed = api_pod("x", node="n1", scheduler_name=scheduler)
    engine.add(placed)
    failed = replace(placed, status=replace(placed.status, phase="Failed", reason=reason))
    engine.update(failed)
    engine.update(failed)
    name = "bayplan_pods_rejected_by_kubelet_total"
    assert engine.scheduler.metrics.value(name, reason=reason) == count


def test_a_pod_that_failed_before_the_start_is_not_counted() -> None:
    engine = RefusedPod().engine
    placed = api_pod("x", node="n1", scheduler_name=PROFILE)
    engine.add(replace(placed, status=replace(placed.status, phase="Failed", reason="OutOfcpu")))
    name = "bayplan_pods_rejected_by_kubelet_total"
    assert engine.scheduler.metrics.value(name, reason="OutOfcpu") == 0


def test_a_pending_pod_that_another_component_bound_leaves_the_queue() -> None:
    world = RefusedPod()
    world.engine.update(waiting_pod(node="n1"))
    assert world.engine.state_of("p") is State.ABSENT
    assert world.engine.placed_on("p") == "n1"
    assert world.engine.bound() == {}


def test_a_pod_on_an_unknown_node_is_counted_when_the_node_is_added() -> None:
    engine = Engine()
    engine.add(api_pod("r", node="n9", cpu=1))
    engine.add(node("n9"))
    snapshot = engine.scheduler.cache.lend()
    assert snapshot.node("n9").requested == {"cpu": 1000}


# ---- nominations ----------------------------------------------------------------------------


def test_a_nomination_in_the_status_counts_from_the_start() -> None:
    engine = Engine()
    engine.add(waiting_pod("p", nominated_node="n1"))
    assert engine.nominated_on("n1") == ["p"]
    engine.update(waiting_pod("p", nominated_node="n2"))
    assert (engine.nominated_on("n1"), engine.nominated_on("n2")) == ([], ["p"])
    engine.update(waiting_pod("p", node="n2", nominated_node="n2"))
    assert engine.nominated_on("n2") == []


@pytest.mark.parametrize(
    ("priority", "is_reported"),
    [
        pytest.param(5, True, id="a lower priority has the event"),
        pytest.param(10, True, id="an equal priority has the event"),
        pytest.param(20, False, id="a higher priority had the room already"),
    ],
)
@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_cleared_nomination_activates_no_pod_of_higher_priority(
    how: str, priority: int, is_reported: bool
) -> None:
    world = RefusedPod(priority=priority)
    engine = world.engine
    engine.add(waiting_pod("q", priority=10, nominated_node="n1"))
    world.answer = QueueingHint.QUEUE
    if how == "moved":
        engine.update(waiting_pod("q", priority=10))
    else:
        engine.delete(waiting_pod("q", priority=10, nominated_node="n1"))
    assert engine.state_of("p") is (State.BACKOFF if is_reported else State.UNSCHEDULABLE)


def test_a_nominated_pod_that_another_program_binds_elsewhere_frees_its_room() -> None:
    world = RefusedPod(priority=10)
    world.engine.add(node("n2"), waiting_pod("q", priority=10, nominated_node="n1"))
    world.answer, world.actions = QueueingHint.QUEUE, ActionType.DELETE
    world.engine.update(waiting_pod("q", priority=10, node="n2", nominated_node="n1"))
    assert world.engine.state_of("p") is State.BACKOFF


@pytest.mark.parametrize(
    ("kubernetes", "priority", "is_end"),
    [
        pytest.param(KubernetesVersion.V1_34, 10, True, id="1.34, equal priority"),
        pytest.param(KubernetesVersion.V1_34, 20, False, id="1.34, higher priority"),
        pytest.param(KubernetesVersion.V1_35, 10, False, id="1.35"),
    ],
)
def test_until_1_34_the_binding_of_a_nominated_pod_ends_its_nomination(
    kubernetes: KubernetesVersion, priority: int, is_end: bool
) -> None:
    world = RefusedPod(kubernetes=kubernetes, priority=priority)
    world.engine.add(waiting_pod("q", priority=10, nominated_node="n1"))
    world.answer, world.actions = QueueingHint.QUEUE, ActionType.DELETE
    world.engine.update(waiting_pod("q", priority=10, node="n1", nominated_node="n1"))
    assert world.engine.state_of("p") is (State.BACKOFF if is_end else State.UNSCHEDULABLE)


# ---- other kinds ----------------------------------------------------------------------------


def test_objects_of_other_kinds_are_added_updated_and_deleted() -> None:
    world = RefusedPod()
    content = {"metadata": {"name": "fast"}}
    label = "storage.k8s.io/StorageClass"
    for event, heard in (
        (EventType.ADDED, (f"{label}Add", None, "object")),
        (EventType.MODIFIED, (f"{label}Update", "object", "object")),
        (EventType.DELETED, (f"{label}Delete", "object", None)),
    ):
        world.engine.put(STORAGE_CLASS, content, event)
        assert world.take_hint_calls() == [heard]
    world.engine.put(STORAGE_CLASS, content, EventType.DELETED)
    assert world.take_hint_calls() == []


def test_a_plugin_may_register_events_of_its_own_kind() -> None:
    quota = ClusterEvent("example.com/Quota", UPDATE)
    plugin = answering(
        "A",
        filter_node=unschedulable("no"),
        events_to_register=[ClusterEventWithHint(quota)],
        kinds=("example.com/v1 Quota",),
    )
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1"), waiting_pod())
    engine.run()
    content = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"pods": 1}}
    engine.put("example.com/v1 Quota", content)
    assert engine.state_of("p") is State.UNSCHEDULABLE
    engine.put("example.com/v1 Quota", {**content, "spec": {"pods": 2}}, EventType.MODIFIED)
    assert engine.state_of("p") is State.BACKOFF
    assert engine.scheduler.kinds == ["example.com/v1 Quota"]


def test_a_plugin_without_registered_events_is_activated_by_every_event() -> None:
    for kind, event in (
        ("resource.k8s.io/v1 ResourceSlice", EventType.ADDED),
        ("storage.k8s.io/v1 VolumeAttachment", EventType.DELETED),
    ):
        engine = Engine(plugins=["A"], classes=[answering("A", filter_node=unschedulable("no"))])
        if event is EventType.DELETED:
            engine.put(kind, {"metadata": {"name": "x"}})
        engine.add(node("n1"), waiting_pod())
        engine.run()
        engine.put(kind, {"metadata": {"name": "x"}}, event)
        assert engine.state_of("p") is State.BACKOFF, kind


def test_a_taint_update_activates_only_plugins_that_registered_for_it() -> None:
    added = ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD))
    plugin = answering("A", filter_node=unschedulable("no"), events_to_register=[added])
    engine = Engine(plugins=["A"], classes=[plugin])
    engine.add(node("n1", taints=["a=b:NoSchedule"]), waiting_pod())
    engine.run()
    engine.update(node("n1"))
    assert engine.state_of("p") is State.UNSCHEDULABLE
    engine.add(node("n2"))
    assert engine.state_of("p") is State.BACKOFF


def test_an_object_missing_in_a_relist_is_deleted() -> None:
    """The event has only the metadata of the object."""
    engine = Engine()
    placed = api_pod("gone", node="n1")
    engine.add(node("n1"), placed)
    assert engine.placed_on("gone") == "n1"
    metadata_only = Unstructured(metadata=placed.metadata)
    engine.scheduler.handle(WatchEvent(EventType.DELETED, POD, metadata_only))
    assert engine.placed_on("gone") == ""


# ---- metrics --------------------------------------------------------------------------------


def handled(engine: Engine) -> dict[str, float]:
    """Event → the number of times it was handled."""
    name = "scheduler_event_handling_duration_seconds"
    (family,) = (f for f in engine.scheduler.metrics.registry.collect() if f.name == name)
    return {s.labels["event"]: s.value for s in family.samples if s.name.endswith("_count")}


def test_each_event_is_counted_under_upstreams_name() -> None:
    engine = Engine()
    bound = api_pod("q", node="n1")
    engine.add(node("n1"), waiting_pod("p"), bound)
    engine.update(node("n1", labels={"a": "b"}), node("n1", labels={"a": "b"}))
    engine.update(api_pod("q", node="n1", labels={"a": "b"}), waiting_pod("p", labels={"a": "b"}))
    engine.put(STORAGE_CLASS, {"metadata": {"name": "c"}})
    engine.put(STORAGE_CLASS, {"metadata": {"name": "c"}})
    engine.delete(bound, waiting_pod("p"), node("n1"))
    engine.delete(node("n1"))
    engine.add(waiting_pod("theirs", scheduler_name="another"))
    assert handled(engine) == {
        "NodeAdd": 1,
        "UnscheduledPodAdd": 1,
        "AssignedPodAdd": 1,
        "NodeUpdateNodeLabel": 1,
        "AssignedPodUpdate": 1,
        "AssignedPodUpdatePodLabel": 1,
        "UnscheduledPodUpdate": 1,
        "storage.k8s.io/StorageClassAdd": 1,
        "storage.k8s.io/StorageClassUpdate": 1,
        "AssignedPodDelete": 1,
        "UnscheduledPodDelete": 1,
        "NodeDelete": 1,
    }


def test_the_duration_of_an_event_includes_its_queueing_hints() -> None:
    def hint(*_: Any) -> QueueingHint:
        engine.clock.advance_to(engine.clock.now() + 2.5)
        return QueueingHint.QUEUE_SKIP

    event = ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD), hint)
    refuses = answering("A", filter_node=unschedulable("no"), events_to_register=[event])
    engine = Engine(plugins=["A"], classes=[refuses])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    engine.add(node("n2"))
    event_took = "scheduler_event_handling_duration_seconds_sum"
    assert engine.metric(event_took, event="NodeAdd") == 2.5
    hint_took = "scheduler_queueing_hint_execution_duration_seconds_sum"
    assert engine.metric(hint_took, plugin="A", event="NodeAdd", hint="QueueSkip") == 2.5


@pytest.mark.parametrize("is_on", [False, True])
def test_a_pending_pod_is_an_event_if_pod_groups_are_scheduled(is_on: bool) -> None:
    """Upstream: addPodToSchedulingQueue."""
    event = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
    reports: list[str] = []

    def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
        reports.append(f"{pod.name}: {new.name}")
        return QueueingHint.QUEUE_SKIP

    refuses = answering(
        "A",
        filter_node=unschedulable("no"),
        events_to_register=[ClusterEventWithHint(event, hint)],
    )
    engine = Engine(plugins=["A"], classes=[refuses], gates={"GenericWorkload": is_on})
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    engine.add(waiting_pod("q"))
    engine.add(api_pod("other", scheduler_name="another"))
    assert reports == (["p: q"] if is_on else [])


# ---- shapes of pods --------------------------------------------------------------------------


def _shape_number(engine: Engine, name: str, numbers: Iterator[int], **pod: Any) -> int:
    """The number of the shape of a new pod, which is deleted again; a new shape gets a number."""
    new = waiting_pod(name, **pod)
    engine.add(new)
    [compiled] = engine.scheduler._events._cluster.pods.values()
    number = compiled.shape.once("number", lambda _: next(numbers))
    engine.delete(new)
    return number


def test_a_shape_stays_when_its_last_pod_is_gone_until_many_pods_have_come() -> None:
    engine, numbers = Engine(), count()
    first = partial(_shape_number, engine, numbers=numbers, cpu="999m")
    assert [first("a"), first("b")] == [0, 0]
    for number in range(NEWEST_SHAPES_MAX):
        other = waiting_pod(f"other-{number}", cpu="998m")
        engine.add(other)
        engine.delete(other)
    assert first("c") == 1
