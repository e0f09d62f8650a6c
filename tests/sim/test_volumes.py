"""Claims get volumes in a simulation, and pods follow the volumes."""

from typing import Any

import pytest

from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from bayplan.sim.input.storage_classes import missing_storage_classes
from bayplan.sim.input.workload import Step
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.simulation import Simulation
from tests.kit.manifests import Content, container, node, pod
from tests.plugins.volume_kit import capacity, claim, csi_driver, storage_class, volume
from tests.sim.runs import create, delete, simulation, workload

PROVISIONER = "disk.test"


def _plain(content: Content) -> Content:
    """As a user writes it: without the fields of the API server and of controllers."""
    meta = {k: v for k, v in content["metadata"].items() if k not in ("uid", "resourceVersion")}
    return {**{k: v for k, v in content.items() if k != "status"}, "metadata": meta}


def _claim(name: str = "data", size: str = "10Gi", **fields: Any) -> Content:
    content = _plain(claim(name, size, **fields))
    spec = {k: v for k, v in content["spec"].items() if v is not None}
    return {**content, "spec": spec}


def _volume(name: str, size: str = "10Gi", **fields: Any) -> Content:
    return _plain(volume(name, size, **fields))


def _class(mode: str = "WaitForFirstConsumer", **fields: Any) -> Content:
    return _plain(storage_class(mode=mode, **fields))


def _using(name: str, claim_name: str = "data", **spec: Any) -> Content:
    used = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    return pod(name, volumes=[used], **spec)


def _nodes() -> list[Content]:
    return [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})]


def _run(*initial: Content, steps: tuple[Step, ...] = ()) -> tuple[Simulation, SimulationResult]:
    run = simulation(workload(*initial, steps=steps))
    return run, run.run()


def _volumes(run: Simulation) -> dict[str, Content]:
    return {one.key.name: one.content for one in run.cluster.objects(PERSISTENT_VOLUME)}


def _bound(run: Simulation) -> dict[str, str]:
    """Claim's name → volume's name."""
    claims = run.cluster.objects(PERSISTENT_VOLUME_CLAIM)
    return {one.key.name: one.content["spec"].get("volumeName", "") for one in claims}


def test_a_wait_for_first_consumer_claim_gets_a_volume_where_its_pod_goes() -> None:
    places = [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}]
    late = _class(provisioner=PROVISIONER, allowedTopologies=places)
    run, result = _run(*_nodes(), late, _claim(), _using("p"))
    assert result.placements == {"default/p": "b"}
    assert (result.pods["default/p"].bound_at, result.pods["default/p"].attempts) == (1.0, 1)
    [provisioned] = _volumes(run).values()
    assert provisioned["status"]["phase"] == "Bound"
    [term] = provisioned["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}


def test_a_victim_whose_volume_is_being_provisioned_is_not_lost() -> None:
    """The victim's binding is cancelled, and the victim is placed on a later node."""
    important = pod("high", cpu="4", priority=1000)
    low = _using("low", containers=[container("4")])
    initial = [node("a"), _class(provisioner=PROVISIONER), _claim(), low]
    steps = (create(0.5, important), create(30, node("b")))
    _, result = _run(*initial, steps=steps)
    assert result.placements == {"default/high": "a", "default/low": "b"}
    assert result.pods["default/low"].attempts > 1


def test_a_wait_for_first_consumer_claim_gets_the_smallest_reachable_volume() -> None:
    volumes = [_volume("large", "20Gi", zone="b"), _volume("small", "10Gi", zone="b")]
    run, result = _run(*_nodes(), _class(), *volumes, _claim(), _using("p"))
    assert result.placements == {"default/p": "b"}
    assert _bound(run) == {"data": "small"}
    assert _volumes(run)["large"]["status"]["phase"] == "Available"


def test_only_one_of_two_competing_pods_gets_a_volume() -> None:
    claims = [_claim("one"), _claim("two")]
    pods = [_using("p", "one"), _using("q", "two")]
    run, result = _run(*_nodes(), _class(), _volume("only"), *claims, *pods)
    assert list(result.placements) == ["default/p"]
    assert "didn't find available persistent volumes" in result.unschedulable["default/q"]
    assert _bound(run) == {"one": "only", "two": ""}


def test_an_immediate_claim_is_bound_before_its_pod_arrives() -> None:
    volumes = [_volume("large", "30Gi", zone="b"), _volume("small", "15Gi", zone="b")]
    run, result = _run(*_nodes(), _class("Immediate"), _claim(), *volumes, _using("p"))
    assert result.placements == {"default/p": "b"}
    assert result.pods["default/p"].bound_at == 0.0
    assert _bound(run) == {"data": "small"}


def test_an_immediate_claim_gets_a_provisioned_volume() -> None:
    run, result = _run(
        *_nodes(), _class("Immediate", provisioner=PROVISIONER), _claim(), _using("p")
    )
    assert result.pods["default/p"].bound_at == 0.0
    [provisioned] = _volumes(run).values()
    assert provisioned["spec"]["csi"]["driver"] == PROVISIONER
    assert provisioned["spec"]["capacity"] == {"storage": "10Gi"}


def test_without_a_provisioner_a_later_volume_is_used() -> None:
    later = create(5, _volume("late-one"))
    run, result = _run(*_nodes(), _class("Immediate"), _claim(), _using("p"), steps=(later,))
    assert result.pods["default/p"].bound_at == 5.0
    assert _bound(run) == {"data": "late-one"}


def test_without_enough_capacity_no_volume_is_provisioned() -> None:
    rooms = [_plain(capacity("a", "1Gi", "a")), _plain(capacity("b", "50Gi", "b"))]
    driver = _plain(csi_driver(PROVISIONER, storageCapacity=True))
    storage = [_class(provisioner=PROVISIONER), driver, *rooms, _claim(), _claim("huge", "1Ti")]
    run, result = _run(*_nodes(), *storage, _using("p"), _using("q", "huge"))
    assert result.placements == {"default/p": "b"}
    assert "did not have enough free storage" in result.unschedulable["default/q"]
    assert len(_volumes(run)) == 1


def _ephemeral(name: str) -> Content:
    spec = _claim()["spec"]
    return pod(name, volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}])


def test_an_ephemeral_volume_is_created_and_deleted_with_its_pod() -> None:
    initial = [*_nodes(), _class(provisioner=PROVISIONER), _ephemeral("p")]
    run, result = _run(*initial)
    assert list(_bound(run)) == ["p-v"]
    assert (result.pods["default/p"].bound_at, result.pods["default/p"].attempts) == (1.0, 1)
    run, _ = _run(*initial, steps=(delete(10, _ephemeral("p")),))
    assert not _bound(run)
    assert not _volumes(run)


def test_a_retained_volume_is_released_when_its_claim_is_deleted() -> None:
    retained = _volume("kept", class_name="")
    initial = [*_nodes(), retained, _claim(class_name="")]
    run, _ = _run(*initial, steps=(delete(5, _claim()),))
    assert _volumes(run)["kept"]["status"]["phase"] == "Released"


def test_a_claim_without_class_takes_the_default_class() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    late = _class(provisioner=PROVISIONER, meta=default)
    run, result = _run(*_nodes(), late, _claim(class_name=None), _using("p"))
    assert list(result.placements) == ["default/p"]
    [provisioned] = _volumes(run).values()
    assert provisioned["spec"]["storageClassName"] == "late"


def test_without_a_default_class_a_claim_without_class_stays_unbound() -> None:
    _, result = _run(
        *_nodes(), _class(provisioner=PROVISIONER), _claim(class_name=None), _using("p")
    )
    assert "pod has unbound immediate" in result.unschedulable["default/p"]


def test_a_missing_claim_stays_missing() -> None:
    _, result = _run(*_nodes(), _class(provisioner=PROVISIONER), _using("p", "nope"))
    assert 'persistentvolumeclaim "nope" not found' in result.unschedulable["default/p"]


def test_storage_classes_are_generated_only_if_the_input_has_none() -> None:
    missing = missing_storage_classes([_claim("one"), _claim("two", class_name=None)])
    assert [one["metadata"]["name"] for one in missing.classes] == ["late", "standard"]
    assert all("has no StorageClass" in note for note in missing.notes)
    _, result = _run(
        *_nodes(), *missing.classes, _claim("two", class_name=None), _using("p", "two")
    )
    assert list(result.placements) == ["default/p"]


def test_a_missing_class_beside_others_is_reported_and_not_generated() -> None:
    result = missing_storage_classes([_class(), _claim(class_name="fast")])
    assert not result.classes
    assert result.notes == [
        "StorageClass fast is not in the input: nothing provisions volumes for 1 claim"
    ]


def test_a_class_that_only_labels_volumes_is_not_generated() -> None:
    initial = [_volume("v", class_name="manual"), _claim(class_name="manual")]
    assert missing_storage_classes(initial) == ([], [])
    run, _ = _run(*_nodes(), *initial, _using("p"))
    assert _bound(run) == {"data": "v"}


def test_a_run_with_volumes_is_repeatable() -> None:
    initial = [*_nodes(), _class(provisioner=PROVISIONER), *map(_ephemeral, "pqrs")]
    assert _run(*initial)[1].digest == _run(*initial)[1].digest


# ---- claims and volumes in use --------------------------------------------------------------


def _protected(content: Content) -> Content:
    """With the finalizer that an object of a cluster has."""
    short = "pvc" if content["kind"] == "PersistentVolumeClaim" else "pv"
    finalizers = [f"kubernetes.io/{short}-protection"]
    return {**content, "metadata": {**content["metadata"], "finalizers": finalizers}}


def test_a_deleted_claim_stays_until_no_pod_uses_it() -> None:
    used = _protected(_claim())
    user = _using("p")
    steps = (delete(10, used), delete(20, user))
    early, _ = _run(*_nodes(), _class(provisioner=PROVISIONER), used, user, steps=steps[:1])
    [kept] = early.cluster.objects(PERSISTENT_VOLUME_CLAIM)
    assert kept.content["metadata"]["deletionTimestamp"]
    late, result = _run(*_nodes(), _class(provisioner=PROVISIONER), used, user, steps=steps)
    assert not late.cluster.objects(PERSISTENT_VOLUME_CLAIM)
    assert not any("finalizer" in note for note in result.notes)


def test_a_deleted_claim_that_no_pod_uses_goes_with_its_volume() -> None:
    late = _class("Immediate", provisioner=PROVISIONER)
    run, result = _run(*_nodes(), late, _protected(_claim()), steps=(delete(10, _claim()),))
    assert not run.cluster.objects(PERSISTENT_VOLUME_CLAIM) and not _volumes(run)
    assert not result.notes


def test_a_deleted_volume_stays_as_long_as_its_claim() -> None:
    static = _protected(_volume("v"))
    steps = (delete(10, static), delete(20, _claim()))
    early, _ = _run(
        *_nodes(), _class("Immediate", provisioner=PROVISIONER), static, _claim(), steps=steps[:1]
    )
    assert list(_volumes(early)) == ["v"]
    late, _ = _run(
        *_nodes(), _class("Immediate", provisioner=PROVISIONER), static, _claim(), steps=steps
    )
    assert not _volumes(late)


def test_a_pod_that_has_ended_uses_its_claims_until_it_is_deleted() -> None:
    user = _using("p", annotations={"bayplan.dev/duration": "5s"})
    used, classes = _protected(_claim()), _class(provisioner=PROVISIONER)
    steps = (delete(10, used), delete(20, user))
    early, result = _run(*_nodes(), classes, used, user, steps=steps[:1])
    assert result.pods["default/p"].end == "ended"
    assert early.cluster.objects(PERSISTENT_VOLUME_CLAIM)
    late, _ = _run(*_nodes(), classes, used, user, steps=steps)
    assert not late.cluster.objects(PERSISTENT_VOLUME_CLAIM)


@pytest.mark.parametrize(
    ("policy", "left"),
    [("Delete", ""), ("Retain", "example.com/wait"), ("Delete", "example.com/wait")],
)
def test_the_controllers_of_storage_remove_their_finalizers(policy: str, left: str) -> None:
    static = _protected(_volume("v"))
    static["spec"] = {**static["spec"], "persistentVolumeReclaimPolicy": policy}
    own = ("external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-controller")
    static["metadata"]["finalizers"] += [*own, "external-attacher/disk-example-com"]
    static["metadata"]["finalizers"] += [left] if left else []
    steps = (delete(10, static), delete(20, _claim()))
    run, result = _run(
        *_nodes(), _class("Immediate", provisioner=PROVISIONER), static, _claim(), steps=steps
    )
    finalizers = [each["metadata"]["finalizers"] for each in _volumes(run).values()]
    assert finalizers == ([[left]] if left else [])
    assert len(result.notes) == bool(left)


def test_the_storage_of_a_volume_that_never_had_a_claim_is_not_deleted() -> None:
    static = _volume("v", class_name="")
    finalizer = "external-provisioner.volume.kubernetes.io/finalizer"
    static["metadata"]["finalizers"] = [finalizer, "kubernetes.io/pv-protection"]
    static["spec"]["persistentVolumeReclaimPolicy"] = "Delete"
    run, _ = _run(*_nodes(), static, steps=(delete(10, static),))
    assert _volumes(run)["v"]["metadata"]["finalizers"] == [finalizer]


def test_ephemeral_claims_of_a_cluster_go_with_their_pod() -> None:
    template = {
        "spec": _claim()["spec"],
        "metadata": {"finalizers": ["kubernetes.io/pvc-protection"]},
    }
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    user = pod("p", volumes=[scratch])
    run, _ = _run(*_nodes(), _class(provisioner=PROVISIONER), user, steps=(delete(10, user),))
    assert not run.cluster.objects(PERSISTENT_VOLUME_CLAIM)
