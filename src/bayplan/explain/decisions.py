"""Decisions: the answer of `bayplan why --run` and `--address` as a value with a version."""

from typing import Any

from bayplan.explain.explanation import API_VERSION, Value, schema_of
from bayplan.framework.status import Status
from bayplan.history.node_verdict import NodeVerdict
from bayplan.journal import NodeScore, Record
from bayplan.sim.output.pod_counts import Counts

KIND = "Decisions"


class PluginResult(Value, frozen=True, kw_only=True):
    """What one Filter plugin says of a node."""

    plugin: str
    #: "": no objection.
    code: str = ""
    message: str = ""


class NodeResult(Value, frozen=True, kw_only=True, omit_defaults=False):
    """One node in one attempt."""

    node: str
    attempt: int
    #: Why the node was not evaluated; "": it was evaluated.
    skip_reason: str = ""
    #: The first rejection, which decides; null: no plugin rejected the node.
    rejection: PluginResult | None = None
    #: Each Filter plugin's result for this node alone.
    alone: tuple[PluginResult, ...] = ()
    #: The scores of the node and of the chosen node.
    scores: tuple[NodeScore, ...] = ()
    #: Nodes with a higher total, and other nodes with the same total.
    better: int = 0
    equal: int = 0


class PodState(Value, frozen=True, kw_only=True, omit_defaults=False):
    """One pod of a workload at the end of the run."""

    pod: str
    #: Its node; "": it has none, or it is gone.
    node: str
    message: str
    #: "placed", "waiting", or why it is gone: "preempted", for example.
    end: str = ""
    #: Whether another pod came in place of a pod that is gone.
    replaced: bool = False


class Decisions(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What a scheduler decided about a pod, a group or a workload."""

    api_version: str = API_VERSION
    kind: str = KIND
    #: "namespace/name", "podgroup namespace/name", or "Deployment/name in namespace".
    subject: str
    #: The folder of the run, or the address of the scheduler.
    source: str
    has_node: bool
    #: The records, oldest first, as the journal has them.
    records: tuple[Record, ...] = ()
    #: Of a running scheduler: the start of the records' clock.
    started: str = ""
    #: For --node.
    node: NodeResult | None = None
    #: Of a workload.
    pods: tuple[PodState, ...] = ()
    #: Of a workload: the numbers of its pods at the end of the run.
    counts: Counts | None = None
    #: For --dry-run: nodes for which a plugin was called, and nodes whose results were cached.
    evaluated_count: int | None = None
    cached_count: int | None = None
    remarks: tuple[str, ...] = ()


def node_result(verdict: NodeVerdict) -> NodeResult:
    """A verdict as a part of the answer."""
    scores, rejection = verdict.scores, verdict.rejection
    return NodeResult(
        node=verdict.node,
        attempt=verdict.record.attempt,
        skip_reason=verdict.skip_reason,
        rejection=None if rejection is None else _result(rejection.plugin, rejection),
        alone=tuple(_result(name, status) for name, status in verdict.alone),
        scores=() if scores is None else scores.lines,
        better=0 if scores is None else scores.better_count,
        equal=0 if scores is None else scores.equal_count,
    )


def _result(plugin: str, status: Status | None) -> PluginResult:
    if status is None:
        return PluginResult(plugin=plugin)
    return PluginResult(plugin=plugin, code=str(status.code), message=status.message)


def decisions_schema() -> dict[str, Any]:
    """The schema of decisions."""
    return schema_of(Decisions, KIND)
