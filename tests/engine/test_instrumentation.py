"""Metrics of the queue, the cache and the evaluations."""

from typing import Any

from bayplan.config.feature_gates import gates_of
from bayplan.config.kubernetes_versions import NEWEST
from bayplan.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from bayplan.framework.status import Code, Status, unresolvable, unschedulable
from bayplan.journal import GateRecord
from bayplan.testing import api_pod, node
from tests.engine.kit import Engine, waiting_pod
from tests.framework.answering import answering
from tests.scenarios.world import PROFILE

NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


def pending(engine: Engine) -> dict[str, float]:
    queues = ("active", "backoff", "unschedulable", "gated")
    return {q: engine.metric("scheduler_pending_pods", queue=q) for q in queues}


def test_pending_pods_are_counted_when_the_metric_is_read() -> None:
    gate = answering(
        "Gate",
        pre_enqueue=lambda pod: unresolvable("shut") if pod.name == "g" else None,
        filter_node=lambda state, pod, info: unschedulable() if pod.name == "u" else None,
        reserve=lambda state, pod, where: 7 if pod.name == "e" else None,
    )
    engine = Engine(plugins=["Gate"], classes=[gate])
    engine.add(node("n1"), *map(waiting_pod, ("g", "u", "e", "ok")))
    assert pending(engine) == {"active": 3, "backoff": 0, "unschedulable": 0, "gated": 1}
    engine.run()
    assert pending(engine) == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 1}


def test_waiting_groups_are_entities_of_their_own() -> None:
    never = answering("Never", filter_node=unschedulable("no"), events_to_register=[])
    engine = Engine(plugins=["Never"], classes=[never])
    engine.add(node("n1"))
    spec = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}}
    engine.put("scheduling.x-k8s.io/v1alpha1 PodGroup", spec)
    for name in "ab":
        engine.add(waiting_pod(name, labels={"scheduling.x-k8s.io/pod-group": "g"}))
    engine.add(waiting_pod("alone"))

    def waiting(entity: str) -> dict[str, float]:
        queued = "scheduler_queued_entities"
        queues = ("active", "unschedulable")
        return {q: engine.metric(queued, queue=q, type=entity) for q in queues}

    def came(queue: str, event: str, entity: str) -> float:
        name = "scheduler_queue_incoming_entities_total"
        return engine.metric(name, queue=queue, event=event, type=entity)

    assert (waiting("podgroup"), waiting("pod")) == (
        {"active": 1, "unschedulable": 0},
        {"active": 1, "unschedulable": 0},
    )
    assert engine.metric("scheduler_pending_pods", queue="active") == 3
    assert came("active", "UnscheduledPodAdd", "pod") == 1
    engine.run()
    assert waiting("podgroup") == {"active": 0, "unschedulable": 1}
    assert came("unschedulable", "ScheduleAttemptFailure", "podgroup") == 1
    pods = "scheduler_queue_incoming_pods_total"
    assert engine.metric(pods, queue="unschedulable", event="ScheduleAttemptFailure") == 3


def test_in_flight_pods_and_events_are_counted_when_the_metric_is_read() -> None:
    engine = Engine(plugins=["PermitWaits"], classes=[permit_waits()])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()

    def inflight_events(event: str) -> float:
        return engine.metric("scheduler_inflight_events", event=event)

    assert (inflight_events("PodPopped"), inflight_events("NodeAdd")) == (1, 0)
    engine.add(node("n2"))
    assert (inflight_events("PodPopped"), inflight_events("NodeAdd")) == (1, 1)


def permit_waits() -> type[Any]:
    wait = (Status(Code.WAIT), 60.0)
    event = ClusterEventWithHint(NODE_ADDED)
    return answering(
        "PermitWaits", permit=lambda state, pod, where: wait, events_to_register=[event]
    )


def test_the_cache_size_is_counted_when_the_metric_is_read() -> None:
    engine = Engine()
    engine.add(node("n1"), node("n2"), api_pod("placed", node="n1"), waiting_pod("p"))
    engine.run()

    def size(what: str) -> float:
        return engine.metric("scheduler_cache_size", type=what)

    assert [size(what) for what in ("nodes", "pods", "assumed_pods")] == [2, 2, 1]
    engine.delete(node("n2"))
    assert size("nodes") == 1


def test_rejecting_plugins_are_counted_while_their_pods_wait() -> None:
    plugin = answering("Never", filter_node=unschedulable("no"), events_to_register=[])
    engine = Engine(plugins=["Never"], classes=[plugin])
    engine.add(node("n1"), waiting_pod("p"), waiting_pod("q"))
    engine.run()

    def rejected() -> float:
        return engine.metric("scheduler_unschedulable_pods", plugin="Never", profile="bayplan")

    assert rejected() == 2
    engine.delete(waiting_pod("p"))
    assert rejected() == 1


def test_a_gate_that_closes_is_recorded() -> None:
    plugin = answering("Gate", pre_enqueue=unresolvable("shut"))
    engine = Engine(plugins=["Gate"], classes=[plugin])
    engine.add(waiting_pod("p"))
    assert list(engine.journal.records) == [
        GateRecord(
            at_seconds=0.0,
            pod="default/p",
            uid="uid-default/p",
            plugin="Gate",
            message="shut",
        )
    ]


def test_an_invalid_pre_enqueue_result_gates_the_pod() -> None:
    for nonsense in (True, ValueError("boom")):
        plugin = answering("Gate", pre_enqueue=nonsense)
        engine = Engine(plugins=["Gate"], classes=[plugin])
        engine.add(waiting_pod("p"))
        (record,) = engine.journal.records
        assert isinstance(record, GateRecord)
        assert record.message.startswith('running PreEnqueue plugin "Gate": ')


def test_an_exception_in_a_queueing_hint_is_counted_and_named() -> None:
    def hint(pod: Any, old: Any, new: Any) -> Any:
        raise RuntimeError("no idea")

    plugin = answering(
        "Never",
        filter_node=unschedulable("no"),
        events_to_register=[ClusterEventWithHint(NODE_ADDED, hint)],
    )
    engine = Engine(plugins=["Never"], classes=[plugin])
    engine.add(node("n1"), waiting_pod("p"))
    engine.run()
    engine.add(node("n2"))
    assert engine.metric("bayplan_queueing_hint_failures_total", plugin="Never") == 1
    [text] = engine.texts()
    message = 'running QueueingHint of NodeAdd of plugin "Never": RuntimeError: no idea ('
    assert text.startswith(message)


def test_members_without_a_group_object_are_counted_apart_from_gated_pods() -> None:
    engine = Engine()
    engine.add(node("n1"))
    for name in "ab":
        engine.add(waiting_pod(name, labels={"scheduling.x-k8s.io/pod-group": "g"}))

    def pending_counts() -> list[float]:
        queues = ("incomplete", "gated", "active", "pending")
        return [engine.metric("scheduler_pending_pods", queue=queue) for queue in queues]

    def gated_groups() -> float:
        return engine.metric("scheduler_queued_entities", queue="gated", type="podgroup")

    assert (pending_counts(), gated_groups()) == ([2, 0, 0, 0], 0)
    spec = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
    engine.put("scheduling.x-k8s.io/v1alpha1 PodGroup", spec)
    assert (pending_counts(), gated_groups()) == ([0, 2, 0, 0], 1)
    engine.add(waiting_pod("c", labels={"scheduling.x-k8s.io/pod-group": "g"}))
    assert (pending_counts(), gated_groups()) == ([0, 0, 3, 0], 0)


def test_members_that_arrive_during_an_attempt_at_their_group_are_pending() -> None:
    engine = Engine()
    engine.add(node("n1"))
    spec = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}}
    engine.put("scheduling.x-k8s.io/v1alpha1 PodGroup", spec)
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    engine.add(waiting_pod("a", labels=labels), waiting_pod("b", labels=labels))
    assert engine.scheduler.queue.pop() is not None
    assert engine.metric("scheduler_pending_pods", queue="pending") == 0
    engine.add(waiting_pod("c", labels=labels))
    assert engine.metric("scheduler_pending_pods", queue="pending") == 1


def test_pre_enqueue_and_sign_are_timed() -> None:
    gate = answering("Gate", pre_enqueue=lambda pod: unresolvable("shut"))
    engine = Engine(plugins=["Gate"], classes=[gate])
    engine.add(node("n1"), *(waiting_pod(f"p{number}") for number in range(20)))

    def metric_count(point: str) -> float:
        name = "scheduler_framework_extension_point_duration_seconds_count"
        # As in upstream, the code is Success for any results of plugins.
        return engine.metric(name, extension_point=point, status="Success", profile=PROFILE)

    assert metric_count("PreEnqueue") == 20
    by_plugin = "scheduler_plugin_execution_duration_seconds_count"
    labels = {"plugin": "Gate", "extension_point": "PreEnqueue"}
    rejected = "UnschedulableAndUnresolvable"
    assert engine.metric(by_plugin, **labels, status=rejected) == 2
    other = Engine()
    other.add(node("n1"), waiting_pod("p"))
    other.run()
    name = "scheduler_framework_extension_point_duration_seconds_count"
    labels = {"extension_point": "Sign", "status": "Success", "profile": PROFILE}
    assert other.metric(name, **labels) == 1


def test_evaluations_are_counted_by_pod_and_by_node() -> None:
    plugin = answering(
        "Mine",
        pre_filter=lambda state, pod, nodes: None,
        filter_node=lambda state, pod, info: unschedulable() if info.name == "n0" else None,
        pre_score=lambda state, pod, nodes: None,
        score_node=lambda state, pod, info: 1,
    )
    engine = Engine(plugins=[("Mine", 1)], classes=[plugin])
    engine.add(*(node(f"n{number}") for number in range(5)), waiting_pod("p"))
    engine.run()

    def metric_count(point: str) -> float:
        name = "scheduler_plugin_evaluation_total"
        return engine.metric(name, plugin="Mine", extension_point=point, profile=PROFILE)

    points = ("PreFilter", "Filter", "PreScore", "Score")
    assert [metric_count(point) for point in points] == [1, 5, 1, 4]


def test_feature_gates_are_shown_with_their_stages() -> None:
    name = "kubernetes_feature_enabled"
    families = Engine().scheduler.metrics.registry.collect()
    (family,) = [family for family in families if family.name == name]
    shown = {
        (sample.labels["name"], sample.labels["stage"]): sample.value for sample in family.samples
    }
    assert len(shown) == len(gates_of(NEWEST))
    assert shown["OpportunisticBatching", "BETA"] == 1
    assert shown["DynamicResourceAllocation", ""] == 1
    assert shown["DRAListTypeAttributes", "ALPHA"] == 0
