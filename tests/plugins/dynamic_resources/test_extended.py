"""Extended resources that devices represent."""

from typing import Any

from bayplan.api.device_objects import DEVICE_CLASS, ResourceClaim
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent
from bayplan.framework.status import Code, Status
from bayplan.plugins.dynamic_resources.extended import (
    CANNOT_FIT,
    IN_MEMORY_NAME,
    STALE_CLAIM,
    claim_for_node,
    requested_devices,
    special_claim,
)
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.pods import PodInfo
from bayplan.testing import node, plugin, pod
from tests.plugins.devices_kit import as_claim, as_class, claim, class_of, exactly, sample
from tests.plugins.row_kit import rejected

GPU = "example.com/gpu"
GPU_CLASS = class_of("gpu", extendedResourceName=GPU)


def container(name: str, amount: int, **fields: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", GPU: str(amount)}} if amount else {}
    return {"name": name, "resources": resources, **fields}


def claim_requests(asking: PodInfo, **allocatable: Any) -> Any:
    """(request → count, container → requests), or the answer without a claim."""
    cluster = sample(GPU_CLASS, nodes=())
    offered = {name.replace("gpu", GPU): amount for name, amount in allocatable.items()}
    cluster.add(node("n1", cpu=8, pods=9, allocatable=offered))
    info = cluster.lend().nodes.info(0)
    classes = cluster.devices.device_classes
    status = claim_for_node(asking, special_claim(asking, ()), info, classes)
    if status is None or isinstance(status, Status):
        return status
    counts = {
        r.name: r.exactly.count for r in status.claim.spec.devices.requests or () if r.exactly
    }
    return counts, [(each.container_name, each.request_name) for each in status.mappings]


def test_a_pod_requests_devices_if_a_class_represents_its_resource() -> None:
    classes = sample(GPU_CLASS).devices.device_classes
    assert requested_devices(pod(requests={GPU: 1}), classes)
    assert requested_devices(pod(requests={"deviceclass.resource.kubernetes.io/gpu": 1}), classes)
    assert not requested_devices(pod(requests={GPU: 0}), classes)
    assert not requested_devices(pod(requests={"example.com/fpga": 1}), classes)


def test_each_container_gets_a_request_of_its_own() -> None:
    asking = pod("p", containers=[container("a", 1), container("b", 0), container("c", 2)])
    requests, mappings = claim_requests(asking)
    assert requests == {"container-0-request-1": 1, "container-2-request-1": 2}
    assert mappings == [("a", "container-0-request-1"), ("c", "container-2-request-1")]


def test_init_containers_use_the_devices_of_later_containers_first() -> None:
    init = [container("i", 3), container("j", 1), container("k", 4)]
    asking = pod("p", containers=[container("a", 2)], init_containers=init)
    requests, mappings = claim_requests(asking)
    assert requests == {"container-2-request-1": 2, "container-3-request-1": 2}
    assert mappings == [
        ("a", "container-3-request-1"),
        ("i", "container-3-request-1"),
        ("i", "container-2-request-1"),
        ("j", "container-3-request-1"),
        ("k", "container-3-request-1"),
        ("k", "container-2-request-1"),
    ]


def test_a_sidecar_keeps_its_devices() -> None:
    sidecar = container("s", 1, restartPolicy="Always")
    asking = pod("p", containers=[container("a", 1)], init_containers=[sidecar])
    assert claim_requests(asking)[0] == {"container-0-request-1": 1, "container-1-request-1": 1}


def test_a_node_that_offers_the_resource_itself_needs_no_claim() -> None:
    assert claim_requests(pod(requests={GPU: 1}), gpu=4) is None


def test_a_resource_that_neither_node_nor_devices_offer_does_not_fit() -> None:
    answer = claim_requests(pod(requests={GPU: 1, "example.com/fpga": 1}))
    assert isinstance(answer, Status)
    assert answer.reasons == (CANNOT_FIT,)


def left_behind(uid: str) -> ResourceClaim:
    content = claim("left", exactly())
    content["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"kind": "Pod", "name": "p", "uid": uid, "controller": True}],
    }
    return as_claim(content)


def test_a_claim_left_by_an_earlier_attempt_blocks_the_pod() -> None:
    asking = pod("p", requests={GPU: 1})
    mine = left_behind(asking.uid)
    assert special_claim(asking, (left_behind("another"), mine)) is mine
    assert special_claim(asking, (left_behind("another"),)).metadata.name == IN_MEMORY_NAME
    cluster = sample(GPU_CLASS)
    info = cluster.lend().nodes.info(0)
    answer = claim_for_node(asking, mine, info, cluster.devices.device_classes)
    assert isinstance(answer, Status)
    assert answer.reasons == (STALE_CLAIM,)


# ---- what NodeResourcesFit leaves to devices -----------------------------------------------


def test_fit_compares_such_a_resource_only_where_the_node_offers_it() -> None:
    cluster = sample(GPU_CLASS, nodes=())
    for name, count in (("none", 0), ("few", 1), ("enough", 2)):
        offered = {GPU: count} if count else {}
        cluster.add(node(name, cpu=8, pods=9, allocatable=offered))
    fit, asking = plugin(NodeResourcesFit, cluster=cluster), pod("p", requests={GPU: 2})
    nodes = cluster.lend().nodes
    assert set(rejected(fit, asking, nodes)) == {"few"}
    one_by_one = [i.name for i in nodes.infos() if fit.filter_row(CycleState(), asking, i)]
    assert one_by_one == ["few"]


def test_evictions_help_a_full_node_regardless_of_devices_on_other_nodes() -> None:
    cluster = sample(GPU_CLASS, nodes=())
    cluster.add(node("devices", cpu=8, pods=9), node("own", cpu=8, pods=9, allocatable={GPU: 2}))
    cluster.add(pod("there", requests={GPU: 1}, node="own"))
    fit, asking = plugin(NodeResourcesFit, cluster=cluster), pod("p", requests={GPU: 2})
    reason = f"Insufficient {GPU}"
    expected = {"own": (Code.UNSCHEDULABLE, (reason,))}
    nodes = cluster.lend().nodes
    assert rejected(fit, asking, nodes) == expected
    one_by_one = [fit.filter_row(CycleState(), asking, each) for each in nodes.infos()]
    assert one_by_one == [(), ((Code.UNSCHEDULABLE, (reason,)),)]


def test_fit_waits_for_classes_that_begin_to_represent_a_requested_resource() -> None:
    fit, asking = plugin(NodeResourcesFit, cluster=sample()), pod("p", requests={GPU: 1})
    added = ClusterEvent(DEVICE_CLASS, ActionType.ADD)
    (hint,) = [each.hint for each in fit.events_to_register() if each.event.match(added)]
    assert hint is not None
    stands, other = as_class(GPU_CLASS), as_class(class_of("gpu"))
    by_name = pod("p", requests={"deviceclass.resource.kubernetes.io/gpu": 1})
    assert str(hint(asking, None, stands)) == "Queue"
    assert str(hint(asking, other, stands)) == "Queue"
    assert str(hint(by_name, None, other)) == "Queue"
    assert str(hint(asking, None, other)) == "QueueSkip"
    assert str(hint(asking, stands, stands)) == "QueueSkip"
