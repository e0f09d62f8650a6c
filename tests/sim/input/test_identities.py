"""Names and uids that an input lacks or has twice."""

from typing import Any

import pytest

from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode, Verb, Workload
from tests.kit.manifests import Content, node, pod
from tests.sim.manifests import controller, owned, scenario

KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")


def nameless(content: Content, prefix: str = "sample-") -> Content:
    meta = {name: value for name, value in content["metadata"].items() if name != "name"}
    return {**content, "metadata": {**meta, "generateName": prefix}}


def with_uid(content: Content, uid: str) -> Content:
    return {**content, "metadata": {**content["metadata"], "uid": uid}}


def load(*values: Content, **options: Any) -> Workload:
    return load_inputs(values, **options)


def created(workload: Workload, kind: str = "Pod") -> list[Content]:
    return [one for one in workload.created() if one["kind"] == kind]


def uids(workload: Workload) -> dict[str, str | None]:
    return {one["metadata"]["name"]: one["metadata"].get("uid") for one in workload.initial}


# ---- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ExpansionMode)
def test_a_controller_without_a_name_gets_one_before_its_pods(
    kind: str, mode: ExpansionMode
) -> None:
    spec: Content = {} if kind == "DaemonSet" else {"replicas": 2}
    if kind == "Job":
        spec = {"parallelism": 2, "completions": 2}
    workload = load(node("n1"), nameless(controller(kind, **spec)), expansion=mode)
    [named] = created(workload, kind)
    name = named["metadata"]["name"]
    assert name.startswith("sample-") and len(name) == len("sample-") + 5
    pods = created(workload)
    assert len(pods) == (1 if kind == "DaemonSet" else 2)
    assert all(one["metadata"]["name"].startswith(f"{name}-") for one in pods)


def test_objects_of_a_scenario_without_a_name_get_different_names() -> None:
    jobs = [nameless(controller("Job", completions=1)) for _ in range(3)]
    workload = load(node("n1"), scenario({"at": "5s", "create": jobs}))
    names = {step.key for step in workload.steps if step.verb is Verb.CREATE}
    assert len({key.name for key in names if key.kind == "batch/v1 Job"}) == 3
    assert len({key.name for key in names if key.kind == "v1 Pod"}) == 3


def test_a_name_that_exists_is_not_generated_again() -> None:
    [first] = created(load(nameless(pod())))
    [taken, other] = created(load(first, nameless(pod())))
    assert taken["metadata"]["name"] == first["metadata"]["name"]
    assert other["metadata"]["name"] != first["metadata"]["name"]


@pytest.mark.parametrize("mode", ExpansionMode)
def test_no_two_of_many_pods_get_one_name(mode: ExpansionMode) -> None:
    workload = load(controller("ReplicaSet", replicas=20_000), expansion=mode)
    names = [one["metadata"]["name"] for one in created(workload)]
    assert len(set(names)) == len(names) == 20_000


def test_a_generated_name_has_at_most_63_characters() -> None:
    long = controller("ReplicaSet", "w" * 80, replicas=1)
    indexed = controller("Job", "j" * 62, completions=1, completionMode="Indexed")
    workload = load(nameless(pod(), "p" * 70), long, indexed)
    names = sorted(one["metadata"]["name"] for one in created(workload))
    assert [len(name) for name in names] == [63, 63, 63]
    assert names[0].startswith("j" * 55 + "-0-")


# ---- uids -----------------------------------------------------------------------------------


def test_a_uid_that_occurs_again_is_replaced_with_a_remark() -> None:
    workload = load(*(with_uid(pod(name), "u") for name in "abc"), with_uid(node("n"), "u"))
    assert uids(workload)["a"] == "u"
    assert len(set(uids(workload).values()) - {None}) == 4
    assert workload.notes == (
        "Pod default/b has the uid of Pod default/a, so it got a new one",
        "Pod default/c has the uid of Pod default/a, so it got a new one",
        "Node n has the uid of Pod default/a, so it got a new one",
    )


def test_many_repeated_uids_are_counted() -> None:
    notes = load(*(with_uid(pod(f"p{number}"), "u") for number in range(100))).notes
    assert len(notes) == 21
    assert notes[-1] == "and 79 more uids were replaced"


def test_an_object_that_is_read_twice_stays_one_object() -> None:
    again = with_uid(pod("b"), "u")
    workload = load(with_uid(pod("a"), "u"), again, again)
    assert [one["metadata"]["name"] for one in created(workload)] == ["a", "b"]


def test_a_uid_of_a_scenario_is_replaced_too() -> None:
    event = {"at": 1, "create": [with_uid(pod("b"), "u")]}
    workload = load(with_uid(pod("a"), "u"), scenario(event))
    assert created(workload)[-1]["metadata"]["uid"] != "u"


def test_references_to_a_replaced_uid_are_replaced_too() -> None:
    first = controller("ReplicaSet", "one", uid="u", replicas=1)
    second = controller("ReplicaSet", "two", uid="u", replicas=1)
    workload = load(first, second, owned(pod("a"), first), owned(pod("b"), second))
    [a, b] = created(workload)  # neither lacks a pod
    [_, new] = created(workload, "ReplicaSet")
    assert a["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert b["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"] != "u"
    assert workload.notes == (
        "ReplicaSet default/two has the uid of ReplicaSet default/one, so it got a new one",
    )


@pytest.mark.parametrize("own", [{}, {"uid": "other"}], ids=["no uid", "another uid"])
@pytest.mark.parametrize("order", [1, -1], ids=["owner first", "pod first"])
def test_an_owner_is_meant_by_its_name(own: Content, order: int) -> None:
    owner = controller("ReplicaSet", replicas=1, **own)
    objects = [owner, owned(pod("a"), owner, uid="from-the-cluster")]
    workload = load(*objects[::order])
    [only] = created(workload)
    [named] = created(workload, "ReplicaSet")
    assert only["metadata"]["ownerReferences"][0]["uid"] == named["metadata"]["uid"]
    remark = "Pod default/a refers to ReplicaSet default/web with another uid: the name counts"
    assert workload.notes == (remark,)


def test_an_owner_that_is_not_there_stays_as_it_is() -> None:
    lost = owned(pod("a"), controller("Job", "gone", uid="j"))
    [only] = created(load(lost, with_uid(pod("b"), "j")))[:1]
    assert only["metadata"]["ownerReferences"][0]["uid"] == "j"


def test_claims_and_volumes_follow_a_replaced_uid() -> None:
    users = {"resource": "pods", "name": "b", "uid": "u"}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {},
        "status": {"reservedFor": [{**users, "name": "a"}, users]},
    }
    storage: Content = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "u"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": "default", "name": "data", "uid": "u"},
        },
    }
    workload = load(with_uid(pod("a"), "u"), with_uid(pod("b"), "u"), storage, claim, volume)
    [mended] = created(workload, "ResourceClaim")
    reserved = [one["uid"] for one in mended["status"]["reservedFor"]]
    assert reserved == ["u", uids(workload)["b"]]
    [bound] = created(workload, "PersistentVolume")
    assert bound["spec"]["claimRef"]["uid"] == uids(workload)["data"]
