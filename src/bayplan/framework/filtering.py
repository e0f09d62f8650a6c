"""The result of the Filter plugins: which nodes were rejected, by which plugin, and why.

`FilterOutcome` stores the rejections as arrays of positions. `Feasibility` is the interface for
its readers, which write messages and diagnoses. The first plugin that rejects a node wins, and all
of its reasons count. A per-node `Status` is built only when it is read: most readers need counts.

The second half gives each plugin both forms: a plugin that is written node by node gets the
vectorised form, and every plugin gets a single-node form. A cached result is brought forward by
single nodes, because an array of one costs as much as an array of hundreds. A single-node form
returns what the vectorised form returns for that node.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from bayplan.framework.cycle_state import CallFilter, CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    RowFilter,
    RowScore,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.status import (
    Code,
    Codes,
    NodeToStatus,
    Rejection,
    Status,
    is_rejected,
    is_success,
    listed_reasons,
)
from bayplan.framework.types import Verdict
from bayplan.framework.validation import (
    REJECTION_CODES,
    REJECTIONS,
    WrongAnswer,
    checked,
    codes_text,
    described,
    failure_of,
    form_of,
    iterated,
)
from bayplan.journal import RejectionCount
from bayplan.state.columns import NodeMask, NodeScores, Rows, all_true, distinct, places_of
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

# ---- rejected -------------------------------------------------------------------------------


class RejectedNodes(NamedTuple):
    """Nodes that one instance rejected with the same code and reasons."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    node_count: int


class RejectionSummary(NamedTuple):
    """What the message of a pod, the queue and PostFilter need of the rejections."""

    plugins: frozenset[str]
    pending_plugins: frozenset[str]
    codes: frozenset[Code]
    #: Reason → number of nodes, read-only; and the same counts as the message lists them.
    reason_counts: Counter[str]
    listed_reasons: str


class Feasibility(ABC):
    """Which nodes are feasible, and why the others are not, independent of their representation."""

    __slots__ = ()

    @property
    @abstractmethod
    def feasible_count(self) -> int:
        """The number of feasible nodes."""

    @abstractmethod
    def rejected(self) -> Iterable[RejectedNodes]:
        """The rejections. Each node counts once, for the first instance that rejected it."""

    @abstractmethod
    def outcome(self, nodes: NodeView) -> "FilterOutcome":
        """The same as arrays. ``nodes``: the evaluated nodes or a superset."""

    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        """uint8[nodes]: the code of each node. ``absent`` is the code of nodes that were not
        evaluated and, as in `NodeToStatus`, of nodes that no plugin rejected."""
        return self.outcome(nodes).codes(nodes, absent)

    def node_to_status(self, nodes: NodeView, absent: Status | None = None) -> NodeToStatus:
        """The statuses of all ``nodes``; ``absent``: the status of nodes without one."""
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if absent is None else absent.code
        return NodeToStatus(
            lambda: self.outcome(nodes).statuses(),
            absent,
            lambda some: self.codes(some, code),
            lambda: self.summary().codes,
        )

    def summary(self) -> RejectionSummary:
        counts = self.reason_counts()
        return RejectionSummary(
            frozenset(self.plugins()),
            frozenset(self.pending_plugins()),
            frozenset(entry.code for entry in self.rejected()),
            counts,
            listed_reasons(counts),
        )

    def plugins(self) -> set[str]:
        """Instances that rejected at least one node."""
        return {entry.plugin for entry in self.rejected()}

    def pending_plugins(self) -> set[str]:
        return {entry.plugin for entry in self.rejected() if entry.code is Code.PENDING}

    def reason_counts(self) -> Counter[str]:
        """Reason → number of nodes."""
        counts: Counter[str] = Counter()
        for entry in self.rejected():
            for reason in entry.reasons:
                counts[reason] += entry.node_count
        return counts

    def reason_counts_by_plugin(self) -> dict[tuple[str, str, str], int]:
        """(plugin, code, reason) → number of nodes, for the journal."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for entry in self.rejected():
            for reason in entry.reasons:
                counts[(entry.plugin, str(entry.code), reason)] += entry.node_count
        return dict(sorted(counts.items()))

    def rejection_counts(self) -> tuple[RejectionCount, ...]:
        """The same as lines of the journal."""
        counts = self.reason_counts_by_plugin().items()
        return tuple(RejectionCount(*key, nodes=count) for key, count in counts)

    def for_journal(self) -> tuple[int, tuple[RejectionCount, ...]]:
        """The number of feasible nodes, and `rejection_counts`."""
        return self.feasible_count, self.rejection_counts()


# ---- filtering ------------------------------------------------------------------------------


#: The codes with which Filter may reject. Upstream: IsRejected.
FILTER_CODES = frozenset(REJECTION_CODES)


@dataclass(slots=True)
class RejectionEntry:
    """Nodes that one plugin rejected with the same reasons."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    positions: Rows
    #: The code of each position, if the codes differ.
    codes: "np.ndarray[tuple[int], np.dtype[np.uint8]] | None" = None

    def code_at(self, index: int) -> Code:
        return self.code if self.codes is None else Code(int(self.codes[index]))


# Called at every attempt; `list[RejectionEntry]` as a factory takes three times as long.
def _no_entries() -> list[RejectionEntry]:
    return []


@dataclass(slots=True)
class FilterOutcome(Feasibility):
    """The result of all Filter plugins for the nodes of one view."""

    nodes: NodeView
    feasible: NodeMask
    entries: list[RejectionEntry] = field(default_factory=_no_entries)
    #: A status that ends the attempt.
    error: Status | None = None

    @property
    def code(self) -> Code:
        """The code of ``error``, or SUCCESS."""
        return Code.SUCCESS if self.error is None else self.error.code

    @property
    def feasible_count(self) -> int:
        feasible = self.feasible
        return int(np.count_nonzero(feasible)) if len(feasible) != 1 else int(feasible.item(0))

    @property
    def is_settled(self) -> bool:
        """Whether no further plugin need run: there is an error, or no feasible node."""
        return self.error is not None or bool(self.entries and not self.feasible.any())

    def add(self, plugin: str, rejections: Iterable[Rejection]) -> None:
        """Add one plugin's rejections. Nodes that are already rejected do not count again."""
        before = self.feasible
        after: NodeMask | None = None
        for rejection in iterated(rejections):
            positions = _positions(rejection, before)
            if not len(positions):
                continue
            codes = rejection.codes[positions] if rejection.codes is not None else None
            self.error = _error_of(plugin, rejection, codes)
            if self.error is not None:
                return
            self.entries.append(
                RejectionEntry(plugin, rejection.code, rejection.reasons, positions, codes)
            )
            if after is None:
                after = before.copy()
            after[positions] = False
        if after is not None:
            self.feasible = after

    def evaluate(self, plugin: str, call: CallFilter, state: CycleState, pod: PodInfo) -> None:
        """Call one plugin's Filter, and add its result."""
        try:
            self.add(plugin, call(state, pod, self.nodes, self.feasible))
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
            self.error = failure_of(plugin, "Filter", problem, call)

    def settle(self, position: int, status: Status | None) -> None:
        """Set the status of one node that was evaluated separately."""
        if is_rejected(status):
            assert status is not None
            positions: Rows = np.array([position], np.intp)
            self.entries.append(
                RejectionEntry(status.plugin, status.code, status.reasons, positions)
            )
        elif is_success(status):
            self.feasible[position] = True
        else:
            self.error = status

    def rejection_counts(self) -> tuple[RejectionCount, ...]:
        # Called at every attempt; without rejections the method of Feasibility takes much longer.
        return Feasibility.rejection_counts(self) if self.entries else ()

    def rejected(self) -> Iterator[RejectedNodes]:
        for entry in self.entries:
            for code, count in _code_counts(entry):
                yield RejectedNodes(entry.plugin, code, entry.reasons, count)

    def status_of(self, position: int) -> Status | None:
        """The status of one node; None if the node is feasible."""
        code: Code | None = None
        plugin = ""
        reasons: tuple[str, ...] = ()
        for entry in self.entries:
            places = np.flatnonzero(entry.positions == position)
            if len(places):
                code = max(code or Code.SUCCESS, entry.code_at(int(places[0])))
                plugin, reasons = entry.plugin, (*reasons, *entry.reasons)
        return None if code is None else Status(code, reasons, plugin)

    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        own = np.zeros(len(self.nodes), np.uint8)
        for entry in self.entries:
            codes = np.uint8(entry.code) if entry.codes is None else entry.codes
            own[entry.positions] = np.maximum(own[entry.positions], codes)
        own[own == Code.SUCCESS] = absent
        rows = nodes.table.rows
        by_row = np.full(int(rows.max(initial=-1)) + 1, absent, np.uint8)
        by_row[self.nodes.table.rows] = own
        return by_row[rows]

    def outcome(self, nodes: NodeView) -> "FilterOutcome":
        return self

    def statuses(self) -> dict[str, Status]:
        """Every rejected node by name, in the order of the view."""
        by_position: dict[int, Status] = {}
        #: The nodes of one entry share their status.
        alone: dict[tuple[int, Code], Status] = {}
        for number, entry in enumerate(self.entries):
            for index, position in enumerate(entry.positions.tolist()):
                code, earlier = entry.code_at(index), by_position.get(position)
                if earlier is not None:
                    reasons = (*earlier.reasons, *entry.reasons)
                    by_position[position] = Status(max(earlier.code, code), reasons, entry.plugin)
                    continue
                status = alone.get((number, code))
                if status is None:
                    status = alone[number, code] = Status(code, entry.reasons, entry.plugin)
                by_position[position] = status
        names = self.nodes.names()
        return {names[position]: status for position, status in sorted(by_position.items())}


def _positions(rejection: Rejection, feasible: NodeMask) -> Rows:
    """Positions that were feasible and are rejected now. Raises WrongAnswer."""
    if type(rejection) is not Rejection:
        raise WrongAnswer(described(rejection), REJECTIONS)
    if rejection.codes is not None and len(rejection.codes) != len(feasible):
        raise WrongAnswer(
            f"a rejection with {len(rejection.codes)} codes", f"{len(feasible)}, one per node"
        )
    rows = np.asarray(rejection.positions)
    if rows.dtype == np.bool_:
        if rows.shape != feasible.shape:
            raise WrongAnswer(
                f"a rejection of {form_of(rows)}",
                f"{form_of(feasible)}, one truth value per node of the view, or positions",
            )
        return places_of(rows & feasible)
    if rows.dtype != np.intp and rows.size and rows.dtype.kind not in "iu":
        raise WrongAnswer(
            f"a rejection of {form_of(rows)}", f"{form_of(feasible)}, or positions as whole numbers"
        )
    positions = distinct(rows).astype(np.intp)
    if len(positions) and (positions[0] < 0 or positions[-1] >= len(feasible)):
        wrong = positions[0] if positions[0] < 0 else positions[-1]
        raise WrongAnswer(
            f"a rejection of position {wrong}",
            f"0..{len(feasible) - 1}: positions in the view, not rows of the table",
        )
    return positions[feasible[positions]]


def _error_of(
    plugin: str, rejection: Rejection, codes: "np.ndarray[tuple[int], np.dtype[np.uint8]] | None"
) -> Status | None:
    """The Error of a rejection with the code ERROR; else None. Raises WrongAnswer for a code that
    Filter may not return."""
    if codes is None:
        if rejection.code in FILTER_CODES:
            return None
        code = rejection.code
    else:
        wrong = {int(c) for c in np.unique(codes)} - FILTER_CODES
        if not wrong:
            return None
        if min(wrong) not in set(Code):
            raise WrongAnswer(f"a rejection with {min(wrong)}", codes_text(REJECTION_CODES))
        code = Code(min(wrong))
    message = ", ".join(rejection.reasons)
    if code is not Code.ERROR:
        reasons = f" ({message})" if message else ""
        raise WrongAnswer(f"a rejection with {code}{reasons}", codes_text(REJECTION_CODES))
    message = message or "failed without a reason"
    return Status(Code.ERROR, (f'running "{plugin}" filter plugin: {message}',), plugin)


def _code_counts(entry: RejectionEntry) -> list[tuple[Code, int]]:
    if entry.codes is None:
        return [(entry.code, len(entry.positions))]
    codes, counts = np.unique(entry.codes, return_counts=True)
    return [(Code(int(c)), int(n)) for c, n in zip(codes, counts, strict=True)]


# ---- scalar ---------------------------------------------------------------------------------


def filter_nodes(
    plugin: ScalarFilterPlugin,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
    feasible: NodeMask,
) -> Iterable[Rejection]:
    """One rejection per distinct (code, reasons). An Error ends the loop, as upstream."""
    rejected: dict[tuple[Code, tuple[str, ...]], list[int]] = {}
    for position in np.flatnonzero(feasible).tolist():
        status = checked(plugin.filter_node(state, pod, nodes.info(position)))
        if status is None or status.code is Code.SUCCESS:
            continue
        rejected.setdefault((status.code, status.reasons), []).append(position)
        if status.code is Code.ERROR:
            break
    for (code, reasons), positions in rejected.items():
        yield Rejection(np.array(positions, np.intp), code, reasons)


def score_nodes(
    plugin: ScalarScorePlugin, state: CycleState, pod: PodInfo, nodes: NodeView
) -> NodeScores:
    """int64[nodes]. Raises WrongAnswer for a score that is not a whole number."""
    answers = [plugin.score_node(state, pod, node) for node in nodes.infos()]
    try:
        scores = np.array(answers)
    except ValueError:  # lists of different lengths
        scores = np.empty(0)
    if not answers or (_are_whole(scores) and scores.ndim == 1):
        return scores.astype(np.int64, copy=False)
    wrong = next((one for one in answers if not _are_whole(np.array(one)) or np.ndim(one)), None)
    raise WrongAnswer(described(wrong), "an int from 0 to 100", plugin.score_node)


def _are_whole(numbers: np.ndarray[Any, Any]) -> bool:
    """Whether they are whole numbers that int64 holds; truth values are not."""
    return numbers.dtype.kind in "iu" and np.can_cast(numbers.dtype, np.int64)


# ---- rows -----------------------------------------------------------------------------------


AskRowFilter = Callable[[CycleState, PodInfo, NodeInfo], Verdict]
AskRowScore = Callable[[CycleState, PodInfo, NodeInfo], int]


def row_filter_of(plugin: FilterPlugin | ScalarFilterPlugin) -> AskRowFilter:
    """A function that returns why one node does not fit the pod. It raises WrongAnswer and the
    plugin's exceptions."""
    if isinstance(plugin, RowFilter):
        return plugin.filter_row
    if isinstance(plugin, ScalarFilterPlugin):
        return partial(_by_node, plugin)
    return partial(_by_array, plugin)


def row_score_of(plugin: ScorePlugin | ScalarScorePlugin) -> AskRowScore:
    """A function that returns the raw score of one node. It raises the plugin's exceptions."""
    if isinstance(plugin, RowScore):
        return plugin.score_row
    if isinstance(plugin, ScalarScorePlugin):
        return plugin.score_node
    return partial(_scored_by_array, plugin)


def checked_verdict(verdict: Any) -> Verdict:
    """The result of a Filter for one node. Raises WrongAnswer for a value of another form."""
    # Not `cast`, which is a call for each node.
    pairs: Verdict = verdict
    if not isinstance(verdict, tuple) or not all(map(_is_rejection, pairs)):
        raise WrongAnswer(
            described(pairs), "a tuple of (Code, reasons) pairs; () where the node fits"
        )
    return pairs


def _is_rejection(pair: Any) -> bool:
    """Whether it is a code with which Filter may reject, and a tuple of reasons."""
    if not isinstance(pair, tuple):
        return False
    parts = cast("tuple[Any, ...]", pair)
    return len(parts) == 2 and parts[0] in FILTER_CODES and isinstance(parts[1], tuple)


def verdicts_of(outcome: FilterOutcome) -> dict[int, Verdict]:
    """Position → its verdict: codes and reasons in the order of the entries."""
    verdicts: dict[int, Verdict] = {}
    for entry in outcome.entries:
        for index, position in enumerate(entry.positions.tolist()):
            rejection = (entry.code_at(index), entry.reasons)
            verdicts[position] = (*verdicts.get(position, ()), rejection)
    return verdicts


def _by_node(
    plugin: ScalarFilterPlugin, state: CycleState, pod: PodInfo, node: NodeInfo
) -> Verdict:
    status = checked(plugin.filter_node(state, pod, node))
    if status is None or status.code is Code.SUCCESS:
        return ()
    if status.code not in FILTER_CODES:
        raise WrongAnswer(
            str(status.code), codes_text((Code.SUCCESS, *REJECTION_CODES)), plugin.filter_node
        )
    return ((status.code, status.reasons),)


def _by_array(plugin: FilterPlugin, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
    outcome = FilterOutcome(node.view, all_true(1))
    outcome.add(plugin.name, plugin.filter(state, pod, outcome.nodes, outcome.feasible))
    if outcome.error is not None:
        raise WrongAnswer(str(outcome.error), "a rejection", plugin.filter)
    return verdicts_of(outcome).get(0, ())


def _scored_by_array(plugin: ScorePlugin, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
    return plugin.score(state, pod, node.view).item(0)
