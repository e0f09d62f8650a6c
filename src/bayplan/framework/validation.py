"""Checks of plugins: of their methods when they are loaded, of their results when they run.

A method with other parameters than the contract's is refused when the plugin is loaded. A plugin
that raises, or returns a value or a code that its extension point does not allow, fails its pod's
attempt with an Error that names the plugin; it never stops the scheduler. Messages say what was
returned, what to return instead, and where the method is: file and line.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, GeneratorType
from typing import Any, Final, cast, final

import numpy as np

from bayplan.api.read_only import READ_ONLY
from bayplan.framework.placements import Placement
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import Code, Status
from bayplan.ports import ApiError, OutcomeUnknownError, raise_interruption
from bayplan.state.nodes import NodeView

_PACKAGE: Final = Path(__file__).parent.parent
#: Packages whose frames stand between a scheduler and its plugins.
_CALLERS: Final = frozenset(
    _PACKAGE / name for name in ("cli", "engine", "framework", "profile", "queue", "testing")
)
#: Of a value in a message: enough to recognize it.
_TEXT_LENGTH_MAX: Final = 120
#: Occurs in Python's message for a write to a read-only mapping.
_PROXY: Final = "'mappingproxy' object"
#: Errors of the API are not errors of the plugin's line.
_OUTSIDE: Final = (ApiError, OutcomeUnknownError)


class RefusedAnswer(Exception):
    """A result that the contract does not allow. The message says why."""

    #: What the scheduler was doing, where that is not the plugin's extension point.
    step = ""


class WrongAnswer(RefusedAnswer):
    """A plugin returned a value of a wrong form.

    ``method``: the plugin's method, or a wrapper of it. The message names the method with its file
    and line; where it is None, `failure_of` adds them.
    """

    def __init__(
        self, actual: str, expected: str, method: Callable[..., Any] | None = None
    ) -> None:
        self.actual, self.expected, self.method = actual, expected, method
        super().__init__(self.message_of(method))

    def message_of(self, method: Callable[..., Any] | None) -> str:
        return f"{_subject(method)}returned {self.actual}; wanted {self.expected}{place_of(method)}"


def _subject(method: Callable[..., Any] | None) -> str:
    """ "filter_node ", or "" for a call that is no method of a plugin."""
    name = getattr(inspect.unwrap(method), "__name__", "") if method is not None else ""
    return f"{name} " if name else ""


def described(value: object) -> str:
    """A returned value for a message. None: probably a missing return."""
    if value is None:
        return "nothing (is a return missing?)"
    text = _source_text(value)
    return text if len(text) <= _TEXT_LENGTH_MAX else f"{text[:_TEXT_LENGTH_MAX]}…"


def _source_text(value: object) -> str:
    """A value as an author would write it."""
    if isinstance(value, Code):
        return f"Code.{value.name}"
    if isinstance(value, Status):
        return f"Status(Code.{value.code.name})"
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return f"({', '.join(map(_source_text, parts))}{',' * (len(parts) == 1)})"
    return repr(value)


def place_of(function: Callable[..., Any] | None) -> str:
    """ ", at my_policy.py:12"; "" for a function that is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
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
    return f"{own.__name__} takes ({parameters}); write {_written(expected)}{place_of(own)}"


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
    """Raises WrongAnswer unless ``scores`` is int64[count].

    ``method``: the plugin's method that returned the scores.
    """
    dtype, shape = getattr(scores, "dtype", None), getattr(scores, "shape", None)
    if dtype == np.int64 and shape == (count,) and type(scores) is np.ndarray:
        return
    expected = f"int64[{count}], an array with one whole number per node of the view"
    if dtype is None or shape is None:
        is_list = type(scores) in (list, tuple)
        actual = f"a {type(scores).__name__}" if is_list else described(scores)
        hint = "; np.array(scores, np.int64) converts" if is_list else ""
    else:
        is_array = type(scores) is np.ndarray or not shape
        actual = form_of(scores) if is_array else f"{type(scores).__name__} {form_of(scores)}"
        hint = "; scores.astype(np.int64) converts" if shape == (count,) and is_array else ""
    raise WrongAnswer(actual, expected + hint, method)


def form_of(array: Any) -> str:
    """Element type and shape of an array: "float64[3]"."""
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def checked(answer: Any, expected: str = "a Status or None") -> Status | None:
    """The answer, if it is a Status or None. Raises WrongAnswer."""
    if answer is None or isinstance(answer, Status):
        return answer
    raise WrongAnswer(described(answer), expected)


def checked_pair(answer: Any, expected: str) -> tuple[Any, Status | None]:
    """A tuple of a value and a status, in the order in which ``expected`` names them.

    Raises WrongAnswer for anything else.
    """
    # Not `cast`, which is a call for each attempt.
    parts: tuple[Any, ...] = answer
    if not isinstance(answer, tuple):
        raise WrongAnswer(described(parts), expected)
    if len(parts) != 2:
        raise WrongAnswer(f"a tuple of {len(parts)}: {described(parts)}", expected)
    return parts


PLACEMENTS: Final = "a list of Placement, or a Status"


@final
class PlacementCheck:
    """Checks the placements of one plugin. The same list is checked again only if nodes changed."""

    def __init__(self) -> None:
        self._latest: Any = None
        self._node_names: list[str] = []

    def check(self, placements: Any, nodes: NodeView) -> None:
        """Raises WrongAnswer unless these are placements on nodes of the view."""
        names = nodes.names()
        if placements is self._latest and names == self._node_names:
            return
        if not isinstance(placements, list | tuple):
            raise WrongAnswer(described(placements), PLACEMENTS)
        listed, there = cast("Sequence[Any]", placements), frozenset(names)
        for each in listed:
            if not isinstance(each, Placement):
                raise WrongAnswer(f"{described(each)} in a list", PLACEMENTS)
            absent = (each.nodes or frozenset()) - there
            if absent:
                name = sorted(absent)[0]
                text = f'a placement "{each.name}" with the node "{name}"'
                raise WrongAnswer(text, "nodes that the group may use")
        self._latest, self._node_names = placements, names


def iterated(answer: Any) -> Iterable[Any]:
    """What Filter returned, if it is an iterable that is no single value. Raises WrongAnswer."""
    if type(answer) in _USUAL_ITERABLES:
        return answer
    if hasattr(answer, "__iter__") and not isinstance(cast("object", answer), _SINGLE_VALUES):
        return answer
    if answer is None:
        raise WrongAnswer("nothing (is a return or a yield missing?)", REJECTIONS)
    hint = ""
    if getattr(answer, "dtype", None) == np.bool_:
        hint = "; the mask is of the nodes to reject, not of those that fit"
    raise WrongAnswer(described(answer), REJECTIONS + hint)


#: Values that can be iterated and are no iterable of rejections, whatever is in them.
_SINGLE_VALUES: Final = (np.ndarray, str, bytes, Mapping)
_USUAL_ITERABLES: Final = frozenset((GeneratorType, list, tuple))
REJECTIONS: Final = "an iterable of Rejection, as `yield nodes.reject(mask, reason)` makes it"


def failure_of(
    plugin: Plugin | str,
    point: str,
    problem: BaseException,
    method: Callable[..., Any] | None = None,
) -> Status:
    """The Error for an exception of a plugin. ``plugin``: the plugin or its instance name.

    ``method``: the plugin's method that was called, or a wrapper of it, which the message about a
    wrong result names. `sys.exit()` in a plugin is a failure like any other exception. Raises
    ``problem`` itself if it is an interruption.
    """
    raise_interruption(problem)
    name = plugin if isinstance(plugin, str) else plugin.instance_name
    refused = isinstance(problem, RefusedAnswer)
    text = str(problem) if refused else f"{type(problem).__name__}: {problem}"
    if isinstance(problem, WrongAnswer):
        text = problem.message_of(problem.method or method)
    if isinstance(problem, TypeError) and _PROXY in text:
        text = f"{type(problem).__name__}: {READ_ONLY}"
    if not refused and not isinstance(problem, _OUTSIDE):
        text += line_of(problem)
    step = problem.step if isinstance(problem, RefusedAnswer) else ""
    return Status(Code.ERROR, (f"{step or _step(point, name)}: {text}",), name)


def _step(point: str, name: str) -> str:
    """Upstream: framework/runtime/framework.go."""
    if point == "Score":
        return f'running Score plugins: plugin "{name}" failed with'
    return f'running {point} plugin "{name}"'


def line_of(problem: BaseException) -> str:
    """ " (policy.py:12)": the last line of the plugin's own file in the traceback, or ""."""
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in walk_tb(problem.__traceback__)
        if _CALLERS.isdisjoint(Path(frame.f_code.co_filename).parents)
    ]
    # Code that the plugin calls may fail in other files; the author needs the plugin's own line.
    own = [(file, line) for file, line in lines if file == lines[0][0]]
    return f" ({own[-1][0].name}:{own[-1][1]})" if own else ""


def as_error(
    status: Status,
    point: str,
    name: str,
    method: Callable[..., Any] | None = None,
    *,
    allowed: Sequence[Code] = (),
) -> Status:
    """The Error for a status whose code the extension point does not allow, or which is an Error.

    The message has the reasons of the status, as upstream's has. ``method``: the plugin's method
    that returned the status; ``allowed``: the codes that it may return besides Success and Error.
    The message about a wrong code without a reason names them.
    """
    if status.reasons:
        message = status.message
    elif status.code is Code.ERROR:
        message = "failed without a reason"
    else:
        message = str(WrongAnswer(str(status.code), codes_text((Code.SUCCESS, *allowed)), method))
    return Status(Code.ERROR, (f"{_step(point, name)}: {message}",), name)


def codes_text(allowed: Sequence[Code]) -> str:
    """The codes that are allowed, besides Error: "Success, Skip or Error"."""
    return f"{', '.join(map(str, allowed))} or {Code.ERROR}"


#: With these codes most extension points reject a pod. Upstream: IsRejected.
REJECTION_CODES: Final = (
    Code.UNSCHEDULABLE,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    Code.PENDING,
)


def rejection_or_error(
    status: Status,
    point: str,
    name: str,
    method: Callable[..., Any] | None = None,
    *,
    further: Sequence[Code] = (),
) -> Status:
    """The status with its plugin's name if it is a rejection; otherwise an Error, as `as_error`.

    ``further``: other codes that the extension point allows.
    """
    if status.code in REJECTION_CODES:
        return status.with_plugin(name)
    return as_error(status, point, name, method, allowed=(*REJECTION_CODES, *further))
