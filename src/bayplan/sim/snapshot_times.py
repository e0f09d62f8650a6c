"""Time stamps of a cluster that was read in: moved so that nothing was made in the future.

Virtual time begins on a day of its own. Objects read from a cluster keep their ages towards one
another, and are all older than anything that happens in the simulation: preemption spares the
longest running, and groups queue by age.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from bayplan.clock import ManualClock, rfc3339
from bayplan.sim.workload import Content

_STAMPS = (("metadata", "creationTimestamp"), ("status", "startTime"))


def in_the_past(contents: Sequence[Content]) -> list[Content]:
    """The objects with all their times moved back by as much as the newest is too new."""
    newest = max(_times(contents), default=0.0)
    shift = newest - ManualClock.EPOCH_SECONDS
    if shift <= 0:
        return list(contents)
    return [_moved(content, shift) for content in contents]


def _times(contents: Iterable[Content]) -> Iterable[float]:
    for content in contents:
        for part, field in _STAMPS:
            seconds = _seconds(_members(content, part).get(field))
            if seconds is not None:
                yield seconds


def _moved(content: Content, shift: float) -> Content:
    for part, field in _STAMPS:
        seconds = _seconds(_members(content, part).get(field))
        if seconds is not None:
            content = {
                **content,
                part: {**content[part], field: rfc3339(max(seconds - shift, 0.0))},
            }
    return content


def _members(content: Content, part: str) -> dict[str, Any]:
    found = content.get(part)
    return found if isinstance(found, dict) else {}


def _seconds(stamp: Any) -> float | None:
    """Seconds since 1970; None for what is no time stamp."""
    try:
        moment = datetime.fromisoformat(stamp)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
