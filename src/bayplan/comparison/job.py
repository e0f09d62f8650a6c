"""One run of a comparison as a value that can be sent to another process, and its result.

A job contains all its inputs, so that it can run in another process or on another machine, and it
writes nothing there. The same job gives the same result, except for the time that it takes.

The key of a job is a hash over all inputs of the run, including the code: that of Bayplan, and that
of each installed plugin and metric. After any change of the code, results of earlier runs are not
reused.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import final

import msgspec
from msgspec import Struct

from bayplan import __version__
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import DEFAULT_SCHEDULER, NODE, POD, Node, Pod
from bayplan.comparison.decisions import DecisionSink, to_csv
from bayplan.comparison.extensions import METRICS_GROUP, PREPARATIONS_GROUP, installed_metrics
from bayplan.comparison.metrics.catalogue import BUILT_IN, DomainsInUse
from bayplan.comparison.metrics.run_metric import RunMetric
from bayplan.comparison.metrics.scheduling import Arrivals, arranged
from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.kubernetes_versions import requested_version
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.garbage import rarely_collected
from bayplan.journal import Record
from bayplan.lazy_loader import built
from bayplan.plugins.registry import ENTRY_POINT_GROUP, default_registry
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import FailureResult
from bayplan.sim.simulation import Simulation
from bayplan.state.pods import PodInfo, pod_info

# ---- identity -------------------------------------------------------------------------------


_GROUPS = (ENTRY_POINT_GROUP, METRICS_GROUP, PREPARATIONS_GROUP)
#: The length of a key.
_KEY_LENGTH = 24


def key_of(parts: object) -> str:
    """A key for plain values and this code."""
    return digest(msgspec.json.encode((code_digest(), parts), order="deterministic"))[:_KEY_LENGTH]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


#: Jobs share few inputs, and each of them asks for its key several times.
_digest_of_input = lru_cache(maxsize=8)(digest)


@cache
def code_digest() -> str:
    """A hash over all code that influences decisions."""
    code_hash = hashlib.sha256(__version__.encode())
    for package in sorted({"bayplan", *_installed()}):
        for path in _sources(package):
            code_hash.update(path.name.encode())
            code_hash.update(path.read_bytes())
    return code_hash.hexdigest()


def _installed() -> Iterator[str]:
    """The top-level packages that extend Bayplan here."""
    for group in _GROUPS:
        for point in entry_points(group=group):
            yield point.module.partition(".")[0]


def _sources(package: str) -> Iterable[Path]:
    spec = find_spec(package)
    if spec is None:
        return ()
    if spec.submodule_search_locations:
        folders = sorted(spec.submodule_search_locations)
        return [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


# ---- job ------------------------------------------------------------------------------------


class PluginFile(Struct, frozen=True):
    """A file for --plugin: its path and its content."""

    path: str
    content: bytes


class Configuration(Struct, frozen=True, kw_only=True):
    """One of the configurations that are compared."""

    name: str
    #: None: the default configuration, which then schedules all pods.
    text: str | None
    #: The place of the configuration, for messages.
    source: str = ""
    feature_gates: str = ""
    #: The version of kube-scheduler; "": that of the cluster, or the newest.
    kubernetes: str = ""


class WatchedMetrics(Struct, frozen=True, kw_only=True):
    """The metrics to measure by name, and the labels whose domains are counted."""

    metrics: tuple[str, ...]
    topology_keys: tuple[str, ...] = ()


class Job(Struct, frozen=True, kw_only=True):
    """All inputs of one run."""

    input: str
    #: A Workload as JSON, before the seed arranges it.
    workload: bytes
    arrivals: Arrivals
    configuration: Configuration
    plugin_files: tuple[PluginFile, ...]
    seed: int
    watched: WatchedMetrics

    @property
    def key(self) -> str:
        """Equal for equal runs."""
        plugins = [(Path(one.path).name, digest(one.content)) for one in self.plugin_files]
        one = self.configuration
        how = (one.text, one.feature_gates, plugins, *filter(None, (one.kubernetes,)))
        return key_of(
            (_digest_of_input(self.workload), self.arrivals, how, self.seed, self.watched)
        )

    @property
    def parts(self) -> "tuple[Job, bytes]":
        """The job without its workload, and the workload, which many jobs share: the arguments of
        `perform_parts`."""
        return msgspec.structs.replace(self, workload=b""), self.workload


class RunResult(Struct, frozen=True, kw_only=True):
    """The result of one run."""

    metrics: dict[str, float]
    curves: dict[str, list[tuple[float, float]]]
    digest: str
    attempts: int
    wall_seconds: float
    notes: tuple[str, ...] = ()
    #: Failures by error; see `SimulationResult.failures`.
    failures: tuple[FailureResult, ...] = ()


class JobResult(Struct, frozen=True):
    """What a job returns: the result, and every decision as CSV."""

    result: RunResult
    decisions: bytes


def perform(job: Job) -> JobResult:
    """Run the job. Raises ConfigError, InvariantBroken, and exceptions of bugs in Bayplan."""
    workload = msgspec.json.decode(job.workload, type=built(Workload))
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
        simulation.cluster.observe(watch.observe, (NODE, POD))
        simulation.keep_journal(watch)
        simulation.keep_journal(decided)
        simulated = simulation.run()
    metrics: dict[str, float] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    for metric in watch.metrics:
        metrics.update(metric.values(simulated))
        curves.update({name: list(points) for name, points in metric.curves().items()})
    result = RunResult(
        metrics=metrics,
        curves=curves,
        digest=simulated.digest,
        attempts=simulated.attempts,
        wall_seconds=simulated.wall_seconds,
        notes=simulated.notes,
        failures=simulated.failures,
    )
    return JobResult(result, to_csv(decided.decisions))


def perform_parts(job: Job, workload: bytes) -> JobResult:
    """`perform`, of `Job.parts`."""
    return perform(msgspec.structs.replace(job, workload=workload))


def config_of(configuration: Configuration) -> SchedulerConfig:
    """Raises ConfigError for an invalid document."""
    version = requested_version(configuration.kubernetes, "kubernetes")
    gates = configuration.feature_gates
    if configuration.text is None:
        return config_from(DEFAULT_CONFIG, "", gates, kubernetes=version)
    return load_config(configuration.text, configuration.source, gates, kubernetes=version)


def made_metrics(watched: WatchedMetrics) -> list[RunMetric]:
    """An instance of each metric to measure."""
    all_metrics = {**{one.name: one for one in BUILT_IN}, **installed_metrics()}
    chosen = [all_metrics[name] for name in watched.metrics]
    return [DomainsInUse(watched.topology_keys) if one is DomainsInUse else one() for one in chosen]


@final
class _Watch:
    """Passes changes and records to the metrics. Each version of a pod is compiled once."""

    def __init__(self, metrics: Sequence[RunMetric]) -> None:
        self.metrics = metrics
        self._pods: dict[str, PodInfo] = {}

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
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
    """The path of each plugin file: the original, or a copy."""
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        yield [_readable(one, Path(folder) / str(index)) for index, one in enumerate(files)]


def _readable(file: PluginFile, folder: Path) -> Path:
    path = Path(file.path)
    if path.is_file() and path.read_bytes() == file.content:
        return path
    folder.mkdir()
    copy = folder / path.name
    copy.write_bytes(file.content)
    return copy
