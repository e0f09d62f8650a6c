"""Records of the journal for tests."""

from typing import Any

from bayplan.journal import AttemptRecord, NodeScore, PluginScore

WEB = "default/web"


def attempt(number: int = 1, at_seconds: float = 0.0, **fields: Any) -> AttemptRecord:
    """An attempt, by default without a feasible node."""
    values = {"result": "unschedulable", "node_count": 3, "uid": "u", **fields}
    return AttemptRecord(
        at_seconds=at_seconds, pod=WEB, profile="default-scheduler", attempt=number, **values
    )


def line(node: str, **weighted: int) -> NodeScore:
    plugins = tuple(PluginScore(name, count * 2, count, count) for name, count in weighted.items())
    return NodeScore(node, sum(weighted.values()), plugins)
