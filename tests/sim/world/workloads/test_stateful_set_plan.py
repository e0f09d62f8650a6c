"""What a StatefulSet does next: order, claims, rollouts."""

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.objects.keys import key_of
from bayplan.sim.input.controller_pods import template_hash, with_uid
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode
from bayplan.sim.world.workloads.plans import OwnedPods, Plan, Surroundings
from bayplan.sim.world.workloads.stateful_set_plan import stateful_set_plan
from tests.kit.manifests import Content, node
from tests.sim.manifests import controller, scenario, template
from tests.sim.runs import living, run_by_default
from tests.sim.world.workloads.planning import LEAVES, around, created, deleted, of


def planned(subject: Content, *pods: Content, where: Surroundings | None = None) -> Plan:
    return stateful_set_plan(subject, OwnedPods(pods), where or around())


DB = with_uid(controller("StatefulSet", name="db", replicas=3))
BURST = with_uid(controller("StatefulSet", name="db", replicas=3, podManagementPolicy="Parallel"))


def test_an_ordered_stateful_set_creates_one_pod_and_waits_for_it() -> None:
    plan = planned(DB)
    assert (created(plan), plan.waits_for_pod) == (["db-0"], True)
    assert planned(DB, of(DB, "db-0", "Pending")) == Plan(waits_for_pod=True)
    assert created(planned(DB, of(DB, "db-0"))) == ["db-1"]
    assert planned(DB, *(of(DB, f"db-{n}") for n in range(3))) == Plan()


def test_a_parallel_stateful_set_creates_all_missing_pods() -> None:
    assert created(planned(BURST, of(BURST, "db-1", "Pending"))) == ["db-0", "db-2"]


@pytest.mark.parametrize("subject", [DB, BURST], ids=["ordered", "parallel"])
def test_a_pod_is_replaced_under_its_ordinal_after_its_end(subject: Content) -> None:
    siblings = [of(subject, "db-0"), of(subject, "db-2")]
    assert planned(subject, *siblings, of(subject, "db-1", **LEAVES)).create == []
    assert created(planned(subject, *siblings)) == ["db-1"]


def test_the_pod_with_the_lowest_ordinal_is_replaced_first() -> None:
    assert created(planned(DB, of(DB, "db-2"))) == ["db-0"]
    assert planned(DB, of(DB, "db-0", "Pending"), of(DB, "db-2")).create == []


def test_a_failed_pod_of_a_stateful_set_is_deleted_before_its_replacement() -> None:
    plan = planned(DB, of(DB, "db-0"), of(DB, "db-1", "Failed"), of(DB, "db-2"))
    assert (created(plan), deleted(plan)) == ([], ["db-1"])


def test_surplus_pods_are_deleted_from_the_highest_ordinal() -> None:
    small = with_uid(controller("StatefulSet", name="db", replicas=1))
    pods = [of(small, f"db-{number}") for number in range(4)]
    assert deleted(planned(small, *pods)) == ["db-3"]
    terminating = [*pods[:3], of(small, "db-3", **LEAVES)]
    assert planned(small, *terminating).delete == []
    burst = {**small, "spec": {**small["spec"], "podManagementPolicy": "Parallel"}}
    assert deleted(planned(burst, *pods)) == ["db-3", "db-2", "db-1"]


def test_surplus_pods_are_deleted_after_all_desired_pods_run() -> None:
    small = with_uid(controller("StatefulSet", name="db", replicas=1))
    plan = planned(small, of(small, "db-0", "Pending"), of(small, "db-1"))
    assert plan == Plan(waits_for_pod=True)


def test_ordinals_begin_at_the_start_of_the_stateful_set() -> None:
    subject = with_uid(controller("StatefulSet", name="db", replicas=2, ordinals={"start": 5}))
    assert created(planned(subject, of(subject, "db-5"))) == ["db-6"]


def test_missing_claims_are_created_before_the_pod() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {}}
    subject = with_uid(
        controller("StatefulSet", name="db", replicas=1, volumeClaimTemplates=[claim])
    )
    plan = planned(subject)
    assert created(plan) == ["data-db-0", "db-0"]
    there = key_of(plan.create[0])
    assert created(planned(subject, where=around(objects=[there]))) == ["db-0"]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_pod_that_waits_gets_its_missing_claims(policy: str) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {}}
    subject = with_uid(
        controller(
            "StatefulSet",
            name="db",
            replicas=2,
            podManagementPolicy=policy,
            volumeClaimTemplates=[claim],
        )
    )
    pods = [of(subject, f"db-{number}", "Pending") for number in range(2)]
    claims = ["data-db-0"] if policy == "OrderedReady" else ["data-db-0", "data-db-1"]
    assert created(planned(subject, *pods)) == claims
    assert created(planned(subject, *[of(subject, f"db-{number}") for number in range(2)])) == []


# ---- rollouts -------------------------------------------------------------------------------

OLD = template(labels={"app": "old"})


def rolled(*revisions: str, policy: str = "OrderedReady", phases: str = "", **rolling: Any) -> Plan:
    """The plan of a StatefulSet whose pods are "old" or "new"; of the ordinals in ``phases`` the
    pods do not run."""
    subject = with_uid(
        controller(
            "StatefulSet",
            name="db",
            replicas=len(revisions),
            podManagementPolicy=policy,
            updateStrategy={"rollingUpdate": rolling},
        )
    )
    hashes = {"old": template_hash(OLD), "new": template_hash(subject["spec"]["template"])}
    pods = [
        of(
            subject,
            f"db-{number}",
            "Pending" if str(number) in phases else "Running",
            labels={"controller-revision-hash": hashes[revision]},
        )
        for number, revision in enumerate(revisions)
        if revision
    ]
    return planned(subject, *pods, where=replace(around(), old_template=OLD))


def test_a_rollout_deletes_the_highest_ordinal_of_the_old_template() -> None:
    assert deleted(rolled("old", "old", "old")) == ["db-2"]
    assert deleted(rolled("old", "old", "new")) == ["db-1"]
    assert deleted(rolled("old", "old", "new", phases="2")) == []
    assert rolled("new", "new", "new") == Plan()


def test_a_partition_keeps_the_lower_ordinals() -> None:
    assert deleted(rolled("old", "old", "old", partition=2)) == ["db-2"]
    assert rolled("old", "old", "new", partition=2) == Plan()
    plan = rolled("", "old", "new", partition=2)
    assert plan.create[0]["metadata"]["labels"]["app"] == "old"
    assert rolled("", "old", "new").create[0]["metadata"]["labels"]["app"] == "web"


def test_a_rollout_leaves_as_many_pods_as_max_unavailable_says() -> None:
    four = ("old", "old", "old", "old")
    assert deleted(rolled(*four, maxUnavailable=3)) == ["db-3", "db-2", "db-1"]
    assert deleted(rolled(*four, maxUnavailable="50%")) == ["db-3", "db-2"]
    assert deleted(rolled(*four, maxUnavailable="1%")) == ["db-3"]


def test_a_parallel_rollout_first_deletes_what_does_not_run() -> None:
    plan = rolled("old", "old", "old", "old", policy="Parallel", phases="01", maxUnavailable=3)
    assert deleted(plan) == ["db-1", "db-0", "db-3"]


def test_on_delete_leaves_the_pods_alone() -> None:
    subject = with_uid(
        controller("StatefulSet", name="db", replicas=1, updateStrategy={"type": "OnDelete"})
    )
    old = of(subject, "db-0", labels={"controller-revision-hash": "x"})
    assert planned(subject, old, where=replace(around(), old_template=OLD)) == Plan()


def test_the_status_of_a_cluster_says_which_pods_are_old() -> None:
    status = {"currentRevision": "db-1", "updateRevision": "db-2"}
    subject = with_uid(controller("StatefulSet", name="db", replicas=2, status=status))
    pods = [
        of(subject, f"db-{number}", labels={"controller-revision-hash": f"db-{number + 1}"})
        for number in range(2)
    ]
    assert deleted(planned(subject, *pods)) == ["db-0"]


# ---- whole runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ExpansionMode)
def test_a_pod_of_the_input_whose_claim_was_deleted_runs(mode: ExpansionMode) -> None:
    workload = load_inputs(["tests/cases/120-stspvc.yaml"], expansion=mode)
    result = run_by_default(workload)
    assert result.placements == {"default/db-0": "n1"}


def claimed(**spec: Any) -> Content:
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": storage}
    return controller("StatefulSet", name="db", replicas=2, volumeClaimTemplates=[claim], **spec)


def test_pods_that_are_not_created_yet_are_counted_without_their_claims() -> None:
    full = node("n1", status={"allocatable": {"cpu": "0", "pods": "110"}})
    result = run_by_default(load_inputs([full, claimed()]))
    assert list(result.pods) == ["default/db-0"]
    created_pods = "1 pod was created for controllers: 2 for 1 StatefulSet, 1 of them not yet"
    assert result.notes[0] == created_pods


@pytest.mark.parametrize("when", ["whenScaled", "whenDeleted"])
@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_claims_are_kept_or_go_as_the_retention_policy_says(when: str, policy: str) -> None:
    subject = claimed(persistentVolumeClaimRetentionPolicy={when: policy})
    named = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
    scaling = {"kind": "StatefulSet", "name": "db", "replicas": 1}
    first = {"scale": [scaling]} if when == "whenScaled" else {"delete": [named]}
    again = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    again |= {
        "metadata": {"name": "data-db-1"},
        "spec": claimed()["spec"]["volumeClaimTemplates"][0]["spec"],
    }
    workload = load_inputs([node("n1"), subject, scenario({"at": 10, **first})])
    create = load_inputs([scenario({"at": 20, "create": [again]})]).steps
    result = run_by_default(replace(workload, steps=(*workload.steps, *create)))
    # A claim that was kept refuses another one of its name.
    assert any("already exists" in note for note in result.notes) == (policy == "Retain")


def test_a_changed_template_replaces_the_pods_from_the_highest_ordinal() -> None:
    subject = controller("StatefulSet", name="db", replicas=3)
    change = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
    change["spec"] = {"template": {"spec": {"terminationGracePeriodSeconds": 10}}}
    grace = {
        **subject,
        "spec": {**subject["spec"], "template": template(terminationGracePeriodSeconds=30)},
    }
    result = run_by_default(
        load_inputs([node("n1"), grace, scenario({"at": 5, "patch": [change]})])
    )
    bound = {name: one.bound_at for name, one in living(result).items()}
    assert bound == {"default/db-2": 35, "default/db-1": 65, "default/db-0": 95}
