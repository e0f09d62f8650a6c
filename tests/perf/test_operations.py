"""Each operation does the same as upstream's, on a cluster under virtual time."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import NODE, POD, ApiObject, decode
from bayplan.clock import ManualClock
from bayplan.config.feature_gates import default_gates
from bayplan.objects.keys import ObjectKey, object_key
from bayplan.perf.operations import allocations, at_pace, paced, updated
from bayplan.perf.running import WorkloadOutcome
from bayplan.sim.loop import run
from bayplan.testing import node
from tests.perf.kit import LARGE_POD, SMALL_POD, case, op, pod_with_spec, run_of, write_cases
from tests.plugins.devices_kit import allocated, claim, class_of, exactly, slice_of

# ---- operations -----------------------------------------------------------------------------


NODES = op("createNodes", count=2)
GATED = SMALL_POD.replace("spec: {", "spec: {schedulingGates: [{name: g}], ")
START = op("startCollectingMetrics", name="m", namespaces=["ns"])
STOP = op("stopCollectingMetrics")


class Played:
    """A file's workload after its run: its outcome, its objects and its duration."""

    def __init__(self, folder: Path, *operations: Any, params: Any = None, **files: str) -> None:
        path = write_cases(folder, case(*operations, params=params), pod=SMALL_POD, **files)
        self.clock = ManualClock()
        whole = run_of(path, self.clock)
        self.outcome: WorkloadOutcome = run(whole.play(), self.clock)
        self.cluster = whole._cluster
        assert not self.outcome.failure, self.outcome.failure

    def contents(self, kind: str) -> list[dict[str, Any]]:
        return [stored.content for stored in self.cluster.objects(kind)]

    def names(self, kind: str) -> list[str]:
        return [stored.key.name for stored in self.cluster.objects(kind)]

    def bound_count(self) -> int:
        return sum("nodeName" in pod["spec"] for pod in self.contents(POD))


def pods(**fields: Any) -> Any:
    return op("createPods", **{"podTemplatePath": "pod.yaml", "namespace": "ns", **fields})


def test_nodes_get_their_strategy_and_the_objects_of_the_strategy(tmp_path: Path) -> None:
    strategy = {"csiNodeAllocatable": {"d": {"count": 3}}, "nodeAllocatable": {"gpu": "1"}}
    played = Played(
        tmp_path,
        op(
            "createNodes", count=2, labelNodePrepareStrategy={"labelKey": "z", "labelValues": ["a"]}
        ),
        op("createNodes", count=1, nodeAllocatableStrategy=strategy),
    )
    labels = [node["metadata"]["labels"].get("z") for node in played.contents(NODE)]
    assert labels == ["a", "a", None]
    assert played.names("storage.k8s.io/v1 CSINode") == played.names(NODE)[2:]


def test_pods_are_bound_before_the_next_operation(tmp_path: Path) -> None:
    played = Played(tmp_path, NODES, pods(count=8))
    assert (played.bound_count(), played.outcome.nodes, played.outcome.pods) == (8, 2, 8)


def test_pods_without_a_namespace_get_a_namespace_for_their_operation(tmp_path: Path) -> None:
    played = Played(tmp_path, NODES, op("createPods", count=1))
    assert played.contents(POD)[0]["metadata"]["namespace"] == "namespace-1"


def test_sets_of_pods_have_numbered_namespaces(tmp_path: Path) -> None:
    each = {"opcode": "createPods", "count": 1}
    played = Played(
        tmp_path, NODES, op("createPodSets", count=2, namespacePrefix="s", createPodsOp=each)
    )
    assert {pod["metadata"]["namespace"] for pod in played.contents(POD)} == {"s-0", "s-1"}


def test_namespaces_are_created_from_their_template(tmp_path: Path) -> None:
    label = "{apiVersion: v1, kind: Namespace, metadata: {labels: {team: x}}}"
    played = Played(
        tmp_path,
        op("createNamespaces", prefix="a", count=2, namespaceTemplatePath="t.yaml"),
        t=label,
    )
    assert played.names("v1 Namespace") == ["a-0", "a-1"]
    assert played.contents("v1 Namespace")[1]["metadata"]["labels"]["team"] == "x"


def test_any_kind_can_be_created(tmp_path: Path) -> None:
    text = "{apiVersion: v1, kind: %s, metadata: {name: 'x-{{.Index}}'}}"
    played = Played(
        tmp_path,
        op("createAny", templatePath="volume.yaml", count=2),
        op("createAny", templatePath="service.yaml", namespace="ns"),
        op("createPodGroups", templatePath="group.yaml", namespace="ns", count=1),
        volume=text % "PersistentVolume",
        service=text % "Service",
        group=text.replace("v1", "scheduling.k8s.io/v1beta1") % "PodGroup",
    )
    assert played.names("v1 PersistentVolume") == ["x-0", "x-1"]
    assert played.contents("v1 Service")[0]["metadata"]["namespace"] == "ns"
    assert played.names("scheduling.k8s.io/v1beta1 PodGroup") == ["x-0"]


def test_a_barrier_waits_for_pods_of_earlier_operations(tmp_path: Path) -> None:
    skipped = pods(count=2, skipWaitToCompletion=True)
    assert Played(tmp_path, NODES, skipped).bound_count() < 2
    assert Played(tmp_path, NODES, skipped, op("barrier")).bound_count() == 2


def test_a_barrier_may_wait_for_attempts_and_labels(tmp_path: Path) -> None:
    large = LARGE_POD.replace("metadata: {", "metadata: {labels: {type: large}, ")
    played = Played(
        tmp_path,
        NODES,
        pods(count=1, podTemplatePath="large.yaml", skipWaitToCompletion=True),
        pods(count=1, podTemplatePath="gated.yaml", skipWaitToCompletion=True),
        op("barrier", stageRequirement="Attempted", labelSelector={"type": "large"}),
        op("barrier", stageRequirement="Attempted", namespaces=["ns"]),
        op("barrier", labelSelector={"type": "none"}),
        large=large,
        gated=GATED,
    )
    (message,) = played.contents(POD)[0]["status"]["conditions"]
    assert message["reason"] == "Unschedulable"


def test_a_sleep_advances_the_clock(tmp_path: Path) -> None:
    assert Played(tmp_path, op("sleep", duration="1m30s")).clock.now() >= 90


def test_pods_are_deleted_by_labels_at_a_rate(tmp_path: Path) -> None:
    labelled = SMALL_POD.replace("metadata: {", "metadata: {labels: {a: b}, ")
    played = Played(
        tmp_path,
        NODES,
        pods(count=1),
        pods(count=3, podTemplatePath="labelled.yaml"),
        op("deletePods", namespace="ns", labelSelector={"a": "b"}, deletePodsPerSecond=2),
        labelled=labelled,
    )
    assert len(played.names(POD)) == 1
    assert 1.5 <= played.clock.now() < 2


def test_a_deletion_may_run_beside_later_operations(tmp_path: Path) -> None:
    delete = op("deletePods", namespace="ns", deletePodsPerSecond=1, skipWaitToCompletion=True)
    played = Played(tmp_path, NODES, pods(count=5), delete, op("sleep", duration="2.5s"))
    assert len(played.names(POD)) == 3


def test_churn_creates_up_to_its_number(tmp_path: Path) -> None:
    churn = op(
        "churn", mode="create", number=3, intervalMilliseconds=1000, templatePaths=["pod.yaml"]
    )
    played = Played(tmp_path, churn, op("sleep", duration="9s"))
    assert len(played.names(POD)) == 3


@pytest.mark.parametrize(("seconds", "count"), [(2.5, 2), (4.5, 0), (5.5, 1)])
def test_churn_creates_and_deletes_in_turn(tmp_path: Path, seconds: float, count: int) -> None:
    churn = op(
        "churn", mode="recreate", number=2, intervalMilliseconds=1000, templatePaths=["pod.yaml"]
    )
    played = Played(tmp_path, churn, op("sleep", duration=f"{seconds}s"))
    assert len(played.names(POD)) == count


def test_an_update_replaces_the_object(tmp_path: Path) -> None:
    gated = GATED.replace("generateName: pod-", "name: 'p-{{.Index}}'")
    free = gated.replace("schedulingGates: [{name: g}], ", "")
    played = Played(
        tmp_path,
        NODES,
        pods(count=3, podTemplatePath="gated.yaml", skipWaitToCompletion=True),
        op("updateAny", namespace="ns", count=3, templatePath="free.yaml", updatePerSecond=1),
        op("barrier"),
        gated=gated,
        free=free,
    )
    assert played.bound_count() == 3
    assert played.clock.now() >= 3


def test_a_steady_state_replaces_each_bound_pod(tmp_path: Path) -> None:
    """No operation takes time, so pods would follow each other for ever: the node is deleted."""
    node = {"capacity": {"cpu": 1, "pods": 1}}
    text = f"{{apiVersion: v1, kind: Node, metadata: {{name: n}}, status: {node}}}"
    nodes = op("createNodes", count=1, nodeTemplatePath="n.yaml")
    steady = pods(count=2, steadyState=True, duration="5s", collectMetrics=True)
    path = write_cases(tmp_path, case(nodes, steady), pod=SMALL_POD, n=text)
    clock = ManualClock()
    whole = run_of(path, clock)
    cluster, bound = whole._cluster, itertools.count(1)

    def observe(before: Any, after: Any) -> None:
        if before is None or after is None or after.key.kind != POD:
            return
        if "nodeName" in after.content["spec"] and next(bound) == 3:
            asyncio.get_running_loop().call_soon(cluster.delete, object_key(NODE, "", "n"))

    cluster.observe(observe)
    outcome = run(whole.play(), clock)
    assert not outcome.failure
    assert outcome.measured[0].pods == 3
    assert len(cluster.objects(POD)) == 2
    assert clock.now() >= 5


def test_a_steady_state_without_a_binding_fails(tmp_path: Path) -> None:
    path = write_cases(
        tmp_path, case(NODES, pods(count=1, steadyState=True, duration="3s")), pod=LARGE_POD
    )
    clock = ManualClock()
    outcome = run(run_of(path, clock).play(), clock)
    assert outcome.failure == "operation 1 (createPods): no pod at all was bound in 3s"


def test_a_measurement_has_its_name_and_labels(tmp_path: Path) -> None:
    played = Played(tmp_path, NODES, START, pods(count=3), STOP, pods(count=2, collectMetrics=True))
    names = [(one.name, one.pods) for one in played.outcome.measured]
    assert names == [("Case/small/m", 3), ("Case/small/ns", 2)]


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ((STOP,), "operation 0 (stopCollectingMetrics): nothing is being measured"),
        ((START, START), "operation 1 (startCollectingMetrics): Case/small/m is still being"),
        (
            (op("updateAny", namespace="ns", templatePath="named.yaml"),),
            "operation 0 (updateAny): cannot update Pod ns/p: it is not there",
        ),
    ],
)
def test_an_operation_that_cannot_be_done_ends_the_workload(
    tmp_path: Path, operations: tuple[Any, ...], message: str
) -> None:
    named = SMALL_POD.replace("generateName: pod-", "name: p")
    path = write_cases(tmp_path, case(*operations), named=named)
    clock = ManualClock()
    outcome = run(run_of(path, clock).play(), clock)
    assert outcome.failure.startswith(message)


GPU_CLASS = """
apiVersion: resource.k8s.io/v1beta2
kind: DeviceClass
metadata: {name: gpu}
spec: {}
"""
GPU_SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: "slice-{{.Index}}"}
spec:
  driver: gpu.test
  allNodes: true
  pool: {name: "pool-{{.Index}}", generation: 1, resourceSliceCount: 1}
  devices: [{name: a}, {name: b}]
"""
GPU_CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {generateName: claim-}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
"""


DEVICE_OPERATIONS: list[Any] = [
    op("createNodes", count=2),
    op("createAny", templatePath="gpu.yaml"),
    op("createAny", templatePath="slice.yaml", count=2),
    op("createResourceClaims", templatePath="claim.yaml", namespace="ns", countParam="$n"),
    op("allocResourceClaims", namespace="ns"),
]


DEVICE_FILES = {"gpu": GPU_CLASS, "slice": GPU_SLICE, "claim": GPU_CLAIM}


def test_claims_are_created_and_allocated_without_pods(tmp_path: Path) -> None:
    played = Played(tmp_path, *DEVICE_OPERATIONS, params={"n": 3}, **DEVICE_FILES)
    claims = played.contents("resource.k8s.io/v1 ResourceClaim")
    results = [claim["status"]["allocation"]["devices"]["results"][0] for claim in claims]
    assert len({(each["pool"], each["device"]) for each in results}) == 3


def test_claims_that_cannot_be_allocated_end_the_workload(tmp_path: Path) -> None:
    one = case(*DEVICE_OPERATIONS, params={"n": 5})
    path = write_cases(tmp_path, one, pod=SMALL_POD, **DEVICE_FILES)
    clock = ManualClock()
    outcome = run(run_of(path, clock).play(), clock)
    assert "no node has devices for ResourceClaim ns/claim-" in outcome.failure


# ---- updates --------------------------------------------------------------------------------


def test_an_update_does_not_change_fields_set_by_admission() -> None:
    old = pod_with_spec(priority=5, tolerations=[{"key": "a"}], schedulingGates=[{"name": "g"}])
    result = updated(old, pod_with_spec(containers=[]), ())
    assert result["spec"] == {"priority": 5, "tolerations": [{"key": "a"}], "containers": []}


def test_an_object_of_another_kind_is_replaced() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}}
    old = {**node, "spec": {"taints": [{"key": "a"}]}}
    assert updated(old, node, ()) == node


def test_a_resize_changes_only_resources() -> None:
    old = pod_with_spec(containers=[{"name": "a", "image": "i", "resources": 1}, {"name": "b"}])
    old["metadata"]["labels"] = {"x": "y"}
    result = updated(
        old, pod_with_spec(containers=[{"name": "a", "image": "j", "resources": 2}]), ("resize",)
    )
    assert result["spec"]["containers"] == [
        {"name": "a", "image": "i", "resources": 2},
        {"name": "b"},
    ]
    assert result["metadata"] == old["metadata"]


def test_a_status_update_changes_nothing_else() -> None:
    old = {**pod_with_spec(nodeName="n"), "status": {"phase": "Running"}}
    result = updated(old, {**pod_with_spec(), "status": {"phase": "Failed"}}, ("status",))
    assert result == {**old, "status": {"phase": "Failed"}}


# ---- work at a rate -------------------------------------------------------------------------


KEYS = [object_key(POD, "default", str(n)) for n in range(3)]


def test_items_are_processed_at_the_ticks_of_their_rate() -> None:
    clock, seen = ManualClock(), []

    async def main() -> None:
        async for item in paced("abc", 2, clock):
            seen.append((item, clock.now()))
            await asyncio.sleep(0.3)

    run(main(), clock)
    assert seen == [("a", 0.5), ("b", 1.0), ("c", 1.5)]


@pytest.mark.parametrize(("per_second", "moments"), [(0, [0, 0, 0]), (4, [0.25, 0.5, 0.75])])
def test_every_item_is_processed(per_second: int, moments: list[float]) -> None:
    clock: ManualClock = ManualClock()
    done: list[Any] = []
    work = at_pace(KEYS, per_second, clock, lambda key: done.append((key, clock.now())))
    run(work, clock)
    assert done == list(zip(KEYS, moments, strict=True))


# ---- claim allocation -----------------------------------------------------------------------


OBJECTS: dict[str, list[Any]] = {
    DEVICE_CLASS: [class_of()],
    RESOURCE_SLICE: [slice_of("n1", "a"), slice_of("n2", "a")],
    RESOURCE_CLAIM: [claim(name, exactly()) for name in ("c1", "c2", "c3")],
}


def objects_of(contents: dict[str, list[Any]]) -> Any:
    def objects(kind: str) -> list[tuple[ObjectKey, ApiObject]]:
        if kind == NODE:
            return [(object_key(NODE, "", name), node(name)) for name in ("n1", "n2")]
        objects_of_kind = [decode(kind, content) for content in contents.get(kind, ())]
        return [(object_key(kind, "default", each.metadata.name), each) for each in objects_of_kind]

    return objects


def allocated_pools(contents: dict[str, list[Any]], namespace: str = "") -> dict[str, Any]:
    """Claim → pools of its devices."""
    patches = allocations(objects_of(contents), namespace, default_gates())
    return {
        key.name: patch
        and [each["pool"] for each in patch["status"]["allocation"]["devices"]["results"]]
        for key, patch in patches
    }


def test_each_claim_gets_separate_devices() -> None:
    result = allocated_pools(OBJECTS)
    assert sorted([result["c1"], result["c2"]], key=str) == [["n1"], ["n2"]]
    assert result["c3"] is None


def test_a_repeated_allocation_gives_the_same_result() -> None:
    assert allocated_pools(OBJECTS) == allocated_pools(OBJECTS)


def test_allocated_claims_keep_their_devices_and_further_claims_get_the_remaining_ones() -> None:
    has_some = claim("c1", exactly(), status=allocated(("n1", "a")))
    contents = {**OBJECTS, RESOURCE_CLAIM: [has_some, claim("c2", exactly())]}
    assert allocated_pools(contents) == {"c2": ["n2"]}


def test_claims_of_other_namespaces_are_ignored() -> None:
    assert allocated_pools(OBJECTS, "elsewhere") == {}
