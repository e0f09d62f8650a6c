"""The outbox: effects that the engine decided on, until the shell takes them."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import final

from bayplan.api.objects import PodCondition
from bayplan.api.pod_groups import PodGroup
from bayplan.engine.pending_patches import PendingPatches
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
    pod_reference,
)
from bayplan.state.pods import PodInfo

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
        #: Called when there is an effect or a retry that no call of the shell brought about.
        self.wake: Callable[[], None] = _do_nothing
        #: Writes of plugins that the shell performs and that no cycle waits for.
        self.write_count = 0

    def patch_status(
        self, pod: PodInfo, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write a condition, a nomination ("" clears it), or both; nothing if nothing changes."""
        if nominated_node_name == self.pending_patches.nominated_node(pod):
            nominated_node_name = None
        if nominated_node_name is None and condition is None:
            return
        patch = PatchPodStatus(pod.namespace, pod.name, pod.uid, condition, nominated_node_name)
        self.pending_patches.note(patch)
        self.effects.append(patch)

    def emit(
        self, profile_name: str, pod: PodInfo, kind: str, reason: str, action: str, note: str
    ) -> None:
        """Emit an event about a pod."""
        self.emit_event(EmitEvent(pod_reference(pod), kind, reason, action, note, profile_name))

    def emit_about_group(
        self, profile_name: str, group: PodGroup, kind: str, reason: str, *, note: str
    ) -> None:
        """Emit an event about a group's object."""
        note = f"group {group.key}: {note}"
        reference = group_reference(group)
        self.emit_event(EmitEvent(reference, kind, reason, "Scheduling", note, profile_name))

    def emit_event(self, event: EmitEvent) -> None:
        """Emit an event. Its note is cut where the API would refuse it."""
        self.effects.append(replace(event, note=cut(event.note, NOTE_BYTES_MAX)))

    def perform(
        self, subject: str, write: Callable[[BindPort], Awaitable[None]], plugin: str
    ) -> None:
        """Have a plugin's write performed, which no cycle waits for.

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


def group_reference(group: PodGroup) -> ObjectReference:
    """The version of a group's object that an event is about."""
    key, metadata = group.key, group.metadata
    uid, version = metadata.uid or "", metadata.resource_version or ""
    return ObjectReference(group.kind, key.namespace, key.name, uid, version)


def cut(text: str, bytes_max: int) -> str:
    """The text, shortened to ``bytes_max`` bytes of UTF-8; a shortened text ends in dots."""
    if len(text) * 4 <= bytes_max or len(encoded := text.encode()) <= bytes_max:
        return text
    return encoded[: bytes_max - len(_CUT)].decode(errors="ignore") + _CUT
