"""What would happen over time: a simulation of the changes, with controllers and drains.

The simulation begins with the objects of the cluster, plays the changes at 0 s, and ends at a time
or when nothing is left to happen. Workload controllers create pods again, and a drain tries an
eviction that a budget refuses again every 5 s, so the answer says how long budgets delay a drain.
"""

from types import MappingProxyType

from bayplan.api.objects import POD, ApiObject, Pod, decoded_kinds
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.additions import Additions
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.objects import ClusterObjects
from bayplan.plugins.registry import Registry
from bayplan.problems import BadInputError
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.sources import Part
from bayplan.sim.input.what_if import WhatIf
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.simulation import Simulation
from bayplan.whatif.changes import Move
from bayplan.whatif.comparison import WhatIfAnswer, largest_shapes, state_of
from bayplan.whatif.evictions import LeftOver


def what_if_over_time(
    model: ClusterModel,
    change: WhatIf,
    config: SchedulerConfig,
    registry: Registry,
    *,
    seed: int = 0,
    shapes: Additions | None = None,
    scheduler_name: str | None = None,
) -> WhatIfAnswer:
    """Simulate changes, and compare. Raises BadInputError.

    The content of all objects must have been read. ``scheduler_name``: the scheduler
    that gets all pods; None: the scheduler that each pod names. Others: see `what_if`.
    """
    kinds = group_kinds(config.spec.pod_groups.kinds)
    shapes = largest_shapes(model) if shapes is None else shapes
    before = state_of(model, shapes, kinds)
    workload = _workload(model.source, change, {*registry.kinds, *kinds})
    if scheduler_name is not None:
        workload = workload.for_scheduler(scheduler_name)
    simulation = Simulation(workload, config, registry, seed=seed)
    result = simulation.run()
    objects = _objects_of(simulation, model.source.source)
    after_model = ClusterModel(objects, config, registry, seed=seed)
    try:
        after = state_of(after_model, shapes, kinds)
    finally:
        after_model.close()
    return WhatIfAnswer(
        cluster=model.source.source,
        change=change,
        before=before,
        after=after,
        moves=tuple(_moves(model, result)),
        left_over=tuple(
            LeftOver(pod=pod, message=message) for pod, message in result.unschedulable.items()
        ),
        blocked=(),
        gone=_gone(result),
        notes=(*model.source.notes, *result.notes),
    )


def _workload(source: ClusterObjects, change: WhatIf, read_kinds: set[str]) -> Workload:
    parts: list[Part] = []
    for key, _ in source:
        content = source.content(key)
        if content is None:
            text = "a simulation over time needs the content of all objects"
            advice = "read the cluster with from_kubeconfig(whole=True)"
            raise BadInputError(f"{source.source}: {text}; {key} is without; {advice}")
        version, _, kind = key.kind.rpartition(" ")
        parts.append(Part({**content, "apiVersion": version, "kind": kind}, str(key)))
    return load_inputs([*parts, Part(change.document(), "the change")], read_kinds=read_kinds)


def _objects_of(simulation: Simulation, source: str) -> ClusterObjects:
    """The objects at the end."""
    by_kind: dict[str, tuple[ApiObject, ...]] = {}
    for kind in sorted(decoded_kinds()):
        stored = [one.object for one in simulation.cluster.objects(kind) if one.is_visible]
        if stored:
            by_kind[kind] = tuple(stored)
    return ClusterObjects(by_kind, MappingProxyType({}), source=source)


def _moves(model: ClusterModel, result: SimulationResult) -> list[Move]:
    """Pods that were bound. Only a pod that keeps its name has a node that it left."""
    sources: dict[str, str] = {}
    for each in model.objects(POD):
        assert isinstance(each, Pod)
        name = f"{each.metadata.namespace}/{each.metadata.name}"
        sources[name] = each.spec.node_name or ""
    bound = sorted(result.placements.items(), key=lambda one: result.pods[one[0]].bound_at or 0.0)
    return [Move(pod=pod, source=sources.get(pod, ""), target=node) for pod, node in bound]


def _gone(result: SimulationResult) -> dict[str, list[str]]:
    gone = [name for name, pod in result.pods.items() if pod.deleted_at is not None]
    return {"deleted": gone} if gone else {}
