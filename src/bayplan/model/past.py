"""One node in one attempt of the past: repeats that attempt alone, from the state before it.

The state comes from a log (engine/state_log.py). A log does not have what plugins hold in memory,
so the record of the repeated attempt is compared with the journal's. For a run folder, an attempt
that differs, or whose state is not in the folder, is reached by a replay of the run instead.
"""

from typing import NamedTuple

from msgspec.structs import replace

from bayplan.clock import ManualClock
from bayplan.config import SchedulerConfig
from bayplan.engine.cycle import Cycle
from bayplan.engine.state_log import AttemptStart, PastState
from bayplan.journal import AttemptRecord
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import Registry
from bayplan.sim.output.run_folder import RunFolder
from bayplan.sim.replay import NodeVerdict, node_verdict, settings_of_run, verdict_of


class Repetition(NamedTuple):
    """A repeated attempt."""

    #: None: the attempt did not reach the pod.
    verdict: NodeVerdict | None
    #: Whether its record equals that of the journal.
    is_exact: bool


def past_verdict(folder: RunFolder, record: AttemptRecord, node: str) -> NodeVerdict:
    """Repeat one attempt of a run and evaluate a node.

    Raises RunFolderError if there is no such attempt, ConfigError if the inputs are refused.
    """
    past = folder.state_before(record)
    if past is not None:
        inputs, config, registry = settings_of_run(folder)
        repeated = repeat(
            *past, record, node, config=config, registry=registry, seed=inputs.manifest.seed
        )
        if repeated.is_exact and repeated.verdict is not None:
            return repeated.verdict
    return node_verdict(folder, record, node)


def repeat(
    state: PastState,
    begun: AttemptStart,
    record: AttemptRecord,
    node: str,
    *,
    config: SchedulerConfig,
    registry: Registry,
    seed: int,
    absent: frozenset[str] = frozenset(),
) -> Repetition:
    """Make one attempt again. ``absent``: kinds that the API server does not have. Raises
    ConfigError."""
    source = ClusterPicture(
        store_of(state.objects_as_decided()),
        absent=absent,
        epoch_seconds=ManualClock.EPOCH_SECONDS + begun.at_seconds,
    )
    verdicts: list[NodeVerdict] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.uid == record.uid:
            verdicts.append(verdict_of(cycle, record, node))

    model = ClusterModel(source, config, registry, seed=seed)
    try:
        model.continue_from(begun)
        try:
            attempt = model.attempt(record.pod, look)
        except KeyError:
            # The pod does not wait in this state.
            return Repetition(None, is_exact=False)
    finally:
        model.close()
    repeated = attempt.record
    is_exact = repeated is not None and replace(repeated, at_seconds=record.at_seconds) == record
    return Repetition(verdicts[-1] if verdicts else None, is_exact)
