"""Checks of plugin results: a failure becomes an Error that names the plugin.

A plugin that raises, or returns a value or a code that its extension point does not allow, fails
its pod's attempt. It never stops the scheduler.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

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
    """A result that the contract does not allow; the message says why."""


class WrongAnswer(RefusedAnswer):
    """A plugin returned a value of a wrong form."""

    def __init__(self, actual: object, expected: str) -> None:
        super().__init__(f"returned {actual}, expected {expected}")


class WrongNodeAnswer(RefusedAnswer):
    """A node-by-node plugin returned a value of a wrong form."""

    def __init__(self, function: Callable[..., Any], actual: object, expected: str) -> None:
        """``function``: the plugin's method. The message names its file and line."""
        name = getattr(function, "__name__", "the plugin")
        what = "nothing (is a return missing?)" if actual is None else repr(actual)
        super().__init__(f"{name} returned {what}; wanted {expected}{_place_of_function(function)}")


def _place_of_function(function: Callable[..., Any]) -> str:
    """ ", at my_policy.py:12"; "" for a function that is not written in Python."""
    code = getattr(function, "__code__", None)
    return "" if code is None else f", at {Path(code.co_filename).name}:{code.co_firstlineno}"


def checked(answer: Any) -> Status | None:
    """The answer, if it is a Status or None. Raises WrongAnswer."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        raise WrongAnswer(repr(answer), "a Status or None")
    check_reasons(answer.reasons)
    return answer


def check_reasons(reasons: Any) -> None:
    """Refuses a string in place of a tuple of strings. Raises WrongAnswer."""
    if not isinstance(reasons, tuple):
        raise WrongAnswer(f"reasons {reasons!r}", "a tuple of strings")


def failure_of(plugin: Plugin | str, point: str, problem: BaseException) -> Status:
    """The Error for an exception of a plugin, given as the plugin or its instance name.

    `sys.exit()` in a plugin is a failure like any other exception. Raises ``problem`` itself if it
    is an interruption.
    """
    raise_interruption(problem)
    name = plugin if isinstance(plugin, str) else plugin.instance_name
    refused = isinstance(problem, RefusedAnswer)
    text = str(problem) if refused else f"{type(problem).__name__}: {problem}"
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
