"""How a group stands, written into its status: counted from its pods, never added up.

Kinds of the Coscheduling family have a phase and counts; Kubernetes' own has conditions only.
"""

from typing import Any, Final, final

from msgspec import to_builtins

from bayplan.api.pod_groups import GroupKey, PodGroup
from bayplan.clock import rfc3339
from bayplan.engine.engine_state import EngineState
from bayplan.ports import PatchPodGroupStatus
from bayplan.state.pod_groups import GroupState

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"

#: Upstream: scheduling.k8s.io PodGroupInitiallyScheduled.
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"


def phase_of(state: GroupState) -> str:
    """Members missing or not placed, some placed, enough running, enough succeeded, or a member
    failed and the minimum can no longer be reached."""
    wanted, alive = state.min_member, state.running_count + state.succeeded_count
    if state.succeeded_count >= wanted:
        return FINISHED
    if state.failed_count and state.here_count + state.succeeded_count < wanted:
        return FAILED
    if alive >= wanted:
        return RUNNING
    return SCHEDULING if scheduled_count(state) else PENDING


def scheduled_count(state: GroupState) -> int:
    """Members that have, or had, a node."""
    return state.bound_count + state.succeeded_count + state.failed_count


@final
class GroupStatusWriter:
    """Sends what differs from what the API said last, or was sent last."""

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine
        self._sent: dict[GroupKey, dict[str, Any]] = {}

    def write(self, state: GroupState) -> None:
        group = state.group
        if group is None:
            self._sent.pop(state.key, None)
            return
        wanted = self._conditions(state, group) if group.is_upstream else self._counts(state, group)
        known = {**_known(group), **self._sent.get(state.key, {})}
        changed = {name: value for name, value in wanted.items() if known.get(name) != value}
        if not changed:
            return
        self._sent[state.key] = wanted
        meta = group.metadata
        self._engine.effects.append(
            PatchPodGroupStatus(group.kind, state.key.namespace, meta.name, meta.uid or "", changed)
        )

    def _counts(self, state: GroupState, group: PodGroup) -> dict[str, Any]:
        status, count = group.status, scheduled_count(state)
        wanted: dict[str, Any] = {
            "phase": phase_of(state),
            "scheduled": count,
            "running": state.running_count,
            "succeeded": state.succeeded_count,
            "failed": state.failed_count,
        }
        if status.schedule_start_time is None and count:
            sent = self._sent.get(state.key, {}).get("scheduleStartTime")
            wanted["scheduleStartTime"] = sent or rfc3339(self._engine.clock.epoch_seconds())
        owner = _owner(state)
        if not status.occupied_by and owner:
            wanted["occupiedBy"] = owner
        return wanted

    def _conditions(self, state: GroupState, group: PodGroup) -> dict[str, Any]:
        """True from when the minimum was first met, and for good."""
        old = next(
            (c for c in group.status.conditions or () if c.type == INITIALLY_SCHEDULED), None
        )
        sent = self._sent_condition(state)
        if (old is not None and old.status == "True") or sent.get("status") == "True":
            return {}
        is_met = scheduled_count(state) >= state.min_member
        if not is_met and not state.message:
            return {}
        status = "True" if is_met else "False"
        since: str = rfc3339(self._engine.clock.epoch_seconds())
        if sent.get("status") == status:
            since = sent["lastTransitionTime"]
        elif old is not None and old.status == status and old.last_transition_time:
            since = old.last_transition_time
        condition: dict[str, Any] = {
            "type": INITIALLY_SCHEDULED,
            "status": status,
            "reason": "Scheduled" if is_met else "Unschedulable",
            "message": "" if is_met else state.message,
            "lastTransitionTime": since,
            "observedGeneration": group.metadata.generation or 0,
        }
        others = [
            to_builtins(c) for c in group.status.conditions or () if c.type != INITIALLY_SCHEDULED
        ]
        return {"conditions": [condition, *others]}

    def _sent_condition(self, state: GroupState) -> dict[str, Any]:
        """Ours, as it was written last."""
        conditions: list[dict[str, Any]] = self._sent.get(state.key, {}).get("conditions", [])
        return conditions[0] if conditions else {}


def _known(group: PodGroup) -> dict[str, Any]:
    status = group.status
    return {
        "phase": status.phase,
        "scheduled": status.scheduled or 0,
        "running": status.running or 0,
        "succeeded": status.succeeded or 0,
        "failed": status.failed or 0,
        "scheduleStartTime": status.schedule_start_time,
        "occupiedBy": status.occupied_by,
    }


def _owner(state: GroupState) -> str:
    """ "namespace/name" of who owns the members, by the first that has an owner."""
    for members in state.members.values():
        for pod in members.values():
            for owner in pod.metadata.owner_references or ():
                return f"{state.key.namespace}/{owner.name}"
    return ""
