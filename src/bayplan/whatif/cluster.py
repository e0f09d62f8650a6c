"""A cluster in Python: `bayplan.Cluster`.

    cluster = bayplan.Cluster.from_files("cluster.yaml")
    cluster.fit("job.yaml").fits
    with cluster.trial():
        cluster.schedule("job.yaml")
        cluster.pods                                  # a DataFrame, with the pods of the job

Questions change nothing. `schedule` places pods, and they stay until the end of a `trial`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack, cast, final

from msgspec import structs

from bayplan.api.objects import NODE, POD, ApiObject, Node, Pod
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.api.pod_requests import CPU, MEMORY, requested
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.frames import DataFrame, frame
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.objects import ClusterObjects
from bayplan.model.reading import objects_of_run, objects_of_workload
from bayplan.plugins.registry import Registry
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.sources import InputSource
from bayplan.sim.input.workload import ExpansionMode
from bayplan.sim.output.run_folder import RunFolder
from bayplan.sim.simulate import ConfigurationSource, PluginSource, configuration_of, registry_of
from bayplan.state.pods import DEFAULT_SCHEDULER
from bayplan.whatif.additions import Additions, read_additions
from bayplan.whatif.copies import single_unit, workload_of
from bayplan.whatif.drain_each import DepartureReport, drain_each, remove_each
from bayplan.whatif.fit import LIMIT, Fit, fit, max_fit, placed, pod_name
from bayplan.whatif.headroom import Headroom, headroom

_NODE_COLUMNS = (
    "node",
    "pods",
    "schedulable",
    "cpu",
    "cpu_requested",
    "memory",
    "memory_requested",
)
_POD_COLUMNS = ("pod", "node", "workload", "priority", "cpu", "memory", "scheduler")
_PLACEMENT_COLUMNS = ("pod", "node")


class ClusterOptions(TypedDict, total=False):
    """With what a cluster is scheduled."""

    #: A file, the values of a document, or None: one profile, default-scheduler.
    config: ConfigurationSource
    #: Files with plugins, or classes of plugins.
    plugins: Sequence[PluginSource]
    feature_gates: str
    #: Breaks ties between equal nodes: equal seeds give equal results.
    seed: int


@final
class Cluster:
    """A cluster at one moment, in memory. Close it, or use it in a ``with`` statement, to close
    the plugins."""

    def __init__(self, objects: ClusterObjects, **options: Unpack[ClusterOptions]) -> None:
        """See `from_files`, `from_run`. Raises BadInputError."""
        config, registry = _settings(options)
        self._registry = registry
        self._kinds: PodGroupKinds = group_kinds(config.spec.pod_groups.kinds)
        default = options.get("config") is None
        self._scheduler_name = DEFAULT_SCHEDULER if default else None
        self._added_kinds: dict[str, None] = {}
        self._model = ClusterModel(objects, config, registry, seed=options.get("seed", 0))

    @classmethod
    def from_files(cls, *sources: InputSource, **options: Unpack[ClusterOptions]) -> Self:
        """A cluster from files, folders, standard input ("-") and objects as plain values.

        Controllers get the pods that they lack, as pending ones. Raises BadInputError.
        """
        config, registry = _settings(options)
        kinds = {*registry.kinds, *group_kinds(config.spec.pod_groups.kinds)}
        workload = load_inputs(sources, read_kinds=kinds, expansion=ExpansionMode.ONCE)
        names = ", ".join(str(each) for each in sources if isinstance(each, str | Path))
        return cls(objects_of_workload(workload, names or "the cluster"), **options)

    @classmethod
    def from_run(cls, folder: str | Path, **options: Unpack[ClusterOptions]) -> Self:
        """The cluster at the beginning of a run of `bayplan simulate --out`. Raises
        BadInputError."""
        return cls(objects_of_run(RunFolder(Path(folder))), **options)

    # ---- tables -----------------------------------------------------------------------------

    @property
    def nodes(self) -> DataFrame:
        """A DataFrame: node, pods, schedulable, and cpu (cores) and memory (bytes), offered and
        requested."""
        return frame(_NODE_COLUMNS, [self._node_row(name) for name in self._node_names()])

    @property
    def pods(self) -> DataFrame:
        """A DataFrame: pod ("namespace/name"), node ("": it waits), workload, priority, cpu (cores)
        and memory (bytes) as requested, and scheduler."""
        return frame(_POD_COLUMNS, [_pod_row(cast(Pod, each)) for each in self._objects(POD)])

    @property
    def placements(self) -> DataFrame:
        """A DataFrame: pod ("namespace/name") and node, of all pods with a node."""
        pods = (cast(Pod, each) for each in self._objects(POD))
        rows = [
            {"pod": pod_name(pod), "node": pod.spec.node_name} for pod in pods if pod.spec.node_name
        ]
        return frame(_PLACEMENT_COLUMNS, rows)

    def _objects(self, kind: str) -> list[ApiObject]:
        return list(self._model.objects(kind))

    def _node_names(self) -> list[str]:
        return [each.metadata.name for each in self._objects(NODE)]

    def _node_row(self, name: str) -> dict[str, Any]:
        table = self._model.scheduler.cache.table
        row = table.row_of[name]
        cpu, memory = (table.resources.of_row(resource, row) for resource in (CPU, MEMORY))
        node = cast(Node, self._model.get(NODE, "", name))
        return {
            "node": name,
            "pods": len(table.pods[row]),
            "schedulable": not node.spec.unschedulable,
            "cpu": cpu.allocatable / 1000,
            "cpu_requested": cpu.requested / 1000,
            "memory": memory.allocatable,
            "memory_requested": memory.requested,
        }

    def __repr__(self) -> str:
        pods = self._objects(POD)
        waiting = sum(not cast(Pod, each).spec.node_name for each in pods)
        node_count = len(self._node_names())
        source = self._model.source.source
        return f"Cluster({source}: {node_count} nodes, {len(pods)} pods, {waiting} waiting)"

    # ---- questions --------------------------------------------------------------------------

    def fit(self, *workload: InputSource, max: bool = False, limit: int = LIMIT) -> Fit:  # noqa: A002 - as the command's option
        """Does a workload fit? With ``max``: how many of it do, up to ``limit``?

        ``workload``: files, folders and objects: pods, controllers, pod groups. Raises
        BadInputError.
        """
        additions = self._additions(workload)
        unit = single_unit(additions, self._kinds) if max else None
        with self._model.trial():
            answer = fit(self._model, additions)
        if unit is None:
            return answer
        with self._model.trial():
            return structs.replace(answer, max=max_fit(self._model, unit, limit))

    def headroom(self, *shapes: InputSource, limit: int = LIMIT) -> Headroom:
        """How many more pods of each shape fit? Raises BadInputError."""
        return headroom(self._model, self._additions(shapes), self._kinds, limit)

    def drain_each(self, topology_key: str = "", *, force: bool = False) -> DepartureReport:
        """Can each node, or each domain of a topology key, be drained?"""
        return drain_each(self._model, topology_key, force=force)

    def remove_each(self, topology_key: str = "") -> DepartureReport:
        """Can the cluster do without each node, or each domain of a topology key?"""
        return remove_each(self._model, topology_key)

    # ---- placements that stay ---------------------------------------------------------------

    def schedule(self, *workload: InputSource) -> Fit:
        """Place a workload; without one, the pods that wait. The placements stay; in a `trial`,
        until its end. Raises BadInputError."""
        if workload:
            additions = self._additions(workload)
            self._added_kinds |= {POD: None, **{kind: None for kind, _ in additions.objects}}
            return fit(self._model, additions)
        pods = [info.pod for info in self._model.pending()]
        outcomes = tuple(placed(self._model, pods))
        return Fit(
            fits=all(outcome.node for outcome in outcomes),
            cluster=self._model.source.source,
            pods=outcomes,
        )

    def trial(self) -> AbstractContextManager[None]:
        """Undo, at the end of the ``with`` block, all placements that were made in it."""
        return self._model.trial()

    # ---- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Close the plugins."""
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---- inside -----------------------------------------------------------------------------

    def _additions(self, sources: Sequence[InputSource]) -> Additions:
        """Raises BadInputError."""
        kinds = {*self._registry.kinds, *self._kinds}
        return read_additions(sources, self._present(), kinds, self._scheduler_name)

    def _present(self) -> ClusterObjects:
        """The objects as they are now, with all that was added."""
        source = self._model.source
        if self._model.version == 0:
            return source
        kinds = (*source.by_kind, *self._added_kinds)
        return replace(source, by_kind={kind: tuple(self._objects(kind)) for kind in kinds})


def _settings(options: ClusterOptions) -> tuple[SchedulerConfig, Registry]:
    """Raises BadInputError."""
    registry = registry_of(options.get("plugins", ()))
    return configuration_of(options.get("config"), options.get("feature_gates", "")), registry


def _pod_row(pod: Pod) -> dict[str, Any]:
    requests = requested(pod)
    return {
        "pod": pod_name(pod),
        "node": pod.spec.node_name or "",
        "workload": workload_of(pod),
        "priority": pod.spec.priority or 0,
        "cpu": requests.get(CPU, 0) / 1000,
        "memory": requests.get(MEMORY, 0),
        "scheduler": pod.spec.scheduler_name or DEFAULT_SCHEDULER,
    }
