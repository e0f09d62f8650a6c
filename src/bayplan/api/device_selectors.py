"""CEL selectors of devices: the devices that a class or a request selects.

An expression reads one device as ``device``: its driver, attributes and capacity, by domain. A name
without a domain is in the driver's domain. A domain that the device does not have is empty.
Upstream: k8s.io/dynamic-resource-allocation/cel.

Expressions are untrusted, so the cost of an evaluation is bounded in four ways: the length of the
expression; the library's own bounds on nesting and on the iterations of macros; the comparisons of
set functions (`cel_environment`); and the length of the texts that an expression can build.
"""

import re
from functools import lru_cache
from typing import Protocol

from bayplan.api.device_objects import Device, DeviceAttribute
from bayplan.lazy_loader import load

#: The number of compiled expressions in the cache.
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
#: Operations that make a longer text or list from shorter ones.
_GROWTH = re.compile(r"\+|\b(?:replace|join|format)\b")
#: The end of a message about a missing key; older versions of kube-scheduler lack it.
MISSING_KEY_ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check "
    "with has() for optional fields"
)
_ATTRIBUTE_LENGTH_MAX = 64  # upstream: DeviceAttributeMaxValueLength


class CelError(Exception):
    """An expression that does not compile, or that fails for a device."""


class CompiledSelector(Protocol):
    """A compiled expression."""

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the expression holds for a device. Raises CelError."""
        ...

    def attribute(self, driver: str, device: Device) -> DeviceAttribute:
        """The attribute that the expression derives from a device. Raises CelError."""
        ...


@lru_cache(maxsize=COMPILED_MAX)
def compile_selector(expression: str) -> CompiledSelector | CelError:
    """The compiled expression, or its error as a value: the caller adds the place to the
    message."""
    too_costly = _too_costly(expression)
    return too_costly or load("bayplan.api.device_programs:compiled")(expression)


@lru_cache(maxsize=COMPILED_MAX)
def compile_derived_attribute(expression: str) -> CompiledSelector | CelError:
    """The same for an expression that derives an attribute."""
    too_costly = _too_costly(expression)
    return too_costly or load("bayplan.api.device_programs:compiled_derived")(expression)


def _too_costly(expression: str) -> CelError | None:
    if len(expression.encode(errors="surrogatepass")) > EXPRESSION_LENGTH_MAX:
        return CelError(f"compilation failed: longer than {EXPRESSION_LENGTH_MAX} bytes")
    if _built_length_max(expression) > BUILT_LENGTH_MAX:
        return CelError(
            "compilation failed: too complex, exceeds cost limit: it can build a text or a list of "
            f"more than {BUILT_LENGTH_MAX} characters or items"
        )
    return None


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
