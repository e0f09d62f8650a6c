"""Planted plugins that violate the rules of Reserve, Permit and Bind; the sample port."""

from itertools import count
from typing import Any, cast, final

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import BindPlugin, Plugin, QueueSortPlugin, ReservePlugin
from bayplan.framework.status import SKIP, Code, Status, unschedulable
from bayplan.framework.types import QueuedPodInfo
from bayplan.ports import BindPort
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, check_plugin, pod
from bayplan.testing.state_checks import SamplePort
from tests.framework.answering import answering
from tests.plugins.devices_kit import claim, put
from tests.testing.broken_plugins import CountsDownTwice, failure_of

# ---- state checks ---------------------------------------------------------------------------


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
class WaitingBinder(BindPlugin):
    """Returns Wait from Bind."""

    name = "WaitingBinder"

    async def bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        await port.sleep(1.0)
        return Status(Code.WAIT)


@final
class MixedOrder(QueueSortPlugin):
    """Returns keys of two types."""

    name = "MixedOrder"

    def key(self, queued: QueuedPodInfo) -> Any:
        return queued.pod.name if queued.sequence % 2 else queued.priority


_numbers = count()


def slow_gate(pod: PodInfo) -> None:
    sum(number * number for number in range(60_000))


@pytest.mark.parametrize(
    ("plugin_class", "words"),
    [
        (CountsBlindly, "where no reserve came before it"),
        (CountsDownTwice, "unreserve is not idempotent: a second one changes its state again"),
        (LeavesATrace, "unreserve does not undo reserve"),
        (answering("SlowGate", pre_enqueue=slow_gate), "pre_enqueue takes"),
        (answering("SkippingGate", pre_enqueue=SKIP), "pre_enqueue returned Skip"),
        (
            answering("RejectingPreScore", pre_score=unschedulable("too late")),
            "pre_score returned Unschedulable",
        ),
        (
            answering("SomewherePostFilter", post_filter=(None, None)),
            "post_filter succeeds without a nomination",
        ),
        (
            answering("WaitingPostFilter", post_filter=(None, Status(Code.WAIT))),
            "post_filter returned Wait",
        ),
        (MixedOrder, "keys cannot be compared"),
        (
            answering("RestlessOrder", key=lambda queued: next(_numbers)),
            "key says something else when it is asked again",
        ),
        (
            answering("EndlessPermit", permit=(Status(Code.WAIT), 0.0)),
            "permit returned Wait and 0.0",
        ),
        (WaitingBinder, "bind returned Wait"),
        (
            answering("ForgetfulBinder", bind=None),
            "bind succeeded, and the pod is not bound: write await port.bind(pod, ",
        ),
        (answering("SkippingPreBind", pre_bind=SKIP), "pre_bind returned Skip"),
    ],
)
def test_a_violation_of_the_contract_is_detected(plugin_class: type[Plugin], words: str) -> None:
    assert words in failure_of(plugin_class, clusters=2)


def test_keys_that_cannot_be_compared_name_the_line_of_the_method() -> None:
    line = MixedOrder.key.__code__.co_firstlineno
    assert failure_of(MixedOrder, clusters=2).endswith(f", at test_state_checks.py:{line}")


# ---- sample port ----------------------------------------------------------------------------


async def test_objects_are_read_patched_created_and_deleted() -> None:
    cluster = SampleCluster()
    put(cluster.store, claim("c"))
    port = SamplePort(cluster.store)

    patch = {"metadata": {"finalizers": ["f"]}}
    patched = await port.patch(RESOURCE_CLAIM, "default", "c", patch)
    assert cast(ResourceClaim, patched).metadata.finalizers == ("f",)
    assert await port.read(RESOURCE_CLAIM, "default", "c") == patched
    content = {"metadata": {"namespace": "default", "generateName": "d-"}}
    created = await port.create_object(RESOURCE_CLAIM, content)
    assert created.metadata.name
    await port.delete_object(RESOURCE_CLAIM, "default", "c", "uid-c")
    assert [each.metadata.name for each in cluster.objects(RESOURCE_CLAIM).list()] == ["created"]


async def test_a_bound_pod_is_read_back_with_its_node() -> None:
    port = SamplePort(SampleCluster().store)
    await port.bind(pod("p"), "n1")
    assert (await port.get_pod("default", "p")).spec.node_name == "n1"
