"""The boundary of the core: watch events in, effects out, and the Cluster port.

The engine takes `WatchEvent`s and results, and returns effects. The runner performs effects
through a `Cluster`. The live API server and the embedded one implement the same port, and both
report failures with the exceptions of this module.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, final

from msgspec import Struct, field
from msgspec.structs import replace

from bayplan.api.objects import ApiObject, Condition, Pod
from bayplan.state.pods import PodInfo

# ---- events in -----------------------------------------------------------------------------


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: Nothing changed up to this version: resume from here.
    BOOKMARK = "BOOKMARK"


@final
class WatchEvent(Struct, frozen=True):
    """One change of one object. ``object`` is its newest state, also for a deletion."""

    type: EventType
    kind: str
    object: Any  # an ApiObject of that kind; None in a bookmark
    resource_version: str = ""


class Listing(Struct, frozen=True):
    """All objects of a kind at one moment."""

    objects: Sequence[ApiObject]
    resource_version: str


# ---- failures ------------------------------------------------------------------------------


class ApiError(Exception):
    """The API server refused; ``code`` and ``reason`` as in its Status object."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class NotFoundError(ApiError):
    """404: no such object, or the object of that name has another uid."""

    def __init__(self, message: str) -> None:
        super().__init__(404, "NotFound", message)


class ConflictError(ApiError):
    """409: another client has written the object."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "Conflict", message)


class GoneError(ApiError):
    """410: the resourceVersion is too old; list again."""

    def __init__(self, message: str) -> None:
        super().__init__(410, "Expired", message)


class OutcomeUnknownError(Exception):
    """A request was sent, and no answer came or an error of the server. The server may or may not
    have performed the request.

    ``code``: that of the answer; 0: there was none.
    """

    def __init__(self, message: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class WatchDroppedError(Exception):
    """A watch ended without an error of its own: resume from the last resourceVersion."""


class RunAborted(BaseException):
    """The environment ends the run in the middle of a call, whichever code makes the call."""


def is_interruption(problem: BaseException) -> bool:
    """Whether an exception ends the run or the running task: Ctrl-C, `RunAborted`, cancellation.

    Such an exception is no failure of the code that it passes through. A CancelledError counts
    only if the running task was cancelled.
    """
    if isinstance(problem, KeyboardInterrupt | RunAborted):
        return True
    # The core does not load asyncio; without asyncio there is no task to cancel.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(problem, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return False
    return task is not None and task.cancelling() > 0


def raise_interruption(problem: BaseException) -> None:
    """Raise ``problem`` if it is an interruption."""
    if is_interruption(problem):
        raise problem


# ---- effects out ---------------------------------------------------------------------------


class BindPort(Protocol):
    """The API as PreBind, Bind and PostBind plugins see it; in a simulation, under virtual time."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Write the binding. Raises ApiError, OutcomeUnknownError."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Read the pod from the API. Raises ApiError."""
        ...

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        """Read an object from the API. ``namespace`` of a cluster-scoped object: "". Raises
        ApiError."""
        ...

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """Apply a JSON merge patch to an object, or to its "status". Returns the new object.

        A resourceVersion in the patch must be current. Raises ApiError, OutcomeUnknownError.
        """
        ...

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Returns the created object. Raises ApiError, OutcomeUnknownError."""
        ...

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object of this uid. Raises ApiError, OutcomeUnknownError."""
        ...

    async def patch_pod_status(self, patch: "PatchPodStatus") -> None:
        """Raises ApiError, OutcomeUnknownError."""
        ...

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """A running pod goes after its grace period. Raises ApiError, OutcomeUnknownError."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class ClusterReader(Protocol):
    """What a reflector needs of an API server."""

    async def sleep(self, seconds: float) -> None: ...

    async def list(self, kind: str) -> Listing:
        """Raises ApiError."""
        ...

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Changes after ``resource_version``. Raises GoneError, WatchDroppedError."""
        ...


class Cluster(BindPort, ClusterReader, Protocol):
    """An API server, real or embedded."""

    async def patch_group_status(self, patch: "PatchPodGroupStatus") -> None:
        """Raises ApiError, OutcomeUnknownError."""
        ...

    async def create_event(self, event: "EmitEvent") -> None:
        """Raises ApiError, OutcomeUnknownError."""
        ...


class ImmediateCluster(ABC):
    """A cluster in memory: a write ends during its call, so nothing needs to wait for it."""

    @abstractmethod
    def bind_now(self, pod: PodInfo, node_name: str) -> None:
        """Write the binding. Raises ApiError."""

    @abstractmethod
    def create_event_now(self, event: "EmitEvent") -> None:
        """Raises ApiError."""

    @abstractmethod
    def patch_pod_status_now(self, patch: "PatchPodStatus") -> None:
        """Raises ApiError."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """See `BindPort.bind`."""
        self.bind_now(pod, node_name)

    async def create_event(self, event: "EmitEvent") -> None:
        """See `Cluster.create_event`."""
        self.create_event_now(event)

    async def patch_pod_status(self, patch: "PatchPodStatus") -> None:
        """See `BindPort.patch_pod_status`."""
        self.patch_pod_status_now(patch)


class PushingWatch(ABC):
    """A watch that hands over the changes of one moment together, in place of being iterated."""

    @abstractmethod
    async def push(self, deliver: Callable[[Sequence[WatchEvent]], None]) -> None:
        """Call ``deliver`` with the changes of each moment, in order, until the watch ends.

        Raises GoneError, and what ``deliver`` raises.
        """

    @abstractmethod
    def hold(self) -> bool:
        """From now on, changes are pulled and not pushed. False: a change is about to be pushed, so
        nothing is held."""

    @abstractmethod
    def pull(self) -> WatchEvent | None:
        """The next change of a watch that is held, if there is one."""

    @abstractmethod
    def release(self) -> Callable[[], None] | None:
        """Changes are pushed again. Returns what pushes those that were not pulled; None: there are
        none."""


class PodSource(Protocol):
    """Pods that are created one after another, each after the pod before has been handled."""

    def arrival(self) -> WatchEvent | None:
        """Create the next pod. Returns what the watch reports; None: there is no further pod, or
        something else comes first."""
        ...

    def change(self) -> WatchEvent | None:
        """What the watch reports after the pod was bound; None: something else comes first."""
        ...


class Work(Protocol):
    """A coroutine that runs concurrently with the coroutine that started it."""

    def cancel(self) -> None:
        """Cancel the coroutine. Does nothing if the coroutine has ended."""
        ...

    async def wait(self) -> None:
        """Wait until the coroutine has ended, also by a cancellation. Does not raise."""
        ...


#: Starts a coroutine. Its first step runs when the caller awaits something.
StartWork = Callable[[Coroutine[Any, Any, None]], Work]


class BindPod(Struct, frozen=True):
    """Run a pod's binding cycle.

    ``run(port, start, ask)`` returns the outcome, which the runner passes to
    `Scheduler.binding_finished`. ``run`` does not raise.
    """

    pod: PodInfo
    node_name: str
    run: Callable[[BindPort, StartWork, "Ask"], Awaitable[Any]]


class PatchPodStatus(Struct, frozen=True):
    """Set a condition and, unless None, status.nominatedNodeName ("" clears the field)."""

    namespace: str
    name: str
    uid: str
    condition: Condition | None
    nominated_node_name: str | None = None

    def merged_with(self, newer: "PatchPodStatus") -> "PatchPodStatus":
        """One patch with the effect of this patch followed by a newer one."""
        nominated = newer.nominated_node_name
        return replace(
            newer,
            condition=newer.condition or self.condition,
            nominated_node_name=self.nominated_node_name if nominated is None else nominated,
        )


class PatchPodGroupStatus(Struct, frozen=True):
    """Set fields of a group's status. A list replaces the whole list."""

    kind: str
    namespace: str
    name: str
    uid: str
    status: dict[str, Any]


class ObjectReference(Struct, frozen=True):
    """One version of one object. Upstream: client-go/tools/reference, GetReference."""

    #: apiVersion and kind, as in "v1 Pod".
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    def content(self) -> dict[str, Any]:
        """The reference in the form of core/v1."""
        api_version, _, kind = self.kind.partition(" ")
        fields = {
            "apiVersion": api_version,
            "kind": kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {name: value for name, value in fields.items() if value}


def pod_reference(pod: PodInfo) -> ObjectReference:
    """A reference to this version of the pod, for an event."""
    version = pod.metadata.resource_version or ""
    return ObjectReference("v1 Pod", pod.shape.namespace, pod.metadata.name, pod.uid, version)


class EmitEvent(Struct, frozen=True):
    """An event of events.k8s.io/v1 about one version of an object."""

    regarding: ObjectReference
    type: str  # Normal or Warning
    reason: str
    action: str
    note: str
    reporter: str
    #: A second object, such as the pod group that preempts.
    related: ObjectReference | None = None


class ExtenderVerb(StrEnum):
    """The verbs of scheduler extenders."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"
    BIND = "bind"


class Victims(Struct, frozen=True):
    """Pods to evict from one node, the most important first."""

    pods: tuple[PodInfo, ...]
    #: How many evictions would violate a PodDisruptionBudget.
    pdb_violation_count: int = 0


class NamedVictims(Struct, frozen=True):
    """Victims in an extender's answer: pods by uid."""

    uids: tuple[str, ...]
    pdb_violation_count: int = 0


class AskExtender(Struct, frozen=True):
    """Call an extender about a pod. The pod's cycle waits for the answer.

    The runner passes the answer to `Scheduler.extender_answered` with ``token``. The verb BIND is
    different: it names one node, has no token, and the binding cycle itself awaits the answer.
    """

    token: int
    extender: str
    verb: ExtenderVerb
    pod: PodInfo
    node_names: tuple[str, ...]
    #: By node; only for PREEMPT.
    victims: Mapping[str, Victims] = field(default_factory=dict[str, Victims])


class ExtenderAnswer(Struct, frozen=True):
    """An extender's answer. Fields of other verbs are empty."""

    #: Why there is no answer, as a sentence for the pod's condition.
    error: str = ""
    #: FILTER: the nodes that pass, and why other nodes do not.
    node_names: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict[str, str])
    #: PRIORITIZE: (node, 0..10) in the order of the answer; a node may occur twice.
    scores: tuple[tuple[str, int], ...] = ()
    #: PREEMPT: the candidates that remain, with their victims.
    victims: Mapping[str, NamedVictims] = field(default_factory=dict[str, NamedVictims])


#: Calls an extender. An exception counts as an error of that extender.
Ask = Callable[[AskExtender], Awaitable[ExtenderAnswer]]


class Perform(Struct, frozen=True):
    """Writes that no cycle waits for. Their results arrive as watch events.

    ``run(port)`` does not raise the exceptions of this module.
    """

    run: Callable[[BindPort], Coroutine[Any, Any, None]]


Effect = BindPod | PatchPodStatus | PatchPodGroupStatus | EmitEvent | AskExtender | Perform
