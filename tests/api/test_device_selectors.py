"""Selectors of devices, on devices."""

import pytest

from bayplan.api.device_objects import Device
from bayplan.api.device_selectors import CelError, DeviceSelectorProgram, compile_selector
from tests.plugins.devices_kit import DRIVER, as_slice, device, slice_of

ATTRIBUTES = {
    "model": "a100",
    "index": 3,
    "healthy": True,
    "other.example.com/speed": 7,
}


def some_device() -> Device:
    found = device("d", attributes=ATTRIBUTES, capacity={"memory": "40Gi"})
    found["attributes"]["firmware"] = {"version": "1.2.3"}
    devices = as_slice(slice_of("n", found)).spec.devices
    assert devices is not None
    return devices[0]


def holds(expression: str) -> bool:
    program = compile_selector(expression)
    assert isinstance(program, DeviceSelectorProgram), program
    return program.matches(DRIVER, some_device())


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        f'device.attributes["{DRIVER}"].model in ["a100", "h100"]',
        f'device.attributes["{DRIVER}"].healthy',
        f'device.attributes["{DRIVER}"].index > 2',
        'device.attributes["other.example.com"].speed == 7',
        f'device.attributes["{DRIVER}"].firmware.isGreaterThan(semver("1.2.0"))',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40960Mi")) == 0',
        f'device.attributes["{DRIVER}"].?absent.orValue("x") == "x"',
        f'!has(device.attributes["{DRIVER}"].absent)',
        f'cel.bind(d, device.attributes["{DRIVER}"], d.healthy && d.model == "a100")',
        "!device.allowMultipleAllocations",
    ],
)
def test_what_is_true_of_a_device_selects_it(expression: str) -> None:
    assert holds(expression)


def test_a_domain_that_the_device_does_not_have_is_empty() -> None:
    assert not holds('has(device.attributes["nowhere.example.com"].model)')
    assert not holds('"model" in device.attributes["nowhere.example.com"]')
    assert not holds('"nowhere.example.com" in device.attributes')
    assert holds('!has(device.capacity["nowhere.example.com"].memory)')


def test_an_attribute_that_the_device_does_not_have_is_an_error_with_advice() -> None:
    with pytest.raises(CelError, match=r"^no such key: absent\. consider using CEL optional"):
        holds(f'device.attributes["{DRIVER}"].absent == "x"')


def test_an_error_that_does_not_matter_is_none() -> None:
    assert holds(f'device.attributes["{DRIVER}"].absent == "x" || device.driver == "{DRIVER}"')


def test_a_value_that_is_no_truth_is_an_error() -> None:
    with pytest.raises(CelError, match="is not a bool"):
        holds(f'device.attributes["{DRIVER}"].model')


@pytest.mark.parametrize(
    "expression", ["device.driver", "device.nothing", "1 +", "device.driver == 5", "absent(1)"]
)
def test_what_cannot_be_compiled_is_told_as_a_value(expression: str) -> None:
    assert isinstance(compile_selector(expression), CelError)
