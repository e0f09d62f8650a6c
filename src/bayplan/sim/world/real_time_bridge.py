"""Real calls from a simulation: HTTP extenders are called while virtual time stands still.

Sockets live in a real event loop on a thread of its own. A call begins at once, so that calls of
one moment run concurrently. The simulation takes the results in the order in which the calls began.
So the run depends on the answers, and not on how long they took.

Only simulations with extenders import this file, because an HTTP client takes long to load.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObjects
from bayplan.adapters.extenders.client import (
    MakeSender,
    Request,
    Sender,
    open_extenders,
    sender_makers,
)
from bayplan.clock import ManualClock
from bayplan.config.schema import Extender
from bayplan.ports import Ask, AskExtender, ExtenderAnswer, ExtenderVerb
from bayplan.sim.loop import run, running_loop

T = TypeVar("T")


@final
class RealTimeExtenders:
    """The extenders of a configuration, called in real time. Use it once."""

    def __init__(self, entries: Sequence[Extender]) -> None:
        """Raises ConfigError."""
        self._entries = entries
        self._makers = sender_makers(entries)

    def run(
        self,
        main: Callable[[Mapping[str, Ask]], Coroutine[Any, Any, None]],
        clock: ManualClock,
        cluster: EmbeddedCluster,
    ) -> None:
        """Run ``main`` under virtual time with the functions that call the extenders, by name."""
        with RealTimeBridge() as bridge:
            run(self._asking(main, cluster, bridge), clock)

    async def _asking(
        self,
        main: Callable[[Mapping[str, Ask]], Coroutine[Any, Any, None]],
        cluster: EmbeddedCluster,
        bridge: "RealTimeBridge",
    ) -> None:
        makers = {name: partial(bridge.sender, make) for name, make in self._makers.items()}
        async with open_extenders(self._entries, StoredObjects(cluster.get), makers) as asks:
            await main({name: _binding(ask, cluster) for name, ask in asks.items()})


def _binding(ask: Ask, cluster: EmbeddedCluster) -> Ask:
    """Wrap an extender that binds pods itself.

    The extender cannot reach a cluster in memory, so a binding that it reports is made here.
    """

    async def ask_and_bind(question: AskExtender) -> ExtenderAnswer:
        answer = await ask(question)
        if question.verb is ExtenderVerb.BIND and not answer.error:
            await cluster.bind(question.pod, question.node_names[0])
        return answer

    return ask_and_bind


@final
class RealTimeBridge:
    """The event loop with real time. A context manager; within it, `sender` may be used."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="outside", daemon=True)
        self._senders: list[_BridgedSender] = []

    def __enter__(self) -> "RealTimeBridge":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        """Cancel the calls in progress."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for sender in self._senders:
            await sender.close_inside()

    def sender(self, make: MakeSender) -> Sender:
        """A sender, made by ``make``, that may be used from virtual time."""
        sender = _BridgedSender(self, make)
        self._senders.append(sender)
        return sender

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in real time. No virtual time passes meanwhile."""
        begun = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await running_loop().real_time.answer(begun)


@final
class _BridgedSender:
    """adapters.extenders.client.Sender from virtual time."""

    def __init__(self, bridge: RealTimeBridge, make: Callable[[], Sender]) -> None:
        self._bridge = bridge
        self._make = make
        self._sender: Sender | None = None

    async def send(self, request: Request) -> tuple[int, bytes]:
        return await self._bridge.call(self._send_inside(request))

    async def close(self) -> None:
        """Does nothing: the bridge closes the sender."""

    async def _send_inside(self, request: Request) -> tuple[int, bytes]:
        if self._sender is None:
            self._sender = self._make()
        return await self._sender.send(request)

    async def close_inside(self) -> None:
        if self._sender is not None:
            await self._sender.close()
