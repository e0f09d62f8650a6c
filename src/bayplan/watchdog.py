"""The watchdog: reports a plugin whose call blocks the scheduler, and for how long.

The engine runs on one thread. A plugin that sleeps, loops or reads a slow disk stops the engine, so
the engine cannot report it. The watchdog is a second thread, which reads the engine's stack once a
second. A call blocks if the same frame of a plugin is in all samples for `LIMIT_SECONDS`. The
engine itself does no work for this. A call that holds Python's interpreter lock, inside a C
library, is seen only after it has ended.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, Self, cast, final

from msgspec import Struct

from bayplan.clock import wall_seconds
from bayplan.framework.plugin import Plugin

#: The time between two samples of the stack.
PERIOD_SECONDS: Final = 1
#: A call that takes longer is reported.
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
    "generate_placements": "PlacementGenerate",
    "score_placement": "PlacementScore",
    "score_placements": "PlacementScore",
    "normalize_placements": "PlacementScoreExtensionNormalize",
    "release_for_group": "PodGroupPostFilter",
    "why_not_for_group": "PodGroupPostFilter",
    "in_order_of_return": "PodGroupPostFilter",
    "evict_for_group": "PodGroupPostFilter",
    "sign_pod": "SignPod",
}


class BlockingCall(Struct, frozen=True):
    """A call of a plugin that has not returned for at least the limit."""

    plugin: str
    #: The extension point, or the name of a method that is no extension point.
    point: str
    #: The line of the plugin's own code: "policy.py:12".
    place: str
    seconds: float
    #: Whether to log the call: at the first report, and each time the duration has doubled.
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
        """The blocking call in this sample; None: no call blocks. ``frame``: the innermost frame of
        the stack."""
        call = _outermost_call(frame)
        # Frames are compared by identity. The reference keeps the frame alive, so a frame of
        # another call cannot have the same address.
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
    """The outermost frame of a plugin's method, with the plugin; None: no plugin is called."""
    outermost: tuple[FrameType, Plugin] | None = None
    while frame is not None:
        code = frame.f_code
        if code.co_argcount and code.co_varnames[0] == "self":
            owner = frame.f_locals.get("self")
            # Not isinstance: an abstract class remembers each class that it is compared with.
            if Plugin in type(owner).__mro__:
                outermost = frame, cast("Plugin", owner)
        frame = frame.f_back
    return outermost


@final
class PluginWatchdog:
    """A context manager that watches the stack of the thread that enters it."""

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
