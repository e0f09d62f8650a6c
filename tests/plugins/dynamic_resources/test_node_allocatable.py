"""What devices take of their nodes: from Filter to the status of the pod, and back.

tests/parity/gated/node-allocatable.jsonl has kube-scheduler's answers of Filter.
"""

import asyncio
from typing import Any, cast

import pytest

from bayplan.api.objects import POD, Pod
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.framework.cluster_rules import pod_rules
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Code
from bayplan.plugins.dynamic_resources import DynamicResources
from bayplan.ports import ApiError
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing import SampleCluster, node, plugin, pod
from bayplan.testing.state_checks import SamplePort
from tests.plugins.devices_kit import claim, class_of, device, exactly, put, slice_of

GPU = "example.com/gpu"
MAPPED = {"cpu": {"mapping": {"deviceMultiplier": "1500m"}}}


class Attempt:
    """One attempt at a pod on the node n1; without another pod, it names the claim c."""

    def __init__(
        self,
        takes: Any = MAPPED,
        *entries: str,
        asking: PodInfo | None = None,
        kubernetes: KubernetesVersion = NEWEST,
    ) -> None:
        gates = {"DRANodeAllocatableResources": True}
        self.cluster = SampleCluster(gates=gates, kubernetes=kubernetes)
        self.cluster.add(node("n1", allocatable={"cpu": "8", "memory": "8Gi", "pods": "110"}))
        devices = [device(name, nodeAllocatableResources=takes) for name in "xy"]
        gpu = class_of(extendedResourceName=GPU)
        put(self.cluster.store, gpu, slice_of("n1", *devices), claim("c", exactly()))
        named = [{"name": each, "resourceClaimName": "c"} for each in entries or ("g",)]
        self.pod: PodInfo = asking or pod("p", spec={"resourceClaims": named})
        self.cluster.objects(POD).put(self.pod.pod)
        self.plugin = plugin(DynamicResources, cluster=self.cluster)
        self.state = CycleState()
        nodes = self.cluster.lend().nodes
        assert self.plugin.pre_filter(self.state, self.pod, nodes) is None
        assert self.plugin.filter_node(self.state, self.pod, nodes.info(0)) is None
        assert self.plugin.reserve(self.state, self.pod, "n1") is None

    def bound(self) -> str:
        """Why the pod is not bound; "": PreBind succeeds."""
        port = SamplePort(self.cluster.store)
        status = asyncio.run(self.plugin.pre_bind(self.state, self.pod, "n1", port))
        assert status is None or status.code is Code.ERROR
        return "" if status is None else status.message

    def unreserve(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "n1")

        async def main() -> None:
            for _, write in self.cluster.writes:
                await write(SamplePort(self.cluster.store))

        asyncio.run(main())

    @property
    def status(self) -> Any:
        stored = cast(Pod, self.cluster.objects(POD).get("p", "default"))
        return stored.status.node_allocatable_resource_claim_statuses


def test_the_assumed_pod_requests_what_its_devices_take() -> None:
    attempt = Attempt()
    asking = pod_info(attempt.pod.pod, rules=pod_rules(attempt.cluster.gates))
    assumed = asking.with_claim_amounts(attempt.state.claim_amounts["n1"])
    assert assumed.requests["cpu"] == asking.requests.get("cpu", 0) + 1500
    assert assumed.with_claim_amounts(()).requests == asking.requests


def test_pre_bind_writes_the_amounts_to_the_pod_and_unreserve_clears_them() -> None:
    attempt = Attempt()
    assert attempt.bound() == ""
    assert attempt.status == attempt.state.claim_amounts["n1"]
    attempt.unreserve()
    assert not attempt.status


def test_nothing_is_cleared_before_it_was_written() -> None:
    attempt = Attempt()
    attempt.unreserve()
    assert all("Pod" not in what for what, _ in attempt.cluster.writes)


def test_a_write_that_fails_ends_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    write = SamplePort.patch

    async def patch(self: SamplePort, kind: str, *args: Any, **options: Any) -> Any:
        if kind == POD:
            raise ApiError(500, "InternalError", "no")
        return await write(self, kind, *args, **options)

    monkeypatch.setattr(SamplePort, "patch", patch)
    message = "updating pod default/p NodeAllocatableResourceClaimStatuses: no"
    assert Attempt().bound() == message


@pytest.mark.parametrize("takes", [{}, {"cpu": {}}, {"cpu": {"overhead": {}}}])
def test_devices_that_take_nothing_are_not_reported(takes: Any) -> None:
    attempt = Attempt(takes)
    assert attempt.bound() == ""
    assert attempt.status is None


def test_a_claim_that_a_pod_names_twice_is_allocated_and_counted_once() -> None:
    attempt = Attempt(MAPPED, "g", "h")
    assert attempt.bound() == ""
    assert [status.resource_claim_name for status in attempt.status] == ["c"]


@pytest.mark.parametrize(
    ("version", "name"),
    [(NEWEST, "<extended-resources>"), (KubernetesVersion.V1_38, "created")],
)
def test_from_1_38_on_the_amounts_name_the_claim_that_was_created(
    version: KubernetesVersion, name: str
) -> None:
    attempt = Attempt(MAPPED, asking=pod("p", requests={GPU: 1}), kubernetes=version)
    assert attempt.bound() == ""
    assert [status.resource_claim_name for status in attempt.status] == [name]
    attempt.unreserve()
    assert not attempt.status
