"""Compiled CEL selectors: how an expression is evaluated for a device.

This is a module of its own, because only a cluster with selectors of devices needs the library.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, final

from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]

from bayplan.api.cel_environment import (
    COST_LIMIT_EXCEEDED,
    environment,
    quantity_value,
    semver_value,
    start_evaluation,
)
from bayplan.api.device_objects import Device, DeviceAttribute
from bayplan.api.device_selectors import MISSING_KEY_ADVICE, CelError
from bayplan.api.quantity import QuantityError
from bayplan.api.semver import SemverError

_ITERATION_BUDGET_EXCEEDED = "Iteration budget exceeded"
_NO_SUCH_KEY = re.compile(r'NOT_FOUND: Key not found in map : "(.*)"', re.DOTALL)

_Domains = dict[str, dict[str, Any]]
_Value = TypeVar("_Value")


def compiled(expression: str) -> "DeviceSelectorProgram | CelError":
    """The compiled expression, or its error as a value: the caller adds the place to the
    message."""
    try:
        program = environment().compile(expression)
    except Exception as problem:  # noqa: BLE001 - the library has no class of its own for this
        return CelError(f"compilation failed: {problem}")
    returned = program.return_type()
    if returned not in (cel.Type.BOOL, cel.Type.DYN):
        return CelError(f"must evaluate to bool or the unknown type, not {returned.name()}")
    return DeviceSelectorProgram(program)


@final
class DeviceSelectorProgram:
    """A compiled expression."""

    def __init__(self, program: Any) -> None:
        self._program = program

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the expression holds for a device. Raises CelError."""
        attributes, capacity = _attributes(driver, device), _capacity(driver, device)
        while True:
            start_evaluation()
            try:
                result = self._program.eval(data=_variables(driver, device, attributes, capacity))
            except Exception as problem:  # noqa: BLE001 - the library has no class of its own for this
                raise CelError(_runtime_error(str(problem))) from None
            value = result.value()
            if result.type() == cel.Type.BOOL:
                return bool(value)
            if result.type() != cel.Type.ERROR:
                raise CelError(f"CEL result of type {result.type().name()} is not a bool")
            missing = _NO_SUCH_KEY.search(str(value))
            if missing is None:
                raise CelError(_runtime_error(str(value)))
            key = missing.group(1)
            if key in attributes and key in capacity:
                raise CelError(f"no such key: {key}{MISSING_KEY_ADVICE}")
            # The missing name may be a domain, and a domain is never missing. If the name is an
            # attribute, the expression fails again in the same way.
            attributes.setdefault(key, {})
            capacity.setdefault(key, {})


def _runtime_error(message: str) -> str:
    """A message of the library; for an evaluation that costs too much, upstream's message (cel-go,
    interpreter)."""
    if _ITERATION_BUDGET_EXCEEDED in message or COST_LIMIT_EXCEEDED in message:
        return f"operation cancelled: {COST_LIMIT_EXCEEDED}"
    return message


# ---- a device as CEL sees it ---------------------------------------------------------------


def _variables(
    driver: str, device: Device, attributes: _Domains, capacity: _Domains
) -> dict[str, Any]:
    return {
        "device.driver": driver,
        "device.allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "device.attributes": attributes,
        "device.capacity": capacity,
    }


def _attributes(driver: str, device: Device) -> _Domains:
    domains: _Domains = {}
    for name, attribute in _short_names_first(device.attributes or {}):
        domain, identifier = _qualified(name, driver)
        domains.setdefault(domain, {})[identifier] = _attribute(name, attribute)
    return domains


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    if attribute.version_value is not None:
        try:
            return semver_value(attribute.version_value)
        except SemverError as problem:
            raise CelError(f"attribute {name}: parse semantic version: {problem}") from None
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    raise CelError(f"attribute {name}: unsupported attribute value")


def _capacity(driver: str, device: Device) -> _Domains:
    domains: _Domains = {}
    for name, capacity in _short_names_first(device.capacity or {}):
        domain, identifier = _qualified(name, driver)
        try:
            domains.setdefault(domain, {})[identifier] = quantity_value(capacity.value)
        except QuantityError as problem:
            raise CelError(f"capacity {name}: {problem}") from None
    return domains


def _short_names_first(values: Mapping[str, _Value]) -> Sequence[tuple[str, _Value]]:
    """So that a name with the driver's domain replaces the same name without it, as from 1.38 on;
    before, either might."""
    return sorted(values.items(), key=lambda item: "/" in item[0])


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """(domain, identifier)"""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)
