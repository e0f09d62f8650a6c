"""What would happen over time: a simulation of the changes, with controllers and drains.

The simulation begins with the cluster at rest, as every what-if does (`comparison`). It makes the
changes at 0 s, and ends at a given time or when nothing is left to happen. Workload controllers
create pods again. A drain tries an eviction that a budget refuses again every 5 s, so the answer
says how long budgets delay a drain.

A controller gives a new pod a new name. The answer has to say where pods go, so each pod that left
its node is paired with a new pod of the same controller. That is a pod of the same name, or the
next one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from msgspec import structs

from bayplan.api.object_meta import controller_of
from bayplan.api.objects import NODE, POD, ApiObject, Pod, decoded_kinds
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.additions import Additions, AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import plain, with_kind
from bayplan.model.reading import picture_of
from bayplan.objects.keys import key_of
from bayplan.objects.workloads import is_bound_to_node, pod_name
from bayplan.plugins.registry import Registry
from bayplan.problems import BadInputError
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.sources import Part
from bayplan.sim.input.what_if import WhatIf
from bayplan.sim.input.workload import Workload
from bayplan.sim.simulation import Simulation
from bayplan.whatif.changes import Outcome, check_changes
from bayplan.whatif.comparison import WhatIfAnswer, largest_shapes, state_of, what_if_answer
from bayplan.whatif.evictions import LeftOver
from bayplan.whatif.implied_controllers import (
    implied_controllers,
    notes_of,
    unknown_controllers,
)
from bayplan.whatif.placing import Move, Placer


def what_if_over_time(
    model: ClusterModel,
    change: WhatIf,
    config: SchedulerConfig,
    registry: Registry,
    *,
    seed: int = 0,
    shapes: Additions | None = None,
    places: Sequence[str] = (),
    scheduler_name: str | None = None,
) -> WhatIfAnswer:
    """Simulate changes, and compare. Raises BadInputError.

    The content of all objects must have been read. ``scheduler_name``: the scheduler
    that gets all pods; None: the scheduler that each pod names. Others: see `what_if`.
    """
    kinds = group_kinds(config.spec.pod_groups.kinds)
    shapes = largest_shapes(model) if shapes is None else shapes
    read = AdditionsReader(model, {*registry.kinds, *kinds}, scheduler_name)
    check_changes(model, change, read, places)
    with model.trial():
        placer = Placer(model)
        placer.place_waiting()
        placed_before = placer.moves()
        before = state_of(model, shapes, kinds)
        pods_before = [cast(Pod, each) for each in model.objects(POD)]
        nodes_before = {each.metadata.name for each in model.objects(NODE)}
        workload = _workload(model, change, {*registry.kinds, *kinds})
    if scheduler_name is not None:
        workload = workload.for_scheduler(scheduler_name)
    simulation = Simulation(workload, config, registry, seed=seed)
    result = simulation.run()
    objects = picture_of(simulation.cluster, decoded_kinds(), model.source.source)
    after_model = ClusterModel(objects, config, registry, seed=seed)
    try:
        after = state_of(after_model, shapes, kinds)
        waiting = {
            info.uid: result.unschedulable.get(info.key, "") for info in after_model.pending()
        }
    finally:
        after_model.close()
    pods_after = [cast(Pod, each) for each in objects.of(POD)]
    outcome = _outcome(pods_before, pods_after, nodes_before, waiting)
    outcome.notes += result.notes
    return what_if_answer(
        model, change, states=(before, after), outcome=outcome, placed_before=placed_before
    )


def _outcome(
    before: Sequence[Pod], after: Sequence[Pod], nodes: Collection[str], waiting: Mapping[str, str]
) -> Outcome:
    """The outcome for the pods. ``nodes``: the nodes before the changes. ``waiting``: uid → message
    of the pods that wait at the end."""
    outcome = Outcome()
    there = {pod.metadata.uid: pod for pod in after}
    known_uids = {pod.metadata.uid for pod in before}
    for old in before:
        now = there.get(old.metadata.uid)
        if now is not None and not old.spec.node_name:
            _note(outcome, now, waiting, waited=True)
    new_pods = [pod for pod in after if pod.metadata.uid not in known_uids]
    gone = [
        pod
        for pod in before
        if pod.spec.node_name
        and pod.metadata.uid not in there
        and not is_bound_to_node(pod.metadata)
    ]
    for old, new in _pairs(gone, new_pods):
        was_lost = old.spec.node_name not in nodes
        if new is not None:
            new_pods.remove(new)
        if new is None and not was_lost:
            outcome.gone.setdefault("deleted", []).append(pod_name(old))
        # The node of a lost pod was gone before the change, and its controller replaces it anyway.
        if new is not None and not (was_lost and new.spec.node_name):
            _note(outcome, new, waiting, old)
    for new in new_pods:
        _note(outcome, new, waiting)
    return outcome


def _pairs(gone: Sequence[Pod], new: Sequence[Pod]) -> Iterator[tuple[Pod, Pod | None]]:
    """Each pod that is gone, with the new pod of its controller that replaces it."""
    by_owner: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
    for pod in new:
        by_owner[_controller_uid(pod)][pod_name(pod)] = pod
    for pod in gone:
        candidates = by_owner[_controller_uid(pod)] if _controller_uid(pod) else {}
        name = pod_name(pod)
        if name not in candidates:
            name = next(iter(candidates), "")
        yield pod, candidates.pop(name, None)


def _controller_uid(pod: Pod) -> str:
    """The uid of the pod's controller; "": it has none."""
    controller = controller_of(pod.metadata)
    return "" if controller is None else controller.uid


def _note(
    outcome: Outcome,
    pod: Pod,
    waiting: Mapping[str, str],
    old: Pod | None = None,
    *,
    waited: bool = False,
) -> None:
    """Note a pod that has a node or waits. ``old``: the pod that it replaces."""
    name = pod_name(pod)
    first_name = name if old is None else pod_name(old)
    source = "" if old is None else old.spec.node_name or ""
    replacement = "" if first_name == name else name
    node = pod.spec.node_name
    if node:
        move = Move(
            pod=first_name, source=source, target=node, replacement=replacement, waited=waited
        )
        outcome.moves.append(move)
    elif (uid := pod.metadata.uid or "") in waiting:
        left = LeftOver(
            pod=first_name, source=source, message=waiting[uid], replacement=replacement
        )
        (outcome.waited_before if waited else outcome.left_over).append(left)


# ---- the simulation ------------------------------------------------------------------------


def _workload(model: ClusterModel, change: WhatIf, read_kinds: set[str]) -> Workload:
    """The changes of a model at rest, as a workload."""
    source = model.source
    parts: list[Part] = []
    for key, present in model.all():
        original = source.objects.get(key)
        stays = isinstance(present, Pod) and _is_where_it_was(original, present)
        # A pod that stays has the status that was read.
        content = source.manifest(key, original if stays and original is not None else present)
        if content is None and original is not None:
            text = "a simulation over time needs the content of all objects"
            advice = "read the cluster with from_kubeconfig(whole=True)"
            raise BadInputError(f"{source.source}: {text}; {key} is without; {advice}")
        if content is None:
            content = with_kind(key.kind, plain(present))
        if isinstance(present, Pod) and not stays:
            content["status"] = {"phase": "Running" if present.spec.node_name else "Pending"}
        parts.append(Part(content, str(key)))
    contents = [part.value for part in parts]
    implied, unknown = implied_controllers(contents), unknown_controllers(contents)
    parts += [Part(content, str(key_of(content))) for content in implied]
    parts.append(Part(change.document(), "the change"))
    workload = load_inputs(parts, read_kinds=read_kinds, admission=source.admission)
    notes = (*workload.notes, *notes_of(implied, unknown))
    return structs.replace(workload, notes=notes, recreates_unknown=True)


def _is_where_it_was(original: ApiObject | None, present: Pod) -> bool:
    node = present.spec.node_name or None
    return isinstance(original, Pod) and node == (original.spec.node_name or None)
