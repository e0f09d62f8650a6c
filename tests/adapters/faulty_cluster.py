"""A cluster that misbehaves as real ones do, by chance that a seed repeats.

Wraps any cluster behind the same port. `tests.sim.fault_plan` draws the kinds of faults and their
chances. Losing nodes and stepping the clock are not calls to a cluster: their counts are here, and
the test does them.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, final

from bayplan import ports
from bayplan.api.objects import ApiObject, Pod
from bayplan.rng import stream
from bayplan.state.pods import PodInfo

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """How often each fault happens: chances per call, watch or event, and counts per run."""

    seed: int
    #: Per event: the watch ends instead.
    watch_drops: float = 0.0
    #: Per event: the event and all later ones are late.
    watch_lags: float = 0.0
    #: Per watch: its version has expired.
    gone_on_resume: float = 0.0
    list_failures: float = 0.0
    conflicts: float = 0.0
    #: Per writing call: it is refused with 429, 500 or 503, and not carried out.
    refusals: float = 0.0
    #: Per writing call: no answer comes; half of these calls are carried out.
    unknown_outcomes: float = 0.0
    slow_calls: float = 0.0
    #: How long a slow call takes at most, and how late an event comes.
    slow_seconds: float = 0.0
    node_losses: int = 0
    clock_steps: int = 0

    def __str__(self) -> str:
        """One line without the faults that do not happen: `seed=7 conflicts=0.1 …`."""
        texts = (f"{one.name}={getattr(self, one.name):g}" for one in fields(self)[1:])
        return " ".join((f"seed={self.seed}", *(text for text in texts if not text.endswith("=0"))))


@final
class FaultyCluster:
    """A ports.Cluster that wraps another one."""

    def __init__(self, inner: ports.Cluster, options: FaultOptions) -> None:
        self._inner = inner
        self._options = options
        self._random = stream(options.seed, "faults")
        self._is_calm = False
        #: How often each fault happened: a run without a fault has not tested it.
        self.counts: Counter[str] = Counter()

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self._is_calm = True

    # ---- reading ----------------------------------------------------------------------------

    async def list(self, kind: str) -> ports.Listing:
        await self._delay()
        if self._happens("list_failures"):
            raise _unavailable()
        return await self._inner.list(kind)

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        return self._watch(kind, resource_version)

    async def _watch(self, kind: str, resource_version: str) -> AsyncIterator[ports.WatchEvent]:
        if self._happens("gone_on_resume"):
            raise ports.GoneError(f"too old resource version: {resource_version}")
        async for event in self._inner.watch(kind, resource_version):
            if self._happens("watch_drops"):
                raise ports.WatchDroppedError(f"watch of {kind} ended")
            if self._happens("watch_lags"):
                await self._inner.sleep(self._random.uniform(0, self._options.slow_seconds))
            yield event

    async def get_pod(self, namespace: str, name: str) -> Pod:
        await self._delay()
        if self._happens("list_failures"):
            raise _unavailable()
        return await self._inner.get_pod(namespace, name)

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        await self._delay()
        if self._happens("list_failures"):
            raise _unavailable()
        return await self._inner.read(kind, namespace, name)

    # ---- writing ----------------------------------------------------------------------------

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        await self._call(f"bind {pod.key}", lambda: self._inner.bind(pod, node_name))

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        what = f"patch {kind} {namespace}/{name}"
        inner = self._inner
        return await self._call(
            what, lambda: inner.patch(kind, namespace, name, patch, subresource)
        )

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        return await self._call(f"create {kind}", lambda: self._inner.create_object(kind, content))

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        what = f"delete {kind} {namespace}/{name}"
        await self._call(what, lambda: self._inner.delete_object(kind, namespace, name, uid))

    async def patch_pod_status(self, patch: ports.PatchPodStatus) -> None:
        what = f"patch the status of {patch.namespace}/{patch.name}"
        await self._call(what, lambda: self._inner.patch_pod_status(patch))

    async def patch_group_status(self, patch: ports.PatchPodGroupStatus) -> None:
        what = f"patch the status of {patch.kind} {patch.namespace}/{patch.name}"
        await self._call(what, lambda: self._inner.patch_group_status(patch))

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        what = f"delete {namespace}/{name}"
        await self._call(what, lambda: self._inner.delete_pod(namespace, name, uid))

    async def create_event(self, event: ports.EmitEvent) -> None:
        what = f"event {event.reason} of {event.regarding.namespace}/{event.regarding.name}"
        await self._call(what, lambda: self._inner.create_event(event))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)

    # ---- chance -----------------------------------------------------------------------------

    async def _call(self, what: str, perform: Callable[[], Awaitable[T]]) -> T:
        """Perform a request that may be slow, refused, or without an answer."""
        await self._delay()
        if self._happens("conflicts"):
            raise ports.ConflictError(f"{what}: the object has been modified")
        if self._happens("refusals"):
            raise _refusal(self._random.choice((429, 500, 503)))
        if self._happens("unknown_outcomes"):
            if self._random.random() < 0.5:
                await perform()
            await self._delay()
            raise ports.OutcomeUnknownError(f"{what}: no answer")
        answer = await perform()
        await self._delay()
        return answer

    async def _delay(self) -> None:
        if self._happens("slow_calls"):
            await self._inner.sleep(self._random.uniform(0, self._options.slow_seconds))

    def _happens(self, fault: str) -> bool:
        """Draw whether the fault happens; nothing is drawn for a fault without a chance."""
        chance: float = getattr(self._options, fault)
        if self._is_calm or not chance or self._random.random() >= chance:
            return False
        self.counts[fault] += 1
        return True


_REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


def _refusal(code: int) -> ports.ApiError:
    return ports.ApiError(code, _REASONS[code], "the server is currently unable to answer")


def _unavailable() -> ports.ApiError:
    return _refusal(503)
