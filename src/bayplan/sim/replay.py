"""One node in one attempt: replays the recorded inputs up to the attempt and evaluates the node.

The journal contains only the best nodes. Everything else about an attempt can be computed again,
because a run is a function of its inputs. The replay stops at the attempt. Until then it compares
each record with the journal: a replay with other decisions would explain another run.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from msgspec.structs import replace

from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.attempt_record import OnAttempt
from bayplan.engine.cycle import Cycle
from bayplan.framework.scoring import ScoreTable
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord, NodeScore, Record
from bayplan.plugins.registry import Registry, default_registry
from bayplan.problems import shown
from bayplan.sim.output.run_folder import (
    Inputs,
    Manifest,
    PluginsNotAllowedError,
    RunFolder,
    RunFolderError,
)
from bayplan.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a node, and its rank among all nodes that were scored."""

    #: The line of the node and, if it is another node, of the chosen one.
    lines: tuple[NodeScore, ...]
    #: The number of nodes with a higher total, and of other nodes with the same total.
    better_count: int
    equal_count: int


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """The result of one attempt for one node."""

    #: The attempt's record in the journal.
    record: AttemptRecord
    node: str
    #: Why the node was not evaluated; "": it was evaluated.
    skip_reason: str = ""
    #: The first rejection, which decides; None: no plugin rejected the node.
    rejection: Status | None = None
    #: Filter instance → its result for this node alone; None: no objection.
    alone: tuple[tuple[str, Status | None], ...] = ()
    scores: Scores | None = None


class RunSettings(NamedTuple):
    """With what a run is repeated."""

    inputs: Inputs
    config: SchedulerConfig
    registry: Registry


def settings_of_run(folder: RunFolder) -> RunSettings:
    """With what a run is repeated. Loads its plugins, if the user allows it.

    Raises RunFolderError (PluginsNotAllowedError), ConfigError.
    """
    inputs = folder.inputs()
    manifest = inputs.manifest
    config = configuration_of_run(manifest, f"{folder.path}/inputs")
    extenders = [shown(each.url_prefix) for each in config.spec.extenders]
    if extenders and not folder.allows_plugins:
        raise PluginsNotAllowedError(
            f"{folder.path}: the run calls the extenders {', '.join(extenders)}; --allow-plugins "
            f"calls them again"
        )
    if not manifest.plugins or folder.plugins:
        return RunSettings(inputs, config, default_registry(folder.plugins))
    if not folder.allows_plugins:
        names = ", ".join(shown(Path(name).name) for name in manifest.plugins)
        raise PluginsNotAllowedError(
            f"{folder.path}: the run has the plugins {names}, which are code; --allow-plugins "
            f"executes the copies in the folder, --plugin FILE.py a file of yours"
        )
    return RunSettings(inputs, config, default_registry(inputs.plugin_files))


def repetition(
    folder: RunFolder, on_attempt: OnAttempt | None = None, *, until_seconds: float | None = None
) -> Simulation:
    """A simulation that repeats a run. A decision that differs from the run's journal raises
    RunFolderError while the simulation runs.

    ``until_seconds``: end after all changes of this time; None: at the end of the run. Raises
    RunFolderError, ConfigError.
    """
    inputs, config, registry = settings_of_run(folder)
    workload = inputs.workload
    if until_seconds is not None:
        workload = replace(workload, until_seconds=until_seconds)
    simulation = Simulation(
        workload, config, registry, seed=inputs.manifest.seed, on_attempt=on_attempt
    )
    simulation.keep_journal(_SameAs(folder))
    return simulation


def node_verdict(folder: RunFolder, record: AttemptRecord, node: str) -> NodeVerdict:
    """Replay a run up to one of its attempts and evaluate a node.

    Raises RunFolderError if the replay does not reach the attempt, ConfigError if the inputs are
    refused.
    """

    def look(cycle: Cycle) -> None:
        if cycle.pod.uid == record.uid and cycle.queued.attempts == record.attempt:
            raise _AttemptReached(verdict_of(cycle, record, node))

    simulation = repetition(folder, look)
    try:
        simulation.run()
    except _AttemptReached as reached:
        return reached.verdict
    attempt = f"attempt {record.attempt} at {record.pod}"
    raise RunFolderError(f"{folder.path}: the replay did not reach {attempt}")


class _AttemptReached(Exception):
    """The attempt was reached."""

    def __init__(self, verdict: NodeVerdict) -> None:
        super().__init__()
        self.verdict = verdict


@final
class _SameAs:
    """A journal sink that compares each record with the run's own journal."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._expected: Iterator[Record] = folder.journal()
        self._line = 0

    def write(self, record: Record) -> None:
        self._line += 1
        expected = next(self._expected, None)
        if expected is not None and expected != record:
            raise RunFolderError(
                f"{self._folder.path}: the replay differs from the journal in line "
                f"{self._line}; was the run made by another version, or with other plugins?"
            )


def configuration_of_run(manifest: Manifest, source: str) -> SchedulerConfig:
    """The configuration of a run. ``source``: for messages. Raises ConfigError."""
    if manifest.config is None:
        return config_from(DEFAULT_CONFIG, source, manifest.feature_gates)
    return load_config(manifest.config, source, manifest.feature_gates)


# ---- verdict -------------------------------------------------------------------------------


def verdict_of(cycle: Cycle, record: AttemptRecord, node: str) -> NodeVerdict:
    """The result for one node. Called at the end of the cycle, while its snapshot is lent."""
    position = cycle.snapshot.nodes.position(node)
    table = cycle.score_table()
    skip_reason = (
        _skip_reason(cycle, node) if position is not None else "the node did not exist then"
    )
    if skip_reason or position is None:
        return NodeVerdict(record, node, skip_reason)
    return NodeVerdict(
        record,
        node,
        rejection=rejection_of(cycle, node),
        alone=_alone(cycle, position),
        scores=None if table is None else _scores(table, node, record.node),
    )


def _skip_reason(cycle: Cycle, node: str) -> str:
    """Why a node that existed was not evaluated; "": it was evaluated."""
    outcome = cycle.filter_outcome()
    if outcome is None:
        message = cycle.status.message if cycle.status is not None else ""
        return f"the attempt ended before any node was evaluated: {message}"
    position = outcome.nodes.position(node)
    if position is None:
        if cycle.candidates is not None and cycle.candidates.position(node) is not None:
            assert cycle.choice is not None
            return f"the pod was nominated to {cycle.choice.node_name}, which took it"
        return f"left out by {', '.join(sorted(cycle.narrowing))}"
    is_left = bool(outcome.feasible[position]) or rejection_of(cycle, node) is not None
    if is_left or outcome.error is not None:
        return ""
    return "enough nodes were found before (percentageOfNodesToScore)"


def rejection_of(cycle: Cycle, node: str) -> Status | None:
    """Why a node was rejected; None: it was not, or the attempt ended before any node was."""
    outcome = cycle.filter_outcome()
    if outcome is None:
        return None
    position = outcome.nodes.position(node)
    status = outcome.status_of(position) if position is not None else None
    return status or cycle.extender_round.statuses.get(node)


def _alone(cycle: Cycle, position: int) -> tuple[tuple[str, Status | None], ...]:
    """Each Filter plugin's result for this node, as if it were the only node."""
    with ExitStack() as stack:
        if cycle.choice is not None:
            _take_off(cycle, cycle.choice.node_name, stack)
        view = cycle.snapshot.nodes.take([position])
        answers = cycle.framework.filter_answers(cycle.state, cycle.pod, view)
        return tuple((name, outcome.error or outcome.status_of(0)) for name, outcome in answers)


def _take_off(cycle: Cycle, node: str, stack: ExitStack) -> None:
    """Remove the pod from the node on which it was assumed: it would be in its own way."""
    for pod in cycle.snapshot.node(node).pods:
        if pod.uid == cycle.pod.uid:
            stack.enter_context(cycle.snapshot.trial()).remove(pod)
            return


def _scores(table: ScoreTable, node: str, chosen: str) -> Scores | None:
    position = table.nodes.position(node)
    if position is None:
        return None
    positions = [position, table.nodes.position(chosen)] if chosen not in ("", node) else [position]
    own = table.totals[position]
    return Scores(
        lines=tuple(table.line_at(line) for line in positions if line is not None),
        better_count=int(np.count_nonzero(table.totals > own)),
        equal_count=int(np.count_nonzero(table.totals == own)) - 1,
    )
