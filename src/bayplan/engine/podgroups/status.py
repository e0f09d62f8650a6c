"""Messages and conditions of groups: what they have and need, and why the next member fits nowhere.

The status is computed from the group's pods each time. Kinds of the Coscheduling family have a
phase, counts and the condition ScheduleTimedOut; Kubernetes' own kind has conditions only.

A group that waits longer than its scheduleTimeoutSeconds is reported once and tried further. The
time runs from the creation of the oldest waiting member, or of the group if that is later. Both
come from the API, so a restart of the scheduler changes nothing. Members that are placed one by one
(Coscheduling with ``placement: pod``) have timeouts of their own, at Permit.
"""

import re
from collections.abc import Sequence
from math import inf
from typing import Any, Final, NamedTuple, final

from msgspec import to_builtins

from bayplan.api.objects import POD_SCHEDULED, Pod
from bayplan.api.pod_groups import SCHEDULE_TIMED_OUT, GroupKey, PodGroup
from bayplan.clock import Clock, epoch_of, rfc3339
from bayplan.engine.outbox import Outbox
from bayplan.engine.reservations import Reservation
from bayplan.engine.waiting import Deadlines
from bayplan.ports import PatchPodGroupStatus
from bayplan.state.pod_groups import GroupState

# ---- messages -------------------------------------------------------------------------------


_TEENS = range(11, 14)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def missing_object(state: GroupState) -> str:
    """The message for pods whose group has no object."""
    return (
        f"group {state.key}: PodGroup not found in {state.key.api_group} "
        f"(current pods number: {state.here_count})"
    )


def short_of_members(state: GroupState) -> str:
    """The message for a group with fewer members than its minimum."""
    here, needed = state.here_count, state.min_member
    return (
        f"group {state.key}: {here} of {needed} members are here "
        f"(current pods number: {here}, minMember of group: {needed})"
    )


def waiting_for(state: GroupState) -> str:
    """Why a group is not scheduled yet."""
    return missing_object(state) if state.group is None else short_of_members(state)


def too_few_fit(state: GroupState, fit_count: int, nth: int, pod: str, *, why: str) -> str:
    """``fit_count``: members that have a node or fit one; ``nth``: the position of the first member
    that fits none, from 1, with the members that have nodes counted first."""
    return (
        f"group {state.key}: {fit_count} of {state.min_member} members fit; "
        f"the {ordinal(nth)}, {pod}: {why}"
    )


def no_domain(state: GroupState, why: str) -> str:
    """The message for a group whose required topology excludes all nodes."""
    return f"group {state.key}: 0 of {state.min_member} members fit: {why}"


def short_of_resources(state: GroupState, missing_resources: Sequence[str]) -> str:
    """The message for a group whose minResources are more than all nodes together have free, or are
    invalid."""
    missing = ", ".join(missing_resources)
    if not missing.startswith("spec."):
        missing = f"minResources are not free in the cluster: {missing}"
    return f"group {state.key}: {missing}"


def reserved_for(state: GroupState, reservation: Reservation, now_seconds: float) -> str:
    """The message for a group that has a reservation."""
    count = len(reservation.nodes)
    nodes = f"{count} node{'s' * (count != 1)}"
    when = "once room is free"
    if reservation.start_seconds != inf:
        when = f"in {reservation.start_seconds - now_seconds:g} s"
    return f"group {state.key}: {nodes} kept for it, expected to start {when}"


_RESERVED = (
    r"group \S+: (?P<nodes>\d+) nodes? kept for it, expected to start "
    r"(in (?P<seconds>\S+) s|once room is free)"
)


def reservation_of(message: str) -> tuple[int, float | None] | None:
    """What a message of `reserved_for` says: the number of nodes, and the seconds until the
    expected start if that is known. None: the message is another one."""
    match = re.fullmatch(_RESERVED, message)
    if match is None:
        return None
    return int(match["nodes"]), None if match["seconds"] is None else float(match["seconds"])


def ordinal(count: int) -> str:
    ending = "th" if count % 100 in _TEENS else _ENDINGS.get(count % 10, "th")
    return f"{count}{ending}"


# ---- timeouts -------------------------------------------------------------------------------


@final
class GroupTimeouts:
    """The deadline of each waiting group."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.deadlines = Deadlines[GroupKey]()

    def note(self, state: GroupState, *, is_waiting: bool) -> None:
        """Update the deadline of a group. ``is_waiting``: whether its members wait together."""
        if state.is_met:
            state.has_timed_out = False
        timeout_seconds = None if state.group is None else state.group.schedule_timeout_seconds
        if not is_waiting or state.has_timed_out or not timeout_seconds or timeout_seconds < 0:
            self.deadlines.pop(state.key, None)
        else:
            self.deadlines[state.key] = self._since_seconds(state) + timeout_seconds

    def _since_seconds(self, state: GroupState) -> float:
        """When the oldest waiting member was created; without time stamps: when the clock began."""
        own = None if state.group is None else state.group.metadata.creation_timestamp
        # Stamps of the API are in the order of their text.
        oldest = min((pod.metadata.creation_timestamp or "" for pod in state.pending()), default="")
        epoch = epoch_of(max(oldest, own or ""))
        return 0.0 if epoch is None else epoch - (self._clock.epoch_seconds() - self._clock.now())


def timed_out_message(state: GroupState) -> str:
    """The message of the condition and of the event."""
    seconds = 0 if state.group is None else state.group.schedule_timeout_seconds or 0
    why = f": {state.message}" if state.message else ""
    return f"not placed within {seconds} s (scheduleTimeoutSeconds){why}"


# ---- conditions -----------------------------------------------------------------------------


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
    """The phase of a group. It says whether members are missing or not placed, some are placed,
    enough run, enough have succeeded, or a member failed and the minimum can no longer be
    reached."""
    needed, alive = state.min_member, state.running_count + state.succeeded_count
    if state.succeeded_count >= needed:
        return FINISHED
    if state.failed_count and state.here_count + state.succeeded_count < needed:
        return FAILED
    if alive >= needed:
        return RUNNING
    return SCHEDULING if scheduled_count(state) else PENDING


def scheduled_count(state: GroupState) -> int:
    """Members that have, or had, a node."""
    return state.bound_count + state.succeeded_count + state.failed_count


class _Condition(NamedTuple):
    """A condition as it is now."""

    type: str
    status: str
    reason: str
    message: str


@final
class GroupStatusWriter:
    """Patches the fields of a group's status that differ from the last known values.

    The last known values are those that the API reported, or those sent since."""

    def __init__(self, outbox: Outbox, clock: Clock) -> None:
        self._outbox = outbox
        self._clock = clock
        #: (uid of the object, the fields sent to it). An object created again has another uid.
        self._sent: dict[GroupKey, tuple[str, dict[str, Any]]] = {}

    def _last_written(self, state: GroupState) -> dict[str, Any]:
        uid, sent = self._sent.get(state.key, ("", {}))
        return sent if state.group is not None and state.group.metadata.uid == uid else {}

    def write(self, state: GroupState) -> None:
        group = state.group
        if group is None:
            self._sent.pop(state.key, None)
            return
        counted = self._of_upstream if group.is_upstream else self._of_ours
        fields = counted(state, group)
        sent = self._last_written(state)
        last_fields = sent if sent.keys() >= fields.keys() else {**_reported(group), **sent}
        changed = {name: value for name, value in fields.items() if last_fields.get(name) != value}
        if not changed:
            return
        meta = group.metadata
        self._sent[state.key] = (meta.uid or "", {**sent, **fields})
        self._outbox.effects.append(
            PatchPodGroupStatus(group.kind, state.key.namespace, meta.name, meta.uid or "", changed)
        )

    # ---- kinds with a phase -----------------------------------------------------------------

    def _of_ours(self, state: GroupState, group: PodGroup) -> dict[str, Any]:
        status, count = group.status, scheduled_count(state)
        fields: dict[str, Any] = {
            "phase": phase_of(state),
            "scheduled": count,
            "running": state.running_count,
            "succeeded": state.succeeded_count,
            "failed": state.failed_count,
        }
        if status.schedule_start_time is None and count:
            sent = self._last_written(state).get("scheduleStartTime")
            now: str = rfc3339(self._clock.epoch_seconds())
            fields["scheduleStartTime"] = sent or _first_bound(state) or now
        owner = _owner(state)
        if not status.occupied_by and owner:
            fields["occupiedBy"] = owner
        if state.has_timed_out:
            fields.update(self._timed_out(state, group, _TRUE))
        elif self._stands(SCHEDULE_TIMED_OUT, state, group):
            fields.update(self._timed_out(state, group, _FALSE))
        return fields

    def _timed_out(self, state: GroupState, group: PodGroup, status: str) -> dict[str, Any]:
        """The condition ScheduleTimedOut. Its message stays as it was when the condition became
        true."""
        if status == _TRUE and self._stands(SCHEDULE_TIMED_OUT, state, group):
            return {}
        reason = "NotPlacedInTime" if status == _TRUE else "Placed"
        message = timed_out_message(state) if status == _TRUE else ""
        return self._with_condition(
            state, group, _Condition(SCHEDULE_TIMED_OUT, status, reason, message)
        )

    # ---- Kubernetes' own kind ---------------------------------------------------------------

    def _of_upstream(self, state: GroupState, group: PodGroup) -> dict[str, Any]:
        """The status of a group of Kubernetes' own kind. Its condition is false from the first
        failed attempt on, and stays true as soon as the minimum is met. While members are missing
        there is no condition."""
        if group.has_condition(INITIALLY_SCHEDULED) or self._stands(
            INITIALLY_SCHEDULED, state, group
        ):
            return {}
        is_met = scheduled_count(state) >= state.min_member
        if not is_met and not state.condition_message:
            return {}
        reason = state.failure_reason or "Unschedulable"
        condition = _Condition(INITIALLY_SCHEDULED, _FALSE, reason, state.condition_message)
        if is_met:
            condition = _Condition(INITIALLY_SCHEDULED, _TRUE, "Scheduled", "")
        return self._with_condition(state, group, condition)

    # ---- conditions -------------------------------------------------------------------------

    def _with_condition(
        self, state: GroupState, group: PodGroup, condition: _Condition
    ) -> dict[str, Any]:
        """All conditions, with a new value of one of them."""
        old = self._condition(condition.type, state, group)
        since: str = rfc3339(self._clock.epoch_seconds())
        if old.get("status") == condition.status:
            since = old.get("lastTransitionTime") or since
        updated: dict[str, Any] = {
            **condition._asdict(),
            "lastTransitionTime": since,
            "observedGeneration": group.metadata.generation or 0,
        }
        unchanged = [
            to_builtins(c) for c in group.status.conditions or () if c.type != condition.type
        ]
        return {"conditions": [updated, *unchanged]}

    def _stands(self, name: str, state: GroupState, group: PodGroup) -> bool:
        """Whether a condition is true, as it was sent last, or otherwise as the API reported it."""
        return self._condition(name, state, group).get("status") == _TRUE

    def _condition(self, name: str, state: GroupState, group: PodGroup) -> dict[str, Any]:
        """A condition as it was sent last, or otherwise as the API reported it."""
        sent: list[dict[str, Any]] = self._last_written(state).get("conditions", [])
        if not sent and not group.status.conditions:
            return _NONE
        reported = group.condition(name)
        reported_conditions = [] if reported is None else [to_builtins(reported)]
        return next((each for each in (*sent, *reported_conditions) if each["type"] == name), _NONE)


def _reported(group: PodGroup) -> dict[str, Any]:
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
    """The time at which the first member got its node, from the conditions in the API; "" if no
    condition has it."""
    stamps = (
        condition.last_transition_time
        for pod in state.assigned()
        if isinstance(pod, Pod)
        for condition in pod.status.conditions or ()
        if condition.type == POD_SCHEDULED and condition.status == _TRUE
    )
    return min(filter(None, stamps), default="")


def _owner(state: GroupState) -> str:
    """ "namespace/name" of the first owner of a member; "" without one."""
    for members in state.members.values():
        for pod in members.values():
            for owner in pod.metadata.owner_references or ():
                return f"{state.key.namespace}/{owner.name}"
    return ""
