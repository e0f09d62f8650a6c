"""The devices that a request selects. Results are cached while the slice exists."""

from typing import Any

import pytest

from bayplan.api.device_objects import Device
from bayplan.api.device_programs import DeviceSelectorProgram
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate, gather_pools
from bayplan.plugins.dynamic_resources.requests import alternatives_of
from bayplan.plugins.dynamic_resources.selection import Selection, SelectorResults
from bayplan.testing import node
from tests.plugins.devices_kit import (
    DRIVER,
    as_claim,
    as_class,
    as_slice,
    claim,
    class_of,
    device,
    exactly,
    slice_of,
)

IS_A100 = f'device.attributes["{DRIVER}"].model == "a100"'
IS_BIG = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
SLICE = slice_of(
    "n1", device("x", attributes={"model": "a100"}, capacity={"memory": "80Gi"}), device("y")
)


def candidates(content: Any) -> list[Candidate]:
    slices = [as_slice(content)]
    (pool,) = gather_pools(node("n1"), slices, slices)
    return pool.candidates


def meant(
    content: Any,
    request: Any,
    of_class: tuple[str, ...] = (),
    results: SelectorResults | None = None,
) -> list[str]:
    selection = Selection(results or SelectorResults(), node("n1"))
    requests = as_claim(claim("c", request)).spec.devices.requests
    assert requests is not None
    (alternatives,) = alternatives_of(requests[0])
    device_class = as_class(class_of("gpu", *of_class))
    return [
        each.id.device
        for each in candidates(content)
        if selection.means(each, alternatives, device_class, "default/c")
    ]


def test_class_and_request_must_both_select_the_device() -> None:
    is_driver = f'device.driver == "{DRIVER}"'
    assert meant(SLICE, exactly(), of_class=(is_driver,)) == ["x", "y"]
    guarded = f'has(device.attributes["{DRIVER}"].model) && {IS_A100}'
    assert meant(SLICE, exactly(expressions=[guarded]), of_class=(is_driver,)) == ["x"]
    assert meant(SLICE, exactly(), of_class=('device.driver == "other"',)) == []


def test_devices_with_their_own_node_selection_are_selected_on_these_nodes_only() -> None:
    content = slice_of(
        "s", device("x", nodeName="n1"), device("y", nodeName="n2"), perDeviceNodeSelection=True
    )
    assert meant(content, exactly()) == ["x"]


def test_an_error_names_the_selector_and_the_device() -> None:
    where = rf"claim default/c: selector #0 on device {DRIVER}/n1/y: CEL runtime error: no such key"
    with pytest.raises(AllocationError, match=where):
        meant(SLICE, exactly(expressions=[IS_A100]))
    with pytest.raises(AllocationError, match=r"class gpu: selector #0: CEL compile error"):
        meant(SLICE, exactly(), of_class=("1 +",))


def test_results_for_a_slice_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(self: DeviceSelectorProgram, driver: str, device: Device) -> bool:
        calls.append(device.name)
        return True

    monkeypatch.setattr(DeviceSelectorProgram, "matches", noted)
    results, (one, other) = SelectorResults(), candidates(SLICE)
    for _ in range(2):
        assert results.holds(IS_BIG, one)
        assert results.holds(IS_BIG, other)
    assert calls == ["x", "y"]
    changed = candidates(SLICE)[0]
    assert results.holds(IS_BIG, changed)
    assert calls == ["x", "y", "x"]
    results.keep_only([])
    assert results.holds(IS_BIG, changed)
    assert calls == ["x", "y", "x", "x"]
