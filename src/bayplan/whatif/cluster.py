"""A cluster in Python: `bayplan.Cluster`.

    cluster = bayplan.Cluster.from_files("cluster.yaml")
    cluster.fit("job.yaml").fits
    with cluster.trial():
        cluster.schedule("job.yaml")
        cluster.pods                                  # a DataFrame, with the pods of the job

Questions change nothing. `schedule` places pods, and they stay until the end of a `trial`.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import shorten
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack, cast, final

import msgspec
from msgspec import Struct

from bayplan.adapters.embedded.api_features import api_features
from bayplan.api.objects import DEFAULT_SCHEDULER, NODE, POD, ApiObject, Node, Pod
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.api.pod_requests import CPU, MEMORY, requested
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.explain.explainer import NoSuchPodError, explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.frames import DataFrame, frame
from bayplan.lazy_loader import load
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture, RunMoment
from bayplan.model.reading import objects_of_workload
from bayplan.model.run_moments import END, objects_of_run, run_moment
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.objects.workloads import pod_name, workload_of
from bayplan.plugins.registry import Registry
from bayplan.printable import printable
from bayplan.problems import BadInputError, suggestion
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.sources import InputSource
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf
from bayplan.sim.input.workload import ExpansionMode
from bayplan.sim.output.run_folder import RunFolder
from bayplan.sim.simulate import ConfigurationSource, PluginSource, configuration_of, registry_of
from bayplan.sim.why import similar_pods
from bayplan.whatif.all_pending import PendingPods, all_pending
from bayplan.whatif.comparison import WhatIfAnswer, what_if
from bayplan.whatif.drain_each import DepartureReport, Departures, drain_each, remove_each
from bayplan.whatif.fit import LIMIT, Fit, fit, fit_answer, placed
from bayplan.whatif.headroom import Headroom, headroom
from bayplan.whatif.over_time import what_if_over_time
from bayplan.whatif.requested_shape import RequestedShape, requested_or_files

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


class Requests(TypedDict, total=False):
    """What each pod of a workload requests, in place of a file; see `RequestedShape`."""

    cpu: str | float
    memory: str | int
    #: The number of GPUs, of the kind that the nodes offer.
    gpu: int
    #: Resource → amount.
    resources: Mapping[str, str | int]
    replicas: int
    namespace: str


class ClusterOptions(TypedDict, total=False):
    """The configuration, plugins, version and seed with which a cluster is scheduled."""

    #: A file, or the values of a document. None: one profile, default-scheduler.
    config: ConfigurationSource
    #: Files with plugins, or classes of plugins.
    plugins: Sequence[PluginSource]
    feature_gates: str
    #: The version of kube-scheduler to answer as, such as "1.36"; default: that of the cluster.
    kubernetes: str
    #: Breaks ties between equal nodes: equal seeds give equal results.
    seed: int


class Changes(TypedDict, total=False):
    """See `WhatIf`."""

    #: A duration such as "10m", or seconds.
    until: str | float
    add: NewNodes | Sequence[NewNodes]
    uncordon: str | Sequence[str]
    apply: dict[str, Any] | Sequence[dict[str, Any]]
    scale: Scaling | Sequence[Scaling]
    cordon: str | Sequence[str]
    remove: str | Sequence[str]
    drain: str | Sequence[str]


@final
class Cluster:
    """A cluster at one moment, in memory. Close it, or use it in a ``with`` statement, to close
    the plugins."""

    def __init__(
        self, source: ClusterPicture | ClusterModel, **options: Unpack[ClusterOptions]
    ) -> None:
        """See `from_files` and `from_run`. ``source``: the model, which was made with ``options``.
        Raises BadInputError."""
        config, registry = _settings(options)
        self._kinds: PodGroupKinds = group_kinds(config.spec.pod_groups.kinds)
        default = options.get("config") is None
        self._registry = registry
        self._seed = options.get("seed", 0)
        self._scheduler_name = DEFAULT_SCHEDULER if default else None
        self._model = (
            source
            if isinstance(source, ClusterModel)
            else ClusterModel(source, config, registry, seed=self._seed)
        )
        self._config = self._model.config
        kinds = {*registry.kinds, *self._kinds}
        self._read = AdditionsReader(self._model, kinds, self._scheduler_name)

    @classmethod
    def from_files(cls, *sources: InputSource, **options: Unpack[ClusterOptions]) -> Self:
        """A cluster from files, folders, standard input ("-") and objects as plain values.

        Controllers get the pods that they lack, as pending pods. Raises BadInputError.
        """
        config, registry = _settings(options)
        kinds = {*registry.kinds, *group_kinds(config.spec.pod_groups.kinds)}
        workload = load_inputs(sources, read_kinds=kinds, expansion=ExpansionMode.ONCE)
        names = ", ".join(str(each) for each in sources if isinstance(each, str | Path))
        objects = objects_of_workload(
            workload, names or "the cluster", features=api_features(config.gates)
        )
        return cls(objects, **options)

    @classmethod
    def from_run(
        cls,
        folder: str | Path,
        at: str | float = END,
        **options: Unpack[ClusterOptions],
    ) -> Self:
        """The cluster at a moment of a run of `bayplan simulate --out`.

        ``at``: "end"; "start", before the first pod is placed; or a time of the run, as "10m" or
        in seconds: then all changes of this time have been made. Nothing in the folder is executed.
        Raises BadInputError, also if the run does not have this moment.
        """
        run = RunFolder(Path(folder))
        return cls(objects_of_run(run, run_moment(run, at)), **options)

    @classmethod
    def from_kubeconfig(
        cls,
        kubeconfig: str | Path | None = None,
        context: str = "",
        *,
        whole: bool = False,
        **options: Unpack[ClusterOptions],
    ) -> Self:
        """A live cluster as it is now; only gets and lists are sent.

        ``kubeconfig``: the path of a file; None: the cluster that kubectl would use. ``context``:
        its name; "": the current context. ``whole``: whether to read all controllers and to store
        the content of all objects, which `whatif(until=…)` needs. Raises ApiError and
        CredentialsError if the cluster cannot be read.
        """
        config, registry = _settings(options)
        path = None if kubeconfig is None else str(kubeconfig)
        # A notebook has a running event loop, so the event loop of the client has a thread of its
        # own.
        with ThreadPoolExecutor(1) as threads:
            seed = options.get("seed", 0)
            reading = _read_live(path, context, config, registry, is_whole=whole, seed=seed)
            model = threads.submit(asyncio.run, reading).result()
        return cls(model, **options)

    # ---- tables -----------------------------------------------------------------------------

    @property
    def moment(self) -> RunMoment | None:
        """The moment of the run that the cluster shows; None: the cluster is not from a run."""
        return self._model.source.moment

    @property
    def nodes(self) -> DataFrame:
        """A DataFrame of the nodes: node, pods, schedulable, and cpu (cores) and memory (bytes),
        offered and requested."""
        return frame(_NODE_COLUMNS, [self._node_row(name) for name in self._node_names()])

    @property
    def pods(self) -> DataFrame:
        """A DataFrame: pod ("namespace/name"), node ("": it waits), workload, priority, cpu (cores)
        and memory (bytes) as requested, and scheduler."""
        return frame(_POD_COLUMNS, [_pod_row(cast(Pod, each)) for each in self._objects(POD)])

    @property
    def placements(self) -> DataFrame:
        """A DataFrame: pod ("namespace/name") and node, of all pods on nodes that exist."""
        nodes = set(self._node_names())
        pods = (cast(Pod, each) for each in self._objects(POD))
        rows = [
            {"pod": pod_name(pod), "node": pod.spec.node_name}
            for pod in pods
            if pod.spec.node_name in nodes
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

    def fit(
        self,
        *workload: InputSource,
        max: bool = False,  # noqa: A002 - as the command's option
        limit: int = LIMIT,
        ignore_pending: bool = False,
        **requests: Unpack[Requests],
    ) -> Fit:
        """Does a workload fit? With ``max``: how many copies of it fit, up to ``limit``?

            cluster.fit("job.yaml")
            cluster.fit(cpu=4, memory="16Gi", gpu=1, replicas=10)

        ``workload``: files, folders and objects: pods, controllers, pod groups. The pods of the
        cluster that wait are placed first, unless ``ignore_pending``. Raises BadInputError.
        """
        sources, notes = self._workload(workload, requests)
        return fit_answer(
            self._model,
            self._read,
            sources,
            self._kinds,
            limit=limit if max else None,
            ignores_waiting=ignore_pending,
            notes=notes,
        )

    def headroom(
        self,
        *shapes: InputSource,
        limit: int = LIMIT,
        ignore_pending: bool = False,
        **requests: Unpack[Requests],
    ) -> Headroom:
        """How many more pods of each shape fit? The pods of the cluster that wait are placed
        first, unless ``ignore_pending``. Raises BadInputError."""
        sources, notes = self._workload(shapes, requests)
        return headroom(
            self._model,
            self._read(sources, are_shapes=True),
            self._kinds,
            limit,
            ignores_waiting=ignore_pending,
            notes=notes,
        )

    def _workload(
        self, files: Sequence[InputSource], requests: Requests
    ) -> tuple[Sequence[InputSource], Sequence[str]]:
        """The files, or the workload that the requests describe; and notes. Raises
        BadInputError."""
        return requested_or_files(self._model, files, RequestedShape(**requests))

    def drain_each(self, topology_key: str = "", *, force: bool = False) -> DepartureReport:
        """Can each node, or each domain of a topology key, be drained?"""
        return drain_each(self._model, Departures(topology_key=topology_key), force=force)

    def remove_each(self, topology_key: str = "") -> DepartureReport:
        """Can the cluster do without each node, or each domain of a topology key?"""
        return remove_each(self._model, Departures(topology_key=topology_key))

    def whatif(
        self,
        change: WhatIf | None = None,
        *,
        shapes: Sequence[InputSource] = (),
        force: bool = False,
        **changes: Unpack[Changes],
    ) -> WhatIfAnswer:
        """What would happen if something changed?

            cluster.whatif(drain="n7", add=bayplan.NewNodes(template="n9", count=3))

        ``change``: a `WhatIf` document, besides ``changes``, each of which is a value or several.
        ``shapes``: the shapes whose headroom is counted; without any, those of the largest
        workloads. ``force``: pods without a controller may be evicted. With ``until``, the changes
        are simulated up to that time; a live cluster must have been read with ``whole``. Raises
        BadInputError.
        """
        parts: dict[str, Any] = {
            name: each if name == "until" else _several(name, each)
            for name, each in changes.items()
        }
        whole = WhatIf(**parts) if change is None else change.joined_with(WhatIf(**parts))
        additions = self._read(shapes, are_shapes=True) if shapes else None
        if whole.until is not None:
            return what_if_over_time(
                self._model,
                whole,
                self._config,
                self._registry,
                seed=self._seed,
                shapes=additions,
                scheduler_name=self._scheduler_name,
            )
        return what_if(self._model, whole, self._read, self._kinds, shapes=additions, force=force)

    def why(self, pod: str) -> Explanation:
        """Why a pod is pending, with fixes that were tried; or why it is on its node.

        ``pod``: "namespace/name", or a name in the namespace default. Raises BadInputError for a
        pod that does not exist.
        """
        name = pod if "/" in pod else f"{DEFAULT_NAMESPACE}/{pod}"
        try:
            return explain_pod(self._model, name)
        except NoSuchPodError:
            left_out = self._model.source.why_left_out("Pod", name)
            if left_out:
                raise BadInputError(left_out) from None
            names = [pod_name(cast(Pod, each)) for each in self._objects(POD)]
            raise BadInputError(f"there is no pod {name}; {similar_pods(name, names)}") from None

    def why_all_pending(self, namespace: str = "", labels: str = "") -> PendingPods:
        """Why all pending pods wait, by workload and decisive cause, the largest group first.

        ``namespace``: of the pods; "": all. ``labels``: as for `kubectl -l`. Raises BadInputError
        for wrong labels.
        """
        return all_pending(self._model, namespace=namespace, labels=labels)

    # ---- placements that stay ---------------------------------------------------------------

    def schedule(self, *workload: InputSource) -> Fit:
        """Place a workload, or without one the pods that wait. The placements stay; in a `trial`,
        they stay until its end. Raises BadInputError."""
        if workload:
            return fit(self._model, self._read(workload), ignores_waiting=True)
        pods = [info.pod for info in self._model.in_queue_order()]
        outcomes = tuple(placed(self._model, pods))
        return Fit(
            fits=all(outcome.node for outcome in outcomes),
            cluster=self._model.source.source,
            moment=self._model.source.moment,
            placed_count=sum(bool(outcome.node) for outcome in outcomes),
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


async def _read_live(
    kubeconfig: str | None,
    context: str,
    config: SchedulerConfig,
    registry: Registry,
    *,
    is_whole: bool,
    seed: int,
) -> ClusterModel:
    # An HTTP client takes time to load, and questions about files do not need one.
    open_client = load("bayplan.adapters.live.client:open_client")
    options = load("bayplan.adapters.live.client:ClientOptions")(
        qps=-1.0, context_name=context, accepts_gzip=True, notice_seconds=5.0
    )
    model_of_cluster = load("bayplan.model.live_reading:model_of_cluster")
    async with open_client(kubeconfig, options) as client:
        return await model_of_cluster(client, config, registry, is_whole=is_whole, seed=seed)


def _settings(options: ClusterOptions) -> tuple[SchedulerConfig, Registry]:
    """Raises BadInputError."""
    registry = registry_of(options.get("plugins", ()))
    settings = (options.get("feature_gates", ""), options.get("kubernetes", ""))
    return configuration_of(options.get("config"), *settings), registry


#: The type of each change, and its name for a reader.
_PARTS: dict[str, tuple[type[Any], str]] = {
    "add": (NewNodes, 'bayplan.NewNodes(template="n9", count=3)'),
    "uncordon": (str, "the name of a node"),
    "apply": (dict, "the content of an object, as a dict"),
    "scale": (Scaling, 'bayplan.Scaling(kind="Deployment", name="web", replicas=3)'),
    "cordon": (str, "the name of a node"),
    "remove": (str, "the name of a node"),
    "drain": (str, "the name of a node"),
}


def _several(name: str, value: Any) -> tuple[Any, ...]:
    """The parts of a change: a value, or several. Raises BadInputError."""
    if name not in _PARTS:
        raise BadInputError(f"whatif: there is no change {name}; {suggestion(name, _PARTS)}")
    expected, words = _PARTS[name]
    is_one = isinstance(value, str | Mapping | Struct)
    parts: tuple[Any, ...] = (value,)
    if not is_one and isinstance(value, Iterable):
        parts = tuple(cast(Iterable[Any], value))
    for part in parts:
        if not isinstance(part, expected):
            found = shorten(printable(repr(part)), 80)
            raise BadInputError(f"whatif: {name}: found {found}, wanted {words}, or several")
        if isinstance(part, Struct):
            try:
                msgspec.convert(msgspec.to_builtins(part), type(part))
            except msgspec.ValidationError as problem:
                raise BadInputError(f"whatif: {name}: {problem}") from None
    return parts


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
