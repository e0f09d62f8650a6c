"""VolumeBinding as a plugin: from PreFilter to PreBind, and its contract.

How much of a node's storage a pod's claims would use, as a score.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.resource_scorers import UtilizationShapePoint, broken_line
from bayplan.framework.status import SKIP, Code, Status
from bayplan.plugins.volume_binding.claims import PodClaims, find_volumes, pod_claims
from bayplan.plugins.volume_binding.plugin import (
    TIMED_OUT,
    VolumeBinding,
    VolumeBindingArgs,
    scores,
)
from bayplan.ports import ConflictError
from bayplan.problems import ConfigError
from bayplan.testing import check_plugin, plugin, pod
from bayplan.testing.clusters import SampleCluster
from tests.kit.ports import UnusedPort
from tests.plugins.volume_kit import (
    add,
    at,
    attempt,
    capacity,
    claim,
    cluster,
    csi_driver,
    decided,
    instance,
    rejected,
    results_of,
    storage_class,
    volume,
    with_claims,
    zoned,
)
from tests.seeded import depth

# ---- plugin ---------------------------------------------------------------------------------


MAKER = storage_class(provisioner="disk.test")
NODES = zoned(n1="a", n2="b")
ASKING = with_claims("p", "data")
PLACED = ASKING.on_node("n1")


class PatchingPort(UnusedPort):
    """Records writes; a sleep advances the clock."""

    def __init__(self, over: SampleCluster, meanwhile: Callable[[float], object]) -> None:
        self.over = over
        self.meanwhile = meanwhile
        self.patches: list[tuple[str, str]] = []
        self.refuses = False

    async def patch(
        self, kind: str, namespace: str, name: str, patch: Any, subresource: str = ""
    ) -> Any:
        if self.refuses:
            raise ConflictError(f"{name} has been modified")
        self.patches.append((kind, name))

    async def sleep(self, seconds: float) -> None:
        self.over.clock.advance_to(self.over.clock.now() + seconds)
        self.meanwhile(self.over.clock.now())


def world(*objects: Any) -> SampleCluster:
    return cluster(NODES, MAKER, *objects)


def reserved(over: SampleCluster, args: Any = None) -> tuple[VolumeBinding, CycleState]:
    plugin = instance(VolumeBinding, over, args)
    state = attempt(plugin, over, ASKING)
    over.cache.assume(PLACED)
    assert plugin.reserve(state, PLACED, "n1") is None
    over.take_back()
    return plugin, state


def bound(plugin: VolumeBinding, state: CycleState, port: PatchingPort) -> Status | None:
    return asyncio.run(plugin.pre_bind(state, PLACED, "n1", port))


def nothing(now: float) -> None: ...


# ---- before a node is chosen ---------------------------------------------------------------


def test_more_free_capacity_scores_higher_unless_configured_otherwise() -> None:
    rooms = [capacity("x", "20Gi", "a"), capacity("y", "100Gi", "b")]
    over = world(claim("data"), csi_driver(storageCapacity=True), *rooms)
    assert results_of(VolumeBinding, over, ASKING).scores == {"n1": 50, "n2": 90}


def test_a_volume_that_is_added_between_two_pods_is_used() -> None:
    over = cluster(NODES, storage_class(), claim("data"))
    assert set(rejected(VolumeBinding, over, ASKING)) == {"n1", "n2"}
    add(over, volume("pv", zone="b"))
    assert set(rejected(VolumeBinding, over, ASKING)) == {"n1"}


# ---- reserve -------------------------------------------------------------------------------


def test_a_reserved_volume_is_not_used_for_another_pod() -> None:
    over = cluster(NODES, storage_class(), claim("data"), claim("other"), volume("pv"))
    plugin, state = reserved(over)
    assert set(rejected(VolumeBinding, over, with_claims("q", "other"))) == {"n1", "n2"}
    plugin.unreserve(state, ASKING, "n1")
    plugin.unreserve(state, ASKING, "n1")
    assert rejected(VolumeBinding, over, with_claims("q", "other")) == {}


def test_a_pod_that_shares_an_unbound_claim_uses_the_same_node() -> None:
    over = world(claim("data"))
    reserved(over)
    assert set(rejected(VolumeBinding, over, with_claims("q", "data"))) == {"n2"}


# ---- PreBind -------------------------------------------------------------------------------


def test_pre_bind_writes_and_waits_until_the_claim_is_bound() -> None:
    over = world(claim("data"), volume("pv"))
    plugin, state = reserved(over)

    def controller(now: float) -> None:
        if now == 3.0:
            add(over, at(volume("pv", claim="data"), "2"), claim("data", bound_to="pv"))

    port = PatchingPort(over, controller)
    assert plugin.pre_bind_preflight(state, ASKING, "n1") is None
    assert bound(plugin, state, port) is None
    assert port.patches == [("v1 PersistentVolume", "pv")]
    assert over.clock.now() == 3.0


def test_a_volume_that_another_pod_assumed_is_written_and_awaited() -> None:
    over = world(claim("data"), volume("pv"))
    first = decided(over, "data")
    first.assume(over.volumes)
    plugin, state = reserved(over)
    first.restore(over.volumes)

    def controller(now: float) -> None:
        if now == 3.0:
            add(over, at(volume("pv", claim="data"), "2"), claim("data", bound_to="pv"))

    port = PatchingPort(over, controller)
    assert bound(plugin, state, port) is None
    assert port.patches == [("v1 PersistentVolume", "pv")]
    assert over.clock.now() == 3.0


def test_pre_bind_fails_after_its_timeout() -> None:
    over = world(claim("data"))
    plugin, state = reserved(over, VolumeBindingArgs(bind_timeout_seconds=5))
    status = bound(plugin, state, PatchingPort(over, nothing))
    assert status == Status(Code.ERROR, (TIMED_OUT,))
    assert over.clock.now() == 5.0


def test_a_refused_write_ends_the_binding_and_is_rolled_back() -> None:
    over = world(claim("data"), volume("pv"))
    plugin, state = reserved(over)
    port = PatchingPort(over, nothing)
    port.refuses = True
    status = bound(plugin, state, port)
    assert status is not None and status.code is Code.ERROR
    plugin.unreserve(state, ASKING, "n1")
    assert over.volumes.assumed_count == 0


def test_written_objects_stay_assumed_until_the_api_reports_them() -> None:
    over = world(claim("data"))
    plugin, state = reserved(over, VolumeBindingArgs(bind_timeout_seconds=1))
    bound(plugin, state, PatchingPort(over, nothing))
    plugin.unreserve(state, ASKING, "n1")
    assert over.volumes.assumed_count == 1


@pytest.mark.parametrize(
    ("lose", "text"),
    [
        pytest.param(
            lambda over: over.cache.forget(PLACED),
            'binding volumes: pod does not exist any more: pod "p" not found',
            id="the pod",
        ),
        pytest.param(
            lambda over: over.cache.remove_node("n1"),
            'binding volumes: failed to get node "n1": node "n1" not found',
            id="the node",
        ),
    ],
)
def test_deleting_the_pod_or_the_node_ends_the_binding(
    lose: Callable[[SampleCluster], object], text: str
) -> None:
    over = world(claim("data"))
    plugin, state = reserved(over)
    status = bound(plugin, state, PatchingPort(over, lambda _: lose(over)))
    assert status == Status(Code.ERROR, (text,))


# ---- args, contract ------------------------------------------------------------------------


def test_the_defaults_are_ten_minutes_and_a_shape_that_prefers_empty_nodes() -> None:
    args = VolumeBindingArgs()
    assert args.bind_timeout_seconds == 600
    assert [(point.utilization, point.score) for point in args.shape] == [(0, 10), (100, 0)]
    assert VolumeBindingArgs(shape=()).shape == args.shape


def test_an_invalid_shape_is_refused() -> None:
    point = VolumeBindingArgs().shape[0]
    problems = list(VolumeBindingArgs(shape=(point, point)).problems())
    assert problems == [("shape[1].utilization", "0; wanted more than 0")]


def test_ephemeral_claims_are_not_signed() -> None:
    plugin = instance(VolumeBinding, world())
    scratch: Any = {"scratch": {"ephemeral": {}}}
    assert plugin.sign_pod(with_claims("p", **scratch)) is None
    assert plugin.sign_pod(with_claims("p", "a")) != plugin.sign_pod(with_claims("p", "b"))
    assert plugin.sign_pod(pod("p")) == plugin.sign_pod(pod("q", namespace="other"))


def test_it_satisfies_the_plugin_contract() -> None:
    def prepare(cluster: SampleCluster) -> None:
        add(cluster, MAKER, csi_driver(storageCapacity=True), capacity("c", "50Gi"))
        add(cluster, claim("data", bound_to="pv"), volume("pv", nodeAffinity=in_zone("za", "zb")))
        add(cluster, claim("new"), claim("old"), volume("free", nodeAffinity=in_zone("za")))

    claims = [[name] for name in ("data", "new", "old")] + [["new", "old"]]
    pods: Any = [{"spec": {"volumes": [use(name) for name in each]}} for each in claims]
    check_plugin(VolumeBinding, pods=pods, prepare=prepare, clusters=depth(3, 6))


def use(name: str) -> Any:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def in_zone(*zones: str) -> Any:
    key = "topology.kubernetes.io/zone"
    expression = {"key": key, "operator": "In", "values": list(zones)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def test_without_the_gate_storage_is_not_scored() -> None:
    off = SampleCluster(gates={"StorageCapacityScoring": False})
    plugin = instance(VolumeBinding, off)
    nodes = off.add(*zoned(n1="a")).lend().nodes
    assert plugin.pre_score(CycleState(), pod("p"), nodes) is SKIP
    assert instance(VolumeBinding, cluster(())).pre_score(CycleState(), pod("p"), nodes) is None


def test_without_the_gate_a_shape_is_refused() -> None:
    off = SampleCluster(gates={"StorageCapacityScoring": False})
    shape = (UtilizationShapePoint(utilization=0, score=5),)
    with pytest.raises(ConfigError, match="the gate StorageCapacityScoring, which is off"):
        plugin(VolumeBinding, VolumeBindingArgs(shape=shape), cluster=off)


# ---- scoring --------------------------------------------------------------------------------


EMPTIEST, FULLEST = broken_line([(0, 10), (100, 0)]), broken_line([(0, 0), (100, 10)])
COUNTED = csi_driver(storageCapacity=True)


def score(
    *objects: Any, line: list[int] = FULLEST, claims: tuple[str, ...] = ("data",)
) -> list[int]:
    over = cluster(zoned(n1="a", n2="b"), *objects)
    result = pod_claims(over.volumes, with_claims("p", *claims))
    assert isinstance(result, PodClaims)
    nodes = over.lend().nodes
    return scores(find_volumes(over.volumes, result, nodes), line, len(nodes)).tolist()


def test_capacity_scores_by_its_requested_share() -> None:
    rooms = [capacity("x", "20Gi", "a"), capacity("y", "100Gi", "b")]
    assert score(MAKER, COUNTED, claim("data", "10Gi"), *rooms) == [50, 10]


def test_classes_count_equally_and_halves_are_rounded_up() -> None:
    volumes = [volume("x", "100Gi"), volume("y", "100Gi", class_name="other")]
    claims = [claim("one", "10Gi"), claim("two", "15Gi", class_name="other")]
    objects = [storage_class(), storage_class("other"), *claims, *volumes]
    assert score(*objects, claims=("one", "two")) == [13, 13]


def test_bound_volumes_hide_volumes_to_be_provisioned() -> None:
    objects = [MAKER, COUNTED, capacity("c", "1000Gi"), volume("x", "40Gi", zone="a")]
    claims = [claim("one", "10Gi"), claim("two", "90Gi")]
    assert score(*objects, *claims, claims=("one", "two")) == [25, 10]


def test_without_reported_capacity_there_is_no_score() -> None:
    assert score(MAKER, claim("data")) == [0, 0]


def test_a_request_above_the_capacity_counts_as_full() -> None:
    rooms = [capacity("x", "1Gi", maximumVolumeSize="10Gi")]
    assert score(MAKER, COUNTED, claim("data", "10Gi"), *rooms) == [100, 100]
    rooms = [capacity("x", "0", maximumVolumeSize="10Gi")]
    assert score(MAKER, COUNTED, claim("data", "10Gi"), *rooms) == [100, 100]
