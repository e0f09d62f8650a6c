"""Runs in folders, their repetition, and the timeline of a simulation while it runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bayplan.config import config_from, load_config
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.engine.attempt_record import OnAttempt
from bayplan.history.entries import Entry, Origin
from bayplan.history.timeline import Timeline
from bayplan.history.timeline_fold import TimelineFold
from bayplan.journal import AttemptRecord, Record
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.run_folder import RunFolder, RunManifest
from bayplan.sim.simulation import Simulation


def stored_run(path: Path, feed: Workload, seed: int = 5, config: str | None = None) -> RunFolder:
    """A run of the feed in ``path``/run, with the plugin files of ``path``."""
    return write_run(path / "run", feed, config, seed=seed, plugins=sorted(path.glob("*.py")))


def write_run(
    path: Path,
    feed: Workload,
    config: str | None = None,
    *,
    seed: int = 1,
    plugins: Sequence[Path] = (),
) -> RunFolder:
    """Run a workload and store the run. ``config``: the text of a configuration."""
    folder = RunFolder(path, allows_plugins=True)
    manifest = RunManifest(seed=seed, config=config, feature_gates="")
    chosen = load_config(config, "test") if config else config_from(DEFAULT_CONFIG)
    with folder.start(manifest, feed, plugins) as run:
        registry = default_registry(plugins)
        simulation = Simulation(feed, chosen, registry, seed=seed, put_entry=run.put)
        simulation.keep_journal(run)
        folder.finish(simulation.run())
    return folder


def attempts_of(folder: RunFolder) -> list[AttemptRecord]:
    return [record for record in folder.journal() if isinstance(record, AttemptRecord)]


def repetition(
    folder: RunFolder,
    on_attempt: OnAttempt | None = None,
    put_entry: Callable[[Entry], None] | None = None,
) -> Simulation:
    """The run once more, from its inputs."""
    config, registry, seed = folder.settings()
    return Simulation(
        folder.workload(), config, registry, seed=seed, on_attempt=on_attempt, put_entry=put_entry
    )


class FoldedSimulation:
    """A simulation whose log is folded while it runs."""

    def __init__(
        self, feed: Workload, after_work: Callable[[TimelineFold], None] | None = None
    ) -> None:
        """``after_work``: called after each piece of the scheduler's work."""
        self.simulation = Simulation(
            feed, config_from(DEFAULT_CONFIG), default_registry(), seed=1, put_entry=self._put
        )
        self.simulation.keep_journal(self)
        self._after_work = after_work

    def run(self) -> Timeline:
        self.simulation.run()
        return self._fold.timeline()

    def _put(self, entry: Entry) -> None:
        scheduler = self.simulation.scheduler
        if isinstance(entry, Origin):
            self._fold = TimelineFold(entry, scheduler.pod_groups.kinds)
            scheduler.executor.observe(self._look)
        self._fold.add(entry)

    def _look(self) -> None:
        if self._after_work is not None:
            self._after_work(self._fold)

    def write(self, record: Record) -> None:
        """See `journal.Sink`."""
        self._fold.add(record)


def folded(feed: Workload) -> Timeline:
    """The timeline of a simulation."""
    return FoldedSimulation(feed).run()
