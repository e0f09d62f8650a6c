"""Planted plugins that violate the rules of Reserve, Permit and Bind; the sample port."""

import asyncio
from typing import Any, cast, final

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from bayplan.framework.status import SKIP, Code, NodeToStatus, Status, unschedulable
from bayplan.framework.types import Nomination, QueuedPodInfo
from bayplan.ports import BindPort
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, SampleCluster, check_plugin, pod
from bayplan.testing.state_checks import SamplePort
from tests.plugins.devices_kit import claim, put
from tests.testing.broken_plugins import CountsDownTwice

# ---- state checks ---------------------------------------------------------------------------


def failure_of(plugin_class: type[Plugin]) -> str:
    with pytest.raises(CheckFailed) as failed:
        check_plugin(plugin_class, clusters=2)
    return str(failed.value)


@final
class CountsBlindly(ReservePlugin):
    """Counts down at every Unreserve, also without a Reserve."""

    name = "CountsBlindly"

    def setup(self) -> None:
        self._count_of: dict[str, int] = {}

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self._count_of[node_name] = self._count_of.get(node_name, 0) + 1
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._count_of[node_name] = self._count_of.get(node_name, 0) - 1


def test_unreserve_without_a_reserve_is_detected() -> None:
    assert "where no reserve came before it" in failure_of(CountsBlindly)


def test_an_unreserve_that_is_not_idempotent_is_detected() -> None:
    message = failure_of(CountsDownTwice)
    assert "unreserve" in message
    assert "state" in message


@final
class LeavesATrace(ReservePlugin):
    """Does not undo Reserve."""

    name = "LeavesATrace"

    def setup(self) -> None:
        self._seen: set[str] = set()

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self._seen.add(pod.uid)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None: ...


def test_a_reserve_that_is_not_undone_is_detected() -> None:
    assert "unreserve does not undo reserve" in failure_of(LeavesATrace)


@final
class Reserves(ReservePlugin):
    """Undoes Reserve once per pod."""

    name = "Reserves"

    def setup(self) -> None:
        self._node_of: dict[str, str] = {}

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self._node_of[pod.uid] = node_name
        return unschedulable("enough") if len(self._node_of) > 3 else None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._node_of.pop(pod.uid, None)


def test_a_reserve_that_is_undone_passes() -> None:
    check_plugin(Reserves, clusters=3)


@final
class SlowGate(PreEnqueuePlugin):
    """Computes for a long time in PreEnqueue."""

    name = "SlowGate"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        sum(number * number for number in range(60_000))
        return None


def test_a_slow_gate_is_detected() -> None:
    assert "pre_enqueue takes" in failure_of(SlowGate)


@final
class SkippingGate(PreEnqueuePlugin):
    """Returns Skip from PreEnqueue."""

    name = "SkippingGate"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return SKIP


@final
class RejectingPreScore(PreScorePlugin):
    """Rejects in PreScore."""

    name = "RejectingPreScore"

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        return unschedulable("too late")


@final
class EndlessPermit(PermitPlugin):
    """Returns Wait with a timeout of 0."""

    name = "EndlessPermit"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return Status(Code.WAIT), 0.0


@final
class ForgetfulBinder(BindPlugin):
    """Reports a success, and writes nothing."""

    name = "ForgetfulBinder"

    async def bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        return None


@final
class WaitingBinder(BindPlugin):
    """Returns Wait from Bind."""

    name = "WaitingBinder"

    async def bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        await port.sleep(1.0)
        return Status(Code.WAIT)


@final
class SkippingPreBind(PreBindPlugin):
    """Returns Skip from PreBind."""

    name = "SkippingPreBind"

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        return SKIP


@final
class SomewherePostFilter(PostFilterPlugin):
    """Succeeds in PostFilter without a nomination."""

    name = "SomewherePostFilter"

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        return None, None


@final
class WaitingPostFilter(PostFilterPlugin):
    """Returns Wait from PostFilter."""

    name = "WaitingPostFilter"

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        return None, Status(Code.WAIT)


@final
class MixedOrder(QueueSortPlugin):
    """Returns keys of two types."""

    name = "MixedOrder"

    def key(self, queued: QueuedPodInfo) -> Any:
        return queued.pod.name if queued.sequence % 2 else queued.priority


@final
class RestlessOrder(QueueSortPlugin):
    """Returns another key at each call."""

    name = "RestlessOrder"

    def setup(self) -> None:
        self._call_count = 0

    def key(self, queued: QueuedPodInfo) -> Any:
        self._call_count += 1
        return self._call_count


WRONG: list[tuple[type[Plugin], str]] = [
    (SkippingGate, "pre_enqueue returned Skip"),
    (RejectingPreScore, "pre_score returned Unschedulable"),
    (SomewherePostFilter, "post_filter succeeds without a nomination"),
    (WaitingPostFilter, "post_filter returned Wait"),
    (MixedOrder, "keys cannot be compared"),
    (RestlessOrder, "key says something else when it is asked again"),
    (EndlessPermit, "permit returned Wait and 0.0"),
    (WaitingBinder, "bind returned Wait"),
    (ForgetfulBinder, "bind succeeded, and the pod is not bound: write await port.bind(pod, "),
    (SkippingPreBind, "pre_bind returned Skip"),
]


@pytest.mark.parametrize(("plugin_class", "words"), WRONG)
def test_a_code_of_another_extension_point_is_detected(
    plugin_class: type[Plugin], words: str
) -> None:
    assert words in failure_of(plugin_class)


def test_keys_that_cannot_be_compared_name_the_line_of_the_method() -> None:
    line = MixedOrder.key.__code__.co_firstlineno
    assert failure_of(MixedOrder).endswith(f", at test_state_checks.py:{line}")


# ---- sample port ----------------------------------------------------------------------------


def test_objects_are_read_patched_created_and_deleted() -> None:
    cluster = SampleCluster()
    put(cluster.store, claim("c"))
    port = SamplePort(cluster.store)

    async def patch_objects() -> None:
        patch = {"metadata": {"finalizers": ["f"]}}
        patched = await port.patch(RESOURCE_CLAIM, "default", "c", patch)
        assert cast(ResourceClaim, patched).metadata.finalizers == ("f",)
        assert await port.read(RESOURCE_CLAIM, "default", "c") == patched
        content = {"metadata": {"namespace": "default", "generateName": "d-"}}
        created = await port.create_object(RESOURCE_CLAIM, content)
        assert created.metadata.name
        await port.delete_object(RESOURCE_CLAIM, "default", "c", "uid-c")

    asyncio.run(patch_objects())
    assert [each.metadata.name for each in cluster.objects(RESOURCE_CLAIM).list()] == ["created"]


def test_a_bound_pod_is_read_back_with_its_node() -> None:
    port = SamplePort(SampleCluster().store)

    async def bind_pod() -> str | None:
        await port.bind(pod("p"), "n1")
        return (await port.get_pod("default", "p")).spec.node_name

    assert asyncio.run(bind_pod()) == "n1"
