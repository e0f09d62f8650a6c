"""The outside as the core knows it: watch events in, effects out, and the Cluster port.

The engine takes `WatchEvent`s and results, and returns effects; the runner performs effects
through a `Cluster`. A live API server and the embedded one implement the same port, and both
make their failures known as one small family of exceptions.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from bayplan.api.objects import ApiObject, Pod, PodCondition
from bayplan.state.pods import PodInfo

# ---- what happened -------------------------------------------------------------------------


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: Nothing changed up to this version: resume from here.
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one object; ``object`` is its newest state, also when deleted."""

    type: EventType
    kind: str
    object: Any  # an ApiObject of that kind; None in a bookmark
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind at one moment."""

    objects: Sequence[ApiObject]
    resource_version: str


# ---- failures of the outside ---------------------------------------------------------------


class ApiError(Exception):
    """The API server refused; ``code`` and ``reason`` as in its Status object."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class NotFoundError(ApiError):
    """404: no such object, or another one under its name."""

    def __init__(self, message: str) -> None:
        super().__init__(404, "NotFound", message)


class ConflictError(ApiError):
    """409: somebody else was first."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "Conflict", message)


class GoneError(ApiError):
    """410: the resourceVersion is too old; list again."""

    def __init__(self, message: str) -> None:
        super().__init__(410, "Expired", message)


class OutcomeUnknownError(Exception):
    """A request was sent and no answer came: it may have been carried out or not."""


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
    """Raise an exception again where it is an interruption."""
    if is_interruption(problem):
        raise problem


# ---- what the core wants done --------------------------------------------------------------


class BindPort(Protocol):
    """What PreBind, Bind and PostBind may do; under virtual time in a simulation."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Write the binding. Raises ApiError, OutcomeUnknownError."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod:
        """Read the pod from the API. Raises ApiError."""
        ...

    async def read(self, kind: str, namespace: str, name: str) -> ApiObject:
        """Read an object from the API; "" is the namespace of what has none. Raises ApiError."""
        ...

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> ApiObject:
        """JSON merge patch of an object, or of its "status"; returns what it is then.

        A resourceVersion in the patch must be the newest. Raises ApiError, OutcomeUnknownError.
        """
        ...

    async def create_object(self, kind: str, content: dict[str, Any]) -> ApiObject:
        """Returns it as it was created. Raises ApiError, OutcomeUnknownError."""
        ...

    async def delete_object(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object of this uid. Raises ApiError, OutcomeUnknownError."""
        ...

    async def patch_pod_status(self, patch: "PatchPodStatus") -> None:
        """Raises ApiError, OutcomeUnknownError."""
        ...

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """A running pod takes its grace to go. Raises ApiError, OutcomeUnknownError."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Cluster(BindPort, Protocol):
    """An API server, real or embedded."""

    async def list(self, kind: str) -> Listing:
        """Raises ApiError."""
        ...

    def watch(self, kind: str, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Changes after ``resource_version``. Raises GoneError, WatchDroppedError."""
        ...

    async def patch_group_status(self, patch: "PatchPodGroupStatus") -> None:
        """Raises ApiError, OutcomeUnknownError."""
        ...

    async def create_event(self, event: "EmitEvent") -> None:
        """Raises ApiError, OutcomeUnknownError."""
        ...


class Work(Protocol):
    """A coroutine that runs beside the one that started it."""

    def cancel(self) -> None:
        """End it where it waits. Nothing happens if it has ended."""
        ...

    async def wait(self) -> None:
        """Until it has ended, also by a cancellation. Does not raise."""
        ...


#: Starts a coroutine; it begins when the caller waits for something.
StartWork = Callable[[Coroutine[Any, Any, None]], Work]


class BindPod(NamedTuple):
    """Run a pod's binding cycle: ``run(port, start)`` returns how it ended, as the engine's own
    value, which goes back to `Scheduler.binding_finished`. It does not raise."""

    pod: PodInfo
    node_name: str
    run: Callable[[BindPort, StartWork], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class PatchPodStatus:
    """Set a condition and, where not None, status.nominatedNodeName ("" clears it)."""

    namespace: str
    name: str
    uid: str
    condition: PodCondition | None
    nominated_node_name: str | None = None

    def merged_with(self, newer: "PatchPodStatus") -> "PatchPodStatus":
        """One patch that does what this one and then a newer one do."""
        nominated = newer.nominated_node_name
        return replace(
            newer,
            condition=newer.condition or self.condition,
            nominated_node_name=self.nominated_node_name if nominated is None else nominated,
        )


@dataclass(frozen=True, slots=True)
class PatchPodGroupStatus:
    """Set fields of a group's status; a list replaces the one that was there."""

    kind: str
    namespace: str
    name: str
    uid: str
    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """One version of one object. Upstream: client-go/tools/reference, GetReference."""

    #: apiVersion and kind, as in "v1 Pod".
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    def content(self) -> dict[str, Any]:
        """As core/v1 has it."""
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
    """The version of the pod that an event is about."""
    version = pod.metadata.resource_version or ""
    return ObjectReference("v1 Pod", pod.namespace, pod.name, pod.uid, version)


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """An event about one version of an object, as events.k8s.io/v1 has it."""

    regarding: ObjectReference
    type: str  # Normal or Warning
    reason: str
    action: str
    note: str
    reporter: str
    #: A second object, such as the group that preempts.
    related: ObjectReference | None = None


class ExtenderVerb(StrEnum):
    """What a scheduler extender may be asked for."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"
    BIND = "bind"


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that have to leave a node, most important first."""

    pods: tuple[PodInfo, ...]
    #: How many of them a disruption budget would rather keep.
    pdb_violation_count: int = 0


@dataclass(frozen=True, slots=True)
class NamedVictims:
    """Victims as an extender names them: by uid."""

    uids: tuple[str, ...]
    pdb_violation_count: int = 0


@dataclass(frozen=True, slots=True)
class AskExtender:
    """Ask something outside about a pod whose cycle is parked meanwhile.

    The answer goes back to `Scheduler.extender_answered` with ``token``. To bind is asked inside a
    binding cycle, which waits for the answer itself: about one node, without a token.
    """

    token: int
    extender: str
    verb: ExtenderVerb
    pod: PodInfo
    node_names: tuple[str, ...]
    #: By node; to preempt only.
    victims: Mapping[str, Victims] = field(default_factory=dict[str, Victims])


@dataclass(frozen=True, slots=True)
class ExtenderAnswer:
    """What came back; what else the verb did not ask for is empty."""

    #: Why no answer came, as a whole sentence; it is what the pod's condition will say.
    error: str = ""
    #: To filter: the nodes left, and why others are not.
    node_names: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict[str, str])
    #: To prioritize: (node, 0..10) as they came; a node may come twice.
    scores: tuple[tuple[str, int], ...] = ()
    #: To preempt: the nodes left, and whom to evict there.
    victims: Mapping[str, NamedVictims] = field(default_factory=dict[str, NamedVictims])


#: Asks an extender. What it raises counts as an error of that extender.
Ask = Callable[[AskExtender], Awaitable[ExtenderAnswer]]


@dataclass(frozen=True, slots=True)
class Perform:
    """Writes that no cycle waits for: what follows from them is told by the API, as a change.

    ``run(port)`` does not raise what is the outside's.
    """

    run: Callable[[BindPort], Coroutine[Any, Any, None]]


Effect = BindPod | PatchPodStatus | PatchPodGroupStatus | EmitEvent | AskExtender | Perform
