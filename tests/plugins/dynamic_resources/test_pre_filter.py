"""Devices with binding conditions, which must be ready before a pod is bound.

PreFilter: reasons that reject the whole pod.
"""

from typing import Any

import pytest

from bayplan.api.device_objects import ResourceClaim
from bayplan.clock import ManualClock
from bayplan.framework.status import Code, Status
from bayplan.plugins.dynamic_resources.allocator import PoolsByNode
from bayplan.plugins.dynamic_resources.filtering import (
    ClaimsAttempt,
    is_ready,
    is_timed_out,
    prepare,
    waits_for_conditions,
)
from bayplan.testing import SampleCluster, pod
from tests.plugins.devices_kit import (
    DRIVER,
    allocated,
    as_claim,
    claim,
    class_of,
    exactly,
    first_of,
    sample,
)

# ---- readiness ------------------------------------------------------------------------------


START = ManualClock.EPOCH_SECONDS


def waiting(*conditions: tuple[str, str], stamp: str = "2026-01-01T00:00:00Z") -> ResourceClaim:
    """A claim with binding conditions of its device, and the conditions that its driver reports."""
    status: Any = allocated(("n1", "x"))
    result = status["allocation"]["devices"]["results"][0]
    result |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["bad"]}
    status["allocation"]["allocationTimestamp"] = stamp
    if conditions:
        reported = [{"type": t, "status": s, "reason": "R", "message": "m"} for t, s in conditions]
        device = {"driver": DRIVER, "pool": "n1", "device": "x", "conditions": reported}
        status["devices"] = [device]
    return as_claim(claim("c", exactly(), status=status))


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ((), False),
        ((("ready", "False"),), False),
        ((("ready", "True"),), True),
        ((("ready", "True"), ("bad", "False")), True),
        (
            (("ready", "True"), ("bad", "True")),
            'device binding failed: claim=c, reason=R, message="m"',
        ),
    ],
)
def test_a_claim_is_ready_when_its_drivers_report_the_conditions(
    conditions: tuple[tuple[str, str], ...], message: bool | str
) -> None:
    assert is_ready(waiting(*conditions)) == message


def test_a_claim_without_conditions_is_ready_when_it_is_allocated() -> None:
    plain = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
    assert is_ready(plain) is True
    assert is_ready(as_claim(claim("c", exactly()))) is False
    assert not waits_for_conditions(plain)
    assert waits_for_conditions(waiting())


@pytest.mark.parametrize(("after", "timed_out"), [(600.0, False), (601.0, True)])
def test_a_claim_is_late_after_its_timeout(after: float, timed_out: bool) -> None:
    assert is_timed_out(waiting(), START + after, 600.0) is timed_out


def test_a_claim_without_conditions_or_without_a_time_stamp_is_never_late() -> None:
    plain = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
    assert not is_timed_out(plain, START + 1e9, 600.0)
    assert not is_timed_out(waiting(stamp="no time"), START + 1e9, 600.0)


# ---- preparing ------------------------------------------------------------------------------


ASKING = pod("p", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]})


def prepared(cluster: SampleCluster, asking: Any = ASKING) -> ClaimsAttempt | Status:
    pools = PoolsByNode(cluster.devices.resource_slices)
    return prepare(asking, cluster.devices, pools, cluster.cluster.pod_groups)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (
            exactly("r", "ghost"),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r: device class ghost does not exist",
        ),
        (
            first_of("r", a={}, b={"class_name": "ghost"}),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r/b: device class ghost does not exist",
        ),
        (exactly("r", ""), Code.ERROR, "request r: unsupported request type"),
        (
            {"name": "r"},
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "resource claim default/c, request r: unknown request type",
        ),
    ],
)
def test_a_claim_may_request_existing_classes_only(request_: Any, code: Code, message: str) -> None:
    answer = prepared(sample(claim("c", request_)))
    assert isinstance(answer, Status)
    assert (answer.code, answer.message) == (code, message)


def test_a_pod_waits_for_a_claim_in_flight_for_another_pod() -> None:
    cluster = sample(claim("c", exactly()))
    new_claim = as_claim(claim("c", exactly(), status=allocated(("n1", "x"))))
    assert new_claim.allocation is not None
    cluster.devices.resource_claims.put_in_flight(new_claim, new_claim.allocation)
    answer = prepared(cluster)
    assert isinstance(answer, Status)
    assert answer.message == "resource claim default/c is in the process of being allocated"


def test_a_resource_that_devices_represent_adds_a_claim_of_the_scheduler() -> None:
    cluster = sample(class_of("gpu", extendedResourceName="example.com/gpu"))
    answer = prepared(cluster, pod("q", requests={"example.com/gpu": 1}))
    assert isinstance(answer, ClaimsAttempt)
    assert answer.special is not None
    assert answer.allocator is not None
