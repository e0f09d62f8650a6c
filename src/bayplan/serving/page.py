"""The port of the page that `bayplan run --ui` serves below /ui/.

The page lies in a higher layer, so the command line hands in how it is made (`MakePage`). The page
reads the scheduler between two pieces of its work, on the same event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from bayplan.clock import Clock
from bayplan.config import SchedulerConfig
from bayplan.engine.scheduler import Scheduler
from bayplan.history.past_state import StateRing
from bayplan.history.state_log import LiveStateLog
from bayplan.journal import MemorySink
from bayplan.plugins.registry import Registry

#: Where the page is served. Who may get this path may get all paths below it.
PREFIX = "/ui/"
#: A browser sends no bearer token by itself: `/ui/?token=TOKEN` puts the token into this cookie.
COOKIE = "bayplan-ui-token"

STARTING, LEADING, STANDBY, STOPPING = "starting", "leading", "standby", "stopping"


@dataclass(frozen=True, slots=True)
class ReplicaPhase:
    """What one replica does now."""

    #: starting, leading, standby, stopping
    phase: str
    #: The identity of the replica that leads; "": unknown, or there is no election.
    leader: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSources:
    """What a model of the cluster is made of."""

    #: The objects that the scheduler has read, and its decisions. It changes while it runs.
    states: StateRing
    config: SchedulerConfig
    registry: Registry
    seed: int = 0
    #: Kinds that plugins use and the API server does not have.
    absent_kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSources:
    """What the page shows."""

    scheduler: Scheduler
    #: The newest records of the journal.
    memory: MemorySink
    #: The page follows it.
    log: LiveStateLog
    clock: Clock
    #: The lease or, without an election, the profiles: what a user knows the scheduler by.
    name: str
    phase: Callable[[], ReplicaPhase]
    #: None: the page asks the engine nothing.
    model: ModelSources | None = None


class SchedulerPage(Protocol):
    """The page of one running scheduler."""

    def application(self) -> web.Application:
        """The application that is served below `PREFIX`. It is asked for once."""
        ...

    def start(self) -> None:
        """Begin to follow the scheduler. Called on the event loop."""
        ...

    async def stop(self, reason: str) -> None:
        """Stop serving the page. ``reason``: why the scheduler ends, for those who look at the
        page."""
        ...


MakePage = Callable[[PageSources], SchedulerPage]
