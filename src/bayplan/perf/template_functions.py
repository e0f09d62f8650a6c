"""The functions of scheduler_perf's templates: upstream's own, and those of Go they use.

Upstream's reckon in floats and cut off what is behind the point, whatever the arguments' types
(test/integration/scheduler_perf/operations.go). A question that has no answer is a FunctionError.
"""

import json
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any


class FunctionError(Exception):
    """A function that was given something it cannot work with."""


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            pass
    raise FunctionError(f"found {_shown(value)}, wanted a number")


def _integer(value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise FunctionError(f"found {_shown(value)}, wanted a whole number") from None
    return int(_number(value))


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, default=str)


def _sum(*numbers: Any) -> float:
    return math.fsum(map(_number, numbers))


def _product(*numbers: Any) -> float:
    return math.prod(map(_number, numbers), start=1.0)


def _difference(left: Any, right: Any) -> float:
    return _number(left) - _number(right)


def _quotient(left: Any, right: Any) -> float:
    divisor = _number(right)
    if not divisor:
        raise FunctionError("division by zero")
    return _number(left) / divisor


def _remainder(left: Any, right: Any) -> int:
    """With the sign of ``left``, as Go's %."""
    divisor = int(_number(right))
    if not divisor:
        raise FunctionError("division by zero")
    return int(math.fmod(int(_number(left)), divisor))


def _as_json(value: Any) -> str:
    """Compact, numbers without a needless fraction, keys in order: as Go's encoder writes it."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _equals_one(value: Any, *others: Any) -> bool:
    return any(value == other for other in others)


def _first_true(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _first_false(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def ordered(left: Any, right: Any) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        return compare(_number(left), _number(right))

    return ordered


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "AddFloat": _sum,
    "AddInt": lambda *numbers: int(_sum(*numbers)),
    "DivideFloat": _quotient,
    "DivideInt": lambda left, right: int(_quotient(left, right)),
    "Int": _integer,
    "JSON": _as_json,
    "Mod": _remainder,
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *numbers: int(_product(*numbers)),
    "SubtractFloat": _difference,
    "SubtractInt": lambda left, right: int(_difference(left, right)),
    "and": _first_false,
    "eq": _equals_one,
    "ge": _ordered(operator.ge),
    "gt": _ordered(operator.gt),
    "le": _ordered(operator.le),
    "lt": _ordered(operator.lt),
    "ne": lambda left, right: left != right,
    "not": lambda value: not value,
    "or": _first_true,
}
