"""One run of a comparison, as a value that can be sent anywhere, and what comes back.

A job carries everything it needs, bytes and all, so that it can be worked on in another process or
on another machine; nothing is written there. The same job gives the same result, but for how long
it took.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import final

import msgspec
from msgspec import Struct

from bayplan.adapters.object_store import Stored
from bayplan.api.objects import Node, Pod
from bayplan.comparison.arrivals import Arrivals, arranged
from bayplan.comparison.collecting import rarely_collected
from bayplan.comparison.decisions import DecisionSink, to_csv
from bayplan.comparison.extensions import installed_metrics
from bayplan.comparison.identity import digest, key_of
from bayplan.comparison.metrics import BUILT_IN, Domains
from bayplan.comparison.run_metric import RunMetric
from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.journal import Record
from bayplan.plugins.registry import default_registry
from bayplan.sim.result import FailureResult
from bayplan.sim.simulation import Simulation
from bayplan.sim.workload import Workload
from bayplan.state.pods import DEFAULT_SCHEDULER, PodInfo, pod_info


class PluginFile(Struct, frozen=True):
    """A file for --plugin: where it was read, and what it said."""

    path: str
    content: bytes


class Configuration(Struct, frozen=True, kw_only=True):
    """One of the configurations that are compared."""

    name: str
    #: None: the default one, and all pods are scheduled with it.
    text: str | None
    #: Where it was read, for messages.
    source: str = ""
    feature_gates: str = ""


class Watched(Struct, frozen=True, kw_only=True):
    """What is to be measured: metrics by name, and the labels whose domains are counted."""

    metrics: tuple[str, ...]
    topology_keys: tuple[str, ...] = ()


class Job(Struct, frozen=True, kw_only=True):
    """Everything one run follows from."""

    input: str
    #: A Workload as JSON, before the seed arranges it.
    workload: bytes
    arrivals: Arrivals
    configuration: Configuration
    plugin_files: tuple[PluginFile, ...]
    seed: int
    watched: Watched

    @property
    def key(self) -> str:
        """The same for the same run."""
        plugins = [(Path(one.path).name, digest(one.content)) for one in self.plugin_files]
        how = (self.configuration.text, self.configuration.feature_gates, plugins)
        return key_of((digest(self.workload), self.arrivals, how, self.seed, self.watched))


class RunResult(Struct, frozen=True, kw_only=True):
    """What one run came to."""

    metrics: dict[str, float]
    curves: dict[str, list[tuple[float, float]]]
    digest: str
    attempts: int
    wall_seconds: float
    notes: tuple[str, ...] = ()
    #: What failed by an error; see `SimulationResult.failures`.
    failures: tuple[FailureResult, ...] = ()


class JobResult(Struct, frozen=True):
    """What a job sends back: the result, and every decision as CSV."""

    result: RunResult
    decisions: bytes


def perform(job: Job) -> JobResult:
    """Run it. Raises ConfigError, InvariantBroken, and what a bug of ours raises."""
    workload = msgspec.json.decode(job.workload, type=Workload)
    if job.configuration.text is None:
        workload = workload.for_scheduler(DEFAULT_SCHEDULER)
    with rarely_collected(), _on_disk(job.plugin_files) as files:
        simulation = Simulation(
            arranged(workload, job.arrivals, job.seed),
            config_of(job.configuration),
            default_registry(files),
            seed=job.seed,
        )
        watch = _Watch(made_metrics(job.watched))
        decided = DecisionSink()
        simulation.cluster.observe(watch.observe)
        simulation.keep_journal(watch)
        simulation.keep_journal(decided)
        found = simulation.run()
    metrics: dict[str, float] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    for metric in watch.metrics:
        metrics.update(metric.values(found))
        curves.update({name: list(points) for name, points in metric.curves().items()})
    result = RunResult(
        metrics=metrics,
        curves=curves,
        digest=found.digest,
        attempts=found.attempts,
        wall_seconds=found.wall_seconds,
        notes=found.notes,
        failures=found.failures,
    )
    return JobResult(result, to_csv(decided.decisions))


def config_of(configuration: Configuration) -> SchedulerConfig:
    """Raises ConfigError for what is no document at all."""
    if configuration.text is None:
        return config_from(DEFAULT_CONFIG, "", configuration.feature_gates)
    return load_config(configuration.text, configuration.source, configuration.feature_gates)


def made_metrics(watched: Watched) -> list[RunMetric]:
    """An instance of each metric that is asked for."""
    known = {**{one.name: one for one in BUILT_IN}, **installed_metrics()}
    chosen = [known[name] for name in watched.metrics]
    return [Domains(watched.topology_keys) if one is Domains else one() for one in chosen]


@final
class _Watch:
    """Tells metrics what happens. Each version of a pod is compiled once."""

    def __init__(self, metrics: Sequence[RunMetric]) -> None:
        self.metrics = metrics
        self._pods: dict[str, PodInfo] = {}

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Node):
            old, new = (None if one is None else one.object for one in (before, after))
            for metric in self.metrics:
                metric.node(old, new)  # pyright: ignore[reportArgumentType]
        elif isinstance(changed.object, Pod):
            self._pod(changed.object, after is not None)

    def _pod(self, pod: Pod, is_there: bool) -> None:
        uid = pod.metadata.uid or ""
        old, new = self._pods.pop(uid, None), pod_info(pod) if is_there else None
        if new is not None:
            self._pods[uid] = new
        for metric in self.metrics:
            metric.pod(old, new)

    def write(self, record: Record) -> None:
        for metric in self.metrics:
            metric.record(record)


@contextmanager
def _on_disk(files: Sequence[PluginFile]) -> Iterator[list[Path]]:
    """Where each plugin file can be loaded from: where it was read, or a copy of it."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        yield [_found(one, Path(folder) / str(index)) for index, one in enumerate(files)]


def _found(file: PluginFile, folder: Path) -> Path:
    path = Path(file.path)
    if path.is_file() and path.read_bytes() == file.content:
        return path
    folder.mkdir()
    copy = folder / path.name
    copy.write_bytes(file.content)
    return copy
