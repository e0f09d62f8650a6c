"""Names the plugin whose call holds the scheduler, and for how long.

The engine runs on one thread; a plugin that sleeps, loops or reads a slow disk stops all of it, and
nothing on that thread can say so. A thread of its own looks at the engine's stack once a second. A
call is blocking where the same frame of a plugin is there in samples that are far enough apart. The
engine itself pays nothing. A call that keeps Python's interpreter lock all the time, inside a C
library, is seen only once it has ended.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Self, final

from bayplan.clock import wall_seconds
from bayplan.framework.plugin import Plugin

#: How often the stack is looked at.
PERIOD_SECONDS: Final = 1
#: A call that takes longer is told of.
LIMIT_SECONDS: Final = 5.0

_POINTS: Final = {
    "pre_enqueue": "PreEnqueue",
    "key": "QueueSort",
    "pre_filter": "PreFilter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "filter": "Filter",
    "filter_node": "Filter",
    "filter_row": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_node": "Score",
    "score_row": "Score",
    "normalize": "ScoreExtensionNormalize",
    "tie_break": "TieBreak",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind_preflight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
    "sign_pod": "SignPod",
}


@dataclass(frozen=True, slots=True)
class BlockingCall:
    """A call of a plugin that has not come back for a while."""

    plugin: str
    #: The extension point; of another method, its name.
    point: str
    #: Where the plugin's own code is: "policy.py:12".
    place: str
    seconds: float
    #: Whether it is to be logged: when it is first seen, and each time that it has doubled.
    is_news: bool


@final
class BlockingCalls:
    """Finds blocking calls in samples of one stack."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._limit_seconds = limit_seconds
        self._frame: FrameType | None = None
        self._since_seconds = 0.0
        self._next_news_seconds = 0.0

    def sample(self, frame: FrameType | None, now_seconds: float) -> BlockingCall | None:
        """``frame``: the innermost one of the stack, as it is now."""
        call = _outermost_call(frame)
        # Compared as objects, and so held: another call's frame cannot have its address.
        if call is None or call[0] is not self._frame:
            self._frame = None if call is None else call[0]
            self._since_seconds = now_seconds
            self._next_news_seconds = self._limit_seconds
            return None
        seconds = now_seconds - self._since_seconds
        if seconds < self._limit_seconds:
            return None
        is_news = seconds >= self._next_news_seconds
        if is_news:
            self._next_news_seconds = 2 * seconds
        frame, plugin = call
        code = frame.f_code
        point = _POINTS.get(code.co_name, code.co_name)
        place = f"{Path(code.co_filename).name}:{frame.f_lineno}"
        return BlockingCall(plugin.instance_name, point, place, seconds, is_news)


def _outermost_call(frame: FrameType | None) -> tuple[FrameType, Plugin] | None:
    """The method of a plugin that the engine called."""
    outermost: tuple[FrameType, Plugin] | None = None
    while frame is not None:
        code = frame.f_code
        if code.co_argcount and code.co_varnames[0] == "self":
            owner = frame.f_locals.get("self")
            if isinstance(owner, Plugin):
                outermost = frame, owner
        frame = frame.f_back
    return outermost


@final
class PluginWatchdog:
    """Looks at the stack of the thread that enters it, until that leaves."""

    def __init__(self, tell: Callable[[BlockingCall], None]) -> None:
        """``tell``: called on the watchdog's thread, once a period while a call blocks."""
        self._tell = tell
        self._calls = BlockingCalls()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        watched = threading.get_ident()
        self._thread = threading.Thread(
            target=self._run, args=(watched,), name="plugin-watchdog", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, watched: int) -> None:
        while not self._ended.wait(PERIOD_SECONDS):
            frame = sys._current_frames().get(watched)
            call = self._calls.sample(frame, wall_seconds())
            if call is not None:
                self._tell(call)
