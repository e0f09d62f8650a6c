"""Attempts of the past are repeated from the state before them, which is the sum of a log."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.api.objects import decoded_kinds
from bayplan.config import SchedulerConfig
from bayplan.engine.cycle import Cycle
from bayplan.history.entries import AttemptStart, Entry, ObjectChange
from bayplan.history.node_verdict import NodeVerdict, rejection_of, verdict_of
from bayplan.history.past_state import PastState, StateRing
from bayplan.history.state_files import StateFiles, StoredLog
from bayplan.journal import AttemptRecord, MemorySink, Record
from bayplan.model.past import AttemptRejection, Repetition, attempt_of_run, rejections_of, repeat
from bayplan.plugins.registry import default_registry
from bayplan.rng import Stream, stream
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.run_folder import RunFolderError
from bayplan.sim.simulation import Simulation
from tests.history.stored_runs import attempts_of, repetition, stored_run
from tests.kit.manifests import Content, container, node, pod, pod_group, priority_class
from tests.seeded import seeds
from tests.sim.runs import create, delete, patch, workload

ZONE = "topology.kubernetes.io/zone"
SAMPLED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 10
"""


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
def test_a_repeated_attempt_is_that_of_a_replay_of_the_whole_run(tmp_path: Path, seed: int) -> None:
    folder = stored_run(tmp_path, drawn_feed(seed), seed)
    records = {(each.uid, each.attempt): each for each in attempts_of(folder)}
    names = [*(f"n{i}" for i in range(8)), "n9"]
    expected: list[tuple[AttemptRecord, NodeVerdict]] = []

    def look(cycle: Cycle) -> None:
        record = records[cycle.pod.uid, cycle.queued.attempts]
        name = names[len(expected) % len(names)]
        expected.append((record, verdict_of(cycle, record, name)))

    repetition(folder, look).run()
    assert len(expected) > 30
    for record, verdict in expected[seed::5]:
        repeated = attempt_of_run(folder, record, verdict.node)
        assert repeated == Repetition(verdict, is_exact=True)


@pytest.mark.parametrize("seed", seeds(3))
def test_the_state_is_that_of_the_api_server_at_each_change(tmp_path: Path, seed: int) -> None:
    """The log is complete: its sum has each object of a replay, with its content."""
    folder = stored_run(tmp_path, drawn_feed(seed), seed)
    with folder.reading_states() as log:
        entries = log.numbered_entries()
        state = PastState()
        compared_count = 0

        def compare(entry: Entry) -> None:
            nonlocal compared_count
            number, logged_entry = next(entries)
            state.add(logged_entry)
            if not isinstance(entry, ObjectChange) or number % 5:
                return
            compared_count += 1
            kinds = {*decoded_kinds(), *state.objects.kinds()}
            stored = {e.key: e.content for kind in kinds for e in replay.cluster.objects(kind)}
            logged = {key: state.contents[key] for key, _ in state.objects}
            assert logged == stored

        replay = repetition(folder, put_entry=compare)
        replay.run()
    assert compared_count > 20


def test_a_sampled_search_starts_at_the_same_node_as_in_the_run(tmp_path: Path) -> None:
    feed = workload(*(node(f"n{i}") for i in range(150)), *(pod(f"p{i}") for i in range(5)))
    folder = stored_run(tmp_path, feed, config=SAMPLED)
    repeated = [attempt_of_run(folder, record, "n1") for record in attempts_of(folder)]
    assert all(each.is_exact for each in repeated)


@pytest.mark.parametrize("seed", seeds(3))
def test_the_rejections_of_a_node_are_those_of_a_replay(tmp_path: Path, seed: int) -> None:
    folder = stored_run(tmp_path, drawn_feed(seed), seed)
    expected: list[AttemptRejection] = []

    def look(cycle: Cycle) -> None:
        status = rejection_of(cycle, "n1")
        if status is not None:
            uid, attempt, code = cycle.pod.uid, cycle.queued.attempts, str(status.code)
            expected.append(AttemptRejection(uid, attempt, status.plugin, status.message, code))

    repetition(folder, look).run()
    assert rejections_of(folder, "n1", lambda: None) == expected


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


def test_an_attempt_that_differs_from_its_record_says_so(tmp_path: Path) -> None:
    """A plugin stores state in memory that the log does not have."""
    (tmp_path / "every_second.py").write_text(FORGETFUL)
    folder = stored_run(tmp_path, workload(node("n1"), pod("a"), pod("b")), config=WITH_FORGETFUL)
    second = next(record for record in attempts_of(folder) if record.pod == "default/b")
    assert second.node == "n1"
    assert not attempt_of_run(folder, second, "n1").is_exact


def test_a_run_without_states_is_refused(tmp_path: Path) -> None:
    folder = stored_run(tmp_path, workload(node("n1"), pod("a")))
    for file in (folder.path / "states").iterdir():
        file.unlink()
    [record] = attempts_of(folder)
    with pytest.raises(RunFolderError, match="does not have the state before attempt 1"):
        attempt_of_run(folder, record, "n1")


@pytest.mark.parametrize(
    "line",
    ["x", "{}", '["object",0.0,"MODIFIED","v1 Pod","u",1,{}]', '["head",0.0,0,0,0]\n["object"]'],
)
def test_a_damaged_file_is_named(tmp_path: Path, line: str) -> None:
    folder = stored_run(tmp_path, workload(node("n1"), pod("a")))
    (folder.path / "states" / "000000.jsonl").write_text(f'["head",0.0,0,0,0]\n{line}\n')
    [record] = attempts_of(folder)
    with pytest.raises(RunFolderError, match=r"000000\.jsonl"):
        attempt_of_run(folder, record, "n1")


# ---- bounded logs ---------------------------------------------------------------------------


def simulated(feed: Workload, put: Callable[[Entry], None]) -> list[Record]:
    records = MemorySink()
    simulation = Simulation(feed, SchedulerConfig(), default_registry(), seed=3, put_entry=put)
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
    files.begin()
    records = simulated(drawn_feed(1), files.put)
    files.close()
    assert len(list(tmp_path.iterdir())) > 1
    numbered = [(i, each) for i, each in enumerate(records) if isinstance(each, AttemptRecord)]
    for number, record in numbered[::7]:
        state = StoredLog(tmp_path).before(record.uid, record.attempt, number)
        assert state is not None
        assert fits_again(state, record)


def test_old_files_are_deleted_when_the_total_exceeds_the_limit(tmp_path: Path) -> None:
    feed = workload(node("n1"), *(pod(f"p{i}", nodeName="n1") for i in range(2000)))
    files = StateFiles(tmp_path, file_bytes_min=20_000, total_bytes_max=60_000)
    files.begin()
    simulated(feed, files.put)
    files.close()
    names = sorted(file.name for file in tmp_path.iterdir())
    assert "000000.jsonl" not in names
    assert names


def test_a_ring_has_the_newest_attempts() -> None:
    ring = StateRing(60)
    journal = simulated(drawn_feed(2), ring.put)
    records = [record for record in journal if isinstance(record, AttemptRecord)]
    assert len(ring) == 60
    newest, oldest = records[-1], records[0]
    state = ring.before(newest.uid, newest.attempt)
    assert state is not None
    assert fits_again(state, newest)
    assert ring.before(oldest.uid, oldest.attempt) is None
