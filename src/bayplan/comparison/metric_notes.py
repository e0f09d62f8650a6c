"""What a metric means: a sentence, its unit, and which direction is better.

Names of metrics follow from what a run has: a resource, a label, a reason. So notes are found by
pattern. A metric of somebody else's package has no note, and no direction is better.
"""

import re
from dataclasses import dataclass
from typing import Final

HIGHER: Final = "higher"
LOWER: Final = "lower"


@dataclass(frozen=True, slots=True)
class MetricNote:
    meaning: str = ""
    unit: str = ""
    #: HIGHER, LOWER, or "": neither is better in itself.
    better: str = ""


_NOTES: Final = tuple(
    (re.compile(pattern), MetricNote(meaning, unit, better))
    for pattern, meaning, unit, better in (
        ("placed", "pods that were bound", "pods", HIGHER),
        ("unschedulable", "pods that wait at the end", "pods", LOWER),
        ("unschedulable: .*", "waiting pods whose last attempt met this reason", "pods", LOWER),
        (
            "allocated_.*_percent",
            "what pods request at the end, of what all nodes have",
            "%",
            HIGHER,
        ),
        ("peak_.*_percent", "the most that pods requested at any time, of all nodes", "%", ""),
        (
            "utilized_.*_percent",
            "what pods request at the end, of what the nodes in use have",
            "%",
            HIGHER,
        ),
        (
            "fragmented_.*_percent",
            "what is free at the end and no use to a pod of this workload, in the mean",
            "%",
            LOWER,
        ),
        ("nodes_used", "nodes that hold pods at the end", "nodes", LOWER),
        ("nodes_emptiable", "nodes whose pods would fit elsewhere", "nodes", HIGHER),
        ("domains_used: .*", "values of this label whose nodes hold pods", "values", ""),
        ("(gang_)?waiting_seconds_.*", "virtual time until pods are bound", "s", LOWER),
        ("gangs_placed", "groups whose minimum of members was bound", "groups", HIGHER),
        ("gangs_waiting", "groups that wait at the end", "groups", LOWER),
        ("held_.*_hours", "what pods held while a plugin made them wait", "hours", LOWER),
        ("preemptions", "attempts that nominated a node for preemption", "attempts", LOWER),
        ("preemption_victims", "pods that were preempted", "pods", LOWER),
        ("decisions_per_second", "attempts per second of real time", "1/s", HIGHER),
    )
)
_NONE: Final = MetricNote()


def metric_note(metric: str) -> MetricNote:
    """The note of a metric; an empty one where there is none."""
    for pattern, note in _NOTES:
        if pattern.fullmatch(metric):
            return note
    return _NONE
