"""Durations and moments for a reader."""

#: A shorter span of time is shown in seconds.
_SECONDS_MAX = 120


def span(seconds: float) -> str:
    """A duration with two units at most: 1.5 s, 4 min 10 s, 2 h 5 min, 3 d 4 h."""
    if seconds < _SECONDS_MAX:
        return f"{seconds:,.1f} s"
    minutes, left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h"


def moment(seconds: float) -> str:
    """A moment of a run, in seconds since its start, as exactly as the journal has it: 1.500 s."""
    return f"{seconds:.3f} s"
