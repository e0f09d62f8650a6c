"""The outbox: effects that the engine decided on, until the shell takes them.

`PendingPatches` lists the status patches that the API has not confirmed yet. The update event that
a patch of our own causes is no news: if the queue took it for news, a rejected pod would be tried
again as fast as the API answers. Such an update is recognized by its content, not by its time,
because a foreign change may arrive in between.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import final

from msgspec import structs

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP, CompositePodGroup
from bayplan.api.objects import POD, POD_SCHEDULED, Condition, PodStatus
from bayplan.api.pod_groups import PodGroup
from bayplan.engine.telemetry import Telemetry
from bayplan.framework.validation import failure_of
from bayplan.ports import (
    ApiError,
    BindPort,
    Effect,
    EmitEvent,
    ObjectReference,
    OutcomeUnknownError,
    PatchPodStatus,
    Perform,
)
from bayplan.state.pods import PodInfo

# ---- outbox ---------------------------------------------------------------------------------


#: The API refuses longer notes of events; in bytes. Upstream cuts at the same length.
NOTE_BYTES_MAX = 1024
_CUT = " ..."


def _do_nothing() -> None: ...


@final
class Outbox:
    """Effects in order, and the status patches among them that the API has not reported yet."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.effects: deque[Effect] = deque()
        self.pending_patches = PendingPatches()
        #: The function that is called when there is an effect or a retry that no call of the shell
        #: caused.
        self.wake: Callable[[], None] = _do_nothing
        #: Writes of plugins that the shell performs and that no cycle waits for.
        self.write_count = 0

    def patch_status(
        self, pod: PodInfo, condition: Condition | None, nominated_node_name: str | None
    ) -> None:
        """Write a condition, a nomination ("" clears it), or both. Writes nothing if nothing
        changes."""
        if nominated_node_name == self.pending_patches.nominated_node(pod):
            nominated_node_name = None
        if nominated_node_name is None and condition is None:
            return
        identity = pod.shape.namespace, pod.metadata.name, pod.uid
        patch = PatchPodStatus(*identity, condition, nominated_node_name)
        self.pending_patches.note(patch)
        self.effects.append(patch)

    def emit(
        self, profile_name: str, pod: PodInfo, kind: str, reason: str, action: str, note: str
    ) -> None:
        """Emit an event about a pod."""
        meta = pod.metadata
        regarding = ObjectReference(
            POD, pod.shape.namespace, meta.name, pod.uid, meta.resource_version or ""
        )
        event = EmitEvent(regarding, kind, reason, action, note, profile_name)
        if len(note) * 4 > NOTE_BYTES_MAX:
            self.emit_event(event)
        else:
            # This does what `emit_event` does, without a call for each pod.
            self.effects.append(event)

    def emit_about_group(
        self, profile_name: str, group: PodGroup, kind: str, reason: str, *, note: str
    ) -> None:
        """Emit an event about a group's object."""
        note = f"group {group.key}: {note}"
        reference = group_reference(group)
        self.emit_event(EmitEvent(reference, kind, reason, "Scheduling", note, profile_name))

    def emit_event(self, event: EmitEvent) -> None:
        """Emit an event. Its note is cut where the API would refuse it."""
        if len(event.note) * 4 > NOTE_BYTES_MAX:
            event = structs.replace(event, note=cut(event.note, NOTE_BYTES_MAX))
        self.effects.append(event)

    def perform(
        self, subject: str, write: Callable[[BindPort], Awaitable[None]], plugin: str
    ) -> None:
        """Let the shell perform a plugin's write that no cycle waits for.

        A refusal by the API, and a failure of the plugin that writes, become notes.
        """

        async def run(port: BindPort) -> None:
            try:
                await write(port)
            except (ApiError, OutcomeUnknownError) as problem:
                self._telemetry.note(subject, str(problem))
            except GeneratorExit:
                raise
            except BaseException as problem:  # noqa: BLE001 - a plugin's failure stops nothing else
                status = failure_of(plugin, "Handle.perform of", problem)
                self._telemetry.plugin_failed(subject, plugin, status.message)
            finally:
                self.write_count -= 1
                self.wake()

        self.write_count += 1
        self.effects.append(Perform(run))
        self.wake()


def group_reference(group: PodGroup | CompositePodGroup) -> ObjectReference:
    """The version of a group's object that an event is about."""
    key, metadata = group.key, group.metadata
    kind = group.kind if isinstance(group, PodGroup) else COMPOSITE_POD_GROUP
    uid, version = metadata.uid or "", metadata.resource_version or ""
    return ObjectReference(kind, key.namespace, key.name, uid, version)


def cut(text: str, bytes_max: int) -> str:
    """The text, shortened to ``bytes_max`` bytes of UTF-8; a shortened text ends in dots."""
    if len(text) * 4 <= bytes_max or len(encoded := text.encode()) <= bytes_max:
        return text
    return encoded[: bytes_max - len(_CUT)].decode(errors="ignore") + _CUT


# ---- pending patches ------------------------------------------------------------------------


@final
class PendingPatches:
    """Patches that the API server has not reported, by the pod's uid, oldest first."""

    def __init__(self) -> None:
        self.by_uid: dict[str, list[PatchPodStatus]] = {}

    def note(self, patch: PatchPodStatus) -> None:
        """Add a patch that is sent."""
        self.by_uid.setdefault(patch.uid, []).append(patch)

    def forget(self, uid: str) -> None:
        """Drop the patches of a pod that is deleted or bound."""
        self.by_uid.pop(uid, None)

    def nominated_node(self, pod: PodInfo) -> str:
        """The nomination in the pod's status after all pending patches."""
        for patch in reversed(self.by_uid.get(pod.uid, ())):
            if patch.nominated_node_name is not None:
                return patch.nominated_node_name
        return pod.nominated_node_name

    def is_echo(self, old: PodInfo, new: PodInfo) -> bool:
        """Whether an update contains exactly the pending patches. These are then dropped.

        Patches may be merged before they are sent, so one update can contain several.
        """
        patches = self.by_uid.get(new.uid)
        if not patches or not _differ_in_status_only(old, new):
            return False
        so_far = patches[0]
        for count, patch in enumerate(patches, 1):
            so_far = patch if count == 1 else so_far.merged_with(patch)
            if _applied(so_far, old.status) == _essence(new.status):
                del patches[:count]
                return True
        return False


#: A status in three parts: the nomination and the condition PodScheduled, which a scheduler writes,
#: and the remainder.
_Essence = tuple[str, Condition | None, PodStatus]


def _applied(patch: PatchPodStatus, status: PodStatus) -> _Essence:
    """The parts of a status after a patch."""
    nominated, condition, remainder = _essence(status)
    if patch.nominated_node_name is not None:
        nominated = patch.nominated_node_name
    if patch.condition is not None:
        condition = _untimed(patch.condition)
    return nominated, condition, remainder


def _essence(status: PodStatus) -> _Essence:
    conditions = status.conditions or ()
    own = next((_untimed(c) for c in conditions if c.type == POD_SCHEDULED), None)
    other_conditions = tuple(c for c in conditions if c.type != POD_SCHEDULED)
    remainder = structs.replace(status, conditions=other_conditions, nominated_node_name=None)
    return status.nominated_node_name or "", own, remainder


def _untimed(condition: Condition) -> Condition:
    """The condition without the values that the API server sets."""
    return structs.replace(condition, last_transition_time=None, observed_generation=None)


def _differ_in_status_only(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.metadata, new.metadata
    return (
        old.shape is new.shape
        and old.declared == new.declared
        and structs.replace(before, resource_version=None)
        == structs.replace(after, resource_version=None)
    )
