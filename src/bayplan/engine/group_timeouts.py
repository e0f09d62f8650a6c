"""Groups that wait longer than their scheduleTimeoutSeconds: told once, and tried on.

The time runs from the creation of the oldest member that waits, or the group's own if that came
later; both are the API's, so it runs on when this scheduler is started anew. Members that are
placed one by one (Coscheduling with ``placement: pod``) have time-outs of their own, at Permit.
"""

from typing import final

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import Clock, epoch_of
from bayplan.engine.deadlines import Deadlines
from bayplan.state.pod_groups import GroupState


@final
class GroupTimeouts:
    """When which group will have waited too long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.deadlines = Deadlines[GroupKey](clock)

    def note(self, state: GroupState, *, is_waiting: bool) -> None:
        """How a group stands has changed. ``is_waiting``: members wait together."""
        if state.is_met:
            state.has_timed_out = False
        timeout_seconds = None if state.group is None else state.group.schedule_timeout_seconds
        if not is_waiting or state.has_timed_out or not timeout_seconds or timeout_seconds < 0:
            self.deadlines.forget(state.key)
        else:
            self.deadlines.set(state.key, self._since_seconds(state) + timeout_seconds)

    def _since_seconds(self, state: GroupState) -> float:
        """Since when members wait. What has no time stamp is there since the clock began."""
        own = None if state.group is None else state.group.metadata.creation_timestamp
        # Stamps of the API are in the order of their text.
        oldest = min((pod.metadata.creation_timestamp or "" for pod in state.pending()), default="")
        epoch = epoch_of(max(oldest, own or ""))
        return 0.0 if epoch is None else epoch - (self._clock.epoch_seconds() - self._clock.now())


def timed_out_message(state: GroupState) -> str:
    """What condition and event say."""
    seconds = 0 if state.group is None else state.group.schedule_timeout_seconds or 0
    why = f": {state.message}" if state.message else ""
    return f"not placed within {seconds} s (scheduleTimeoutSeconds){why}"
