"""A journal sink: one log line for each outcome of a pod.

The texts are kube-scheduler's where it has such a line, so that what searches its logs finds ours.
Upstream: pkg/scheduler/schedule_one.go.
"""

from typing import assert_never, final

from bayplan.framework.status import NO_NODES_AVAILABLE
from bayplan.journal import (
    BUG_PREFIX,
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NoteRecord,
    Record,
)
from bayplan.serving.log_lines import Log

#: Outcomes are told from here on: upstream's level, too.
OUTCOME = 2
_DETAIL = 4
_NO_FIT = "Unable to schedule pod; no fit; waiting"
_NO_NODES = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
_RETRYING = "Error scheduling pod; retrying"


@final
class OutcomeLog:
    """journal.Sink."""

    def __init__(self) -> None:
        self._log = Log("scheduler")

    def write(self, record: Record) -> None:
        if isinstance(record, BindingRecord):
            self._binding(record)
        elif isinstance(record, AttemptRecord):
            self._attempt(record)
        elif isinstance(record, GateRecord):
            self._gate(record)
        elif isinstance(record, GroupRecord):
            self._group(record)
        elif isinstance(record, NoteRecord):  # pyright: ignore[reportUnnecessaryIsInstance]
            self._note(record)
        else:
            assert_never(record)

    def _binding(self, record: BindingRecord) -> None:
        if record.result == "bound":
            text = "Successfully bound pod to node"
            self._log.info(text, v=OUTCOME, pod=record.pod, node=record.node)
        elif record.is_rejected:
            self._log.info(_NO_FIT, v=OUTCOME, pod=record.pod, err=record.message)
        else:
            self._log.error(_RETRYING, pod=record.pod, node=record.node, err=record.message)

    def _attempt(self, record: AttemptRecord) -> None:
        if record.message == NO_NODES_AVAILABLE:
            self._log.info(_NO_NODES, v=OUTCOME, pod=record.pod)
        elif record.result == "unschedulable":
            self._log.info(_NO_FIT, v=OUTCOME, pod=record.pod, err=record.message)
        elif record.result == "error":
            keys = {"plugin": record.plugin}
            self._log.error(_RETRYING, pod=record.pod, **keys, err=record.message)
        else:
            chosen = {"node": record.node, "evaluatedNodes": record.node_count}
            feasible = {"feasibleNodes": record.feasible_count}
            self._log.info("Chose node for pod", v=_DETAIL, pod=record.pod, **chosen, **feasible)

    def _gate(self, record: GateRecord) -> None:
        if record.code:
            text, keys = "Unexpected error running PreEnqueue plugin", {"plugin": record.plugin}
            self._log.error(text, pod=record.pod, **keys, err=record.message)
        else:
            text, keys = "Pod is held back", {"plugin": record.plugin, "message": record.message}
            self._log.info(text, v=OUTCOME, pod=record.pod, **keys)

    def _group(self, record: GroupRecord) -> None:
        name, api_group = record.group, record.api_group
        if record.result == "error":
            text = "Error scheduling group of pods; retrying"
            self._log.error(text, podGroup=name, apiGroup=api_group, err=record.message)
        elif record.result == "placed":
            text, count = "Placed group of pods", record.fitting
            self._log.info(text, v=OUTCOME, podGroup=name, apiGroup=api_group, pods=count)
        else:
            text, keys = "Group of pods waits", {"result": record.result, "err": record.message}
            self._log.info(text, v=OUTCOME, podGroup=name, apiGroup=api_group, **keys)

    def _note(self, record: NoteRecord) -> None:
        if record.text.startswith(BUG_PREFIX):
            self._log.error("Bug in the scheduler", subject=record.subject, err=record.text)
        elif record.plugin:
            subject, plugin = record.subject, record.plugin
            self._log.error("Plugin failed", subject=subject, plugin=plugin, err=record.text)
        else:
            self._log.info("Noted", v=OUTCOME, subject=record.subject, note=record.text)
