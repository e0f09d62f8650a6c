"""`bayplan simulate`: simulate a cluster and a workload under virtual time."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

import click
from rich.text import Text

from bayplan.answers.formats import OutputFormat
from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.cli.admission import admission_of, admission_options
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import ProgressLines, command_text, progress, show, show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.options import config_option, output_option, plugin_option, seed_option
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import STANDARD_INPUT, refusals
from bayplan.cli.streams import EXIT_FAILED, fail, remark
from bayplan.config import SchedulerConfig
from bayplan.config.cluster_version import version_for
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.garbage import rarely_collected
from bayplan.lazy_loader import load
from bayplan.plugins.registry import Registry
from bayplan.problems import optional_duration
from bayplan.profile.effective_config import remarks
from bayplan.profile.resolved_config import resolve
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import ExpansionMode, Workload, with_times
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.output.run_folder import RunFolder, RunManifest
from bayplan.sim.simulation import OnProgress, Simulation
from bayplan.watchdog import BlockingCall, PluginWatchdog

#: Of a run that its process ends with, before garbage is searched: at most some 100 MB of it.
_NEW_OBJECTS = 500_000
#: The parts of a configuration that decide where pods are placed.
_DECIDING = ("profiles", "extenders", "featureGates")


@final
@dataclass(frozen=True, kw_only=True)
class _Options:
    """The command line, as click has read it."""

    paths: tuple[str, ...]
    config_path: str | None
    plugins: tuple[str, ...]
    feature_gates: str
    kubernetes: str
    seed: int
    time_mode: str
    output: OutputFormat
    out: str | None
    pod_gc_quarantine: str | None
    pod_gc_period: str | None
    until: str | None
    recreate_after: str | None
    expansion: str | None
    enabled: str
    disabled: str
    strict: bool
    is_shown: bool


@click.command(
    "simulate",
    epilog=examples(
        "bayplan simulate cluster.yaml workload.yaml",
        "bayplan simulate cluster.yaml --config scheduler.yaml --plugin my_policy.py",
        "bayplan simulate cluster.yaml scenario.yaml --out runs/a",
        "kubectl get nodes,pods -A -o yaml | bayplan simulate - -o json",
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@config_option()
@plugin_option()
@feature_gates_option()
@seed_option()
@click.option(
    "--time",
    "time_mode",
    type=click.Choice(("arrivals", "trace")),
    default="arrivals",
    show_default=True,
    help="For traces. arrivals: pods arrive in order and stay; trace: they come and go as traced",
)
@output_option()
@click.option(
    "--out",
    metavar="DIR",
    help="Folder for the run: summary, placements, journal and inputs, for `bayplan why`",
)
@click.option(
    "--pod-gc-quarantine",
    metavar="DURATION",
    help="Time before the pods of a missing node are deleted. Default: 0s (in a cluster: 40s)",
)
@click.option(
    "--pod-gc-period",
    metavar="DURATION",
    help="Interval between searches for such pods. Default: 0s (in a cluster: 20s)",
)
@click.option(
    "--until",
    metavar="DURATION",
    help="End the run at this virtual time. Default: until nothing is left to happen",
)
@click.option(
    "--recreate-after",
    metavar="DURATION",
    help="Time before controllers replace pods that are gone. Default: 0s",
)
@click.option(
    "--expansion",
    type=click.Choice([mode.value for mode in ExpansionMode]),
    help="controllers: in the whole run (default); once: controllers only create their first pods",
)
@admission_options()
@click.option("--strict", is_flag=True, help="Refuse kinds and fields that nothing reads")
@click.option("--ui", "is_shown", is_flag=True, help="Then show the run in a browser")
def simulate_command(**values: Any) -> None:
    """Place pods on nodes under virtual time and report the result for each pod.

    PATH is a file or a folder of Kubernetes objects (nodes, pods, Deployments and so on, as written
    by `bayplan capture` or `kubectl get … -o yaml`), a scenario, a trace in CSV, or - for standard
    input.

    The exit code is 0 even if pods fit on no node; 1 if an attempt failed with an error; 2 if the
    input is wrong.
    """
    options = _Options(**values)
    if options.config_path == STANDARD_INPUT and STANDARD_INPUT in options.paths:
        fail("standard input: found - for the configuration and for objects; one must be a file")
    if options.out == "":
        fail("--out: found nothing, wanted a folder")
    if not options.is_shown:
        result = _reported(options)
    elif options.out is None:
        with TemporaryDirectory(prefix="bayplan-") as folder:
            result = _shown(replace(options, out=f"{folder}/run"))
    else:
        result = _shown(options)
    if any(failure.is_defect for failure in result.failures):
        sys.exit(EXIT_FAILED)


def _shown(options: _Options) -> SimulationResult:
    """Show the progress, then the run, until an interrupt."""
    assert options.out is not None
    name = Path(options.paths[0]).name
    with load("bayplan.cli.ui:page_of")(name, "The simulation is running.", "pod") as (page, work):
        result = _reported(options, work.update)
        # The plugins in the folder are those that this command has just executed.
        folder = RunFolder(Path(options.out), allows_plugins=True)
        page.show(load("bayplan.ui.subjects:RunSubject")(folder, remark))
    return result


def _reported(options: _Options, update: OnProgress | None = None) -> SimulationResult:
    """``update``: gets the progress, too."""
    with refusals():
        result = _simulated(options, update)
    show_answer(result, options.output)
    if options.output.is_text:
        show(_what_next(result, options.out))
    return result


def _simulated(options: _Options, update: OnProgress | None) -> SimulationResult:
    registry = read_plugins(options.plugins)
    config = read_config(options.config_path, options.feature_gates, kubernetes=options.kubernetes)
    # Reading standard input needs no spinner: a person may be typing there.
    spinner = nullcontext() if STANDARD_INPUT in options.paths else progress("reading")
    with spinner, rarely_collected(_NEW_OBJECTS):
        workload = load_inputs(
            options.paths,
            time_mode=options.time_mode,
            is_strict=options.strict,
            read_kinds={*registry.kinds, *group_kinds(config.spec.pod_groups.kinds)},
            expansion=None if options.expansion is None else ExpansionMode(options.expansion),
            admission=admission_of(options.enabled, options.disabled),
        )
    workload = _with_times(workload, options)
    if options.config_path is None:
        workload = workload.for_scheduler(DEFAULT_SCHEDULER)
    _remark_on(config, registry)
    _remark_on_idle(config, registry, options.plugins)
    if options.out is None:
        simulation = Simulation(workload, config, registry, seed=options.seed)
        return _played(simulation, workload.pod_count, update)
    manifest = RunManifest(
        seed=options.seed,
        config=None if options.config_path is None else config.text,
        feature_gates=options.feature_gates,
        kubernetes=version_for(config, workload.reported),
    )
    folder = RunFolder(Path(options.out))
    run = folder.start(manifest, workload, [Path(path) for path in options.plugins])
    simulation = Simulation(workload, config, registry, seed=options.seed, put_entry=run.put)
    simulation.keep_journal(run)
    with run:
        result = _played(simulation, workload.pod_count, update)
    folder.finish(result)
    return result


def _with_times(workload: Workload, options: _Options) -> Workload:
    """The workload with the times from the command line."""
    return with_times(
        workload,
        quarantine=optional_duration("--pod-gc-quarantine", options.pod_gc_quarantine),
        period=optional_duration("--pod-gc-period", options.pod_gc_period),
        recreate_after=optional_duration("--recreate-after", options.recreate_after),
        until=optional_duration("--until", options.until),
    )


def _played(simulation: Simulation, pod_count: int, update: OnProgress | None) -> SimulationResult:
    """Run, with a progress bar on a terminal, otherwise with a line from time to time."""
    with PluginWatchdog(_remark_on_blocking), rarely_collected(_NEW_OBJECTS):
        if update is not None:
            simulation.on_progress(update)
        return _played_to_its_end(simulation, pod_count)


def _remark_on_blocking(call: BlockingCall) -> None:
    if call.is_news:
        lasting = f"for {call.seconds:.0f} s ({call.place})"
        remark(f"plugin {call.plugin} has been running in {call.point} {lasting}")


def _played_to_its_end(simulation: Simulation, pod_count: int) -> SimulationResult:
    if not sys.stderr.isatty() or not pod_count:
        simulation.on_progress(ProgressLines("pods").update)
        return simulation.run()
    with progress("simulating", "pods") as update:
        simulation.on_progress(update)
        return simulation.run()


# ---- remarks -------------------------------------------------------------------------------


def _remark_on(config: SchedulerConfig, registry: Registry) -> None:
    """Settings that would affect placements but have no effect."""
    for line in remarks(config, registry):
        if line.startswith(_DECIDING):
            remark(f"{config.source}: {line}" if config.source else line)


def _remark_on_idle(config: SchedulerConfig, registry: Registry, files: Sequence[str]) -> None:
    """Plugins from --plugin that no profile enables."""
    profiles = resolve(config, registry).profiles
    used = {instance.plugin.name for profile in profiles for instance in profile.instances.values()}
    for name in registry.names:
        if registry.origin(name) in files and name not in used:
            remark(f"{registry.origin(name)}: {name} is in no profile; enable it with --config")


def _what_next(result: SimulationResult, out: str | None) -> list[Text]:
    pods = result.unschedulable or result.placements or result.pods
    example = next(iter(pods), "NAMESPACE/NAME")
    if out is None:
        head = "to ask why: add --out runs/a, then:"
    else:
        head = f"run written to {out}; to ask why:"
    return [Text(head), command_text("bayplan", "why", example, "--run", out or "runs/a")]
