"""Decisions: what a scheduler decided about a pod, a group or a workload.

It is the answer of `bayplan why --run` and `--address`.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, final

from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.document import Answer, Rows
from bayplan.history.node_verdict import NodeVerdict
from bayplan.journal import AttemptRecord, BindingRecord, GroupRecord, Record
from bayplan.sim.output.pod_counts import Counts, PodEnd, PodState
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.why import explain_node, explain_records, explain_workload, record_row


@final
class Decisions(Answer, frozen=True, kw_only=True):
    """What a scheduler decided."""

    kind: Literal["Decisions"] = "Decisions"
    field_of_list: ClassVar[str] = "records"
    #: "namespace/name", "podgroup namespace/name", or "Deployment/name in namespace".
    subject: str
    #: The folder of the run, or the address of the scheduler.
    source: str = ""
    has_node: bool
    #: The records, oldest first, as the journal has them.
    records: tuple[Record, ...] = ()
    #: Why there is no record; and what became of a pod that is gone, or of a group.
    message: str = ""
    #: Of a running scheduler: the start of the records' clock.
    started: str = ""
    #: For --node.
    node: NodeVerdict | None = None
    #: Of a workload.
    pods: tuple[PodState, ...] = ()
    #: Of a workload: the numbers of its pods at the end of the run.
    counts: Counts | None = None
    #: For --dry-run: nodes for which a plugin was called, and nodes whose results were cached.
    evaluated_count: int | None = None
    cached_count: int | None = None
    remarks: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The records from top to bottom; of a workload, its pods grouped by outcome."""
        parts: list[RenderableType] = []
        if self.started:
            start = f"times are seconds since the scheduler's start, {self.started}"
            parts.append(Text(start))
        attempts = [one for one in self.records if isinstance(one, AttemptRecord)]
        if self.node is not None:
            parts += explain_node(self.node, attempts[0])
        elif self.counts is not None:
            last = {record.pod: record for record in attempts}
            parts += explain_workload(self.subject, self.counts, self.pods, last, is_wide=is_wide)
        else:
            parts += explain_records(self.records)
        if self.message:
            parts.append(Text(self.message))
        return [*parts, *(Text(f"Note: {remark}") for remark in self.remarks)]

    def rows(self) -> Rows:
        """The records; of a workload, its pods."""
        if self.counts is not None:
            pods = ((p.pod, p.node, p.end, p.replaced, p.message) for p in self.pods)
            return Rows(("pod", "node", "end", "replaced", "message"), pods)
        headings = ("at", "event", "result", "node", "attempt", "plugin", "message")
        return Rows(headings, ((one.at_seconds, *record_row(one)) for one in self.records))

    def names(self) -> Iterator[str]:
        """The subject; of a workload, its pods."""
        if self.counts is None:
            yield self.subject
        else:
            yield from dict.fromkeys(pod.pod for pod in self.pods)


def is_placed(subject: str, result: SimulationResult | None, records: Iterable[Record]) -> bool:
    """Whether a pod, or a group, has its node at the end of a run. An interrupted run has no
    result: then the last decision counts."""
    if result is not None and subject in result.pods:
        return result.pods[subject].end is PodEnd.PLACED
    return gives_node(records)


def gives_node(records: Iterable[Record]) -> bool:
    """Whether the last thing that happened gave the pod, or the group, a node."""
    results = [
        record.result
        for record in records
        if isinstance(record, AttemptRecord | BindingRecord | GroupRecord)
    ]
    return bool(results) and results[-1] in ("scheduled", "bound", "placed")
