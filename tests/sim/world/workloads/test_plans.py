"""The next actions of workload controllers, computed from controller, pods and nodes."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.sim.input.controller_pods import with_uid
from bayplan.sim.input.jobs import INDEX_ANNOTATION, JobTally
from bayplan.sim.world.workloads.job_plan import job_plan
from bayplan.sim.world.workloads.plans import (
    OwnedPods,
    Plan,
    Surroundings,
    plan_of,
)
from tests.kit.manifests import Content, node
from tests.sim.manifests import controller
from tests.sim.world.workloads.planning import LEAVES, NOW, around, created, deleted, of


def planned(subject: Content, *pods: Content, where: Surroundings | None = None) -> Plan:
    return plan_of(subject, OwnedPods(pods), where or around())


# ---- replicas -------------------------------------------------------------------------------

RS = with_uid(controller("ReplicaSet", name="r", replicas=2))


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_a_missing_pod_is_replaced_under_a_new_name(kind: str) -> None:
    subject = with_uid(controller(kind, name="r", replicas=2))
    plan = planned(subject, of(subject, "r-a"))
    (replacement,) = plan.create
    assert replacement["metadata"]["name"].startswith("r-")
    (owner,) = replacement["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == (kind, "r", True)
    assert owner["uid"] == subject["metadata"]["uid"]
    assert plan == planned(subject, of(subject, "r-a"))


@pytest.mark.parametrize(
    "replaced",
    [of(RS, "r-b", **LEAVES), of(RS, "r-b", "Failed"), of(RS, "r-b", "Succeeded")],
    ids=["terminating", "failed", "succeeded"],
)
def test_a_terminating_or_ended_pod_is_replaced_at_once(replaced: Content) -> None:
    plan = planned(RS, of(RS, "r-a"), replaced)
    assert (len(plan.create), plan.delete) == (1, [])


def test_a_pod_that_ran_for_its_whole_duration_is_not_replaced() -> None:
    finished = of(RS, "r-b", "Succeeded", annotations={"bayplan.dev/duration": "5s"})
    assert planned(RS, of(RS, "r-a"), finished) == Plan()


def test_a_smaller_replica_set_deletes_in_upstreams_order() -> None:
    subject = with_uid(controller("ReplicaSet", name="r", replicas=0))
    cheap = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    unready = of(subject, "unready")
    unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    alone = of(subject, "alone")
    alone["spec"] = {**alone["spec"], "nodeName": "n2"}
    old, new = of(subject, "old"), of(subject, "new")
    old["status"]["startTime"] = "2025-12-01T00:00:00Z"
    new["status"]["startTime"] = "2025-12-31T23:59:00Z"
    alone["status"]["startTime"] = "2025-12-31T23:59:59Z"
    pods = [
        old,
        alone,
        new,
        of(subject, "cheap", annotations=cheap),
        unready,
        of(subject, "pending", "Pending"),
    ]
    order = ["pending", "unready", "cheap", "new", "old", "alone"]
    assert deleted(planned(subject, *pods)) == order


def test_restarts_are_counted_only_where_nothing_else_decides() -> None:
    cheap = of(RS, "cheap", annotations={"controller.kubernetes.io/pod-deletion-cost": "-5"})
    counted: list[str] = []

    def restart_count(seen: Content) -> int:
        counted.append(seen["metadata"]["name"])
        return 1 if seen["metadata"]["name"] == "b" else 0

    where, equal = replace(around(), restart_count=restart_count), [of(RS, name) for name in "abc"]
    assert deleted(planned(RS, cheap, *equal[:2], where=where)) == ["cheap"]
    assert counted == ["cheap"]
    assert deleted(planned(RS, *equal, where=where)) == ["b"]


def test_pods_of_similar_age_are_deleted_in_order_of_their_uids() -> None:
    subject = with_uid(controller("ReplicaSet", name="r", replicas=1))
    pods = [of(subject, "a"), of(subject, "b")]
    pods[0]["status"]["startTime"] = "2025-12-31T00:00:00Z"
    pods[1]["status"]["startTime"] = "2025-12-31T00:00:09Z"
    assert deleted(planned(subject, *pods)) == ["a"]


# ---- DaemonSets -----------------------------------------------------------------------------

LOGS = with_uid(controller("DaemonSet", name="logs"))


def on(name: str, node_name: str, phase: str = "Running", **meta: Any) -> Content:
    content = of(LOGS, name, phase, **meta)
    return {**content, "spec": {**content["spec"], "nodeName": node_name}}


def tainted(name: str, effect: str) -> Content:
    return node(name, spec={"taints": [{"key": "k", "effect": effect}]})


def test_each_node_without_a_daemon_pod_gets_one_with_the_default_tolerations() -> None:
    where = around(node("n1"), node("n2"))
    (daemon,) = planned(LOGS, on("a", "n1"), where=where).create
    terms = daemon["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert terms[0]["matchFields"][0]["values"] == ["n2"]
    keys = [one["key"].rpartition("/")[2] for one in daemon["spec"]["tolerations"]]
    assert keys == [
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    ]


def test_a_terminating_daemon_pod_is_replaced_after_its_end() -> None:
    where = around(node("n1"))
    assert planned(LOGS, on("a", "n1", **LEAVES), where=where) == Plan()
    assert len(planned(LOGS, where=where).create) == 1


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_daemon_pod_that_has_ended_is_deleted_before_it_is_replaced(phase: str) -> None:
    plan = planned(LOGS, on("a", "n1", phase), where=around(node("n1")))
    assert (created(plan), deleted(plan)) == ([], ["a"])


def test_no_schedule_prevents_new_daemon_pods_and_no_execute_removes_existing_ones() -> None:
    stays = around(tainted("n1", "NoSchedule"))
    assert planned(LOGS, where=stays) == Plan()
    assert planned(LOGS, on("a", "n1"), where=stays) == Plan()
    goes = around(tainted("n1", "NoExecute"))
    assert deleted(planned(LOGS, on("a", "n1"), where=goes)) == ["a"]


def test_a_second_daemon_pod_on_a_node_is_deleted() -> None:
    pods = [on("b", "n1"), on("a", "n1")]
    assert deleted(planned(LOGS, *pods, where=around(node("n1")))) == ["b"]


def test_a_pending_daemon_pod_of_a_missing_node_is_deleted() -> None:
    (waiting,) = planned(LOGS, where=around(node("n1"))).create
    waiting = {**waiting, "metadata": {**waiting["metadata"], "uid": "u"}}
    assert deleted(planned(LOGS, waiting)) == [waiting["metadata"]["name"]]
    assert planned(LOGS, on("a", "n1")) == Plan()


# ---- Jobs -----------------------------------------------------------------------------------


def job(**spec: Any) -> Content:
    return with_uid(controller("Job", name="j", **spec))


def at_job(subject: Content, *pods: Content, names: Iterable[str] = ()) -> Plan:
    tally = JobTally.of(subject, pods)
    return job_plan(subject, OwnedPods(pods), tally, around(names=names))


def test_a_job_creates_no_more_pods_than_its_remaining_completions() -> None:
    subject = job(completions=5, parallelism=3)
    assert len(at_job(subject).create) == 3
    succeeded = [of(subject, f"d{number}", "Succeeded") for number in range(4)]
    assert len(at_job(subject, *succeeded).create) == 1
    assert at_job(subject, *succeeded, of(subject, "a")) == Plan()


def test_a_job_with_all_completions_is_complete() -> None:
    subject = job(completions=1)
    ((key, patch),) = at_job(subject, of(subject, "d", "Succeeded")).patches
    assert (key.name, patch["status"]["conditions"][-1]["type"]) == ("j", "Complete")
    over = {**subject, "status": patch["status"]}
    assert at_job(over) == Plan()


def test_a_job_without_completions_begins_no_pod_after_a_success() -> None:
    subject = job(parallelism=2)
    assert len(at_job(subject, of(subject, "a")).create) == 1
    assert at_job(subject, of(subject, "a"), of(subject, "d", "Succeeded")) == Plan()


def test_a_job_with_more_failures_than_its_limit_fails_and_loses_its_pods() -> None:
    subject = job(completions=3, parallelism=3, backoffLimit=1)
    failures = [of(subject, f"f{number}", "Failed") for number in range(2)]
    assert len(at_job(subject, failures[0]).create) == 3
    plan = at_job(subject, *failures, of(subject, "a"))
    assert (created(plan), deleted(plan)) == ([], ["a"])
    condition = plan.patches[0][1]["status"]["conditions"][-1]
    assert (condition["type"], condition["reason"]) == ("Failed", "BackoffLimitExceeded")


def at_time(subject: Content, tally: JobTally, seconds: float, *pods: Content) -> Plan:
    """The plan of a Job this many seconds after NOW."""
    where = replace(around(), now_seconds=NOW + seconds)
    return job_plan(subject, OwnedPods(pods), tally, where)


def failed_at(subject: Content, tally: JobTally, *seconds: float) -> None:
    for each in seconds:
        tally.count(subject, of(subject, f"f{each}", "Failed"), NOW + each)


@pytest.mark.parametrize(
    ("failure_count", "delay_seconds"), [(1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (40, 600)]
)
def test_a_failed_pod_is_replaced_after_a_delay_that_doubles_up_to_ten_minutes(
    failure_count: int, delay_seconds: float
) -> None:
    subject = job(completions=1, backoffLimit=99)
    tally = JobTally(subject)
    for number in range(failure_count):
        tally.count(subject, of(subject, f"f{number}", "Failed"), NOW)
    early = at_time(subject, tally, delay_seconds - 1)
    assert (created(early), early.next_seconds) == ([], NOW + delay_seconds)
    late = at_time(subject, tally, delay_seconds)
    assert (len(late.create), late.next_seconds) == (1, None)


def test_a_success_ends_the_delay_unless_a_later_pod_failed() -> None:
    subject = job(completions=3, backoffLimit=9)
    tally = JobTally(subject)
    failed_at(subject, tally, 0, 1, 2)
    tally.count(subject, of(subject, "d", "Succeeded"), NOW + 3)
    assert len(at_time(subject, tally, 3).create) == 1
    failed_at(subject, tally, 4)
    assert at_time(subject, tally, 4).next_seconds == NOW + 14


def test_with_a_limit_per_index_only_the_failed_index_is_delayed() -> None:
    subject = job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=5)
    tally = JobTally(subject)
    failure = of(subject, "f", "Failed")
    failure["metadata"]["annotations"] = {INDEX_ANNOTATION: "1"}
    tally.count(subject, failure, NOW)
    plan = at_time(subject, tally, 1)
    indexes = [pod["metadata"]["annotations"][INDEX_ANNOTATION] for pod in plan.create]
    assert (indexes, plan.next_seconds) == (["0", "2"], NOW + 10)
    assert len(at_time(subject, tally, 10).create) == 3


def test_pods_that_failed_before_the_controller_started_cause_no_delay() -> None:
    subject = job(completions=1)
    tally = JobTally.of(subject, [of(subject, "f", "Failed")])
    assert len(at_time(subject, tally, 0).create) == 1


def test_a_job_fails_at_its_deadline_and_loses_its_pods() -> None:
    subject = job(completions=1, activeDeadlineSeconds=60)
    start = datetime.fromtimestamp(NOW, UTC).isoformat()
    subject["status"] = {"startTime": start}
    tally = JobTally(subject)
    pod = of(subject, "a")
    assert at_time(subject, tally, 59, pod) == Plan(next_seconds=NOW + 60)
    plan = at_time(subject, tally, 60, pod)
    assert (created(plan), deleted(plan)) == ([], ["a"])
    condition = plan.patches[0][1]["status"]["conditions"][-1]
    assert (condition["type"], condition["reason"]) == ("Failed", "DeadlineExceeded")


def test_the_deadline_of_a_job_counts_from_its_resumption() -> None:
    subject = job(completions=1, activeDeadlineSeconds=60)
    subject["status"] = {"startTime": datetime.fromtimestamp(NOW, UTC).isoformat()}
    tally, pod = JobTally(subject), of(subject, "a")
    suspended = {**subject, "spec": {**subject["spec"], "suspend": True}}
    assert at_time(suspended, tally, 90, pod).patches == []
    tally.resumed_seconds = NOW + 100
    assert at_time(subject, tally, 110, pod) == Plan(next_seconds=NOW + 160)


@pytest.mark.parametrize(
    ("rule", "is_met"),
    [
        ({"succeededIndexes": "0,2-3"}, False),
        ({"succeededIndexes": "0,2"}, True),
        ({"succeededIndexes": "0,2-3", "succeededCount": 2}, True),
        ({"succeededIndexes": "1,3", "succeededCount": 1}, False),
        ({"succeededCount": 2}, True),
        ({"succeededCount": 3}, False),
        ({"succeededIndexes": "7-9"}, False),
    ],
)
def test_a_job_whose_success_policy_is_fulfilled_is_complete_and_loses_its_pods(
    rule: Content, *, is_met: bool
) -> None:
    subject = job(
        completions=4,
        parallelism=4,
        completionMode="Indexed",
        successPolicy={"rules": [rule]},
        status={"completedIndexes": "0,2", "succeeded": 2},
    )
    pod = of(subject, "a")
    pod["metadata"]["annotations"] = {INDEX_ANNOTATION: "1"}
    plan = at_time(subject, JobTally(subject), 0, pod)
    assert (deleted(plan) == ["a"]) is is_met
    ended = plan.patches[0][1]["status"]["conditions"] if plan.patches else []
    assert [each["type"] for each in ended] == ["SuccessCriteriaMet", "Complete"] * is_met
    assert all(each["reason"] == "SuccessPolicy" for each in ended)


def test_upstreams_backoff_limit_is_six() -> None:
    subject = job(completions=1)
    failures = [of(subject, f"f{number}", "Failed") for number in range(7)]
    assert at_job(subject, *failures[:6]).patches == []
    assert at_job(subject, *failures).patches


@pytest.mark.parametrize(("action", "count"), [("Ignore", 0), ("Count", 1), ("FailJob", 1)])
def test_the_pod_failure_policy_determines_whether_a_disruption_counts(
    action: str, count: int
) -> None:
    rule = {"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}
    subject = job(completions=1, podFailurePolicy={"rules": [rule]})
    failure = of(subject, "f", "Failed")
    failure["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    assert JobTally.of(subject, [failure]).failed_count == count
    assert bool(at_job(subject, failure).patches) is (action == "FailJob")


def test_an_index_is_tried_again_under_another_name() -> None:
    subject = job(completions=3, parallelism=2, completionMode="Indexed")
    first = at_job(subject).create
    assert [one["metadata"]["annotations"] for one in first] == [
        {"batch.kubernetes.io/job-completion-index": str(index)} for index in range(2)
    ]
    names = [one["metadata"]["name"] for one in first]
    failure = {**first[0], "status": {"phase": "Failed"}}
    running = {**first[1], "status": {"phase": "Running"}}
    for one in (failure, running):
        one["metadata"] = {**one["metadata"], "uid": one["metadata"]["name"]}
    (again,) = at_job(subject, failure, running, names=names).create
    assert again["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0"
    assert again["metadata"]["name"].startswith("j-0-")
    assert again["metadata"]["name"] not in names


def test_a_permanently_failed_index_is_not_tried_again() -> None:
    subject = job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=0)
    first, second = at_job(subject).create
    failure = {**first, "status": {"phase": "Failed"}}
    failure["metadata"] = {**failure["metadata"], "uid": "f"}
    (other,) = at_job(subject, failure).create
    assert other["metadata"]["annotations"] == second["metadata"]["annotations"]
    success = {**second, "status": {"phase": "Succeeded"}}
    success["metadata"] = {**success["metadata"], "uid": "s"}
    ((_, patch),) = at_job(subject, failure, success).patches
    assert patch["status"]["conditions"][-1]["reason"] == "FailedIndexes"


def test_the_second_pod_of_an_index_is_deleted() -> None:
    subject = job(completions=2, parallelism=2, completionMode="Indexed")
    index = {"batch.kubernetes.io/job-completion-index": "1"}
    pods = [of(subject, name, annotations=index) for name in ("a", "b")]
    assert deleted(at_job(subject, *pods)) == ["b"]


def test_a_suspended_job_loses_its_active_pods() -> None:
    subject = job(completions=2, suspend=True)
    assert deleted(at_job(subject, of(subject, "a"))) == ["a"]


def test_a_job_with_a_smaller_parallelism_deletes_pending_pods_first() -> None:
    subject = job(completions=9, parallelism=1)
    pods = [of(subject, "a"), of(subject, "b", "Pending")]
    assert deleted(at_job(subject, *pods)) == ["b"]


def test_a_terminating_pod_is_replaced_after_its_end_if_the_policy_says_so() -> None:
    one_pod = {"parallelism": 1, "completions": 1}
    early = job(**one_pod)
    assert len(at_job(early, of(early, "a", **LEAVES)).create) == 1
    late = job(**one_pod, podReplacementPolicy="Failed")
    assert at_job(late, of(late, "a", **LEAVES)) == Plan()
