"""DynamicResources as a plugin: its extension points, its hints and its contract.

Every test runs over two managers of devices: the cluster's own, and one with plain lists. The
plugin has the same results with both.
"""

import asyncio
from typing import Any, cast

import pytest

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, ResourceClaim
from bayplan.api.objects import POD, Pod
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource
from bayplan.framework.status import Code, NodeToStatus, Status
from bayplan.plugins.dynamic_resources import DynamicResources
from bayplan.plugins.dynamic_resources import plugin as releases
from bayplan.plugins.dynamic_resources.plugin import RELEASE_POLL_SECONDS as POLL_SECONDS
from bayplan.plugins.dynamic_resources.plugin import Releases
from bayplan.plugins.dynamic_resources.plugin import device_events as events
from bayplan.problems import ConfigError
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, check_plugin, plugin, pod
from bayplan.testing.state_checks import SamplePort
from tests.kit.ports import UnusedPort
from tests.plugins import devices_kit
from tests.plugins.devices_kit import (
    DRIVER,
    allocated,
    as_claim,
    claim,
    class_of,
    exactly,
    first_of,
    put,
    sample,
    slice_of,
)
from tests.seeded import depth


@pytest.fixture(autouse=True, params=[SampleCluster, devices_kit.memory_cluster])
def manager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manager of devices behind `sample`: the cluster's own, or `MemoryDevices`."""
    monkeypatch.setattr(devices_kit, "new_cluster", request.param)


# ---- plugin ---------------------------------------------------------------------------------


GPU = "example.com/gpu"


def asking(name: str = "p", claim_name: str = "c", **options: Any) -> PodInfo:
    named = {"name": "g", "resourceClaimName": claim_name}
    return pod(name, spec={"resourceClaims": [named]}, **options)


class Scenario:
    """One plugin over one cluster."""

    def __init__(self, *contents: Any, nodes: tuple[str, ...] = ("n1", "n2")) -> None:
        self.cluster: SampleCluster = sample(*contents, nodes=nodes)
        self.plugin = plugin(DynamicResources, cluster=self.cluster)
        self.state = CycleState()

    def filtered(self, pod: PodInfo) -> dict[str, str]:
        """Node → reason; {"": …} if the whole pod is rejected."""
        self.state = CycleState()
        nodes = self.cluster.lend().nodes
        answer = self.plugin.pre_filter(self.state, pod, nodes)
        if isinstance(answer, Status):
            return {"": answer.message or str(answer.code)}
        statuses = {i.name: self.plugin.filter_node(self.state, pod, i) for i in nodes.infos()}
        return {name: "" if status is None else status.message for name, status in statuses.items()}

    def reserved(self, pod: PodInfo, node_name: str) -> Status | None:
        self.filtered(pod)
        return self.plugin.reserve(self.state, pod, node_name)

    def bound(self, pod: PodInfo, node_name: str) -> Status | None:
        port = SamplePort(self.cluster.store)
        return asyncio.run(self.plugin.pre_bind(self.state, pod, node_name, port))

    def write(self) -> None:
        """Perform the writes that the plugin requested."""

        async def main() -> None:
            for _, each in self.cluster.writes:
                await each(SamplePort(self.cluster.store))

        asyncio.run(main())
        self.cluster.writes.clear()

    def claim(self, name: str = "c") -> ResourceClaim:
        resource_claim = self.cluster.objects(RESOURCE_CLAIM).get(name, "default")
        assert isinstance(resource_claim, ResourceClaim)
        return resource_claim

    @property
    def taken(self) -> set[str]:
        devices = self.cluster.devices.resource_claims.allocated.devices()
        return {f"{each.pool}/{each.device}" for each in devices}


# ---- one pod -------------------------------------------------------------------------------


def test_a_pod_waits_until_its_claim_exists() -> None:
    scenario = Scenario()
    status = scenario.plugin.pre_enqueue(asking())
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    put(scenario.cluster.store, claim("c", exactly()))
    assert scenario.plugin.pre_enqueue(asking()) is None


def test_from_filter_to_binding_a_claim_gets_the_devices_of_the_chosen_node() -> None:
    scenario, placed = Scenario(slice_of("n1", "x"), claim("c", exactly())), asking()
    assert scenario.filtered(placed) == {"n1": "", "n2": "cannot allocate all claims"}
    assert scenario.plugin.reserve(scenario.state, placed, "n1") is None
    assert scenario.taken == {"n1/x"}
    assert scenario.plugin.pre_bind_preflight(scenario.state, placed, "n1") is None
    assert scenario.bound(placed, "n1") is None
    bound = scenario.claim()
    assert bound.is_reserved_for(placed.uid)
    assert bound.allocation is not None
    assert bound.allocation.allocation_timestamp == "2026-01-01T00:00:00Z"
    assert scenario.cluster.devices.resource_claims.pending_allocation("uid-c") is None
    assert scenario.taken == {"n1/x"}


def test_reserved_devices_are_not_allocated_again_before_unreserve() -> None:
    scenario = Scenario(slice_of("n1", "x"), claim("c", exactly()), claim("d", exactly()))
    assert scenario.reserved(asking(), "n1") is None
    state = scenario.state
    assert scenario.filtered(asking("q", "d"))["n1"] == "cannot allocate all claims"
    waiting = "resource claim default/c is in the process of being allocated"
    assert scenario.filtered(asking("q", "c")) == {"": waiting}
    for _ in range(2):
        scenario.plugin.unreserve(state, asking(), "n1")
    assert scenario.taken == set()
    assert scenario.filtered(asking("q", "d"))["n1"] == ""


def test_a_binding_that_fails_later_removes_the_reservation() -> None:
    scenario, placed = Scenario(slice_of("n1", "x"), claim("c", exactly())), asking()
    scenario.reserved(placed, "n1")
    scenario.bound(placed, "n1")
    scenario.plugin.unreserve(scenario.state, placed, "n1")
    scenario.write()
    assert not scenario.claim().is_reserved_for(placed.uid)
    assert scenario.claim().allocation is not None


def test_a_pod_that_is_tried_again_waits_until_its_old_reservation_is_removed() -> None:
    """The last version of the claim from the API still names the pod as a user."""
    scenario, placed = Scenario(slice_of("n1", "x"), claim("c", exactly())), asking()
    scenario.reserved(placed, "n1")
    scenario.bound(placed, "n1")
    scenario.plugin.unreserve(scenario.state, placed, "n1")
    assert scenario.claim().is_reserved_for(placed.uid)
    scenario.reserved(placed, "n1")
    port = Writer(scenario)
    assert asyncio.run(scenario.plugin.pre_bind(scenario.state, placed, "n1", port)) is None  # pyright: ignore[reportArgumentType]
    assert port.slept_seconds == [POLL_SECONDS]
    assert scenario.claim().is_reserved_for(placed.uid)


class Writer:
    """A port that performs the plugin's writes during a sleep."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._port = SamplePort(scenario.cluster.store)
        self.slept_seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
        for _, write in self._scenario.cluster.writes:
            await write(self._port)
        assert not self._scenario.claim().status.reserved_for
        self._scenario.cluster.writes.clear()


def test_a_claim_that_changed_and_cannot_be_bound_is_an_error() -> None:
    scenario, placed = Scenario(slice_of("n1", "x"), claim("c", exactly())), asking()
    scenario.reserved(placed, "n1")
    content = claim("c", exactly(), status=allocated(("n1", "y")))
    put(scenario.cluster.store, {**content, "metadata": {**content["metadata"], "uid": "uid-c"}})
    scenario.state["DynamicResources"].claims[0] = scenario.claim()
    status = scenario.bound(placed, "n1")
    assert status is not None
    assert status.code is Code.ERROR
    assert "got allocated elsewhere in the meantime" in status.message


def test_a_node_without_an_allocation_of_filter_cannot_be_reserved() -> None:
    scenario = Scenario(slice_of("n1", "x"), claim("c", exactly()))
    status = scenario.reserved(asking(), "n2")
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "claim allocation not found for node")


# ---- score ---------------------------------------------------------------------------------


def test_nodes_with_better_alternatives_score_higher() -> None:
    small = (f'device.attributes["{DRIVER}"].?size.orValue(1) == 1',)
    expected = first_of("r", two={"count": 2}, one={"expressions": small})
    scenario = Scenario(slice_of("n1", "x"), slice_of("n2", "x", "y"), claim("c", expected))
    scenario.filtered(asking())
    nodes = scenario.cluster.lend().nodes
    scores = scenario.plugin.score(scenario.state, asking(), nodes).tolist()
    assert dict(zip(nodes.names(), scores, strict=True)) == {"n1": 7, "n2": 8}


# ---- PostFilter ----------------------------------------------------------------------------


def post_filter_status(scenario: Scenario, pod: PodInfo) -> tuple[Code, str]:
    nomination, status = scenario.plugin.post_filter(scenario.state, pod, NodeToStatus())
    assert nomination is None
    assert status is not None
    return status.code, status.message


def test_without_pre_filter_post_filter_is_an_error() -> None:
    assert post_filter_status(Scenario(), asking()) == (Code.ERROR, "not found")


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ((), "deallocation of ResourceClaim completed"),
        ((("p", "uid-default/p"),), "deallocation of ResourceClaim completed"),
        ((("q", "uid-q"),), ""),
    ],
)
def test_devices_that_bind_a_pod_to_a_node_it_cannot_use_are_released(
    users: Any, message: str
) -> None:
    status = allocated(("n3", "x"), node_name="n3", users=users)
    scenario = Scenario(claim("c", exactly(), status=status))
    assert set(scenario.filtered(asking()).values()) == {"resourceclaim not available on the node"}
    assert post_filter_status(scenario, asking()) == (Code.UNSCHEDULABLE, message)
    scenario.write()
    assert (scenario.claim().allocation is None) is bool(message)


def test_a_pod_is_not_bound_with_devices_that_its_last_attempt_released() -> None:
    """Until the write is sent and the watch reports it, an attempt reads the claim as
    allocated and reserved."""
    pending = asking()
    status = allocated(("n3", "x"), node_name="n3", users=(("p", pending.uid),))
    scenario = Scenario(claim("c", exactly(), status=status))
    scenario.filtered(pending)
    stale, first = CycleState(), scenario.state
    scenario.plugin.pre_filter(stale, pending, scenario.cluster.lend().nodes)
    assert post_filter_status(scenario, pending) == (
        Code.UNSCHEDULABLE,
        "deallocation of ResourceClaim completed",
    )
    assert scenario.state is first
    scenario.write()
    scenario.state = stale
    bound = scenario.bound(pending, "n3")
    assert bound is not None
    assert bound.message == "claim default/c got deallocated elsewhere in the meantime"


# ---- extended resources --------------------------------------------------------------------


def test_a_pod_that_requests_an_extended_resource_gets_a_device_and_a_claim() -> None:
    scenario = Scenario(class_of("gpu", extendedResourceName=GPU), slice_of("n1", "x"))
    placed = pod("p", requests={GPU: 1})
    scenario.cluster.objects(POD).put(placed.pod)
    assert scenario.filtered(placed) == {"n1": "", "n2": "cannot allocate all claims"}
    assert scenario.plugin.reserve(scenario.state, placed, "n1") is None
    assert scenario.bound(placed, "n1") is None
    bound = scenario.claim("created")
    assert bound.is_reserved_for(placed.uid)
    assert scenario.taken == {"n1/x"}
    assert scenario.cluster.devices.resource_claims.pending_allocation(bound.uid) is None
    status = cast(Pod, scenario.cluster.objects(POD).get("p", "default")).status
    assert status.extended_resource_claim_status is not None
    assert status.extended_resource_claim_status.resource_claim_name == "created"
    scenario.plugin.unreserve(scenario.state, placed, "n1")
    scenario.write()
    assert scenario.cluster.objects(RESOURCE_CLAIM).get("created", "default") is None
    assert scenario.taken == set()


def test_a_leftover_claim_for_extended_resources_is_deleted() -> None:
    left = claim("left", exactly())
    left["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [
            {"kind": "Pod", "name": "p", "uid": "uid-default/p", "controller": True}
        ],
    }
    scenario = Scenario(class_of("gpu", extendedResourceName=GPU), left)
    placed = pod("p", requests={GPU: 1})
    assert set(scenario.filtered(placed).values()) == {"cannot schedule extended resource claim"}
    assert post_filter_status(scenario, placed) == (
        Code.UNSCHEDULABLE,
        "deletion of ResourceClaim completed",
    )
    scenario.write()
    assert scenario.cluster.objects(RESOURCE_CLAIM).list() == ()


# ---- devices that must be made ready -------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("ready", ""),
        ("bad", 'device binding failed: claim=c, reason=R, message="m"'),
        ("", "device binding timeout: context deadline exceeded"),
    ],
)
def test_binding_waits_until_a_device_is_ready_or_has_failed(condition: str, message: str) -> None:
    demanding = {"bindingConditions": ["ready"], "bindingFailureConditions": ["bad"]}
    scenario = Scenario(slice_of("n1", {"name": "x", **demanding}), claim("c", exactly()))
    placed = asking()
    scenario.reserved(placed, "n1")
    port = Sleeper(scenario, condition)
    status = asyncio.run(scenario.plugin.pre_bind(scenario.state, placed, "n1", port))  # pyright: ignore[reportArgumentType]
    assert ("" if status is None else status.message) == message
    assert [each.reason for each in scenario.cluster.emitted] == ["BindingConditionsPending"]


class Sleeper:
    """A port whose sleep advances the clock; after ten seconds the driver reports a condition."""

    def __init__(self, scenario: Scenario, condition: str) -> None:
        self._scenario = scenario
        self._condition = condition
        self._port = SamplePort(scenario.cluster.store)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def sleep(self, seconds: float) -> None:
        clock = self._scenario.cluster.clock
        clock.advance_to(clock.now() + seconds)
        if clock.now() == 10.0 and self._condition:
            condition = {"type": self._condition, "status": "True", "reason": "R", "message": "m"}
            device = {"driver": DRIVER, "pool": "n1", "device": "x", "conditions": [condition]}
            patch = {"status": {"devices": [device]}}
            await self._port.patch(RESOURCE_CLAIM, "default", "c", patch, "status")


# ---- the contract --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "path"),
    [({"filterTimeout": "-1s"}, "filterTimeout"), ({"bindingTimeout": "500ms"}, "bindingTimeout")],
)
def test_time_outs_out_of_range_are_refused(args: dict[str, str], path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        plugin(DynamicResources, args)


def with_devices(cluster: SampleCluster) -> None:
    put(cluster.store, class_of("gpu", extendedResourceName=GPU), claim("c", exactly()))
    put(cluster.store, slice_of("node-0", "x"), slice_of("node-1", "x", "y"))
    assert cluster.objects(DEVICE_CLASS).get("gpu") is not None


def test_it_satisfies_the_plugin_contract() -> None:
    named = {"name": "g", "resourceClaimName": "c"}
    pods: Any = [{"spec": {"resourceClaims": [named]}}, {"requests": {GPU: 1}}]
    report = check_plugin(DynamicResources, pods=pods, prepare=with_devices, clusters=depth(2, 6))
    assert report.pre_enqueue_cpu_seconds < 0.001


# ---- hints ----------------------------------------------------------------------------------


WAITING = pod("p", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "mine"}]})
MINE, OTHER = claim("mine", exactly()), claim("other", exactly())
HAS_X = allocated(("n1", "x"))


def hint(old: Any, new: Any, *there: Any) -> str:
    """``there``: claims after the change."""
    registered = events(sample(*there).devices.resource_claims)
    changed = ClusterEvent(RESOURCE_CLAIM, ActionType.ADD)
    (ask,) = [each.hint for each in registered if each.event.match(changed)]
    assert ask is not None
    both = [None if each is None else as_claim(each) for each in (old, new)]
    return str(ask(WAITING, *both))


@pytest.mark.parametrize(
    ("old", "new", "there", "message"),
    [
        (None, MINE, (MINE,), "Queue"),
        (None, OTHER, (MINE, OTHER), "QueueSkip"),
        (MINE, MINE, (MINE,), "QueueSkip"),
        (MINE, {**MINE, "status": HAS_X}, (MINE,), "Queue"),
        ({**OTHER, "status": HAS_X}, OTHER, (MINE, OTHER), "Queue"),
        ({**OTHER, "status": HAS_X}, OTHER, (OTHER,), "QueueSkip"),
        (OTHER, None, (MINE,), "QueueSkip"),
        ({**OTHER, "status": HAS_X}, None, (MINE,), "Queue"),
    ],
)
def test_a_change_of_a_claim_queues_the_pod_if_it_is_its_own_claim_or_frees_devices(
    old: Any, new: Any, there: tuple[Any, ...], message: str
) -> None:
    assert hint(old, new, *there) == message


def test_a_pod_is_tried_when_all_its_claims_exist() -> None:
    own = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    for there, message in (((), "QueueSkip"), ((MINE,), "Queue")):
        registered = events(sample(*there).devices.resource_claims)
        (ask,) = [each.hint for each in registered if each.event.match(own)]
        assert ask is not None
        assert str(ask(WAITING, WAITING, WAITING)) == message


# ---- releases -------------------------------------------------------------------------------


class ReleasingPort(UnusedPort):
    """A port whose sleep advances the clock; the write ends after some reads."""

    def __init__(self, over: Releases, looks: int) -> None:
        self._over = over
        self._looks = looks

    async def sleep(self, seconds: float) -> None:
        self._looks -= 1
        if not self._looks:
            self._over.end("claim", "pod")


def ended(over: Releases, looks: int = 0) -> bool:
    return asyncio.run(over.ended("claim", "pod", ReleasingPort(over, looks)))


def test_a_pod_without_a_release_does_not_wait() -> None:
    over = Releases()
    over.begin("claim", "another")
    assert not ended(over)


def test_the_next_attempt_waits_once_for_the_write() -> None:
    over = Releases()
    over.begin("claim", "pod")
    assert ended(over, looks=3)
    assert not ended(over)


def test_a_write_that_has_ended_is_stored_until_the_next_attempt() -> None:
    over = Releases()
    over.begin("claim", "pod")
    over.end("claim", "pod")
    assert ended(over)


def test_the_oldest_of_many_releases_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "COUNT_MAX", 2)
    over = Releases()
    for pod_uid in ("pod", "q", "r"):
        over.begin("claim", pod_uid)
    over.end("claim", "pod")
    assert not ended(over)
