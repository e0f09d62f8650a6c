"""Simulating from Python: `bayplan.simulate`, with the arguments of the command, and its result."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack, final

import msgspec

from bayplan.adapters.embedded.field_validation import one_of
from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.config import SchedulerConfig, config_from, load_config
from bayplan.config.cluster_version import version_for
from bayplan.config.kubernetes_versions import requested_version
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.frames import DataFrame, frame
from bayplan.framework.plugin import Plugin
from bayplan.garbage import rarely_collected
from bayplan.journal import (
    MemorySink,
    Record,
    subject_of,
)
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.plugins.registry import Registry, default_registry
from bayplan.problems import BadInputError, optional_duration, wrong
from bayplan.sim.decisions import Decisions, is_placed
from bayplan.sim.input.inputs import ARRIVALS, TRACE, load_inputs
from bayplan.sim.input.sources import InputSource
from bayplan.sim.input.workload import ExpansionMode, with_times
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.output.run_folder import RunFolder, RunManifest
from bayplan.sim.simulation import Simulation
from bayplan.sim.why import end_line, record_row, similar_pods, without_record

#: A configuration: a file, the plain values of a document, or None: the default one.
ConfigurationSource = str | Path | Mapping[str, Any] | None
#: A file with plugins, or the class of a plugin.
PluginSource = str | Path | type[Plugin]
#: A duration such as "40s", or seconds.
Duration = str | float | None


class SimulateOptions(TypedDict, total=False):
    """The options of `bayplan simulate` that few simulations need."""

    feature_gates: str
    #: The version of kube-scheduler to answer as, such as "1.36"; default: that of the cluster.
    kubernetes: str
    #: "arrivals" or "trace"
    time: str
    pod_gc_quarantine: Duration
    pod_gc_period: Duration
    until: Duration
    recreate_after: Duration
    #: "controllers" or "once"
    expansion: str
    strict: bool


def simulate(
    *inputs: InputSource,
    config: ConfigurationSource = None,
    plugins: Sequence[PluginSource] = (),
    seed: int = 0,
    out: str | Path | None = None,
    **options: Unpack[SimulateOptions],
) -> "Result":
    """Place pods on nodes under virtual time, as `bayplan simulate` does.

    ``inputs``: files, folders, "-" for standard input, or objects as plain values. ``config``:
    None: one profile, default-scheduler, which schedules all pods. ``out``: a folder for the run.
    Raises BadInputError for wrong arguments and wrong inputs.
    """
    time_mode = options.get("time", ARRIVALS)
    if time_mode not in (ARRIVALS, TRACE):
        raise BadInputError(str(wrong("time", time_mode, f'"{ARRIVALS}" or "{TRACE}"')))
    modes, mode = [one.value for one in ExpansionMode], options.get("expansion")
    if mode is not None and mode not in modes:
        raise BadInputError(str(wrong("expansion", mode, one_of(modes), modes)))
    registry = registry_of(plugins)
    feature_gates = options.get("feature_gates", "")
    kubernetes = options.get("kubernetes", "")
    configuration = configuration_of(config, feature_gates, kubernetes)
    workload = load_inputs(
        inputs,
        time_mode=time_mode,
        is_strict=options.get("strict", False),
        read_kinds={*registry.kinds, *group_kinds(configuration.spec.pod_groups.kinds)},
        expansion=None if mode is None else ExpansionMode(mode),
    )
    workload = with_times(
        workload,
        quarantine=optional_duration("pod_gc_quarantine", options.get("pod_gc_quarantine")),
        period=optional_duration("pod_gc_period", options.get("pod_gc_period")),
        recreate_after=optional_duration("recreate_after", options.get("recreate_after")),
        until=optional_duration("until", options.get("until")),
    )
    if config is None:
        workload = workload.for_scheduler(DEFAULT_SCHEDULER)
    records = MemorySink()
    if out is None:
        simulation = Simulation(workload, configuration, registry, seed=seed)
        simulation.keep_journal(records)
        with rarely_collected():
            return Result(simulation.run(), records.records)
    files = [Path(one) for one in plugins if isinstance(one, str | Path)]
    if len(files) < len(plugins):
        raise BadInputError("out: a run can be repeated only if its plugins are in files")
    manifest = RunManifest(
        seed=seed,
        config=None if config is None else configuration.text,
        feature_gates=feature_gates,
        kubernetes=version_for(configuration, workload.reported),
    )
    folder = RunFolder(Path(out))
    run = folder.start(manifest, workload, files)
    simulation = Simulation(workload, configuration, registry, seed=seed, put_entry=run.put)
    simulation.keep_journal(records)
    simulation.keep_journal(run)
    with run, rarely_collected():
        result = simulation.run()
    folder.finish(result)
    return Result(result, records.records)


def configuration_of(
    source: ConfigurationSource, feature_gates: str = "", kubernetes: str = ""
) -> SchedulerConfig:
    """A configuration from a file or from plain values. ``kubernetes``: the version to answer as;
    "": the newest, unless a cluster says which. Raises BadInputError."""
    version = requested_version(kubernetes, "kubernetes")
    if source is None:
        return config_from(DEFAULT_CONFIG, "", feature_gates, kubernetes=version)
    if isinstance(source, Mapping):
        content = msgspec.json.encode(dict(source))
        return load_config(content, "config", feature_gates, kubernetes=version)
    try:
        content = Path(source).read_bytes()
        return load_config(content, str(source), feature_gates, kubernetes=version)
    except OSError as problem:
        raise BadInputError(f"{source}: cannot be read: {problem.strerror}") from None


def registry_of(plugins: Iterable[PluginSource]) -> Registry:
    """All plugins, including these. Raises BadInputError."""
    plugins = list(plugins)
    files = [one for one in plugins if isinstance(one, str | Path)]
    for file in files:
        if not Path(file).is_file():
            raise BadInputError(f"{file}: cannot be read: no such file")
    registry = default_registry(files)
    for one in plugins:
        if isinstance(one, type):
            registry.add(one)
    return registry


# ---- the result ----------------------------------------------------------------------------


_PLACEMENT_COLUMNS = ("pod", "node", "bound_at")
_TIMELINE_COLUMNS = ("at", "subject", "event", "result", "node", "attempt", "plugin", "message")


@final
class Result:
    """The result of a simulation. ``print`` and notebooks show the summary of the command."""

    def __init__(self, result: SimulationResult, records: Sequence[Record]) -> None:
        #: The object that `bayplan simulate -o json` prints.
        self.summary = result
        #: The journal: every decision, in order.
        self.records = records

    def __str__(self) -> str:
        return str(self.summary)

    def __repr__(self) -> str:
        counts = self.summary.counts
        return f"Result({counts.scheduled} placed, {counts.unschedulable} waiting)"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()

    @property
    def placements(self) -> DataFrame:
        """A DataFrame of the pods that the simulation bound and that are there at its end: pod
        ("namespace/name"), node, bound_at (seconds). Without pandas and Polars: a `Table`."""
        result = self.summary
        rows = [
            {"pod": pod, "node": node, "bound_at": result.pods[pod].bound_at}
            for pod, node in result.placements.items()
        ]
        return frame(_PLACEMENT_COLUMNS, rows)

    @property
    def timeline(self) -> DataFrame:
        """A DataFrame of all decisions in order: at (seconds), subject (a pod or "podgroup
        namespace/name"), event (attempt, binding, gate, group or note), and the outcome."""
        return frame(_TIMELINE_COLUMNS, [_row(record) for record in self.records])

    def why(self, pod: str) -> Decisions:
        """All decisions about a pod, as `bayplan why POD --run DIR` prints them.

        ``pod``: "namespace/name", or a name in the namespace default. Raises BadInputError for a
        pod without any decision; the message has similar names.
        """
        name = pod if "/" in pod else f"{DEFAULT_NAMESPACE}/{pod}"
        records = tuple(record for record in self.records if subject_of(record) == name)
        message = end_line(name, self.summary) if records else without_record(name, self.summary)
        if message is None:
            similar = similar_pods(name, map(subject_of, self.records))
            raise BadInputError(f"there is no decision about {name}; {similar}")
        has_node = is_placed(name, self.summary, records)
        return Decisions(subject=name, has_node=has_node, records=records, message=message)


def _row(record: Record) -> dict[str, Any]:
    event, result, node, attempt, plugin, message = record_row(record)
    return {
        "at": record.at_seconds,
        "subject": subject_of(record),
        "event": event,
        "result": result,
        "node": node,
        "attempt": attempt,
        "plugin": plugin,
        "message": message,
    }
