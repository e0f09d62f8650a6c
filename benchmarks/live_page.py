"""The cost of the page of `bayplan run --ui` for its scheduler.

One turn is a scheduler with an API server in memory: pods arrive at a rate and leave after some
seconds, then many arrive at once. Turns with and without the page follow one another. With the
page, a browser in another process follows: at each tick it makes the requests of the
overview. All numbers are processor time of the scheduler's process, which includes the API server
in memory.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from aiohttp import web

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import POD
from bayplan.clock import RealClock, cpu_seconds
from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.scheduler import Scheduler
from bayplan.history.past_state import StateRing
from bayplan.history.state_log import LiveStateLog
from bayplan.journal import Journal, MemorySink
from bayplan.objects.keys import Content, object_key
from bayplan.plugins.registry import default_registry
from bayplan.runner import Runner
from bayplan.serving.decision_history import RECORDS_MAX
from bayplan.serving.http_server import HttpServer
from bayplan.serving.page import LEADING, PREFIX, PageSources, ReplicaPhase
from bayplan.serving.past_attempts import ENTRIES_MAX
from bayplan.ui.live_page import LivePage

_STAY_SECONDS = 10
_BATCHES_PER_SECOND = 10
#: A program that does what the overview does in a browser. Its argument is the URL of the page.
#: A program that requests what the overview requests. Its argument is the URL of the page.
FOLLOWER = """
import sys, urllib.request
url = sys.argv[1]
stream = urllib.request.urlopen(url + "api/events")
for line in stream:
    if line.startswith(b"data: "):
        for view in ("overview", "series?points=400"):
            urllib.request.urlopen(url + "api/" + view).read()
        print("tick", flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a turn."""

    nodes: int
    #: Pods per second.
    rate: int
    seconds: int
    #: Pods that arrive at once.
    burst: int


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Processor seconds of one turn."""

    #: Processor seconds per second, at the rate.
    share: float
    #: Processor seconds for the pods that arrive at once.
    burst_seconds: float
    ticks: int


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Medians over all turns."""

    share_without: float
    share_with: float
    #: The ratio of the processor time of the burst with the page to that without.
    slowdown: float
    #: Ticks that the browser received, per turn.
    ticks: float


def measured(load: Load, turns: int) -> Costs:
    """Turns without and with the page, alternating."""
    without: list[Turn] = []
    paged: list[Turn] = []
    asyncio.run(_turn(load, has_page=True))  # warm-up
    for _ in range(turns):
        without.append(asyncio.run(_turn(load, has_page=False)))
        paged.append(asyncio.run(_turn(load, has_page=True)))
    bursts = [
        one.burst_seconds / other.burst_seconds for one, other in zip(paged, without, strict=True)
    ]
    return Costs(
        share_without=median(turn.share for turn in without),
        share_with=median(turn.share for turn in paged),
        slowdown=median(bursts),
        ticks=median(turn.ticks for turn in paged),
    )


async def _turn(load: Load, *, has_page: bool) -> Turn:
    clock, memory = RealClock(), MemorySink(RECORDS_MAX)
    log = LiveStateLog(StateRing(ENTRIES_MAX).put, clock.now)
    config, journal = config_from(DEFAULT_CONFIG), Journal([memory])
    scheduler = Scheduler(config, default_registry(), clock, journal=journal, state_log=log)
    cluster = EmbeddedCluster(clock, scheduler.declared_fields)
    for number in range(load.nodes):
        cluster.create(_node(number))
    sources = PageSources(
        scheduler=scheduler,
        memory=memory,
        log=log,
        clock=clock,
        name="benchmark",
        phase=lambda: ReplicaPhase(LEADING),
    )
    page = LivePage(sources) if has_page else None
    runner = Runner(scheduler, cluster)
    running = asyncio.get_running_loop().create_task(runner.run())
    app = web.Application()
    endpoints = HttpServer(app)
    if page is not None:
        app.add_subapp(PREFIX, page.application())
    port = await endpoints.start("127.0.0.1", 0)
    follower: subprocess.Popen[bytes] | None = None
    if page is not None:
        page.start()
        follower = _follower(f"http://127.0.0.1:{port}{PREFIX}")
    await asyncio.sleep(1)
    try:
        start = cpu_seconds()
        await _arrivals(cluster, load)
        share = (cpu_seconds() - start) / load.seconds
        start = cpu_seconds()
        await _burst(cluster, load.burst, scheduler)
        burst_seconds = cpu_seconds() - start
    finally:
        ticks = 0 if follower is None else _ended(follower)
        if page is not None:
            await page.stop("The benchmark ends.")
        await endpoints.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        scheduler.close()
    return Turn(share=share, burst_seconds=burst_seconds, ticks=ticks)


def _follower(url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", FOLLOWER, url], stdout=subprocess.PIPE)


def _ended(follower: subprocess.Popen[bytes]) -> int:
    """The ticks that the browser received."""
    follower.kill()
    heard, _ = follower.communicate()
    return heard.count(b"tick")


async def _arrivals(cluster: EmbeddedCluster, load: Load) -> None:
    """Create pods at the rate; each is deleted after some seconds."""
    loop = asyncio.get_running_loop()
    start, created, deleted = loop.time(), 0, 0
    while (passed := loop.time() - start) < load.seconds:
        while created < passed * load.rate:
            cluster.create(_pod(f"pod-{created}"))
            created += 1
        while deleted < (passed - _STAY_SECONDS) * load.rate:
            cluster.delete(object_key(POD, "default", f"pod-{deleted}"))
            deleted += 1
        await asyncio.sleep(1 / _BATCHES_PER_SECOND)


async def _burst(cluster: EmbeddedCluster, count: int, scheduler: Scheduler) -> None:
    """Returns when all pods are bound."""
    for number in range(count):
        cluster.create(_pod(f"burst-{number}"))
    while any(scheduler.queue.counts().values()) or not _is_bound(cluster, count):
        await asyncio.sleep(0.02)


def _is_bound(cluster: EmbeddedCluster, count: int) -> bool:
    last = cluster.server.get(object_key(POD, "default", f"burst-{count - 1}"))
    return last.placed_pod is not None


def _node(number: int) -> Content:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05d}", "labels": {"zone": f"z{number % 9}"}},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def _pod(name: str) -> Content:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def rows_of(costs: Costs) -> Sequence[tuple[str, str]]:
    """(name of the measurement, number as text)."""
    page = costs.share_with - costs.share_without
    return (
        ("scheduler and API server, of one core", f"{costs.share_without:.1%}"),
        ("the page, of one core", f"{page:.1%}"),
        ("processor time of a burst with the page, by that without", f"{costs.slowdown:.3f}"),
        ("ticks of a turn", f"{costs.ticks:.0f}"),
    )
