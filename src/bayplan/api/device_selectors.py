"""CEL selectors of devices: which devices a class or a request means.

An expression sees one device as ``device``: its driver, attributes and capacity, by domain; a name
without a domain belongs to the driver's, and a domain that the device does not have is empty.
Upstream: k8s.io/dynamic-resource-allocation/cel.

Expressions are untrusted, so the cost of an evaluation is bounded in four ways: the length of the
expression; the library's own bounds on nesting and on the iterations of macros; the comparisons of
set functions (`cel_environment`); and the length of the texts that an expression can build.
"""

import re
from functools import lru_cache
from typing import Any, final

from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]

from bayplan.api.cel_environment import (
    COST_LIMIT_EXCEEDED,
    environment,
    quantity_value,
    semver_value,
    start_evaluation,
)
from bayplan.api.device_objects import Device, DeviceAttribute
from bayplan.api.quantity import QuantityError
from bayplan.api.semver import SemverError

#: Compiled expressions that are kept.
COMPILED_MAX = 1024
#: Bytes of an expression. Upstream: CELSelectorExpressionMaxLength.
EXPRESSION_LENGTH_MAX = 10 * 1024
#: Characters of a text, or items of a list, that an expression may build. Upstream counts the cost
#: of an evaluation instead, which the library does not.
BUILT_LENGTH_MAX = 256 * 1024

#: A comment, or a string literal with the text between its quotes as one of the groups a to d.
CEL_TEXT = re.compile(
    r"""//[^\n]*|(?P<literal>[rRbB]{0,2}(?:'''(?P<a>.*?)'''|\"""(?P<b>.*?)\"""|"""
    r"""'(?P<c>(?:\\.|[^'\\])*)'|"(?P<d>(?:\\.|[^"\\])*)"))""",
    re.DOTALL,
)
#: What makes a longer text or list from shorter ones.
_GROWTH = re.compile(r"\+|\b(?:replace|join|format)\b")
_ATTRIBUTE_LENGTH_MAX = 64  # upstream: DeviceAttributeMaxValueLength
_ITERATION_BUDGET_EXCEEDED = "Iteration budget exceeded"
_NO_SUCH_KEY = re.compile(r'NOT_FOUND: Key not found in map : "(.*)"', re.DOTALL)
_HINT = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check "
    "with has() for optional fields"
)

_Domains = dict[str, dict[str, Any]]


class CelError(Exception):
    """An expression that does not compile, or that fails for a device."""


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
                raise CelError(f"no such key: {key}. {_HINT}")
            # It may be a domain, and those are never missing. Where it is an attribute, the
            # expression fails the same way once more.
            attributes.setdefault(key, {})
            capacity.setdefault(key, {})


@lru_cache(maxsize=COMPILED_MAX)
def compile_selector(expression: str) -> DeviceSelectorProgram | CelError:
    """The error is a value: who selects says where it stands."""
    if len(expression.encode(errors="surrogatepass")) > EXPRESSION_LENGTH_MAX:
        return CelError(f"compilation failed: longer than {EXPRESSION_LENGTH_MAX} bytes")
    if _built_length_max(expression) > BUILT_LENGTH_MAX:
        return CelError(
            "compilation failed: too complex, exceeds cost limit: it can build a text or a list of "
            f"more than {BUILT_LENGTH_MAX} characters or items"
        )
    try:
        program = environment().compile(expression)
    except Exception as problem:  # noqa: BLE001 - the library has no class of its own for this
        return CelError(f"compilation failed: {problem}")
    returned = program.return_type()
    if returned not in (cel.Type.BOOL, cel.Type.DYN):
        return CelError(f"must evaluate to bool or the unknown type, not {returned.name()}")
    return DeviceSelectorProgram(program)


def _runtime_error(message: str) -> str:
    """Upstream's words for an evaluation that costs too much (cel-go, interpreter)."""
    if _ITERATION_BUDGET_EXCEEDED in message or COST_LIMIT_EXCEEDED in message:
        return f"operation cancelled: {COST_LIMIT_EXCEEDED}"
    return message


def _built_length_max(expression: str) -> int:
    """An upper bound of the length of any text or list that the expression builds.

    Each operation that joins texts is assumed to join the longest ones there can be, wherever it
    stands: `+` doubles the length, and `replace` puts a text in place of each character.
    """
    literals = [match["literal"] or "" for match in CEL_TEXT.finditer(expression)]
    longest = max(map(len, [*literals, "x" * _ATTRIBUTE_LENGTH_MAX]))
    for operation in _GROWTH.findall(CEL_TEXT.sub("''", expression)):
        longest = 2 * longest if operation == "+" else longest * (longest + 1)
        if longest > BUILT_LENGTH_MAX:
            break
    return longest


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
    for name, attribute in (device.attributes or {}).items():
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
    for name, capacity in (device.capacity or {}).items():
        domain, identifier = _qualified(name, driver)
        try:
            domains.setdefault(domain, {})[identifier] = quantity_value(capacity.value)
        except QuantityError as problem:
            raise CelError(f"capacity {name}: {problem}") from None
    return domains


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """(domain, identifier)"""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)
