"""Selectors of devices, on devices."""

from itertools import pairwise

import pytest

from bayplan.api.device_objects import Device
from bayplan.api.device_programs import DeviceSelectorProgram
from bayplan.api.device_selectors import (
    EXPRESSION_LENGTH_MAX,
    CelError,
    compile_selector,
)
from tests.plugins.devices_kit import DRIVER, as_slice, device, slice_of

ATTRIBUTES = {
    "model": "a100",
    "index": 3,
    "healthy": True,
    "other.example.com/speed": 7,
}


def some_device() -> Device:
    new_device = device("d", attributes=ATTRIBUTES, capacity={"memory": "40Gi"})
    new_device["attributes"]["firmware"] = {"version": "1.2.3"}
    devices = as_slice(slice_of("n", new_device)).spec.devices
    assert devices is not None
    return devices[0]


def is_selected(expression: str) -> bool:
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
def test_an_expression_that_is_true_for_a_device_selects_it(expression: str) -> None:
    assert is_selected(expression)


def test_a_domain_that_the_device_does_not_have_is_empty() -> None:
    assert not is_selected('has(device.attributes["nowhere.example.com"].model)')
    assert not is_selected('"model" in device.attributes["nowhere.example.com"]')
    assert not is_selected('"nowhere.example.com" in device.attributes')
    assert is_selected('!has(device.capacity["nowhere.example.com"].memory)')


def test_an_attribute_that_the_device_does_not_have_is_an_error_with_advice() -> None:
    with pytest.raises(CelError, match=r"^no such key: absent\. consider using CEL optional"):
        is_selected(f'device.attributes["{DRIVER}"].absent == "x"')


def test_an_error_in_an_operand_that_does_not_decide_is_ignored() -> None:
    assert is_selected(
        f'device.attributes["{DRIVER}"].absent == "x" || device.driver == "{DRIVER}"'
    )


def test_a_value_that_is_not_a_boolean_is_an_error() -> None:
    with pytest.raises(CelError, match="is not a bool"):
        is_selected(f'device.attributes["{DRIVER}"].model')


@pytest.mark.parametrize(
    "expression", ["device.driver", "device.nothing", "1 +", "device.driver == 5", "absent(1)"]
)
def test_a_selector_that_does_not_compile_is_an_error_value(expression: str) -> None:
    assert isinstance(compile_selector(expression), CelError)


# ---- the cost of an evaluation ---------------------------------------------------------------

HUNDRED = f"[{', '.join(['1'] * 100)}]"
FIVE_HUNDRED = f"[{', '.join(map(str, range(500)))}]"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f"{HUNDRED}.all(x, {HUNDRED}.all(y, true))", id="iterations of macros"),
        pytest.param(
            f"{HUNDRED}.all(x, sets.contains({FIVE_HUNDRED}, {FIVE_HUNDRED}))",
            id="comparisons of sets",
        ),
    ],
)
def test_an_evaluation_that_costs_too_much_fails_with_the_words_of_kube_scheduler(
    expression: str,
) -> None:
    with pytest.raises(CelError, match=r"^operation cancelled: actual cost limit exceeded$"):
        is_selected(expression)


def test_each_evaluation_has_the_whole_limit() -> None:
    expression = f"sets.contains({FIVE_HUNDRED}, {FIVE_HUNDRED})"
    assert all(is_selected(expression) for _ in range(10))


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("true || " + " " * EXPRESSION_LENGTH_MAX + "true", id="too long"),
        pytest.param("(" * 4000 + "true" + ")" * 4000, id="nested too deep"),
        pytest.param(
            "cel.bind(a, 'aaaaaaaaaa', "
            + "".join(f"cel.bind({b}, {a} + {a}, " for a, b in pairwise("abcdefghijklmnopqrst"))
            + "t.size() > 0"
            + ")" * 20,
            id="a text that doubles with each binding",
        ),
        pytest.param(
            f"'{'a' * 1000}'.replace('a', '{'b' * 1000}').size() > 1", id="a text for each letter"
        ),
    ],
)
def test_an_expression_that_may_take_all_memory_does_not_compile(expression: str) -> None:
    assert isinstance(compile_selector(expression), CelError)


@pytest.mark.parametrize(
    "expression",
    [
        "('a' + device.driver).startsWith('a')",
        "device.driver.replace('.', '-').size() > 0",
        "1 + 2 + 3 + 4 + 5 + 6 + 7 == 28",
        "'+++++++++++++++++++++' != 'replace' // + + + + + + + + + + + + + + + +",
    ],
)
def test_the_limit_of_text_lengths_does_not_affect_ordinary_expressions(expression: str) -> None:
    assert is_selected(expression)
