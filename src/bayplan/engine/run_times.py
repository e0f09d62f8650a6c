"""How long pods run, where they say so: what may be known of when room becomes free.

The annotation is a promise of whoever made the pod, not a limit that anybody enforces. A simulation
keeps it, so that what follows from it can be tried there.
"""

from typing import Final

from bayplan.clock import Clock, epoch_of
from bayplan.durations import DurationError, parse_duration
from bayplan.state.pods import PodInfo

#: As scenarios write it: 90, 30s, 1m30s.
DURATION_ANNOTATION: Final = "bayplan.dev/duration"


def run_seconds(pod: PodInfo) -> float | None:
    """How long the pod runs once it is on a node; None: nobody says."""
    try:
        return parse_duration(pod.annotations.get(DURATION_ANNOTATION, ""))
    except DurationError:
        return None


def end_seconds(pod: PodInfo, clock: Clock) -> float | None:
    """When a pod on a node will have ended, on the scheduler's clock; None: nobody says."""
    seconds = run_seconds(pod)
    if seconds is None:
        return None
    now = clock.now()
    started = epoch_of(pod.status.start_time or "")
    since = now if started is None else started - (clock.epoch_seconds() - now)
    # One that runs longer than it said may end at any moment.
    return max(now, since + seconds)
