"""Filter, node by node. The parity suite has the recorded cases of kube-scheduler."""

from typing import Any

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import decode
from bayplan.config.behaviour import NEWEST_BEHAVIOUR
from bayplan.framework.status import Code, Status
from bayplan.plugins.dynamic_resources.allocator import PoolsByNode
from bayplan.plugins.dynamic_resources.filtering import (
    CANNOT_ALLOCATE,
    NOT_AVAILABLE,
    OPTIONAL_NODE_OPERATIONS,
    ClaimsAttempt,
    NodeFilter,
    prepare,
)
from bayplan.testing import SampleCluster, handle, node, pod
from tests.plugins.devices_kit import allocated, claim, exactly, sample, slice_of

ASKING = pod("p", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]})


def verdicts(
    cluster: SampleCluster, timeout_seconds: float = 10.0
) -> tuple[ClaimsAttempt, dict[str, Status | None]]:
    attempt = prepare(
        ASKING,
        cluster.devices,
        PoolsByNode(cluster.devices.resource_slices),
        cluster.cluster.pod_groups,
    )
    assert isinstance(attempt, ClaimsAttempt)
    node_filter = NodeFilter(handle(cluster), timeout_seconds, 600.0)
    nodes = cluster.lend().nodes
    return attempt, {
        info.name: node_filter.verdict(attempt, ASKING, info) for info in nodes.infos()
    }


def reasons(statuses: dict[str, Status | None]) -> dict[str, str]:
    return {name: "" if status is None else status.message for name, status in statuses.items()}


def test_the_allocation_on_each_node_is_recorded() -> None:
    cluster = sample(slice_of("n1", "x"), claim("c", exactly()))
    attempt, verdict_by_node = verdicts(cluster)
    assert reasons(verdict_by_node) == {"n1": "", "n2": CANNOT_ALLOCATE}
    assert [each.device for each in attempt.by_node["n1"].results[0].results] == ["x"]
    assert "n2" not in attempt.by_node


def test_an_allocated_claim_binds_its_pods_to_its_nodes() -> None:
    status = allocated(("n1", "x"), node_name="n1")
    attempt, verdict_by_node = verdicts(sample(claim("c", exactly(), status=status)))
    assert reasons(verdict_by_node) == {"n1": "", "n2": NOT_AVAILABLE}
    assert attempt.unavailable == {0}


@pytest.mark.parametrize(
    ("condition", "seconds", "message"),
    [("bad", 0.0, NOT_AVAILABLE), ("", 0.0, ""), ("", 601.0, NOT_AVAILABLE), ("ready", 601.0, "")],
)
def test_a_device_that_failed_or_is_late_is_not_available(
    condition: str, seconds: float, message: str
) -> None:
    status: Any = allocated(("n1", "x"))
    result = status["allocation"]["devices"]["results"][0]
    result |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["bad"]}
    status["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    reported = [{"type": condition, "status": "True", "reason": "R"}] if condition else []
    where = {name: result[name] for name in ("driver", "pool", "device")}
    status["devices"] = [{**where, "conditions": reported}]
    cluster = sample(claim("c", exactly(), status=status), nodes=("n1",))
    cluster.clock.advance_to(seconds)
    assert reasons(verdicts(cluster)[1]) == {"n1": message}


def test_devices_without_node_operations_need_a_node_that_declares_the_feature() -> None:
    status: Any = allocated(("n1", "x"))
    status["allocation"]["devices"]["results"][0]["skipNodeOperations"] = ["Prepare"]
    cluster = sample(claim("c", exactly(), status=status), nodes=("n1",))
    cluster.add(node("n2", cpu=1, features=[OPTIONAL_NODE_OPERATIONS]))
    assert reasons(verdicts(cluster)[1]) == {"n1": NOT_AVAILABLE, "n2": ""}


def test_a_broken_selector_is_an_error_and_not_a_rejection() -> None:
    wrong = exactly(expressions=['device.attributes["a.b"].c == 1'])
    _, verdict_by_node = verdicts(sample(slice_of("n1", "x"), claim("c", wrong)))
    status = verdict_by_node["n1"]
    assert status is not None
    assert status.code is Code.ERROR
    assert "CEL runtime error: no such key: c" in status.message


def test_invalid_pools_are_reported() -> None:
    cluster = sample(slice_of("n1", "x", "x"), claim("c", exactly()), nodes=("n1",))
    expected = {"n1": "invalid resource pools were encountered"}
    assert reasons(verdicts(cluster)[1]) == expected


def test_a_search_that_takes_too_long_is_an_error() -> None:
    """A claim that cannot be satisfied, among many devices: the clock advances at every read."""
    cluster = sample(slice_of("n1", *(f"d{i:02}" for i in range(24))), nodes=("n1",))
    cluster.store.of(RESOURCE_CLAIM).put(decode(RESOURCE_CLAIM, _pigeons()))
    attempt = prepare(
        ASKING,
        cluster.devices,
        PoolsByNode(cluster.devices.resource_slices),
        cluster.cluster.pod_groups,
    )
    assert isinstance(attempt, ClaimsAttempt)
    node_filter = NodeFilter(_Hasty(cluster), 10.0, 600.0)  # pyright: ignore[reportArgumentType]
    status = node_filter.verdict(attempt, ASKING, cluster.lend().nodes.info(0))
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message == "node n1: timed out trying to allocate devices"


def _pigeons() -> Any:
    """Requests that cannot all be met, which only a full search shows."""
    distinct = [{"distinctAttribute": "gpu.example.com/absent", "requests": ["last"]}]
    requests = [exactly(f"r{index}", count=3) for index in range(6)]
    return claim("c", *requests, exactly("last"), constraints=distinct)


class _Hasty:
    """A handle whose clock advances by a second at every read."""

    behaviour = NEWEST_BEHAVIOUR

    def __init__(self, cluster: SampleCluster) -> None:
        self.devices = cluster.devices
        self.epoch_seconds = 0.0
        self._seconds = 0.0

    @property
    def now_seconds(self) -> float:
        self._seconds += 1.0
        return self._seconds
