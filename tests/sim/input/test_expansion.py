"""The pods that controllers of an input lack are created from their templates."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_validation import problems
from bayplan.objects.keys import key_of
from bayplan.sim.input.controller_pods import (
    pod_from,
    reference,
    template_hash,
    with_uid,
)
from bayplan.sim.input.expansion import expand
from bayplan.sim.input.jobs import INDEX_ANNOTATION, job_pods
from bayplan.sim.input.object_checks import ObjectIndex
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, owned, template

# ---- expansion ------------------------------------------------------------------------------


def add(index: ObjectIndex, content: Content) -> None:
    index.put(key_of(content), content)


def index_of(*contents: Content) -> ObjectIndex:
    index = ObjectIndex()
    for content in contents:
        add(index, content)
    return index


def expanded(subject: Content, *existing: Content) -> list[Content]:
    """The objects that a controller lacks; all must be valid and have different names."""
    subject = with_uid(subject)
    objects = expand(subject, index_of(subject, *existing)).objects
    for one in objects:
        assert problems(one) == []
    assert len({str(one["metadata"]["name"]) for one in objects}) == len(objects)
    return objects


def names(objects: list[Content]) -> list[str]:
    return [one["metadata"]["name"] for one in objects]


def running(name: str, owner: Content, **spec: Any) -> Content:
    return owned(pod(name, nodeName="n1", **spec), owner)


# ---- replicas -------------------------------------------------------------------------------


def test_a_replica_set_gets_its_missing_pods() -> None:
    subject = with_uid(controller("ReplicaSet", replicas=4))
    failed = running("gone", subject, status={"phase": "Failed"})
    terminating = running("leaving", subject, deletionTimestamp="2026-01-01T00:00:00Z")
    objects = expanded(subject, running("here", subject), failed, terminating, pod("stranger"))
    assert len(objects) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names(objects))
    (reference,) = objects[0]["metadata"]["ownerReferences"]
    assert reference["uid"] == subject["metadata"]["uid"]


def test_one_replica_is_the_default_and_no_surplus_is_created() -> None:
    subject = with_uid(controller("ReplicaSet"))
    assert len(expanded(subject)) == 1
    assert expanded(subject, running("a", subject), running("b", subject)) == []
    assert len(expanded(controller("ReplicationController", replicas=2))) == 2


def test_names_derive_from_the_controller_and_avoid_existing_names() -> None:
    subject = with_uid(controller("ReplicaSet", replicas=2))
    first, second = names(expanded(subject))
    assert names(expanded(subject)) == [first, second]
    assert names(expanded(subject, pod(first)))[0] == second


# ---- deployments ----------------------------------------------------------------------------


def test_a_deployment_gets_a_replica_set_with_its_pods() -> None:
    subject = controller("Deployment", replicas=2, selector={"matchLabels": {"app": "web"}})
    replica_set, *pods = expanded(subject)
    ending = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{ending}"
    assert replica_set["spec"]["replicas"] == 2
    matched = {"app": "web", "pod-template-hash": ending}
    assert replica_set["spec"]["selector"] == {"matchLabels": matched}
    assert [one["metadata"]["labels"] for one in pods] == [matched, matched]
    assert [one["metadata"]["ownerReferences"][0]["name"] for one in pods] == [
        replica_set["metadata"]["name"]
    ] * 2
    assert all(name.startswith(f"web-{ending}-") for name in names(pods))


def test_a_deployment_with_a_replica_set_is_not_expanded_twice() -> None:
    subject = with_uid(controller("Deployment", replicas=2))
    replica_set = owned(controller("ReplicaSet", "web-abc", replicas=2), subject)
    assert expanded(subject, replica_set) == []
    assert len(expanded(replica_set, subject)) == 2


def test_pods_of_a_missing_replica_set_count_for_the_deployment() -> None:
    """`kubectl get deployments,pods` prints no ReplicaSets."""
    subject = controller("Deployment", replicas=4)
    there = controller("ReplicaSet", "web-abc", uid="u1")
    labels = {"app": "web", "pod-template-hash": "abc"}
    pods = [running(name, there, labels=labels) for name in ("web-abc-1", "web-abc-2")]
    old = controller("ReplicaSet", "web-old", uid="u0")
    rolling = running("web-old-1", old, labels={"pod-template-hash": "old"})
    stranger = running("s", controller("ReplicaSet", "web-other-abc", uid="u2"), labels=labels)
    replica_set, *new = expanded(subject, *pods, rolling, stranger)
    assert replica_set["metadata"]["name"] == "web-abc"
    assert replica_set["metadata"]["uid"] == "u1"
    assert [one["metadata"]["labels"] for one in new] == [labels]


def test_a_controller_being_deleted_creates_no_pods() -> None:
    subject = controller("ReplicaSet", replicas=4)
    subject["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert expanded(subject) == []


# ---- stateful sets --------------------------------------------------------------------------


def test_a_stateful_set_gets_its_missing_ordinals() -> None:
    subject = with_uid(controller("StatefulSet", replicas=3, ordinals={"start": 5}))
    ended = running("web-7", subject, status={"phase": "Succeeded"})
    objects = expanded(subject, running("web-6", subject), ended)
    assert names(objects) == ["web-5", "web-7"]
    labels = objects[0]["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-5"
    assert labels["apps.kubernetes.io/pod-index"] == "5"


def test_a_stateful_set_creates_volume_claims_for_its_pods() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    subject = controller(
        "StatefulSet",
        replicas=2,
        volumeClaimTemplates=[claim],
        template=template(volumes=volumes),
    )
    there = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-web-1", "namespace": "default"},
    }
    objects = expanded(subject, there)
    assert [(one["kind"], one["metadata"]["name"]) for one in objects] == [
        ("PersistentVolumeClaim", "data-web-0"),
        ("Pod", "web-0"),
        ("Pod", "web-1"),
    ]
    assert objects[0]["spec"] == claim["spec"]
    assert objects[2]["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
        {"name": "tmp", "emptyDir": {}},
    ]


# ---- daemon sets ----------------------------------------------------------------------------


def targets(objects: list[Content]) -> list[str]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [
        one["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] for one in objects
    ]
    return [term[0]["matchFields"][0]["values"][0] for term in terms]


def test_a_daemon_set_gets_a_pod_on_each_selected_node_without_one() -> None:
    subject = with_uid(controller("DaemonSet", template=template(nodeSelector={"disk": "ssd"})))
    there = [node(name, labels={"disk": "ssd"}) for name in ("n1", "n2", "n3")]
    objects = expanded(subject, *there, node("n4"), running("web-x", subject))
    assert targets(objects) == ["n2", "n3"]


# ---- jobs and uids --------------------------------------------------------------------------


def test_a_controller_gets_a_uid_unless_it_has_one() -> None:
    bare = controller("Job")
    assert with_uid(bare) == with_uid(bare) != bare
    named = controller("Job", uid="u1")
    assert with_uid(named) is named


# ---- pod templates --------------------------------------------------------------------------


def test_a_pod_has_the_labels_and_spec_of_its_template_and_its_owner() -> None:
    owner = controller("ReplicaSet", uid="u1", template=template(annotations={"a": "1"}))
    created = pod_from(owner, "web-x", labels={"more": "yes"}, annotations={"b": "2"})
    assert created["metadata"] == {
        "name": "web-x",
        "namespace": "default",
        "labels": {"app": "web", "more": "yes"},
        "annotations": {"a": "1", "b": "2"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "u1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert created["spec"] is owner["spec"]["template"]["spec"]
    assert reference(owner) == created["metadata"]["ownerReferences"][0]


def test_finalizers_of_a_template_are_copied() -> None:
    whole = template()
    whole["metadata"]["finalizers"] = ["example.com/keep"]
    created = pod_from(controller("ReplicaSet", uid="u1", template=whole), "web-x")
    assert created["metadata"]["finalizers"] == ["example.com/keep"]


def test_a_template_hash_does_not_depend_on_the_order_of_fields() -> None:
    one = template(nodeName="n", priority=1)
    other = {"spec": dict(reversed(one["spec"].items())), "metadata": one["metadata"]}
    assert template_hash(one) == template_hash(other) != template_hash(template())
    assert len(template_hash(one)) == 10


# ---- job pods -------------------------------------------------------------------------------


def job(**spec: Any) -> Content:
    return controller("Job", "j", uid="u1", **spec)


def in_phase(name: str, phase: str, index: int | None = None) -> Content:
    notes = {} if index is None else {INDEX_ANNOTATION: str(index)}
    return pod(name, annotations=notes, status={"phase": phase})


def counts(owned: list[Content], **spec: Any) -> tuple[int, int]:
    now, later = job_pods(job(**spec), owned)
    return len(now), len(later)


RUNNING = in_phase("r", "Running")
SUCCEEDED = in_phase("d", "Succeeded")
FAILED = in_phase("f", "Failed")


@pytest.mark.parametrize(
    ("spec", "owned", "expected"),
    [
        ({}, [], (1, 0)),
        ({"parallelism": 3}, [], (3, 0)),
        ({"parallelism": 3}, [RUNNING], (2, 0)),
        ({"parallelism": 3}, [RUNNING, SUCCEEDED], (0, 0)),
        ({"completions": 5}, [], (1, 4)),
        ({"completions": 5, "parallelism": 2}, [], (2, 3)),
        ({"completions": 5, "parallelism": 2}, [RUNNING, SUCCEEDED, FAILED], (1, 2)),
        ({"completions": 5, "parallelism": 9}, [], (5, 0)),
        ({"completions": 1, "parallelism": 2}, [SUCCEEDED], (0, 0)),
        ({"completions": 5, "parallelism": 2, "status": {"succeeded": 4}}, [], (1, 0)),
        ({"completions": 5, "parallelism": 0}, [], (0, 5)),
        ({"completions": 5, "suspend": True}, [], (0, 0)),
    ],
)
def test_the_parallelism_limits_the_first_pods_of_a_job(
    spec: dict[str, Any], owned: list[Content], expected: tuple[int, int]
) -> None:
    assert counts(owned, **spec) == expected


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [("Complete", "True", 0), ("Failed", "True", 0), ("Failed", "False", 1), ("Other", "True", 1)],
)
def test_a_finished_job_creates_no_pods(kind: str, status: str, expected: int) -> None:
    over = {"conditions": [{"type": kind, "status": status}]}
    assert counts([], completions=1, status=over) == (expected, 0)


def test_generated_names_are_unused_distinct_and_repeatable() -> None:
    (first, second), later = job_pods(job(completions=9, parallelism=2), [])
    names = [one["metadata"]["name"] for one in (first, second, *later)]
    assert len(set(names)) == 9
    assert all(name.startswith("j-") and len(name) == 7 for name in names)
    owned = [in_phase(names[0], "Running")]
    (again,), _ = job_pods(job(completions=2, parallelism=2), owned)
    assert again["metadata"]["name"] == names[1]


def test_pods_have_the_labels_of_their_job() -> None:
    (job_pod,), _ = job_pods(job(), [])
    labels = job_pod["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "j"
    assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"] == "u1"


def test_indexed_jobs_give_each_pod_an_open_index() -> None:
    owned = [in_phase("a", "Running", 1), in_phase("b", "Failed", 2), in_phase("c", "Succeeded", 3)]
    spec = {"completions": 8, "parallelism": 3, "completionMode": "Indexed"}
    status = {"succeeded": 3, "completedIndexes": "3,5-6"}
    now, later = job_pods(job(**spec, status=status), owned)
    indexes = [one["metadata"]["annotations"][INDEX_ANNOTATION] for one in now + later]
    assert indexes == ["0", "2", "4", "7"]
    assert now[0]["metadata"]["name"].startswith("j-0-")
    assert now[0]["metadata"]["labels"][INDEX_ANNOTATION] == "0"


@pytest.mark.parametrize("indexes", ["", "x", "3-", "-", "1-x", "9-2"])
def test_unreadable_completed_indexes_count_as_open(indexes: str) -> None:
    spec = {"completions": 2, "completionMode": "Indexed"}
    now, later = job_pods(job(**spec, status={"completedIndexes": indexes}), [])
    assert len(now + later) == 2
