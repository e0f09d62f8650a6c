"""Changes of 1.35 to 1.37 that no recorded answer shows: before and after each of them."""

from typing import Any

import pytest

from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.framework.cycle_state import CycleState
from bayplan.plugins.dynamic_resources.pools import AllocationError, NodeAllocationFailed
from bayplan.testing import pod
from tests.engine.kit import Engine
from tests.plugins.devices_kit import (
    all_of,
    allocate_on,
    allocated,
    claim,
    device,
    exactly,
    slice_of,
)
from tests.scenarios.world import PROFILE

V1_34, V1_35, V1_36 = (
    KubernetesVersion.V1_34,
    KubernetesVersion.V1_35,
    KubernetesVersion.V1_36,
)

# ---- invalid pools ---------------------------------------------------------------------------

BROKEN = slice_of("broken", "x", "x", nodeName="n1")
GOOD = slice_of("n1", "d")


def test_an_attempt_that_comes_to_an_invalid_pool_is_an_error_in_1_34() -> None:
    # Slices come in the order of their names.
    wanted, text = claim("c", exactly()), "pool broken is invalid: duplicate device name x"
    with pytest.raises(AllocationError, match=text):
        allocate_on("n1", (BROKEN, GOOD), wanted, kubernetes=V1_34)
    assert allocate_on("n1", (BROKEN, GOOD), wanted, kubernetes=V1_35) == [["r n1/d"]]


def test_an_invalid_pool_behind_one_that_suffices_does_no_harm_in_1_34() -> None:
    first = slice_of("a", "d", nodeName="n1")
    contents = (BROKEN, first)
    assert allocate_on("n1", contents, claim("c", exactly()), kubernetes=V1_34) == [["r a/d"]]
    wanted = claim("c", exactly(count=2))
    with pytest.raises(AllocationError):
        allocate_on("n1", contents, wanted, kubernetes=V1_34)
    with pytest.raises(NodeAllocationFailed):
        allocate_on("n1", contents, wanted, kubernetes=V1_35)


# ---- counters and shares ---------------------------------------------------------------------


def chip(driver: str, memory: str) -> tuple[Any, Any]:
    """A pool "p" of a driver: a device that draws 4 of a counter."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "chip", "counters": {"memory": {"value": memory}}}]
    drawn = [{"counterSet": "chip", "counters": {"memory": {"value": "4"}}}]
    common = {"driver": driver, "pool": pool, "nodeName": "n1"}
    return (
        slice_of(f"{driver}-counters", sharedCounters=counters, **common),
        slice_of(f"{driver}-devices", device("d", consumesCounters=drawn), **common),
    )


def test_pools_of_one_name_share_counters_before_1_37() -> None:
    contents = (*chip("a.io", "4"), *chip("b.io", "4"))
    wanted = claim("c", exactly(count=2))
    assert allocate_on("n1", contents, wanted, kubernetes=V1_36) is None
    assert allocate_on("n1", contents, wanted) == [["r p/d", "r p/d"]]


def shared(consumed: dict[str, str] | None, **fields: Any) -> tuple[Any, ...]:
    """A shared device of a chip with 4 of a counter, and a claim with a share."""
    counters, devices = chip("a.io", "4")
    [content] = devices["spec"]["devices"]
    content.update(device("d", allowMultipleAllocations=True, **fields))
    old = claim("old", exactly(), status=allocated(("p", "d")))
    [result] = old["status"]["allocation"]["devices"]["results"]
    result.update(driver="a.io", shareID="5f8e", consumedCapacity=consumed)
    return counters, devices, old


def test_a_share_without_amounts_draws_counters_again_before_1_37() -> None:
    contents, wanted = shared(None), claim("new", exactly())
    assert allocate_on("n1", contents, wanted, kubernetes=V1_36) is None
    assert allocate_on("n1", contents, wanted) == [["r p/d"]]


def test_all_devices_leaves_out_those_that_are_full_before_1_37() -> None:
    full = device("full", allowMultipleAllocations=True, capacity={"memory": "8"})
    free = device("free", allowMultipleAllocations=True, capacity={"memory": "8"})
    old = claim("old", exactly(), status=allocated(("n1", "full")))
    [result] = old["status"]["allocation"]["devices"]["results"]
    result.update(shareID="5f8e", consumedCapacity={"memory": "5"})
    contents = (slice_of("n1", full, free), old)
    wanted = claim("new", all_of(capacity={"requests": {"memory": "5"}}))
    assert allocate_on("n1", contents, wanted, kubernetes=V1_36) == [["r n1/free"]]
    assert allocate_on("n1", contents, wanted) is None


# ---- PreBind ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "groups"), [(V1_35, 2), (V1_36, 1), (NEWEST, 1)])
def test_plugins_run_side_by_side_at_pre_bind_from_1_36_on(
    version: KubernetesVersion, groups: int
) -> None:
    plugins = ["VolumeBinding", "DynamicResources"]
    framework = Engine(plugins=plugins, kubernetes=version).scheduler.framework(PROFILE)
    calls = framework.calls(CycleState(), pod("p"))
    assert len(set(calls.pre_bind_groups.values())) == groups
