"""CEL as Kubernetes extends it, as far as selectors of devices use it.

The library parses, checks and evaluates (cel-expr-python, on CEL's own C++). The types that
Kubernetes adds, Quantity and Semver, are maps with one tagged entry, in a spelling that is the same
for equal values: so ``==`` compares them rightly, and functions tell them apart. Upstream:
apiserver/pkg/cel/library, and k8s.io/dynamic-resource-allocation/cel for the variables.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs]
from cel_expr_python.ext import (  # pyright: ignore[reportMissingTypeStubs]
    ext_bindings,
    ext_math,
    ext_optional,
    ext_strings,
)

from bayplan.api.quantity import NANOS, Quantity, QuantityError, nanos
from bayplan.api.semver import Semver, SemverError

_QUANTITY = "@quantity"
_SEMVER = "@semver"

Tagged = Mapping[str, str]


# ---- quantities and versions ---------------------------------------------------------------


def quantity_value(text: Quantity) -> Tagged:
    """A quantity as expressions see it. Raises QuantityError."""
    return {_QUANTITY: str(nanos(text))}


def semver_value(text: str, normalize: bool = False) -> Tagged:
    """A version as expressions see it. Raises SemverError."""
    return {_SEMVER: str(Semver.parse(text, normalize=normalize))}


def version_in(value: object) -> str | None:
    """The version that an expression returned; None: it returned something else."""
    if not isinstance(value, dict):
        return None
    return cast(dict[str, str], value).get(_SEMVER)


def _is_quantity(text: str) -> bool:
    try:
        quantity_value(text)
    except QuantityError:
        return False
    return True


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver_value(text, normalize)
    except SemverError:
        return False
    return True


def _only(value: Tagged, tag: str) -> str:
    if set(value) != {tag}:
        raise ValueError("no such overload")
    return value[tag]


def _nanos(value: Tagged) -> int:
    return int(_only(value, _QUANTITY))


def _version(value: Tagged) -> Semver:
    return Semver.parse(_only(value, _SEMVER))


def _compare(one: Tagged, other: Tagged) -> int:
    if _QUANTITY in one:
        return _sign_of(_nanos(one) - _nanos(other))
    return _version(one).compare(_version(other))


def _is_less(one: Tagged, other: Tagged) -> bool:
    return _compare(one, other) < 0


def _is_greater(one: Tagged, other: Tagged) -> bool:
    return _compare(one, other) > 0


def _sign_of(amount: int) -> int:
    return (amount > 0) - (amount < 0)


def _sign(value: Tagged) -> int:
    return _sign_of(_nanos(value))


def _amount(value: Tagged | int) -> int:
    return value * NANOS if isinstance(value, int) else _nanos(value)


def _add(one: Tagged, other: Tagged | int) -> Tagged:
    return {_QUANTITY: str(_nanos(one) + _amount(other))}


def _subtract(one: Tagged, other: Tagged | int) -> Tagged:
    return {_QUANTITY: str(_nanos(one) - _amount(other))}


def _is_integer(value: Tagged) -> bool:
    amount, below_one = divmod(_nanos(value), NANOS)
    return not below_one and -(2**63) <= amount < 2**63


def _as_integer(value: Tagged) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nanos(value) // NANOS


def _as_float(value: Tagged) -> float:
    return _nanos(value) / NANOS


def _major(value: Tagged) -> int:
    return _version(value).major


def _minor(value: Tagged) -> int:
    return _version(value).minor


def _patch(value: Tagged) -> int:
    return _version(value).patch


# ---- sets ----------------------------------------------------------------------------------

#: Comparisons that the set functions may make in one evaluation; upstream's limit on the whole cost
#: (CELSelectorExpressionMaxCost).
COMPARISONS_MAX = 1_000_000
COST_LIMIT_EXCEEDED = "actual cost limit exceeded"


class _Cost:
    """The cost of the set functions since the evaluation began."""

    comparison_count = 0


def start_evaluation() -> None:
    """Count the cost of set functions from zero."""
    _Cost.comparison_count = 0


def _compare_all(these: Sequence[Any], those: Sequence[Any]) -> None:
    _Cost.comparison_count += len(these) * len(those)
    if _Cost.comparison_count > COMPARISONS_MAX:
        raise ValueError(COST_LIMIT_EXCEEDED)


def _contains(these: Sequence[Any], those: Sequence[Any]) -> bool:
    _compare_all(these, those)
    return all(each in these for each in those)


def _intersects(these: Sequence[Any], those: Sequence[Any]) -> bool:
    _compare_all(these, those)
    return any(each in these for each in those)


def _is_equivalent(these: Sequence[Any], those: Sequence[Any]) -> bool:
    return _contains(these, those) and _contains(those, these)


def _includes(target: Any, value: Any) -> bool:
    """Whether a list has a value; for anything else, whether it is the value."""
    if not isinstance(target, list):
        return _is_equal(target, value)
    items = cast(list[Any], target)
    _compare_all(items, (value,))
    return any(_is_equal(each, value) for each in items)


def _is_equal(one: Any, other: Any) -> bool:
    """As in CEL, true and 1 differ."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


# ---- the environment -----------------------------------------------------------------------

_BOOL, _INT, _DOUBLE, _STRING = cel.Type.BOOL, cel.Type.INT, cel.Type.DOUBLE, cel.Type.STRING
_LIST, _TAGGED = cel.Type.LIST, cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
_TWO = (_TAGGED, _TAGGED)
_AND_INT = (_TAGGED, _INT)

#: (name, parameters, result, what it does)
_Overload = tuple[str, Sequence[cel.Type], cel.Type, Callable[..., Any]]
_FUNCTIONS: Sequence[_Overload] = (
    ("quantity", (_STRING,), _TAGGED, quantity_value),
    ("isQuantity", (_STRING,), _BOOL, _is_quantity),
    ("semver", (_STRING,), _TAGGED, semver_value),
    ("semver", (_STRING, _BOOL), _TAGGED, semver_value),
    ("isSemver", (_STRING,), _BOOL, _is_semver),
    ("isSemver", (_STRING, _BOOL), _BOOL, _is_semver),
    ("sets.contains", (_LIST, _LIST), _BOOL, _contains),
    ("sets.intersects", (_LIST, _LIST), _BOOL, _intersects),
    ("sets.equivalent", (_LIST, _LIST), _BOOL, _is_equivalent),
)
_METHODS: Sequence[_Overload] = (
    ("includes", (cel.Type.DYN, cel.Type.DYN), _BOOL, _includes),
    ("compareTo", _TWO, _INT, _compare),
    ("isLessThan", _TWO, _BOOL, _is_less),
    ("isGreaterThan", _TWO, _BOOL, _is_greater),
    ("sign", (_TAGGED,), _INT, _sign),
    ("add", _TWO, _TAGGED, _add),
    ("add", _AND_INT, _TAGGED, _add),
    ("sub", _TWO, _TAGGED, _subtract),
    ("sub", _AND_INT, _TAGGED, _subtract),
    ("isInteger", (_TAGGED,), _BOOL, _is_integer),
    ("asInteger", (_TAGGED,), _INT, _as_integer),
    ("asApproximateFloat", (_TAGGED,), _DOUBLE, _as_float),
    ("major", (_TAGGED,), _INT, _major),
    ("minor", (_TAGGED,), _INT, _minor),
    ("patch", (_TAGGED,), _INT, _patch),
)


@lru_cache(maxsize=1)
def environment() -> cel.Env:
    """The language as selectors of devices have it."""
    domains, anything = cel.Type.Map, cel.Type.DYN
    return cel.NewEnv(
        variables={
            # Names with a dot, so that each part of the device has a type of its own.
            "device.driver": _STRING,
            "device.allowMultipleAllocations": _BOOL,
            "device.attributes": domains(_STRING, domains(_STRING, anything)),
            "device.capacity": domains(_STRING, domains(_STRING, _TAGGED)),
        },
        extensions=[
            ext_strings.ExtStrings(),
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            ext_math.ExtMath(),
            cel.CelExtension("kubernetes", _declarations()),
        ],
    )


def _declarations() -> list[cel.FunctionDecl]:
    overloads: dict[str, list[cel.Overload]] = {}
    for functions, is_member in ((_FUNCTIONS, False), (_METHODS, True)):
        for name, parameters, result, implementation in functions:
            declared = overloads.setdefault(name, [])
            overload = cel.Overload(
                id=f"kubernetes_{name}_{len(declared)}".replace(".", "_"),
                return_type=result,
                parameters=list(parameters),
                is_member=is_member,
                impl=implementation,
            )
            declared.append(overload)
    return [cel.FunctionDecl(name, each) for name, each in overloads.items()]
