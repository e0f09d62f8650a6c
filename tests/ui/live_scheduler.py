"""A scheduler with the page of `bayplan run --ui`, in a thread: real time, an API server in memory,
and the endpoints over loopback."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import POD
from bayplan.clock import RealClock
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.history.past_state import StateRing
from bayplan.history.state_log import LiveStateLog
from bayplan.journal import Journal, MemorySink
from bayplan.objects.keys import object_key
from bayplan.plugins.registry import default_registry
from bayplan.runner import Runner
from bayplan.serving.access import Access
from bayplan.serving.decision_history import RECORDS_MAX
from bayplan.serving.endpoints import Endpoints
from bayplan.serving.page import LEADING, PREFIX, ModelSources, PageSources, ReplicaPhase
from bayplan.serving.past_attempts import ENTRIES_MAX
from bayplan.ui.live_page import LivePage
from tests.kit.manifests import Content
from tests.serving.endpoint_sources import sources

T = TypeVar("T")


@dataclass(kw_only=True)
class LiveScheduler:
    """The scheduler and its page, which run in the thread."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    cluster: EmbeddedCluster
    scheduler: Scheduler
    page: LivePage | None
    endpoints: Endpoints
    replica: ReplicaPhase = field(default_factory=lambda: ReplicaPhase(LEADING))
    port: int = 0
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PREFIX}"

    def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a function on the event loop."""

        async def called() -> T:
            return work(*arguments)

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(30)

    def create(self, *contents: Content) -> None:
        for content in contents:
            self.call(self.cluster.create, content)

    def delete_pod(self, name: str) -> None:
        self.call(self.cluster.delete, object_key(POD, "default", name))

    def end(self, reason: str) -> None:
        """End the page and the endpoints, as at the end of the scheduler's process."""

        async def ended() -> None:
            if self.page is not None:
                await self.page.stop(reason)
            await self.endpoints.stop()

        asyncio.run_coroutine_threadsafe(ended(), self.loop).result(30)

    def serve_again(self) -> None:
        """Serve the endpoints of a new process on the same port."""
        assert self.page is not None
        self.page = LivePage(replace(self.page.subject.sources, clock=_LaterClock()))
        self.endpoints = Endpoints(replace(sources(), page=self.page))
        starting = self.endpoints.start("127.0.0.1", self.port)
        asyncio.run_coroutine_threadsafe(starting, self.loop).result(30)
        self.call(self.page.start)

    async def run(self, started: threading.Event) -> None:
        runner = Runner(self.scheduler, self.cluster)
        running = self.loop.create_task(runner.run())
        self.port = await self.endpoints.start("127.0.0.1", 0)
        if self.page is not None:
            self.page.start()
        started.set()
        await self._stopped.wait()
        if self.page is not None:
            await self.page.stop("The test ends.")
        await self.endpoints.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stopped.set)


class _LaterClock:
    """The clock of a process that starts a second later. The page detects a new process by its
    start, which is a whole second, and a test needs less."""

    def __init__(self) -> None:
        self._clock = RealClock()
        self.epoch_seconds = self._clock.epoch_seconds

    def now(self) -> float:
        return self._clock.now() - 1.0


@contextmanager
def live_scheduler(
    *contents: Content, access: Access | None = None, has_page: bool = True
) -> Iterator[LiveScheduler]:
    """A scheduler with its page. ``contents``: objects that exist at its start."""
    clock, memory = RealClock(), MemorySink(RECORDS_MAX)
    states, config, registry = (
        StateRing(ENTRIES_MAX),
        config_from(DEFAULT_CONFIG),
        default_registry(),
    )
    state_log = LiveStateLog(states.put, clock.now)
    journal = Journal([memory])
    scheduler = Scheduler(config, registry, clock, journal=journal, state_log=state_log)
    schedulers: list[LiveScheduler] = []
    started = threading.Event()

    def main() -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        cluster = EmbeddedCluster(clock, scheduler.declared_fields)
        page = None
        if has_page:
            page = LivePage(
                PageSources(
                    scheduler=scheduler,
                    memory=memory,
                    log=state_log,
                    clock=clock,
                    name="kube-scheduler",
                    phase=lambda: schedulers[0].replica,
                    model=ModelSources(states=states, config=config, registry=registry),
                )
            )
        endpoints = Endpoints(replace(sources(), page=page), access)
        live = LiveScheduler(
            loop=loop, cluster=cluster, scheduler=scheduler, page=page, endpoints=endpoints
        )
        schedulers.append(live)
        for content in contents:
            cluster.create(content)
        loop.run_until_complete(live.run(started))
        loop.close()

    thread = threading.Thread(target=main)
    thread.start()
    assert started.wait(30)
    try:
        yield schedulers[0]
    finally:
        schedulers[0].stop()
        thread.join(30)
