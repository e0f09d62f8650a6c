"""PodInfo: compiled values, shared shapes, refused pods.

The volumes of a pod that count.
"""

from typing import Any

import msgspec
import pytest

from bayplan.api.objects import POD, NodeAllocatableResourceClaimStatus, Pod, decode
from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.api.quantity import QuantityError
from bayplan.state.pods import NO_VOLUMES, PodInfo, PodShape, PodVolumes, pod_info
from bayplan.testing import pod
from tests.kit import manifests

# ---- pods -----------------------------------------------------------------------------------


AFFINITY_TERM = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def compiled(name: str = "p", **fields: Any) -> PodInfo:
    """``fields``: those of tests.kit.manifests.pod."""
    content = manifests.pod(name, **{"uid": f"uid-{name}", "containers": [], **fields})
    decoded = decode(POD, content)
    assert isinstance(decoded, Pod)
    return pod_info(decoded)


def containers(**requests: str) -> list[dict[str, Any]]:
    return [{"name": "main", "resources": {"requests": requests}}]


def resized_status(**amounts: str) -> dict[str, Any]:
    """A status in which the kubelet reports ``amounts`` as the container's resources."""
    status = {"name": "main", "allocatedResources": amounts, "resources": {"requests": amounts}}
    return {"containerStatuses": [status]}


# ---- identity ------------------------------------------------------------------------------


def test_a_pod_without_uid_is_refused_by_its_name() -> None:
    with pytest.raises(AssertionError, match="team/nameless has no uid"):
        compiled("nameless", uid=None, namespace="team")


def test_absent_fields_have_the_defaults_of_the_api() -> None:
    pod = compiled()
    assert (pod.priority, pod.scheduler_name) == (0, "default-scheduler")
    assert (pod.labels, pod.annotations, pod.nominated_node_name) == ({}, {}, "")
    assert (pod.node_name, pod.is_terminating) == ("", False)


def test_the_repr_of_a_pod_names_its_node() -> None:
    assert repr(compiled("web")) == "PodInfo(default/web)"
    assert repr(compiled("web").on_node("n1")) == "PodInfo(default/web on n1)"


# ---- the API object ------------------------------------------------------------------------


@pytest.mark.parametrize("node_name", [None, "n1"])
def test_the_api_object_is_returned_unchanged(node_name: str | None) -> None:
    original = compiled(nodeName=node_name, containers=containers(cpu="1"), priority=3).pod
    assert pod_info(original).pod == original


def test_fields_that_plugins_declare_are_stored_with_the_pod() -> None:
    declared = {"spec.hostname": "a"}
    pod = pod_info(msgspec.structs.replace(compiled().pod, declared=declared)).on_node("n1")
    assert pod.declared == declared
    assert pod.pod.declared == declared
    assert compiled().declared == {}


# ---- shapes --------------------------------------------------------------------------------


def test_pods_of_one_template_share_their_shape() -> None:
    one = compiled("a", containers=containers(cpu="1"), nodeName="n1")
    other = compiled("b", containers=containers(cpu="1"))
    assert one.shape is other.shape


def demanding(**term: Any) -> dict[str, Any]:
    """A node affinity that demands one term."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def naming(*names: str, operator: str = "In") -> list[dict[str, Any]]:
    return [{"key": "metadata.name", "operator": operator, "values": list(names)}]


def test_pods_that_differ_in_the_node_that_they_name_share_the_shape_without_it() -> None:
    free = compiled("a", labels={"a": "b"}, containers=containers(cpu="1")).shape
    for name in ("n1", "n2"):
        affinity = demanding(matchFields=naming(name))
        shape = compiled(
            name, labels={"a": "b"}, containers=containers(cpu="1"), affinity=affinity
        ).shape
        assert shape.pin == (name, free)
        assert (shape.requests, shape.labels) == (free.requests, {"a": "b"})
        assert shape.spec.affinity is not None


def test_a_pod_of_a_daemon_set_whose_devices_take_amounts_shares_no_amounts_with_others() -> None:
    """Amounts are counted by the shape that the pods of a DaemonSet share."""
    asking = compiled("a", affinity=demanding(matchFields=naming("n1")))
    assert asking.shape.pin is not None
    claim = NodeAllocatableResourceClaimStatus(resource_claim_name="c")
    assert asking.with_claim_amounts((claim,)).shape.pin is None


@pytest.mark.parametrize(
    "term",
    [
        {"matchFields": naming("n1", "n2")},
        {"matchFields": naming("n1", operator="NotIn")},
        {"matchFields": [*naming("n1"), *naming("n1")]},
        {
            "matchFields": naming("n1"),
            "matchExpressions": [{"key": "a", "operator": "Exists"}],
        },
    ],
)
def test_a_pod_that_demands_more_than_one_name_has_no_pin(term: dict[str, Any]) -> None:
    assert compiled(affinity=demanding(**term)).shape.pin is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"labels": {"a": "b"}}, id="labels"),
        pytest.param({"namespace": "other"}, id="namespace"),
        pytest.param({"priority": 1}, id="spec"),
    ],
)
def test_pods_that_differ_in_compiled_values_do_not_share_their_shape(
    fields: dict[str, Any],
) -> None:
    assert compiled().shape is not compiled(**fields).shape


def test_requests_are_compiled_to_integers() -> None:
    pod = compiled(containers=containers(cpu="500m", memory="1Gi"))
    assert pod.requests == {"cpu": 500, "memory": 1 << 30}
    empty = compiled(containers=containers()).shape
    assert empty.requests == {}
    assert (empty.non_zero_milli_cpu, empty.non_zero_memory_bytes) == (100, 200 << 20)


def test_a_running_pod_whose_status_reports_its_requests_shares_its_template() -> None:
    """Every kubelet reports requests. Without this rule no two running pods would share a shape."""
    some_containers = containers(cpu="1", memory="1Gi")
    running = compiled(
        "a", containers=some_containers, status=resized_status(cpu="1", memory="1Gi"), nodeName="n1"
    )
    assert running.shape is compiled("b", containers=some_containers).shape


def test_during_a_resize_a_larger_amount_in_the_status_counts() -> None:
    some_containers = containers(cpu="1")
    resized = compiled("a", containers=some_containers, status=resized_status(cpu="2"))
    assert resized.requests == {"cpu": 2000}
    assert (
        resized.shape
        is compiled("b", containers=some_containers, status=resized_status(cpu="2")).shape
    )
    assert resized.shape is not compiled("c", containers=some_containers).shape
    larger = compiled("d", containers=some_containers, status=resized_status(cpu="4"))
    assert (resized.requests, larger.requests) == ({"cpu": 2000}, {"cpu": 4000})


def test_for_an_infeasible_resize_the_amount_in_the_status_counts() -> None:
    pending = {"type": "PodResizePending", "status": "True"}
    some_containers, status = containers(cpu="3"), resized_status(cpu="2")
    deferred = status | {"conditions": [pending | {"reason": "Deferred"}]}
    infeasible = status | {"conditions": [pending | {"reason": "Infeasible"}]}
    waiting = compiled("a", containers=some_containers, status=deferred)
    refused = compiled("b", containers=some_containers, status=infeasible)
    assert (waiting.requests, refused.requests) == ({"cpu": 3000}, {"cpu": 2000})


def test_a_pod_with_a_deferred_resize_has_its_own_shape() -> None:
    some_containers = containers(cpu="3")
    plain = compiled("a", containers=some_containers, nodeName="n1")
    for status in ({}, resized_status(cpu="3")):
        pending = [{"type": "PodResizePending", "reason": "Deferred"}]
        status = status | {"conditions": pending}
        deferred = compiled("b", containers=some_containers, status=status, nodeName="n1")
        assert deferred.has_deferred_resize and not plain.has_deferred_resize
        assert deferred.shape is not plain.shape
        assert deferred.requests == plain.requests
        again = compiled("c", containers=some_containers, status=status, nodeName="n2")
        assert again.shape is deferred.shape
        nowhere = compiled("d", containers=some_containers, status=status)
        assert not nowhere.has_deferred_resize


@pytest.mark.parametrize(
    "conditions",
    [
        [{"type": "PodResizePending", "reason": "Infeasible"}],
        [{"type": "PodResizeInProgress", "reason": "Deferred"}],
        [{"type": "PodResizePending"}, {"type": "PodResizePending", "reason": "Deferred"}],
    ],
)
def test_the_first_condition_of_a_type_decides(conditions: list[Any]) -> None:
    result = compiled("a", status={"conditions": conditions}, nodeName="n1")
    assert not result.has_deferred_resize


# ---- what a shape remembers ----------------------------------------------------------------


def test_values_derived_from_a_shape_are_computed_once_for_all_its_pods() -> None:
    calls: list[PodShape] = []

    def compute(shape: PodShape) -> int:
        calls.append(shape)
        return len(calls)

    one, other = compiled("a"), compiled("b")
    assert [pod.shape.once("key", compute) for pod in (one, other)] == [1, 1]
    assert one.shape.once(("key", 2), compute) == 2


def test_a_computation_that_raises_is_not_cached() -> None:
    def fail(shape: PodShape) -> int:
        raise KeyError("no such thing")

    shape = compiled(priority=99).shape
    with pytest.raises(KeyError, match="no such thing"):
        shape.once("raises", fail)
    assert shape.once("raises", lambda shape: 1) == 1


# ---- shapes that differ only in labels -----------------------------------------------------


def test_values_that_follow_from_the_spec_are_computed_once_for_all_labels() -> None:
    calls: list[PodShape] = []

    def compute(shape: PodShape) -> int:
        calls.append(shape)
        return len(calls)

    plain = compiled("a", priority=7)
    labelled = [compiled(name, priority=7, labels={"app": name}) for name in ("b", "c")]
    shapes = [pod.shape for pod in (plain, *labelled)]
    assert [shape.once_per_spec("key", compute) for shape in shapes] == [1, 1, 1]
    assert [shape.once("key", compute) for shape in shapes] == [2, 3, 4]
    other = compiled("d", priority=7, namespace="other")
    assert other.shape.once_per_spec("key", compute) == 5


def test_shapes_that_differ_only_in_labels_have_their_own_labels_and_groups() -> None:
    """Each shape equals the one that is compiled from its pod alone."""
    fields: dict[str, Any] = {"containers": containers(cpu="1"), "priority": 8}
    groups = {"one": None, "two": "g1", "three": "g2"}
    for app, group in groups.items():
        labels = {"app": app} | ({} if group is None else {COSCHEDULING_LABEL: group})
        shape = compiled(app, labels=labels, **fields).shape
        assert dict(shape.labels) == labels
        assert (None if shape.group_key is None else shape.group_key.name) == group
        assert shape.requests == {"cpu": 1000}


# ---- affinity ------------------------------------------------------------------------------


def affinity(*terms: dict[str, Any], kind: str = "podAffinity") -> dict[str, Any]:
    return {kind: {REQUIRED: list(terms)}}


def test_affinity_terms_are_compiled_by_kind() -> None:
    both = {**affinity(AFFINITY_TERM), **affinity(AFFINITY_TERM, kind="podAntiAffinity")}
    shape = compiled(affinity=both).shape
    assert shape.affinity.required == shape.anti_affinity.required
    assert [term.topology_key for term in shape.affinity.required] == ["zone"]
    assert shape.has_affinity
    assert not compiled().shape.has_affinity


def test_the_error_for_a_selector_that_does_not_parse_names_its_path() -> None:
    bad = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}
    shape = compiled(affinity=affinity(AFFINITY_TERM, bad | {"topologyKey": "zone"})).shape
    (error,) = shape.errors
    assert error.startswith("spec.affinity.podAffinity.required[1]: ")
    assert "Foo" in error


# ---- pod volumes ----------------------------------------------------------------------------


def volumes_of(**sources: Any) -> PodVolumes:
    volumes = [{"name": name, **source} for name, source in sources.items()]
    return pod("p", spec={"volumes": volumes}).shape.volumes


def test_volumes_that_every_node_provides_do_not_count() -> None:
    assert volumes_of(a={"configMap": {"name": "c"}}, b={"emptyDir": {}}) is NO_VOLUMES


def test_pods_of_a_template_share_a_shape_although_each_has_its_own_token_volume() -> None:
    def token(suffix: str) -> dict[str, Any]:
        return {"name": f"kube-api-access-{suffix}", "projected": {"sources": []}}

    data = {"name": "data", "persistentVolumeClaim": {"claimName": "d"}}
    one = compiled("a", volumes=[token("x"), data])
    other = compiled("b", volumes=[token("y"), data])
    assert one.shape is other.shape
    assert [each.name for each in one.spec.volumes or ()] == ["data"]
    assert compiled("c", volumes=[token("z")]).spec.volumes is None


def test_claims_are_in_the_order_of_the_spec() -> None:
    result = volumes_of(
        b={"persistentVolumeClaim": {"claimName": "y"}},
        a={"persistentVolumeClaim": {"claimName": "x"}},
    )
    assert result.claim_names() == ["y", "x"]
    assert result.has_any and not result.has_ephemeral


def test_an_ephemeral_claim_is_named_after_its_pod() -> None:
    one = pod("web", spec={"volumes": [{"name": "scratch", "ephemeral": {}}]})
    assert one.shape.volumes.has_ephemeral
    assert one.shape.volumes.claim_names() == []
    assert list(one.claim_keys()) == ["default/web-scratch"]


def test_an_in_tree_disk_with_a_csi_driver_is_migrated_and_may_be_exclusive() -> None:
    volumes = volumes_of(
        gce={"gcePersistentDisk": {"pdName": "d"}}, net={"cinder": {"volumeID": "c"}}
    )
    assert [volume.name for volume in volumes.migrated] == ["gce", "net"]
    assert [volume.name for volume in volumes.exclusive] == ["gce"]


def test_inline_csi_volumes_are_listed_by_driver_only() -> None:
    result = volumes_of(a={"csi": {"driver": "disk.test"}})
    assert result.inline_drivers == ("disk.test",)
    assert not result.has_any


def test_a_request_that_is_not_a_quantity_raises() -> None:
    with pytest.raises(QuantityError):
        compiled(containers=containers(cpu="lots"))
