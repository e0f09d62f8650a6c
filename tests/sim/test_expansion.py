"""The pods that controllers lack."""

from typing import Any

from bayplan.adapters.api_validation import problems
from bayplan.sim.expansion import daemon_pods_for, expand, with_uid
from bayplan.sim.known_objects import KnownObjects
from tests.adapters.manifests import Content, node, pod
from tests.sim.manifests import controller, owned, template


def known_with(*contents: Content) -> KnownObjects:
    known = KnownObjects()
    for content in contents:
        known.put(content)
    return known


def made(subject: Content, *others: Content) -> list[Content]:
    """What a controller lacks among other objects; all of it valid, names all different."""
    subject = with_uid(subject)
    objects = expand(subject, known_with(subject, *others)).objects
    for one in objects:
        assert problems(one) == []
    assert len({str(one["metadata"]["name"]) for one in objects}) == len(objects)
    return objects


def names(objects: list[Content]) -> list[str]:
    return [one["metadata"]["name"] for one in objects]


def running(name: str, owner: Content, **spec: Any) -> Content:
    return owned(pod(name, nodeName="n1", **spec), owner)


# ---- replicas -------------------------------------------------------------------------------


def test_a_replica_set_gets_the_pods_it_lacks() -> None:
    subject = with_uid(controller("ReplicaSet", replicas=4))
    gone = running("gone", subject, status={"phase": "Failed"})
    leaving = running("leaving", subject, deletionTimestamp="2026-01-01T00:00:00Z")
    objects = made(subject, running("here", subject), gone, leaving, pod("stranger"))
    assert len(objects) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names(objects))
    (reference,) = objects[0]["metadata"]["ownerReferences"]
    assert reference["uid"] == subject["metadata"]["uid"]


def test_one_replica_is_the_default_and_enough_is_enough() -> None:
    subject = with_uid(controller("ReplicaSet"))
    assert len(made(subject)) == 1
    assert made(subject, running("a", subject), running("b", subject)) == []
    assert len(made(controller("ReplicationController", replicas=2))) == 2


def test_names_follow_from_the_controller_and_avoid_those_that_are_taken() -> None:
    subject = with_uid(controller("ReplicaSet", replicas=2))
    first, second = names(made(subject))
    assert names(made(subject)) == [first, second]
    assert names(made(subject, pod(first)))[0] == second


# ---- deployments ----------------------------------------------------------------------------


def test_a_deployment_gets_a_replica_set_and_that_one_its_pods() -> None:
    subject = controller("Deployment", replicas=2, selector={"matchLabels": {"app": "web"}})
    replica_set, *pods = made(subject)
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
    assert made(subject, replica_set) == []
    assert len(made(replica_set, subject)) == 2


def test_pods_whose_replica_set_is_not_in_the_input_count_for_the_deployment() -> None:
    """`kubectl get deployments,pods` prints no ReplicaSets."""
    subject = controller("Deployment", replicas=4)
    there = controller("ReplicaSet", "web-abc", uid="u1")
    labels = {"app": "web", "pod-template-hash": "abc"}
    pods = [running(name, there, labels=labels) for name in ("web-abc-1", "web-abc-2")]
    old = controller("ReplicaSet", "web-old", uid="u0")
    rolling = running("web-old-1", old, labels={"pod-template-hash": "old"})
    stranger = running("s", controller("ReplicaSet", "web-other-abc", uid="u2"), labels=labels)
    replica_set, *new = made(subject, *pods, rolling, stranger)
    assert replica_set["metadata"]["name"] == "web-abc"
    assert replica_set["metadata"]["uid"] == "u1"
    assert [one["metadata"]["labels"] for one in new] == [labels]


def test_what_is_on_its_way_out_makes_no_pods() -> None:
    subject = controller("ReplicaSet", replicas=4)
    subject["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert made(subject) == []


# ---- stateful sets --------------------------------------------------------------------------


def test_a_stateful_set_gets_the_ordinals_it_lacks() -> None:
    subject = with_uid(controller("StatefulSet", replicas=3, ordinals={"start": 5}))
    ended = running("web-7", subject, status={"phase": "Succeeded"})
    objects = made(subject, running("web-6", subject), ended)
    assert names(objects) == ["web-5", "web-7"]
    labels = objects[0]["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-5"
    assert labels["apps.kubernetes.io/pod-index"] == "5"


def test_a_stateful_set_claims_volumes_for_its_pods() -> None:
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
    objects = made(subject, there)
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


def test_a_daemon_set_gets_a_pod_per_node_that_is_meant_and_has_none() -> None:
    subject = with_uid(controller("DaemonSet", template=template(nodeSelector={"disk": "ssd"})))
    there = [node(name, labels={"disk": "ssd"}) for name in ("n1", "n2", "n3")]
    objects = made(subject, *there, node("n4"), running("web-x", subject))
    assert targets(objects) == ["n2", "n3"]


def test_a_node_that_comes_gets_what_daemon_sets_put_there() -> None:
    subjects = [with_uid(controller("DaemonSet", name)) for name in ("logs", "metrics")]
    known = known_with(*subjects, node("n9"))
    objects = daemon_pods_for(node("n9"), known)
    assert [one["metadata"]["ownerReferences"][0]["name"] for one in objects] == [
        "logs",
        "metrics",
    ]
    assert targets(objects) == ["n9", "n9"]


def test_daemon_pods_made_later_have_other_names() -> None:
    subject = with_uid(controller("DaemonSet"))
    known = known_with(subject, node("n1"))
    (first,) = expand(subject, known).objects
    known.put(first)
    known.put(node("n2"))
    (second,) = daemon_pods_for(node("n2"), known)
    assert first["metadata"]["name"] != second["metadata"]["name"]


# ---- jobs and uids --------------------------------------------------------------------------


def test_a_job_keeps_some_pods_for_later() -> None:
    subject = with_uid(controller("Job", "j", completions=5, parallelism=2))
    found = expand(subject, known_with(subject))
    assert (len(found.objects), len(found.followers)) == (2, 3)


def test_a_controller_gets_a_uid_unless_it_has_one() -> None:
    bare = controller("Job")
    assert with_uid(bare) == with_uid(bare) != bare
    named = controller("Job", uid="u1")
    assert with_uid(named) is named
