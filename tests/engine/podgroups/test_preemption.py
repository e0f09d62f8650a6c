"""Preemption for a group: for all members of the quorum, or for none."""

import asyncio
from collections.abc import Sequence
from typing import Any

from bayplan.journal import GroupRecord
from bayplan.ports import ApiError, PatchPodStatus, Perform
from bayplan.queue.entry import State
from bayplan.testing import api_pod, node
from tests.engine.kit import Engine, waiting_pod
from tests.kit.ports import RecordingPort
from tests.scenarios.world import PROFILE, Enabled

KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"
UPSTREAM = "scheduling.k8s.io/v1beta1 PodGroup"
ZONE = "topology.kubernetes.io/zone"
LABEL = "scheduling.x-k8s.io/pod-group"


def running(name: str, where: str, priority: int = 0, cpu: int = 4, **options: Any) -> Any:
    return api_pod(name, node=where, cpu=cpu, priority=priority, scheduler_name=PROFILE, **options)


def member(name: str, **options: Any) -> Any:
    return waiting_pod(name, priority=10, **{"cpu": 4, "labels": {LABEL: "g"}, **options})


def engine(
    *objects: Any,
    minimum: int = 2,
    nodes: int = 2,
    plugins: Sequence[Enabled] = ("NodeResourcesFit",),
    kind: str = KIND,
    **options: Any,
) -> Engine:
    """Nodes of 4 cpu, running pods, and a group that has been tried once."""
    setup = Engine(plugins=[*plugins, "DefaultPreemption"], **options)
    setup.add(*(node(f"m{index + 1}", cpu=4, zone="z") for index in range(nodes)))
    spec: dict[str, Any] = {"minMember": minimum}
    if kind == UPSTREAM:
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "priority": 10}
    setup.put(kind, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    setup.add(*objects)
    while setup.scheduler.schedule_one():
        pass
    return setup


def nominated(engine: Engine) -> dict[str, str]:
    return {
        effect.name: effect.nominated_node_name
        for effect in engine.scheduler.take_effects()
        if isinstance(effect, PatchPodStatus) and effect.nominated_node_name
    }


def victims_of(engine: Engine) -> float:
    return engine.scheduler.metrics.value("scheduler_workload_preemption_victims_sum")


def test_members_are_nominated_on_the_nodes_of_their_victims() -> None:
    setup = engine(running("r1", "m1"), running("r2", "m2"), member("g1"), member("g2"))
    assert victims_of(setup) == 2
    assert sorted(nominated(setup).values()) == ["m1", "m2"]


def test_nothing_is_evicted_if_that_does_not_help_all_members() -> None:
    setup = engine(running("r1", "m1"), running("r2", "m2", 20), member("g1"), member("g2"))
    assert victims_of(setup) == 0 and nominated(setup) == {}


def test_a_pod_that_fits_beside_the_members_is_reprieved() -> None:
    small = running("s", "m1", cpu=0)
    setup = engine(small, running("r1", "m1"), running("r2", "m2"), member("g1"), member("g2"))
    assert victims_of(setup) == 2


def test_only_the_least_important_pods_are_evicted() -> None:
    victims = [running("r3", "m3", 5), running("r1", "m1"), running("r2", "m2")]
    setup = engine(*victims, member("g1"), member("g2"), nodes=3)
    assert sorted(nominated(setup).values()) == ["m1", "m2"]


def test_members_of_kubernetes_groups_are_placed_as_if_all_less_important_pods_were_gone() -> None:
    """The emptiest node is the one with the most important victim. Groups of other kinds leave it
    that pod."""
    placed = [
        running("a", "m1", 5, cpu=3),
        running("b", "m2", 0, cpu=2),
        running("c", "m2", 20, cpu=2),
    ]
    for kind, node_name in ((UPSTREAM, "m1"), (KIND, "m2")):
        options: dict[str, Any] = {"labels": {LABEL: "g"}}
        if kind == UPSTREAM:
            options = {"spec": {"schedulingGroup": {"podGroupName": "g"}}, "labels": {}}
        waits = member("g1", cpu=2, **options)
        setup = engine(*placed, waits, minimum=1, kind=kind, plugins=[("NodeResourcesFit", 1)])
        assert nominated(setup) == {"g1": node_name}


def test_members_hold_their_nominations_before_the_api_confirms_them() -> None:
    placed = [running("r1", "m1"), running("r2", "m2")]
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    setup = engine(
        *placed, *(member(name, spec=spec, labels={}) for name in ("g1", "g2")), kind=UPSTREAM
    )
    for _ in placed:
        perform(setup)
    setup.delete(*placed)
    setup.add(waiting_pod("thief", cpu=4))
    assert setup.bound() == {}
    assert [len(setup.nominated_on(name)) for name in ("m1", "m2")] == [1, 1]
    setup.until(20)
    assert sorted(setup.bound()) == ["g1", "g2"]


def test_a_group_that_awaits_its_victims_is_not_tried_for_a_further_member() -> None:
    placed = [running("r1", "m1"), running("r2", "m2")]
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    options: dict[str, Any] = {"spec": spec, "labels": {}}
    setup = engine(*placed, *(member(name, **options) for name in ("g1", "g2")), kind=UPSTREAM)
    for _ in placed:
        perform(setup)
    setup.add(member("g3", **options))
    setup.until(20)
    setup.run()
    assert [len(setup.attempts(name)) for name in ("g1", "g3")] == [1, 0]
    setup.delete(*placed)
    setup.until(40)
    assert sorted(setup.bound()) == ["g1", "g2"]


def test_pods_of_other_nodes_that_a_member_cannot_be_beside_are_evicted() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "loud"}}, "topologyKey": ZONE}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    placed = [
        running("loud", "m3", cpu=0, labels={"app": "loud"}),
        running("quiet", "m3", cpu=0),
        running("stays", "m3", priority=30),
        running("r1", "m1"),
        running("r2", "m2"),
    ]
    setup = engine(
        *placed, *(member(name, affinity=apart) for name in ("g1", "g2")), nodes=3,
        plugins=["NodeResourcesFit", "InterPodAffinity"],
    )  # fmt: skip
    assert victims_of(setup) == 3
    assert sorted(nominated(setup).values()) == ["m1", "m2"]


def test_a_member_with_preemption_policy_never_stops_preemption_for_its_group() -> None:
    never = {"preemptionPolicy": "Never"}
    setup = engine(running("r1", "m1"), running("r2", "m2"), member("g1"), member("g2", spec=never))
    assert victims_of(setup) == 0 and nominated(setup) == {}


# ---- attempts that wait for their evictions -------------------------------------------------

PREEMPTION_MESSAGE = (
    "pod group preemption: found potential placements for 2 pods, preempting 2 victims"
)
EVICTION_ERROR = (
    'error in "DefaultPreemption" PodGroupPostFilter plugins: pod group preemption: it is protected'
)


def waiting() -> Engine:
    """Two members whose victims are about to be evicted."""
    there = [running("r1", "m1"), running("r2", "m2")]
    gates = {"SchedulerAsyncPreemption": False}
    return engine(*there, member("g1"), member("g2"), gates=gates)


def perform(engine: Engine, **problems: Exception) -> RecordingPort:
    port = RecordingPort(None, (), 0, **problems)
    for effect in engine.run_for(Perform):
        asyncio.run(effect.run(port))
    return port


def group_outcomes(engine: Engine) -> list[tuple[str, str]]:
    """The outcomes of the attempts at the group."""
    records = (record for record in engine.journal.records if isinstance(record, GroupRecord))
    return [(record.result, record.message) for record in records]


def counted(engine: Engine) -> dict[str, float]:
    names = ("waiting_on_preemption", "unschedulable", "error")
    metric = "scheduler_podgroup_schedule_attempts_total"
    return {name: engine.metric(metric, result=name, profile=PROFILE) for name in names}


def test_an_attempt_ends_when_all_victims_are_evicted() -> None:
    waiting_now = waiting()
    assert not waiting_now.scheduler.only_retries_wait
    assert group_outcomes(waiting_now) == []
    assert len(waiting_now.nominated_on("m1")) == len(waiting_now.nominated_on("m2")) == 1
    assert sorted(perform(waiting_now).deleted) == ["default/r1", "default/r2"]
    patches = waiting_now.patches()
    ((result, message),) = group_outcomes(waiting_now)
    assert result == "unschedulable" and message.endswith(PREEMPTION_MESSAGE)
    assert sorted(patch.nominated_node_name or "" for patch in patches) == ["", "", "m1", "m2"]
    assert counted(waiting_now) == {"waiting_on_preemption": 1, "unschedulable": 0, "error": 0}
    assert waiting_now.state_of("g1") is State.UNSCHEDULABLE
    assert waiting_now.scheduler.only_retries_wait


def test_members_are_placed_on_the_nodes_of_their_victims() -> None:
    waiting_now = waiting()
    perform(waiting_now)
    waiting_now.run()
    waiting_now.delete(running("r1", "m1"), running("r2", "m2"))
    waiting_now.until(10)
    assert sorted(waiting_now.bound().values()) == ["m1", "m2"]


def test_a_failed_eviction_is_an_error_and_no_member_is_nominated() -> None:
    waiting_now = waiting()
    perform(waiting_now, r2=ApiError(403, "Forbidden", "it is protected"))
    patches = waiting_now.patches()
    assert group_outcomes(waiting_now) == [("error", EVICTION_ERROR)]
    assert waiting_now.nominated_on("m1") == waiting_now.nominated_on("m2") == []
    reports = [patch.condition for patch in patches if patch.condition is not None]
    assert [(each.reason, each.message) for each in reports] == [
        ("SchedulerError", EVICTION_ERROR)
    ] * 2
    assert not any(patch.nominated_node_name for patch in patches)
    assert counted(waiting_now) == {"waiting_on_preemption": 0, "unschedulable": 0, "error": 1}
    metric = "scheduler_workload_preemption_attempts_total"
    assert waiting_now.metric(metric, result="Error") == 1
    assert waiting_now.metric(metric, result="Success") == 0
    assert waiting_now.state_of("g1") is State.ERROR_BACKOFF


def test_nothing_is_written_to_members_deleted_meanwhile() -> None:
    result = waiting()
    effects = result.run_for(Perform)
    result.delete(member("g1"), member("g2"))
    for effect in effects:
        asyncio.run(effect.run(RecordingPort()))
    assert result.patches() == []
    assert result.state_of("g1") is State.ABSENT
    assert result.scheduler.only_retries_wait


# ---- disruption units -----------------------------------------------------------------------


def put_upstream(engine: Engine, name: str, **spec: Any) -> None:
    engine.put(UPSTREAM, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def crew(name: str, where: str, **options: Any) -> Any:
    group = {"schedulingGroup": {"podGroupName": "crew"}}
    return running(name, where, spec=group, **options)


def tried(mode: dict[str, Any], *objects: Any, minimum: int = 1) -> Engine:
    """Three nodes, two of them with a crew, and a group whose members need one node each."""
    engine = Engine(plugins=["NodeResourcesFit", "DefaultPreemption"])
    engine.add(*(node(f"m{index + 1}", cpu=4) for index in range(3)))
    spec = {"minMember": minimum}
    engine.put(KIND, {"metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    put_upstream(engine, "crew", **mode)
    engine.add(*objects)
    while engine.scheduler.schedule_one():
        pass
    return engine


def disruptions(engine: Engine) -> float:
    name = "scheduler_preemption_workload_disruptions_sum"
    return engine.scheduler.metrics.value(name, preemptor="podgroup")


def test_victims_that_form_a_group_are_evicted_by_pod_or_as_one_unit() -> None:
    there = [crew("c1", "m1"), crew("c2", "m2"), running("r", "m3", priority=30)]
    for mode, victim_count in (({}, 1), ({"disruptionMode": {"all": {}}}, 2)):
        attempt = tried(mode, *there, member("g1"))
        assert victims_of(attempt) == victim_count
        assert disruptions(attempt) == 1
        assert len(nominated(attempt)) == 1


def test_a_victim_group_as_important_as_the_preemptor_stays() -> None:
    there = [crew("c1", "m1"), crew("c2", "m2"), running("r", "m3", priority=30)]
    attempt = tried({"disruptionMode": {"all": {}}, "priority": 10}, *there, member("g1"))
    assert victims_of(attempt) == 0
    assert nominated(attempt) == {}


def test_a_victim_group_stays_if_evicting_a_single_pod_suffices() -> None:
    there = [crew("c1", "m1", cpu=2), running("r", "m1", cpu=2), crew("c2", "m3", cpu=0)]
    blocking = [running(f"b{number}", f"m{number}", priority=30) for number in (2, 3)]
    attempt = tried({"disruptionMode": {"all": {}}}, *there, *blocking, member("g1", cpu=2))
    assert victims_of(attempt) == 1
    assert list(nominated(attempt).values()) == ["m1"]
    assert disruptions(attempt) == 0
