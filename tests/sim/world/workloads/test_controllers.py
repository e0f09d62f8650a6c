"""Controllers in a simulation replace their pods."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode
from bayplan.sim.output.result import SimulationResult
from tests.kit.manifests import Content, node, pod, priority_class
from tests.sim.manifests import controller, owned, scenario, template
from tests.sim.runs import living, run_by_default

N1 = {"kind": "Node", "name": "n1"}
SELECTOR = {"matchLabels": {"app": "web"}}


def at(seconds: float, **verbs: Any) -> Content:
    return {"at": seconds, **verbs}


def run(
    folder: Path, *contents: Content, expansion: ExpansionMode | None = None
) -> SimulationResult:
    path = folder / "input.yaml"
    path.write_text(yaml.safe_dump_all(contents), encoding="utf-8")
    return run_by_default(load_inputs([str(path)], expansion=expansion))


def delete(*names: str) -> list[Content]:
    return [{"kind": "Pod", "name": name} for name in names]


def first_pod(folder: Path, *contents: Content) -> str:
    """The name of the first pod of a controller."""
    names = run(folder, *contents, expansion=ExpansionMode.ONCE).pods
    return min(names).partition("/")[2]


# ---- replaced pods --------------------------------------------------------------------------

KINDS = [
    controller("Deployment", replicas=2, selector=SELECTOR),
    controller("ReplicaSet", replicas=2, selector=SELECTOR),
    controller("ReplicationController", replicas=2),
    controller("StatefulSet", replicas=2, selector=SELECTOR),
    controller("StatefulSet", replicas=2, selector=SELECTOR, podManagementPolicy="Parallel"),
    controller("DaemonSet", selector=SELECTOR),
]


@pytest.mark.parametrize("subject", KINDS, ids=lambda one: one["kind"])
def test_a_deleted_pod_is_replaced_at_once(tmp_path: Path, subject: Content) -> None:
    name = first_pod(tmp_path, node("n1"), subject)
    before = len(run(tmp_path, node("n1"), subject).pods)
    result = run(tmp_path, node("n1"), subject, scenario(at(5, delete=delete(name))))
    there = living(result)
    assert len(there) == before
    new = [one for one in there.values() if one.created_at == 5.0]
    assert [(one.node, one.bound_at) for one in new] == [("n1", 5.0)]
    assert {one.controller for one in there.values()} == {f"{subject['kind']}/web"}
    assert result.lost == ()


@pytest.mark.parametrize(("parallelism", "at_seconds"), [(1, 15.0), (2, 25.0)])
def test_a_job_replaces_deleted_pods_after_a_delay_that_doubles_with_each(
    tmp_path: Path, parallelism: int, at_seconds: float
) -> None:
    batch = controller("Job", name="j", completions=parallelism, parallelism=parallelism)
    first = run(tmp_path, node("n1"), batch, expansion=ExpansionMode.ONCE).pods
    names = [each.partition("/")[2] for each in first]
    result = run(tmp_path, node("n1"), batch, scenario(at(5, delete=delete(*names))))
    new = [one.created_at for one in living(result).values()]
    assert new == [at_seconds] * parallelism
    assert result.lost == ()


def test_a_job_loses_its_pods_at_its_deadline(tmp_path: Path) -> None:
    batch = controller("Job", name="j", completions=2, parallelism=2, activeDeadlineSeconds=30)
    result = run(tmp_path, node("n1"), batch)
    assert [one.deleted_at for one in result.pods.values()] == [30.0, 30.0]
    assert "at 30 s: Job default/j failed: DeadlineExceeded" in result.notes
    short = template(annotations={"bayplan.dev/duration": "10s"})
    batch["spec"]["template"] = short
    result = run(tmp_path, node("n1"), batch)
    assert (result.simulated_seconds, result.notes[1:]) == (10.0, ())


def test_a_job_that_is_deleted_before_its_deadline_does_not_prolong_a_run(
    tmp_path: Path,
) -> None:
    batch = controller("Job", name="j", completions=1, activeDeadlineSeconds=3600)
    deletion = at(5, delete=[{"kind": "Job", "name": "j"}])
    assert run(tmp_path, node("n1"), batch, scenario(deletion)).simulated_seconds == 5.0


def test_a_job_whose_success_policy_is_fulfilled_stops_its_other_pods(tmp_path: Path) -> None:
    batch = controller(
        "Job",
        name="j",
        completions=3,
        parallelism=2,
        completionMode="Indexed",
        successPolicy={"rules": [{"succeededIndexes": "0"}]},
    )
    first = first_pod(tmp_path, node("n1"), batch)
    ended = at(5, patch=[{"kind": "Pod", "name": first, "status": {"phase": "Succeeded"}}])
    result = run(tmp_path, node("n1"), batch, scenario(ended))
    assert len(result.pods) == 2
    assert living(result).keys() <= {f"default/{first}"}


def test_a_bare_pod_is_never_replaced(tmp_path: Path) -> None:
    result = run(tmp_path, node("n1"), pod("a"), scenario(at(5, delete=delete("a"))))
    assert living(result) == {}
    assert result.lost[0].workload == ""


def test_with_expansion_once_no_pod_is_replaced(tmp_path: Path) -> None:
    web = KINDS[0]
    deletion = at(5, delete=delete(first_pod(tmp_path, node("n1"), web)))
    for spec in ({"expansion": "once"}, {}):
        mode = None if spec else ExpansionMode.ONCE
        result = run(tmp_path, node("n1"), web, scenario(deletion, **spec), expansion=mode)
        assert (len(living(result)), result.counts.not_recreated) == (1, 1)


def test_preempted_pods_wait_as_pending_pods(tmp_path: Path) -> None:
    urgent = pod("urgent", priorityClassName="high", cpu="4")
    web = controller("Deployment", replicas=4, selector=SELECTOR)
    come = scenario(at(5, create=[urgent]))
    result = run(tmp_path, node("n1"), web, priority_class("high", 100), come)
    assert result.placements["default/urgent"] == "n1"
    assert len(result.unschedulable) == 4
    assert result.lost == ()


def test_pods_of_a_removed_node_are_replaced_on_another_node(tmp_path: Path) -> None:
    web = controller("Deployment", replicas=3, selector=SELECTOR)
    deletion = scenario(at(5, create=[node("n2")]), at(6, delete=[N1]))
    result = run(tmp_path, node("n1"), web, deletion)
    assert {one.node for one in living(result).values()} == {"n2"}
    assert (len(living(result)), len(result.pods)) == (3, 6)


def test_a_pod_may_be_replaced_while_the_old_pod_is_terminating(tmp_path: Path) -> None:
    slow = template(terminationGracePeriodSeconds=30)
    name = first_pod(tmp_path, node("n1"), KINDS[0])
    for kind, seconds in (("Deployment", 5.0), ("StatefulSet", 35.0), ("DaemonSet", 35.0)):
        subject = controller(kind, replicas=2, selector=SELECTOR, template=slow)
        name = first_pod(tmp_path, node("n1"), subject)
        result = run(tmp_path, node("n1"), subject, scenario(at(5, delete=delete(name))))
        created = [one.created_at for one in living(result).values() if one.created_at]
        assert created == [seconds], kind


def test_recreate_after_delays_the_new_pod(tmp_path: Path) -> None:
    for subject in KINDS:
        name = first_pod(tmp_path, node("n1"), subject)
        deletion = scenario(at(5, delete=delete(name)), recreateAfter="7s")
        result = run(tmp_path, node("n1"), subject, deletion)
        created = [one.created_at for one in living(result).values() if one.created_at]
        assert created == [12.0], subject["kind"]


def test_before_a_controller_sees_a_loss_it_creates_only_the_pods_of_a_new_scale(
    tmp_path: Path,
) -> None:
    web = KINDS[1]
    name = first_pod(tmp_path, node("n1"), web)
    more = {"kind": "ReplicaSet", "name": "web", "replicas": 3}
    events = at(5, delete=delete(name)), at(6, scale=[more])
    result = run(tmp_path, node("n1"), web, scenario(*events, recreateAfter="9s"))
    created = sorted(one.created_at or 0 for one in living(result).values())
    assert created == [0.0, 6.0, 14.0]


# ---- StatefulSets and Jobs ------------------------------------------------------------------


def test_a_stateful_set_creates_its_second_pod_when_the_first_one_runs(tmp_path: Path) -> None:
    db = controller("StatefulSet", name="db", replicas=3, selector=SELECTOR)
    result = run(tmp_path, db, scenario(at(5, create=[node("n1")])))
    first = result.pods["default/db-0"].bound_at
    assert first is not None
    assert [one.created_at for one in result.pods.values()] == [0.0, first, first]
    waiting = run(tmp_path, db)
    assert list(waiting.unschedulable) == ["default/db-0"]
    note = "1 pod was created for controllers: 3 for 1 StatefulSet, 2 of them not yet"
    assert waiting.notes[0] == note


def test_a_pod_of_a_stateful_set_can_be_deleted_again_and_again(tmp_path: Path) -> None:
    db = controller("StatefulSet", name="db", replicas=2, selector=SELECTOR)
    twice = scenario(at(5, delete=delete("db-1")), at(6, delete=delete("db-1")))
    result = run(tmp_path, node("n1"), db, twice)
    assert result.pods["default/db-1"].created_at == 6.0
    assert result.notes[1:] == ()


def test_a_job_counts_deleted_pods_as_failures(tmp_path: Path) -> None:
    for limit, left in ((1, 1), (0, 0)):
        batch = controller("Job", name="j", completions=1, backoffLimit=limit)
        deletion = at(5, delete=delete(first_pod(tmp_path, node("n1"), batch)))
        result = run(tmp_path, node("n1"), batch, scenario(deletion))
        assert len(living(result)) == left
        has_failed = "at 5 s: Job default/j failed: BackoffLimitExceeded" in result.notes
        assert has_failed is not bool(left)


def test_the_finalizer_of_a_job_does_not_prevent_the_deletion_of_a_pod(tmp_path: Path) -> None:
    """A pod that was read from a cluster has this finalizer."""
    batch = controller("Job", name="j", uid="j", completions=1)
    there = owned(pod("j-a", nodeName="n1"), batch, controller=True)
    there["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    events = at(5, delete=delete("j-a")), at(20, delete=[{"kind": "Job", "name": "j"}])
    result = run(tmp_path, node("n1"), batch, there, scenario(*events))
    assert result.pods["default/j-a"].deleted_at == 5.0
    assert (len(result.pods), living(result)) == (2, {})


def test_a_job_runs_all_its_completions(tmp_path: Path) -> None:
    short = template(annotations={"bayplan.dev/duration": "10s"})
    for mode in ("NonIndexed", "Indexed"):
        batch = controller(
            "Job", name="j", parallelism=2, completions=5, template=short, completionMode=mode
        )
        result = run(tmp_path, node("n1"), batch)
        assert (result.counts.pods, result.simulated_seconds) == (5, 30.0)
        once = run(tmp_path, node("n1"), batch, expansion=ExpansionMode.ONCE)
        assert (once.placements, once.digest) == (result.placements, result.digest)


def test_pods_that_are_deleted_after_their_duration_count_as_completions(tmp_path: Path) -> None:
    ends = {"bayplan.dev/duration": "10s", "bayplan.dev/when-done": "delete"}
    batch = controller("Job", name="j", completions=3, template=template(annotations=ends))
    assert run(tmp_path, node("n1"), batch).counts.pods == 3
    web = controller("ReplicaSet", replicas=2, template=template(annotations=ends))
    assert run(tmp_path, node("n1"), web).counts.pods == 2


def test_pods_of_the_input_that_have_ended_count_for_their_job(tmp_path: Path) -> None:
    batch = controller("Job", name="j", uid="j", completions=3, parallelism=1)
    succeeded = {**owned(pod("d", nodeName="n1"), batch), "status": {"phase": "Succeeded"}}
    batch["spec"]["template"] = template(annotations={"bayplan.dev/duration": "10s"})
    assert run(tmp_path, node("n1"), batch, succeeded).counts.pods == 2


# ---- nodes and owners -----------------------------------------------------------------------


def test_a_new_node_and_a_node_with_another_label_get_daemon_pods(tmp_path: Path) -> None:
    on_a = template(nodeSelector={"zone": "a"})
    logs = controller("DaemonSet", name="logs", selector=SELECTOR, template=on_a)
    label = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    events = (
        at(5, create=[node("n2", labels={"zone": "a"})]),
        at(6, patch=[{**label, "metadata": {"name": "n1", "labels": {"zone": "a"}}}]),
        at(7, patch=[{**label, "metadata": {"name": "n1", "labels": {"zone": "b"}}}]),
    )
    result = run(tmp_path, node("n1"), logs, scenario(*events))
    history = [(one.node, one.created_at, one.deleted_at) for one in result.pods.values()]
    assert sorted(history, key=str) == [("n1", 6.0, 7.0), ("n2", 5.0, None)]


def test_with_a_controller_all_its_pods_are_deleted(tmp_path: Path) -> None:
    for subject in KINDS:
        name = first_pod(tmp_path, node("n1"), subject)
        deletion = at(6, delete=[{"kind": subject["kind"], "name": "web"}])
        events = (at(5, delete=delete(name)), deletion)
        result = run(tmp_path, node("n1"), subject, scenario(*events))
        assert living(result) == {}, subject["kind"]
        assert not [note for note in result.notes if note.startswith("at ")]


def test_a_scaled_deployment_gets_and_loses_pods(tmp_path: Path) -> None:
    def scale(replicas: int) -> list[Content]:
        return [{"kind": "Deployment", "name": "web", "replicas": replicas}]

    events = at(5, scale=scale(4)), at(6, scale=scale(1))
    result = run(tmp_path, node("n1"), KINDS[0], scenario(*events))
    assert len(result.pods) == 4
    assert len(living(result)) == 1


def test_a_pod_that_is_always_deleted_does_not_prolong_a_run(tmp_path: Path) -> None:
    """The template names a missing node, so that garbage collection deletes each pod at once."""
    lost = controller("ReplicaSet", replicas=1, template=template(nodeName="nowhere"))
    result = run(tmp_path, node("n1"), lost)
    assert living(result) == {}
    assert result.notes[-1].endswith("its pods go as fast as they are created")


# ---- determinism ----------------------------------------------------------------------------


def test_two_runs_are_equal_and_expansion_has_no_effect_if_no_pod_is_deleted(
    tmp_path: Path,
) -> None:
    deletion = scenario(at(5, delete=[N1]), at(9, create=[node("n1")]))
    runs = [run(tmp_path, node("n1"), node("n2"), *KINDS[1:2], deletion) for _ in range(2)]
    assert runs[0].digest == runs[1].digest
    assert runs[0].pods == runs[1].pods
    calm = scenario(at(5, create=[node("n3")]))
    for subject in KINDS:
        both = [run(tmp_path, node("n1"), subject, calm, expansion=mode) for mode in ExpansionMode]
        assert both[0].digest == both[1].digest, subject["kind"]
        assert both[0].pods == both[1].pods


# ---- rollouts -------------------------------------------------------------------------------

SMALL = {"allocatable": {"cpu": "3", "memory": "8Gi", "pods": "110"}}
RESTART = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}} | {
    "spec": {"template": {"metadata": {"annotations": {"restarted": "yes"}}}}
}


def rolled_out(folder: Path, strategy: Content, **spec: Any) -> SimulationResult:
    """The restart of a Deployment of three pods, which fill their node."""
    subject = controller(
        "Deployment",
        replicas=3,
        selector=SELECTOR,
        strategy=strategy,
        template=template(terminationGracePeriodSeconds=30),
        **spec,
    )
    return run(folder, node("n1", status=SMALL), subject, scenario(at(5, patch=[RESTART])))


def test_a_rollout_with_a_surplus_waits_for_room_that_never_comes(tmp_path: Path) -> None:
    result = rolled_out(tmp_path, {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    assert len(living(result)) == 4 and len(result.unschedulable) == 1
    progress = "0 of 3 new pods are available, 3 old pods are left"
    assert result.notes[-1] == (f"Deployment default/web: its rollout is not complete: {progress}")


def test_a_rollout_without_a_surplus_replaces_one_pod_after_the_other(tmp_path: Path) -> None:
    result = rolled_out(tmp_path, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    bound = sorted(one.bound_at or 0.0 for one in living(result).values())
    assert bound == [35, 65, 95]
    assert not any("rollout" in note for note in result.notes)


def test_a_recreation_creates_the_new_pods_when_the_old_ones_are_gone(tmp_path: Path) -> None:
    result = rolled_out(tmp_path, {"type": "Recreate"})
    times = {(one.created_at, one.bound_at) for one in living(result).values()}
    assert times == {(35, 35)}


def test_a_rollout_of_the_input_goes_on(tmp_path: Path) -> None:
    new, old = template(), template(labels={"app": "web", "old": "yes"})
    subject = controller("Deployment", replicas=2, selector=SELECTOR, uid="d", template=new)
    sets = [
        owned(controller("ReplicaSet", name, uid=name, replicas=count, template=one), subject)
        for name, count, one in (("old", 2, old), ("new", 0, new))
    ]
    result = run(tmp_path, node("n1"), subject, *sets)
    assert {name[: len("default/new")] for name in living(result)} == {"default/new"}
    assert len(living(result)) == 2


def test_a_rollout_that_anti_affinity_blocks_is_reported(tmp_path: Path) -> None:
    result = run_by_default(load_inputs(["tests/cases/160-rollout.yaml"]))
    assert set(result.unschedulable) == {"default/d-new-c"}
    progress = "0 of 2 new pods are available, 2 old pods are left"
    assert result.notes == (f"Deployment default/d: its rollout is not complete: {progress}",)
