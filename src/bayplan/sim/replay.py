"""One node, looked at closely: the recorded inputs replayed up to one attempt.

The journal keeps the best nodes only. Everything else about an attempt is still there, because a
run is a function of its inputs: it is run again, stopped at that attempt, and asked.
"""

from dataclasses import dataclass

import numpy as np

from bayplan.config import config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.attempt_record import node_score
from bayplan.engine.cycle import Cycle
from bayplan.framework.status import Status
from bayplan.journal import AttemptRecord, NodeScore
from bayplan.plugins.registry import default_registry
from bayplan.sim.run_folder import RunFolder, RunFolderError
from bayplan.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """What one attempt at a pod found out about one node."""

    pod: str
    attempt: int
    node: str
    #: Why the node was not asked, when it was not.
    not_asked: str = ""
    #: The first rejection, which is the one that counts; None: the node was feasible.
    rejection: Status | None = None
    #: Filter instance → its answer when asked alone about this node; None: it has no objection.
    alone: tuple[tuple[str, Status | None], ...] = ()
    scores: NodeScore | None = None
    #: How many nodes had a higher total, and how many the same.
    better_count: int = 0
    equal_count: int = 0
    chosen: str = ""


class _Found(Exception):
    """The attempt was reached."""

    def __init__(self, verdict: NodeVerdict) -> None:
        super().__init__()
        self.verdict = verdict


def node_verdict(folder: RunFolder, pod: str, node: str, attempt: int | None = None) -> NodeVerdict:
    """Replay a run up to an attempt (the pod's last one) and ask about a node.

    Raises RunFolderError when there is no such attempt, ConfigError when the inputs are refused.
    """
    attempts = [r for r in folder.journal() if isinstance(r, AttemptRecord) and r.pod == pod]
    wanted = attempt if attempt is not None else max((r.attempt for r in attempts), default=0)
    uids = {r.uid for r in attempts if r.attempt == wanted}
    if not uids:
        raise RunFolderError(f"{folder.path}: no attempt {wanted} at {pod} is recorded")

    def look(cycle: Cycle) -> None:
        if cycle.pod.uid in uids and cycle.queued.attempts == wanted:
            raise _Found(_verdict(cycle, node))

    manifest, workload, plugin_files = folder.inputs()
    registry = default_registry(plugin_files)
    source, gates = f"{folder.path}/inputs", manifest.feature_gates
    config = (
        config_from(DEFAULT_CONFIG, source, gates)
        if manifest.config is None
        else load_config(manifest.config, source, gates)
    )
    simulation = Simulation(workload, config, registry, seed=manifest.seed, on_attempt=look)
    try:
        simulation.run()
    except _Found as found:
        return found.verdict
    raise RunFolderError(f"{folder.path}: the replay did not come to attempt {wanted} at {pod}")


def _verdict(cycle: Cycle, node: str) -> NodeVerdict:
    pod, attempt = cycle.pod.key, cycle.queued.attempts
    chosen = cycle.choice.node_name if cycle.choice is not None else ""
    if cycle.snapshot.nodes.position(node) is None:
        return NodeVerdict(pod, attempt, node, "there was no such node then", chosen=chosen)
    outcome = cycle.outcome
    if outcome is None:
        said = cycle.status.message if cycle.status is not None else ""
        return NodeVerdict(pod, attempt, node, f"the pod as a whole was rejected: {said}")
    position = outcome.nodes.position(node)
    if position is None:
        listed = ", ".join(sorted(cycle.narrowing))
        return NodeVerdict(pod, attempt, node, f"left out by {listed}", chosen=chosen)
    rejection = outcome.status_of(position)
    scores, better_count, equal_count = _scores(cycle, node)
    return NodeVerdict(
        pod,
        attempt,
        node,
        rejection=rejection,
        alone=_alone(cycle, node),
        scores=scores,
        better_count=better_count,
        equal_count=equal_count,
        chosen=chosen,
    )


def _alone(cycle: Cycle, node: str) -> tuple[tuple[str, Status | None], ...]:
    """Every Filter plugin's answer about this node, as if it were the only one."""
    position = cycle.snapshot.nodes.position(node)
    assert position is not None
    view = cycle.snapshot.nodes.take([position])
    answers = cycle.framework.filter_answers(cycle.state, cycle.pod, view)
    return tuple((name, found.error or found.status_of(0)) for name, found in answers)


def _scores(cycle: Cycle, node: str) -> tuple[NodeScore | None, int, int]:
    if cycle.table is None:
        return None, 0, 0
    position = cycle.table.nodes.position(node)
    if position is None:
        return None, 0, 0
    totals = cycle.table.totals
    own = totals[position]
    better_count = int(np.count_nonzero(totals > own))
    return node_score(cycle.table, position), better_count, int(np.count_nonzero(totals == own)) - 1
