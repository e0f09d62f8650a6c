"""What plugins say, at the boundary: failures get a name, wrong forms are refused.

A plugin that raises, or answers in a form or with a code it may not, fails its pod's attempt with
an Error that names it; it never stops the scheduler.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any, Final

from bayplan.api.read_only import READ_ONLY
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import Code, Rejection, Status
from bayplan.ports import ApiError, OutcomeUnknownError, raise_interruption

_PACKAGE: Final = Path(__file__).parent.parent
#: Packages whose frames stand between a scheduler and its plugins.
_CALLERS: Final = frozenset(_PACKAGE / name for name in ("engine", "framework", "profile", "queue"))
#: What Python says of a change of a mapping that is but shown.
_PROXY: Final = "'mappingproxy' object"
#: Nothing is wrong with a plugin's line when the API says no.
_OUTSIDE: Final = (ApiError, OutcomeUnknownError)


class RefusedAnswer(Exception):
    """An answer that the contract does not allow; the message says what is wrong with it."""


class WrongAnswer(RefusedAnswer):
    """A plugin answered in a form that the contract does not know."""

    def __init__(self, actual: object, expected: str) -> None:
        super().__init__(f"returned {actual}, expected {expected}")


class WrongNodeAnswer(RefusedAnswer):
    """A plugin that answers node by node gave something else than the contract wants."""

    def __init__(self, function: Callable[..., Any], actual: object, expected: str) -> None:
        """``function``: the plugin's method, which is named with its file and line."""
        name = getattr(function, "__name__", "the plugin")
        what = "nothing (is a return missing?)" if actual is None else repr(actual)
        super().__init__(f"{name} returned {what}; wanted {expected}{_place_of_function(function)}")


def _place_of_function(function: Callable[..., Any]) -> str:
    """ ", at my_policy.py:12"; "" for what is not written in Python."""
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
    """A lone string would count as its letters. Raises WrongAnswer."""
    if not isinstance(reasons, tuple):
        raise WrongAnswer(f"reasons {reasons!r}", "a tuple of strings")


def failure_of(plugin: Plugin | str, point: str, problem: BaseException) -> Status:
    """The Error for a plugin, or the instance of this name, that raised or answered wrongly.

    `sys.exit()` in a plugin is a failure like any other. Raises ``problem`` itself where it is an
    interruption.
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
    """ " (policy.py:12)": the line that the plugin's own file had come to; "" where none had."""
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in walk_tb(problem.__traceback__)
        if _CALLERS.isdisjoint(Path(frame.f_code.co_filename).parents)
    ]
    # What a plugin calls may fail elsewhere: the reader looks for the plugin's line.
    own = [(file, line) for file, line in lines if file == lines[0][0]]
    return f" ({own[-1][0].name}:{own[-1][1]})" if own else ""


def as_error(status: Status, point: str, name: str) -> Status:
    """The Error that an answer which is no success, and no rejection allowed here, amounts to."""
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
    """A rejection under its plugin's name; anything else that is no success as an Error."""
    if status.code in rejections:
        return status.with_plugin(name)
    return as_error(status, point, name)


_WITH_CODE = frozenset((Status, Rejection))
_SEVERAL = frozenset((tuple,))


def code_in(answer: Any) -> Code:
    """The code in whatever an extension point answers; what carries none is a success."""
    if answer is None:
        return Code.SUCCESS
    if type(answer) not in _SEVERAL:
        return getattr(answer, "code", Code.SUCCESS)
    for part in answer:
        if type(part) in _WITH_CODE:
            return part.code
    return Code.SUCCESS
