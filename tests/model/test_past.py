"""A past attempt is repeated from the state before it."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.state_log import AttemptStart, PastState, StateLog, StateRing
from bayplan.journal import AttemptRecord, MemorySink, Record
from bayplan.model import past
from bayplan.model.past import past_verdict, repeat
from bayplan.plugins.registry import default_registry
from bayplan.rng import Stream, stream
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.run_folder import (
    Manifest,
    RunFolder,
    RunFolderError,
    StateFiles,
    stored_state_before,
)
from bayplan.sim.replay import node_verdict
from bayplan.sim.simulation import Simulation
from tests.adapters.manifests import Content, container, node, pod, pod_group, priority_class
from tests.seeded import seeds
from tests.sim.runs import create, delete, patch, workload

ZONE = "topology.kubernetes.io/zone"
SAMPLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 10
"""


def run_of(path: Path, feed: Workload, seed: int = 3, config: str | None = None) -> RunFolder:
    """Store a run in a folder, with the plugin files beside it."""
    folder, files = RunFolder(path / "run", allows_plugins=True), sorted(path.glob("*.py"))
    chosen = load_config(config, "test") if config else config_from(DEFAULT_CONFIG)
    manifest = Manifest(seed=seed, config=config, feature_gates="")
    with folder.start(manifest, feed, files) as run:
        registry = default_registry(files)
        simulation = Simulation(feed, chosen, registry, seed=seed, state_log=run.states)
        simulation.keep_journal(run)
        folder.finish(simulation.run())
    return folder


def attempts(folder: RunFolder) -> list[AttemptRecord]:
    return [record for record in folder.journal() if isinstance(record, AttemptRecord)]


# ---- drawn runs -----------------------------------------------------------------------------


def drawn_node(draw: Stream, name: str) -> Content:
    taints = [{"key": "gpu", "effect": "NoSchedule"}] if draw.random() < 0.2 else []
    size = {"cpu": str(draw.randrange(2, 7)), "memory": "8Gi", "pods": "6"}
    labels = {ZONE: f"z{draw.randrange(3)}", "kubernetes.io/hostname": name}
    return node(name, labels=labels, spec={"taints": taints}, status={"allocatable": size})


def drawn_pod(draw: Stream, name: str) -> Content:
    app = f"a{draw.randrange(3)}"
    spec: dict[str, Any] = {"containers": [container(str(draw.randrange(1, 5)))]}
    if draw.random() < 0.3:
        spec["priorityClassName"] = "high"
    selector = {"matchLabels": {"app": app}}
    if draw.random() < 0.3:
        rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**rule, "labelSelector": selector}]
    if draw.random() < 0.2:
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        }
    if draw.random() < 0.2:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    labels = {"app": app}
    if draw.random() < 0.25:
        labels["scheduling.x-k8s.io/pod-group"] = "g"
    return pod(name, labels=labels, terminationGracePeriodSeconds=draw.randrange(3), **spec)


def drawn_feed(seed: int) -> Workload:
    """Pods and nodes are created and deleted, with preemption and a group."""
    draw = stream(seed, "past attempts")
    nodes = [drawn_node(draw, f"n{i}") for i in range(8)]
    pods = [drawn_pod(draw, f"p{i}") for i in range(24)]
    late = [drawn_pod(draw, f"late{i}") for i in range(10)]
    steps = [create(5 + i, each) for i, each in enumerate(late)]
    steps += [delete(8.5 + i, pods[draw.randrange(len(pods))]) for i in range(4)]
    steps += [delete(11.5, nodes[0]), create(14.5, drawn_node(draw, "n9"))]
    steps += [patch(12.5, node("n1", labels={ZONE: "z0"}))]
    steps.sort(key=lambda step: step.at_seconds)
    return workload(
        priority_class("high", 100), pod_group("g", minimum=2), *nodes, *pods, steps=steps
    )


@pytest.mark.parametrize("seed", seeds(3))
def test_the_answer_is_that_of_a_replay_of_the_whole_run(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_of(tmp_path, drawn_feed(seed), seed)
    draw, records = stream(seed, "questions"), attempts(folder)
    chosen = [records[draw.randrange(len(records))] for _ in range(5)]
    nodes = [f"n{draw.randrange(10)}" for _ in chosen]
    expected = [node_verdict(folder, *each) for each in zip(chosen, nodes, strict=True)]
    monkeypatch.setattr(past, "node_verdict", None)
    verdicts = [past_verdict(folder, *each) for each in zip(chosen, nodes, strict=True)]
    assert verdicts == expected


def test_a_sampled_search_starts_at_the_same_node_as_in_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = workload(*(node(f"n{i}") for i in range(150)), *(pod(f"p{i}") for i in range(5)))
    folder = run_of(tmp_path, feed, config=SAMPLED)
    last = attempts(folder)[-1]
    expected = [node_verdict(folder, last, f"n{i}") for i in range(0, 150, 30)]
    monkeypatch.setattr(past, "node_verdict", None)
    assert [past_verdict(folder, last, f"n{i}") for i in range(0, 150, 30)] == expected


FORGETFUL = """
from bayplan import ScalarFilterPlugin, Status

class EverySecond(ScalarFilterPlugin):
    name = "EverySecond"
    pods = set()

    def filter_node(self, state, pod, node):
        self.pods.add(pod.uid)
        return Status.unschedulable("odd") if len(self.pods) % 2 else None
"""
WITH_FORGETFUL = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: EverySecond}]}}
"""


def test_an_attempt_that_differs_from_its_record_is_reached_by_a_replay(tmp_path: Path) -> None:
    """A plugin stores state in memory that the log does not have."""
    (tmp_path / "every_second.py").write_text(FORGETFUL)
    folder = run_of(tmp_path, workload(node("n1"), pod("a"), pod("b")), config=WITH_FORGETFUL)
    second = next(record for record in attempts(folder) if record.pod == "default/b")
    assert second.node == "n1"
    assert past_verdict(folder, second, "n1").rejection is None


def test_a_run_without_states_is_replayed(tmp_path: Path) -> None:
    folder = run_of(tmp_path, workload(node("n1"), pod("a")))
    for file in (folder.path / "states").iterdir():
        file.unlink()
    [record] = attempts(folder)
    assert past_verdict(folder, record, "n1") == node_verdict(folder, record, "n1")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    folder = run_of(tmp_path, workload(node("n1"), pod("a")))
    (folder.path / "states" / "000000.jsonl").write_text('{"line":"head","record_count":0}\nx\n')
    [record] = attempts(folder)
    with pytest.raises(RunFolderError, match="states"):
        past_verdict(folder, record, "n1")


# ---- bounded logs ---------------------------------------------------------------------------


def simulated(feed: Workload, log: StateLog) -> list[Record]:
    records = MemorySink()
    simulation = Simulation(feed, SchedulerConfig(), default_registry(), seed=3, state_log=log)
    simulation.keep_journal(records)
    simulation.run()
    return list(records.records)


def fits_again(past_state: tuple[PastState, AttemptStart], record: AttemptRecord) -> bool:
    repeated = repeat(
        *past_state, record, "n1", config=SchedulerConfig(), registry=default_registry(), seed=3
    )
    return repeated.is_exact


def test_small_files_have_every_attempt(tmp_path: Path) -> None:
    files = StateFiles(tmp_path, file_bytes_min=20_000)
    records = simulated(drawn_feed(1), StateLog(files.put))
    files.close()
    assert len(list(tmp_path.iterdir())) > 1
    numbered = [(i, each) for i, each in enumerate(records) if isinstance(each, AttemptRecord)]
    for number, record in numbered[::7]:
        state = stored_state_before(tmp_path, record.uid, record.attempt, number)
        assert state is not None
        assert fits_again(state, record)


def test_old_files_are_deleted_when_the_total_exceeds_the_limit(tmp_path: Path) -> None:
    feed = workload(node("n1"), *(pod(f"p{i}", nodeName="n1") for i in range(2000)))
    files = StateFiles(tmp_path, file_bytes_min=100_000, total_bytes_max=600_000)
    simulated(feed, StateLog(files.put))
    files.close()
    names = sorted(file.name for file in tmp_path.iterdir())
    assert "000000.jsonl" not in names
    assert names


def test_a_ring_has_the_newest_attempts() -> None:
    ring = StateRing(60)
    journal = simulated(drawn_feed(2), StateLog(ring.put))
    records = [record for record in journal if isinstance(record, AttemptRecord)]
    assert len(ring) == 60
    newest, oldest = records[-1], records[0]
    state = ring.before(newest.uid, newest.attempt)
    assert state is not None
    assert fits_again(state, newest)
    assert ring.before(oldest.uid, oldest.attempt) is None
