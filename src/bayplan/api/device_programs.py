"""Compiled CEL selectors: how an expression is evaluated for a device.

This is a module of its own, because only a cluster with selectors of devices needs the library.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast, final

from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]

from bayplan.api.cel_environment import (
    COST_LIMIT_EXCEEDED,
    environment,
    quantity_value,
    semver_value,
    start_evaluation,
    version_in,
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


def compiled_derived(expression: str) -> "DeviceSelectorProgram | CelError":
    """The same for an expression that derives an attribute."""
    try:
        program = environment().compile(expression)
    except Exception as problem:  # noqa: BLE001 - the library has no class of its own for this
        return CelError(f"compilation failed: {problem}")
    returned = program.return_type()
    if not _is_attribute_type(returned):
        wanted = "a primitive scalar (string, integer, boolean, semver) or a list of these scalars"
        return CelError(f"must evaluate to {wanted}, not {returned.name()}")
    return DeviceSelectorProgram(program)


def _is_attribute_type(returned: Any) -> bool:
    """A quantity has the type of a version here; it fails when it is evaluated."""
    name = returned.name()
    return name.removeprefix("LIST<").removesuffix(">" * name.startswith("LIST<")) in _SCALARS


_VERSION_TYPE = cel.Type.Map(cel.Type.STRING, cel.Type.STRING).name()
_SCALARS = frozenset(("BOOL", "INT", "STRING", "DYN", _VERSION_TYPE))


@final
class DeviceSelectorProgram:
    """A compiled expression."""

    def __init__(self, program: Any) -> None:
        self._program = program

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the expression holds for a device. Raises CelError."""
        result = self._evaluated(driver, device)
        if result.type() != cel.Type.BOOL:
            raise CelError(f"CEL result of type {result.type().name()} is not a bool")
        return bool(result.value())

    def attribute(self, driver: str, device: Device) -> DeviceAttribute:
        """The attribute that the expression derives from a device. Raises CelError."""
        return _derived(self._evaluated(driver, device).plain_value())

    def _evaluated(self, driver: str, device: Device) -> Any:
        """A value of the library that is no error. Raises CelError."""
        attributes, capacity = _attributes(driver, device), _capacity(driver, device)
        while True:
            start_evaluation()
            try:
                result = self._program.eval(data=_variables(driver, device, attributes, capacity))
            except Exception as problem:  # noqa: BLE001 - the library has no class of its own for this
                raise CelError(_runtime_error(str(problem))) from None
            if result.type() != cel.Type.ERROR:
                return result
            value = str(result.value())
            missing = _NO_SUCH_KEY.search(value)
            if missing is None:
                raise CelError(_runtime_error(value))
            key = missing.group(1)
            if key in attributes and key in capacity:
                raise CelError(f"no such key: {key}{MISSING_KEY_ADVICE}")
            # The missing name may be a domain, and a domain is never missing. If the name is an
            # attribute, the expression fails again in the same way.
            attributes.setdefault(key, {})
            capacity.setdefault(key, {})


def _derived(value: Any) -> DeviceAttribute:
    """An attribute from a result. Upstream: valToDeviceAttribute. Raises CelError."""
    if not isinstance(value, list):
        kind, scalar = _scalar(value)
        of_kind: dict[str, Any] = {f"{kind}_value": scalar}
        return DeviceAttribute(**of_kind)
    if not value:
        return DeviceAttribute(string_values=())
    scalars = [_scalar(each) for each in cast(list[Any], value)]
    [kind, *others] = dict.fromkeys(kind for kind, _ in scalars)
    if others:
        raise CelError(f"expected list elements of one type, got {kind} and {others[0]}")
    lists: dict[str, Any] = {f"{kind}_values": tuple(scalar for _, scalar in scalars)}
    return DeviceAttribute(**lists)


def _scalar(value: Any) -> tuple[str, Any]:
    """(the kind of an attribute, the value). Raises CelError."""
    for kind, python_type in (("bool", bool), ("int", int), ("string", str)):
        if isinstance(value, python_type):
            return kind, value
    version = version_in(value)
    if version is None:
        raise CelError(f"unsupported CEL return type: {type(value).__name__}")
    return "version", version


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
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
        if values is not None:
            return list(values)
    if attribute.version_values is not None:
        return [_semver(name, version) for version in attribute.version_values]
    if attribute.version_value is not None:
        return _semver(name, attribute.version_value)
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    raise CelError(f"attribute {name}: unsupported attribute value")


def _semver(name: str, version: str) -> Any:
    try:
        return semver_value(version)
    except SemverError as problem:
        raise CelError(f"attribute {name}: parse semantic version: {problem}") from None


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
