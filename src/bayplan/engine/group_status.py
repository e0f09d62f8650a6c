"""How a group stands, written into its status: counted from its pods, never added up.

Kinds of the Coscheduling family have a phase and counts, and the condition ScheduleTimedOut;
Kubernetes' own has conditions only.
"""

from typing import Any, Final, final

from msgspec import to_builtins

from bayplan.api.objects import Pod
from bayplan.api.pod_groups import SCHEDULE_TIMED_OUT, GroupKey, PodGroup
from bayplan.clock import rfc3339
from bayplan.engine.engine_state import EngineState
from bayplan.engine.group_timeouts import timed_out_message
from bayplan.engine.own_writes import POD_SCHEDULED
from bayplan.ports import PatchPodGroupStatus
from bayplan.state.pod_groups import GroupState

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"

#: Upstream: scheduling.k8s.io PodGroupInitiallyScheduled.
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"

_TRUE, _FALSE = "True", "False"
_NONE: Final[dict[str, Any]] = {}


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
        #: (uid of the object, what it was told): one made anew under the name knows nothing.
        self._sent: dict[GroupKey, tuple[str, dict[str, Any]]] = {}

    def _told(self, state: GroupState) -> dict[str, Any]:
        uid, sent = self._sent.get(state.key, ("", {}))
        return sent if state.group is not None and state.group.metadata.uid == uid else {}

    def write(self, state: GroupState) -> None:
        group = state.group
        if group is None:
            self._sent.pop(state.key, None)
            return
        counted = self._of_upstream if group.is_upstream else self._of_ours
        wanted = counted(state, group)
        sent = self._told(state)
        known = {**_known(group), **sent}
        changed = {name: value for name, value in wanted.items() if known.get(name) != value}
        if not changed:
            return
        meta = group.metadata
        self._sent[state.key] = (meta.uid or "", {**sent, **wanted})
        self._engine.effects.append(
            PatchPodGroupStatus(group.kind, state.key.namespace, meta.name, meta.uid or "", changed)
        )

    # ---- kinds with a phase -----------------------------------------------------------------

    def _of_ours(self, state: GroupState, group: PodGroup) -> dict[str, Any]:
        status, count = group.status, scheduled_count(state)
        wanted: dict[str, Any] = {
            "phase": phase_of(state),
            "scheduled": count,
            "running": state.running_count,
            "succeeded": state.succeeded_count,
            "failed": state.failed_count,
        }
        if status.schedule_start_time is None and count:
            sent = self._told(state).get("scheduleStartTime")
            now: str = rfc3339(self._engine.clock.epoch_seconds())
            wanted["scheduleStartTime"] = sent or _first_bound(state) or now
        owner = _owner(state)
        if not status.occupied_by and owner:
            wanted["occupiedBy"] = owner
        if state.has_timed_out:
            wanted.update(self._timed_out(state, group, _TRUE))
        elif self._stands(SCHEDULE_TIMED_OUT, state, group):
            wanted.update(self._timed_out(state, group, _FALSE))
        return wanted

    def _timed_out(self, state: GroupState, group: PodGroup, status: str) -> dict[str, Any]:
        """Its words stay what they were when it became true."""
        if status == _TRUE and self._stands(SCHEDULE_TIMED_OUT, state, group):
            return {}
        reason = "NotPlacedInTime" if status == _TRUE else "Placed"
        message = timed_out_message(state) if status == _TRUE else ""
        return self._with_condition(state, group, (SCHEDULE_TIMED_OUT, status, reason, message))

    # ---- Kubernetes' own kind ---------------------------------------------------------------

    def _of_upstream(self, state: GroupState, group: PodGroup) -> dict[str, Any]:
        """False from the first attempt that failed; true from when the minimum was first met, and
        for good. Nothing while members come."""
        if group.has_condition(INITIALLY_SCHEDULED) or self._stands(
            INITIALLY_SCHEDULED, state, group
        ):
            return {}
        is_met = scheduled_count(state) >= state.min_member
        if not is_met and not state.condition_message:
            return {}
        reason = "SchedulerError" if state.has_failed else "Unschedulable"
        said = (INITIALLY_SCHEDULED, _FALSE, reason, state.condition_message)
        if is_met:
            said = (INITIALLY_SCHEDULED, _TRUE, "Scheduled", "")
        return self._with_condition(state, group, said)

    # ---- conditions -------------------------------------------------------------------------

    def _with_condition(
        self, state: GroupState, group: PodGroup, said: tuple[str, str, str, str]
    ) -> dict[str, Any]:
        """All conditions, with one as it is now: (type, status, reason, message)."""
        name, status, reason, message = said
        old = self._condition(name, state, group)
        since: str = rfc3339(self._engine.clock.epoch_seconds())
        if old.get("status") == status:
            since = old.get("lastTransitionTime") or since
        condition: dict[str, Any] = {
            "type": name,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
            "observedGeneration": group.metadata.generation or 0,
        }
        others = [to_builtins(c) for c in group.status.conditions or () if c.type != name]
        return {"conditions": [condition, *others]}

    def _stands(self, name: str, state: GroupState, group: PodGroup) -> bool:
        """Whether it is true, by what was written last, else by what was found."""
        return self._condition(name, state, group).get("status") == _TRUE

    def _condition(self, name: str, state: GroupState, group: PodGroup) -> dict[str, Any]:
        """As it was written last, or found."""
        sent: list[dict[str, Any]] = self._told(state).get("conditions", [])
        found = group.condition(name)
        known = [] if found is None else [to_builtins(found)]
        return next((each for each in (*sent, *known) if each["type"] == name), _NONE)


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


def _first_bound(state: GroupState) -> str:
    """When the first of the members got its node, as the API noted it; "" where it did not."""
    stamps = (
        condition.last_transition_time
        for pod in state.assigned()
        if isinstance(pod, Pod)
        for condition in pod.status.conditions or ()
        if condition.type == POD_SCHEDULED and condition.status == _TRUE
    )
    return min(filter(None, stamps), default="")


def _owner(state: GroupState) -> str:
    """ "namespace/name" of who owns the members, by the first that has an owner."""
    for members in state.members.values():
        for pod in members.values():
            for owner in pod.metadata.owner_references or ():
                return f"{state.key.namespace}/{owner.name}"
    return ""
