"""Checks of plugins: of their methods when they are loaded, of their results when they run.

A method with other parameters than the contract's is refused when the plugin is loaded. A plugin
that raises, or returns a value or a code that its extension point does not allow, fails its pod's
attempt with an Error that names the plugin; it never stops the scheduler. Messages say what was
returned, what to return instead, and where the method is: file and line.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import walk_tb
from types import FunctionType
from typing import Any, Final

import numpy as np

from bayplan.api.read_only import READ_ONLY
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import Code, Status
from bayplan.ports import ApiError, OutcomeUnknownError, raise_interruption

_PACKAGE: Final = Path(__file__).parent.parent
#: Packages whose frames stand between a scheduler and its plugins.
_CALLERS: Final = frozenset(_PACKAGE / name for name in ("engine", "framework", "profile", "queue"))
#: Occurs in Python's message for a write to a read-only mapping.
_PROXY: Final = "'mappingproxy' object"
#: Errors of the API are not errors of the plugin's line.
_OUTSIDE: Final = (ApiError, OutcomeUnknownError)


class RefusedAnswer(Exception):
    """A result that the contract does not allow. The message says why."""


class WrongAnswer(RefusedAnswer):
    """A plugin returned a value of a wrong form."""

    def __init__(self, actual: object, expected: str) -> None:
        super().__init__(f"returned {actual}; wanted {expected}")


class WrongMethodAnswer(RefusedAnswer):
    """A method of a plugin returned a value of a wrong form."""

    def __init__(self, method: Callable[..., Any], actual: str, expected: str) -> None:
        """``method``: the plugin's, or a wrapper of it. The message names its file and line."""
        method = inspect.unwrap(method)
        name = getattr(method, "__name__", "the plugin")
        super().__init__(f"{name} returned {actual}; wanted {expected}{place_of(method)}")


def described(value: object) -> str:
    """A returned value for a message. None: probably a missing return."""
    return "nothing (is a return missing?)" if value is None else repr(value)


def place_of(function: Callable[..., Any]) -> str:
    """ ", at my_policy.py:12"; "" for a function that is not written in Python."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f", at {Path(code.co_filename).name}:{code.co_firstlineno}"


# ---- methods --------------------------------------------------------------------------------


def fault_of_methods(candidate: type, contract: str) -> str | None:
    """The first method of a class that cannot be called as the contract calls it.

    ``contract``: the package whose classes define the methods, e.g. "bayplan.framework".
    """
    for base in candidate.__mro__:
        if not base.__module__.startswith(contract):
            continue
        for name, expected in vars(base).items():
            if name.startswith("_") or not isinstance(expected, FunctionType):
                continue
            own = inspect.getattr_static(candidate, name)
            if own is expected or not isinstance(own, FunctionType):
                continue
            fault = _fault_of_method(own, expected)
            if fault is not None:
                return fault
    return None


def missing_methods(candidate: type, names: Sequence[str]) -> str:
    """The message for a class that does not implement abstract methods: their names, and what to
    write."""
    methods = [getattr(candidate, name) for name in names]
    written = [_written(each) for each in methods if isinstance(each, FunctionType)]
    return f"does not implement {', '.join(names)}; write {', '.join(written)}"


def _fault_of_method(own: FunctionType, expected: FunctionType) -> str | None:
    if inspect.iscoroutinefunction(own) and not inspect.iscoroutinefunction(expected):
        return f"{own.__name__} is async; write {_written(expected)}{place_of(own)}"
    if _accepts(own, expected.__code__.co_argcount):
        return None
    parameters = ", ".join(inspect.signature(own).parameters)
    return (
        f"{own.__name__} takes ({parameters}); "
        f"write {_written(expected)}{place_of(inspect.unwrap(own))}"
    )


def _accepts(function: FunctionType, count: int) -> bool:
    """Whether a function can be called with ``count`` positional arguments and no keywords."""
    code = function.__code__
    keywords = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    if set(keywords) - set(function.__kwdefaults__ or ()):
        return False
    needed = code.co_argcount - len(function.__defaults__ or ())
    return needed <= count and (
        count <= code.co_argcount or bool(code.co_flags & inspect.CO_VARARGS)
    )


def _written(method: FunctionType) -> str:
    """The head of a method as source code: "def filter_node(self, state, pod, node)"."""
    keyword = "async def" if inspect.iscoroutinefunction(method) else "def"
    return f"{keyword} {method.__name__}({', '.join(inspect.signature(method).parameters)})"


# ---- results --------------------------------------------------------------------------------


def check_scores(scores: Any, count: int, method: Callable[..., Any]) -> None:
    """Raises WrongMethodAnswer unless ``scores`` is int64[count].

    ``method``: the plugin's method that returned the scores.
    """
    dtype, shape = getattr(scores, "dtype", None), getattr(scores, "shape", None)
    if dtype == np.int64 and shape == (count,):
        return
    expected = f"int64[{count}], an array with one whole number per node of the view"
    if dtype is None or shape is None:
        is_list = type(scores) in (list, tuple)
        actual = f"a {type(scores).__name__}" if is_list else described(scores)
        hint = "; np.array(scores, np.int64) converts" if is_list else ""
    else:
        actual = form_of(scores)
        hint = "; scores.astype(np.int64) converts" if shape == (count,) else ""
    raise WrongMethodAnswer(method, actual, expected + hint)


def form_of(array: Any) -> str:
    """Element type and shape of an array: "float64[3]"."""
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def checked(answer: Any) -> Status | None:
    """The answer, if it is a Status or None. Raises WrongAnswer."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        raise WrongAnswer(repr(answer), "a Status or None")
    if type(answer.reasons) is not tuple:
        check_reasons(answer.reasons)
    return answer


def check_reasons(reasons: Any) -> None:
    """Refuses a string in place of a tuple of strings. Raises WrongAnswer."""
    if not isinstance(reasons, tuple):
        raise WrongAnswer(f"reasons {reasons!r}", "a tuple of strings")


def failure_of(
    plugin: Plugin | str,
    point: str,
    problem: BaseException,
    method: Callable[..., Any] | None = None,
) -> Status:
    """The Error for an exception of a plugin. ``plugin``: the plugin or its instance name.

    ``method``: the plugin's method that was called, if its place is to be named. `sys.exit()` in a
    plugin is a failure like any other exception. Raises ``problem`` itself if it is an
    interruption.
    """
    raise_interruption(problem)
    name = plugin if isinstance(plugin, str) else plugin.instance_name
    refused = isinstance(problem, RefusedAnswer)
    text = str(problem) if refused else f"{type(problem).__name__}: {problem}"
    if method is not None and isinstance(problem, WrongAnswer):
        called = inspect.unwrap(method)
        text = f"{getattr(called, '__name__', point)} {text}{place_of(called)}"
    if isinstance(problem, TypeError) and _PROXY in text:
        text = f"{type(problem).__name__}: {READ_ONLY}"
    if not refused and not isinstance(problem, _OUTSIDE):
        text += _place_of(problem)
    return Status(Code.ERROR, (f'running {point} plugin "{name}": {text}',), name)


def _place_of(problem: BaseException) -> str:
    """ " (policy.py:12)": the last line of the plugin's own file in the traceback, or ""."""
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in walk_tb(problem.__traceback__)
        if _CALLERS.isdisjoint(Path(frame.f_code.co_filename).parents)
    ]
    # Code that the plugin calls may fail in other files; the author needs the plugin's own line.
    own = [(file, line) for file, line in lines if file == lines[0][0]]
    return f" ({own[-1][0].name}:{own[-1][1]})" if own else ""


def as_error(status: Status, point: str, name: str) -> Status:
    """The Error for a status whose code the extension point does not allow."""
    message = status.message or f"answered {status.code}, which it may not"
    return Status(Code.ERROR, (f'running {point} plugin "{name}": {message}',), name)


def rejection_or_error(
    status: Status,
    point: str,
    name: str,
    rejections: Sequence[Code] = (
        Code.UNSCHEDULABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        Code.PENDING,
    ),
) -> Status:
    """The status with its plugin's name if its code is in ``rejections``; otherwise an Error."""
    if status.code in rejections:
        return status.with_plugin(name)
    return as_error(status, point, name)
