"""Two runs side by side: only what differs.

Pods of one name are one pod. A pod went elsewhere if its last node is another one, or if only one
run placed the pod. The journals say why: each run's record of the decision has the scores of the
best five nodes, plugin by plugin, and the two nodes are compared there. For a node that is not
among them, the attempt is repeated when somebody asks.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bayplan.history.columns import NEVER
from bayplan.history.timeline import ChangeKind, Series, Timeline, numbers
from bayplan.journal import AttemptRecord
from bayplan.ui import answers, pages
from bayplan.ui.subjects import RunSubject

#: The kinds of changes after which a pod has a node.
_CHOSEN = (ChangeKind.SCHEDULED, ChangeKind.WAITING_AT_PERMIT)
_PERCENTILES = (50, 95)


class _Place(NamedTuple):
    """The last node of a pod in both runs; "": none."""

    pod: str
    nodes: tuple[str, str]


@final
class TwoRuns:
    """What differs between two runs that are ready."""

    def __init__(self, one: RunSubject, other: RunSubject) -> None:
        self._runs = (one, other)
        self._lines = (one.timeline, other.timeline)

    # ---- pods -------------------------------------------------------------------------------

    @cached_property
    def moved(self) -> Sequence[_Place]:
        """The pods that went elsewhere, in the order of the first run."""
        one, other = (_last_nodes(line) for line in self._lines)
        names = dict.fromkeys((*one, *other))
        places = [_Place(name, (one.get(name, ""), other.get(name, ""))) for name in names]
        return [place for place in places if place.nodes[0] != place.nodes[1]]

    def moved_pod(self, place: _Place) -> answers.MovedPod:
        own, theirs = place.nodes
        return answers.MovedPod(
            pod=place.pod,
            one=own,
            other=theirs,
            in_one=self._preference(0, place.pod, own, theirs),
            in_other=self._preference(1, place.pod, theirs, own),
        )

    def _preference(self, run: int, pod: str, chosen: str, rejected: str) -> answers.Preference:
        """Why a run preferred its own node to the node of the other run."""
        record = self._decision(run, pod)
        if record is None:
            return answers.Preference(note="the run did not place the pod")
        if not chosen or record.node != chosen:
            return answers.Preference(
                note=f"{record.result}: {record.message}" if record.message else ""
            )
        if not rejected:
            return answers.Preference()
        by_node = {score.node: score for score in record.scores}
        if rejected not in by_node or chosen not in by_node:
            if record.feasible_count == 1:
                return answers.Preference(note="it was the only feasible node")
            note = f"{rejected} is not among the best nodes of the record"
            return answers.Preference(note=note, computed_attempt=record.attempt)
        best, worse = by_node[chosen], by_node[rejected]
        differences = [
            answers.ScoreDifference(plugin=mine.plugin, difference=mine.weighted - other.weighted)
            for mine, other in zip(best.plugins, worse.plugins, strict=True)
            if mine.weighted != other.weighted
        ]
        differences.sort(key=lambda one: (-abs(one.difference), one.plugin))
        return answers.Preference(
            difference=best.total - worse.total,
            plugins=tuple(differences),
            note="" if best.total != worse.total else "equal totals: the tie-break decided",
        )

    def _decision(self, run: int, pod: str) -> AttemptRecord | None:
        """The record of the last attempt that chose a node for the pod, or of its last attempt."""
        line = self._lines[run]
        row = line.rows_by_name.get(pod)
        if row is None:
            return None
        attempts = line.attempts[line.attempts.pod == row]
        if not len(attempts):
            return None
        chosen = attempts[np.isin(attempts.what, _CHOSEN)]
        last = (chosen if len(chosen) else attempts).number[-1]
        return self._runs[run].record(pod, int(last))[1]

    # ---- the first difference ---------------------------------------------------------------

    @cached_property
    def first(self) -> answers.FirstDifference | None:
        """The first decision in which the runs differ; None: all their decisions are equal."""
        one, other = self._lines
        for number in range(min(len(one.attempts), len(other.attempts))):
            steps = _step(one, number), _step(other, number)
            if _outcome(steps[0]) != _outcome(steps[1]):
                return answers.FirstDifference(number=number + 1, one=steps[0], other=steps[1])
        return None

    # ---- numbers ----------------------------------------------------------------------------

    def answer(self) -> answers.Comparison:
        one, other = ({name: (unit, x) for name, unit, x in _numbers(line)} for line in self._lines)
        rows = [
            answers.ComparisonRow(
                name=name,
                unit=unit,
                one=one.get(name, (unit, 0.0))[1],
                other=other.get(name, (unit, 0.0))[1],
            )
            for name, (unit, _) in {**one, **other}.items()
        ]
        differing = sorted((row for row in rows if row.one != row.other), key=_rank)
        return answers.Comparison(
            one=self._runs[0].name,
            other=self._runs[1].name,
            rows=tuple(differing),
            equal_count=len(rows) - len(differing),
            moved_count=len(self.moved),
            pods=len({pod.name for line in self._lines for pod in line.pods}),
            first=self.first,
            attempts=(len(self._lines[0].attempts), len(self._lines[1].attempts)),
        )


def _rank(row: answers.ComparisonRow) -> float:
    """The sort key that puts the largest difference, in proportion to the numbers, first."""
    return -abs(row.one - row.other) / max(abs(row.one), abs(row.other))


def _last_nodes(line: Timeline) -> dict[str, str]:
    """Pod → the node of its last placement."""
    pods, nodes = numbers(line.placements.pod), numbers(line.placements.node)
    return {
        line.pods[pod].name: line.node_names[node] for pod, node in zip(pods, nodes, strict=True)
    }


def _step(line: Timeline, number: int) -> answers.Step:
    attempts = line.attempts
    change = int(attempts.change[number])
    at = pages.change_at(line, change)
    return answers.Step(
        pod=line.pods[int(attempts.pod[number])].name,
        attempt=int(attempts.number[number]),
        seconds=at.seconds,
        change=change,
        result=at.what,
        node=at.node,
    )


def _outcome(step: answers.Step) -> tuple[str, int, str, str]:
    return step.pod, step.attempt, step.result, step.node


def _numbers(line: Timeline) -> Iterator[tuple[str, str, float]]:
    """Name, unit ("pods", "seconds", "share" or "") and value, in the order of the page."""
    totals, end = Series(line), line.state(line.last_change)
    yield "pods on nodes at the end", "pods", len(end.placement_rows)
    yield "pods waiting at the end", "pods", len(end.waiting)
    yield "pods preempted", "pods", int((line.changes.what == ChangeKind.POD_PREEMPTED).sum())
    yield "attempts", "", len(line.attempts)
    yield "end of the run", "seconds", round(line.end_seconds, 3)
    waits = _wait_seconds(line)
    for percentile in _PERCENTILES:
        value = float(np.percentile(waits, percentile)) if len(waits) else 0.0
        yield f"wait for a node, {percentile}th percentile", "seconds", round(value, 3)
    lasting = np.diff(line.seconds, append=line.end_seconds)
    settled = (lasting > 0) | (np.arange(len(lasting)) == line.last_change)
    for index in line.resource_order:
        allocatable = totals.allocatable(index)
        share = np.divide(
            totals.used(index), allocatable, out=np.zeros_like(allocatable), where=allocatable > 0
        )
        resource = line.resources[index]
        # In the middle of a moment, only some of the changes that belong together have been made.
        yield f"{resource} requested, peak", "share", round(float(share[settled].max()), 4)
        if lasting.sum() > 0:
            mean = float((share * lasting).sum() / lasting.sum())
            yield f"{resource} requested, average", "share", round(mean, 4)


def _wait_seconds(line: Timeline) -> NDArray[np.float64]:
    """How long each pod that got a node in this run waited for it."""
    starts, ends = line.waits_from, line.lives.waits_to
    waited = (starts != NEVER) & (ends != NEVER)
    ends = np.minimum(ends[waited], line.last_change)
    return line.seconds[ends] - line.seconds[starts[waited]]
