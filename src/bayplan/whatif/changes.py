"""Changes of a cluster, made in a model: nodes come and go, workloads are applied and scaled.

All changes happen at one moment, in the order of `sim.input.what_if`. Then the pods without a node
are tried in the order of the scheduler's queue (`placing`). Among pods of one priority, those that
wait already come before the new ones. Pods of drained nodes are evicted and replaced one by one, as
disruption budgets allow.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import cast, final

from msgspec import structs
from msgspec.structs import replace

from bayplan.adapters.embedded.api_server import is_unreachable
from bayplan.adapters.embedded.api_validation import identity_problems
from bayplan.adapters.embedded.kubectl_apply import applied
from bayplan.api.device_objects import RESOURCE_SLICE
from bayplan.api.objects import (
    CSI_NODE,
    HOSTNAME_LABEL,
    NODE,
    POD,
    STATEFUL_SET,
    Node,
    Pod,
    Workload,
    is_terminal,
)
from bayplan.model.additions import AdditionsReader
from bayplan.model.autoscalers import autoscaled
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.daemon_pods import place_daemon_pods
from bayplan.model.picture import plain, with_kind
from bayplan.model.unknown_names import no_node
from bayplan.objects.keys import ObjectKey, key_of, key_of_metadata, kind_of, object_key
from bayplan.objects.pools import is_broken, objects_of_copy
from bayplan.objects.workloads import controller_kind, is_mirror, ordinal_of, workload_of
from bayplan.problems import BadInputError, suggestion
from bayplan.sim.input.controller_kinds import CONTROLLERS, SCALED_KINDS
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.sources import Part
from bayplan.sim.input.what_if import NewNodes, Scaling, WhatIf
from bayplan.sim.input.workload import Content
from bayplan.sim.world.workloads.plans import creation_seconds, first_to_go
from bayplan.state.pods import PodInfo
from bayplan.whatif import evictions
from bayplan.whatif.fit import add
from bayplan.whatif.placing import Move, Placer

_NEW_TEMPLATE_NOTE = (
    "has another template now: its pods stay here as they are; --until simulates how they are"
    " replaced"
)


@dataclass(slots=True)
class Outcome:
    """The outcome of the changes."""

    #: The pods that got a node.
    moves: list[Move] = field(default_factory=list[Move])
    #: Pods that have no node and did not wait before the changes.
    left_over: list[evictions.LeftOver] = field(default_factory=list[evictions.LeftOver])
    #: Pods that wait, and waited before the changes, too.
    waited_before: list[evictions.LeftOver] = field(default_factory=list[evictions.LeftOver])
    blocked: list[evictions.BlockedPod] = field(default_factory=list[evictions.BlockedPod])
    #: The pods that go and are not created again, by the reason.
    gone: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    notes: list[str] = field(default_factory=list[str])


def make_changes(
    model: ClusterModel,
    change: WhatIf,
    read: AdditionsReader,
    *,
    force: bool = False,
    on_step: Callable[[], None] = lambda: None,
) -> Outcome:
    """Change a model at rest, and place what has to be placed. Raises BadInputError.

    ``force``: whether pods without a controller may be evicted, as with `kubectl drain --force`.
    ``on_step`` is called before each pod is tried, and may raise an exception. Undo the changes
    with `ClusterModel.trial`.
    """
    changes = _Changes(model, read, force=force, on_step=on_step)
    for new in change.add:
        changes.add_nodes(new)
    for name in change.uncordon:
        changes.cordon(name, unschedulable=False)
    changes.apply(change.apply)
    for scaling in change.scale:
        changes.scale(scaling)
    for name in change.cordon:
        changes.cordon(name, unschedulable=True)
    for name in change.remove:
        changes.remove(name)
    # A drain cordons its node before it evicts; with several nodes, all are cordoned first.
    for name in change.drain:
        changes.cordon(name, unschedulable=True)
    changes.place_waiting()
    for name in change.drain:
        changes.drain(name)
    return changes.finished()


def check_changes(
    model: ClusterModel, change: WhatIf, read: AdditionsReader, places: Sequence[str] = ()
) -> None:
    """Raises BadInputError with a line for each problem of an object, and for each node that a
    change names and that does not exist.

    ``places``: the places of the first objects to apply, which have a file. The other objects have
    their place in the document.
    """
    parts = [
        Part(content, places[index] if index < len(places) else f"apply[{index}]")
        for index, content in enumerate(change.apply)
    ]
    errors = InputErrors()
    for part in parts:
        errors.add_all(part.place, identity_problems(part.value))
    errors.raise_if_any()
    changed = [structs.replace(part, value=_applied(model, part.value)) for part in parts]
    read([part for part in changed if _is_read(model, part.value)])
    named = (*(new.template for new in change.add), *change.uncordon, *change.cordon)
    created = {_name(each) for each in change.apply if each.get("kind") == "Node"}
    for new in change.add:
        created.update(new.names(lambda name: name in created or _is_node(model, name)))
    lines = [
        no_node(model, name)
        for name in dict.fromkeys((*named, *change.remove, *change.drain))
        if model.get(NODE, "", name) is None and name not in created
    ]
    if lines:
        raise BadInputError("\n".join(lines))


def _applied(model: ClusterModel, manifest: Content) -> Content:
    """The object after a manifest was applied. It is a new object, or a changed one of the cluster.

    Raises BadInputError.
    """
    key = key_of(manifest)
    present = model.get(*key)
    if present is None:
        return manifest
    whole = model.source.manifest(key, present)
    if whole is not None:
        return applied(whole, manifest)
    if key.kind not in CONTROLLERS:
        raise BadInputError(f"{key}: its content was not read, so it cannot be changed")
    replicas = present.spec.replicas if isinstance(present, Workload) else None
    return {**manifest, "spec": {"replicas": replicas, **(manifest.get("spec") or {})}}


def _is_read(model: ClusterModel, content: Content) -> bool:
    """Whether an object to apply passes through the API server. It does if it is new or makes
    pods."""
    key = key_of(content)
    return key.kind in CONTROLLERS or model.get(*key) is None


def _is_node(model: ClusterModel, name: str) -> bool:
    return model.get(NODE, "", name) is not None


def _name(content: Content) -> str:
    return str((content.get("metadata") or {}).get("name"))


@final
class _Changes:
    def __init__(
        self,
        model: ClusterModel,
        read: AdditionsReader,
        *,
        force: bool,
        on_step: Callable[[], None],
    ) -> None:
        self._model = model
        self._read = read
        self._force = force
        self._placer = Placer(model, on_step)
        self._outcome = Outcome()
        self._waited_before = frozenset(info.key for info in model.pending())

    def place_waiting(self) -> None:
        self._placer.place_waiting()

    def finished(self) -> Outcome:
        """The outcome of the changes, after the pods that wait were tried a last time."""
        self._placer.place_waiting()
        outcome = self._outcome
        outcome.gone = self._placer.gone
        outcome.moves = self._placer.moves(self._waited_before)
        for one in self._placer.left_over():
            waited = one.pod in self._waited_before
            (outcome.waited_before if waited else outcome.left_over).append(one)
        return outcome

    # ---- nodes ------------------------------------------------------------------------------

    def _node(self, name: str) -> Node:
        node = self._model.get(NODE, "", name)
        if node is None:
            raise BadInputError(no_node(self._model, name))
        return cast(Node, node)

    def add_nodes(self, new: NewNodes) -> None:
        """Add copies of a node. The pods of their DaemonSets are placed there first."""
        template = self._node(new.template)
        own = [
            with_kind(kind, plain(each))
            for kind in (CSI_NODE, RESOURCE_SLICE)
            for each in self._model.objects(kind)
        ]
        added = list(new.names(lambda name: _is_node(self._model, name)))
        for name in added:
            self._model.add(NODE, _node_copy(template, name))
            for content in objects_of_copy(own, new.template, name):
                kind = kind_of(content)
                self._model.add(kind, self._model.decoded(kind, content))
        note = self._outcome.notes.append
        daemons = place_daemon_pods(self._model, added, self._read, new.template, note=note)
        self._placer.take(daemons)

    def cordon(self, name: str, *, unschedulable: bool) -> None:
        node = self._node(name)
        self._model.replace(
            NODE, replace(node, spec=replace(node.spec, unschedulable=unschedulable))
        )

    def remove(self, name: str) -> None:
        """Remove a node. Its pods are deleted and, if a controller wants them, created again."""
        self._node(name)
        pods = self._pods_on(name)
        self._model.remove(NODE, "", name)
        for pod in pods:
            self._model.remove(POD, pod.namespace, pod.name)
            if controller_kind(pod.metadata) == "DaemonSet" or is_mirror(pod.metadata):
                evictions.release_claims(self._model, pod)
                continue
            if is_terminal(pod.pod):
                continue
            if evictions.recreated([pod]) and not pod.is_terminating:
                self._placer.replace(pod)
            else:
                evictions.release_claims(self._model, pod)
                self._placer.is_gone(pod.key, "lost with its node")

    def drain(self, name: str) -> None:
        """Evict the pods of a cordoned node, one by one, and place their replacements."""
        pods = sorted(self._pods_on(name), key=lambda pod: pod.key)
        leaving: deque[PodInfo] = deque()
        for pod in pods:
            if not evictions.is_evicted(pod):
                continue
            if not controller_kind(pod.metadata) and not self._force:
                message = "it has no controller; with --force it is evicted for good"
                self._outcome.blocked.append(
                    evictions.BlockedPod(pod=pod.key, budgets=(), message=message)
                )
                continue
            leaving.append(pod)
        budgets, used = evictions.Budgets(self._model), defaultdict[str, int](int)
        is_lost = is_unreachable(self._node(name))
        while leaving:
            pod = leaving.popleft()
            blocked = evictions.blocked_by(pod, budgets.of(pod), used)
            if blocked is None and is_lost and controller_kind(pod.metadata) == "StatefulSet":
                # The controller waits until the pod is gone, but no kubelet ends it.
                message = f"the kubelet of {name} does not answer, so that the pod does not end"
                blocked = evictions.BlockedPod(pod=pod.key, budgets=(), message=message)
            if blocked is not None:
                self._outcome.blocked.append(blocked)
                continue
            self._model.remove(POD, pod.namespace, pod.name)
            if not controller_kind(pod.metadata):
                evictions.release_claims(self._model, pod)
                self._placer.is_gone(pod.key, "evicted")
                continue
            self._placer.replace(pod)
            if not self._placer.place(pod.key):
                for budget in budgets.of(pod):
                    used[f"{pod.namespace}/{budget.name}"] += 1

    # ---- workloads --------------------------------------------------------------------------

    def apply(self, objects: Sequence[Content]) -> None:
        """Create objects, and change those that exist, as `kubectl apply` does."""
        new: list[Content] = []
        for content in objects:
            key = key_of(content)
            changed = _applied(self._model, content)
            self._note_template(key, changed)
            if _is_read(self._model, content):
                new.append(changed)
            else:
                self._model.replace(key.kind, self._model.decoded(key.kind, changed))
        for content in new:
            key = key_of(content)
            if key.kind.rpartition(" ")[2] in SCALED_KINDS:
                self._scale_down(key, (content.get("spec") or {}).get("replicas", 1))
        self._add(new)

    def _note_template(self, key: ObjectKey, changed: Content) -> None:
        present = self._model.get(*key) if key.kind in CONTROLLERS else None
        whole = None if present is None else self._model.source.manifest(key, present)
        if whole is not None and _template(changed) != _template(whole):
            self._outcome.notes.append(f"{key} {_NEW_TEMPLATE_NOTE}")

    def scale(self, scaling: Scaling) -> None:
        """Change the number of pods of a workload. Raises BadInputError if there is none."""
        key, content = self._controller(scaling)
        autoscaler = autoscaled(self._model).get(key)
        if autoscaler is not None:
            self._outcome.notes.append(
                f"{autoscaler} sets the size of {key}: it may change it back"
            )
        self._scale_down(key, scaling.replicas)
        if content is not None:
            spec = {**(content.get("spec") or {}), "replicas": scaling.replicas}
            add(self._model, self._read([{**content, "spec": spec}]))
            return
        pods = self._pods_of(key)
        if not pods and scaling.replicas:
            raise BadInputError(f"{key} has no pods that could be copied, and was not read")
        is_stateful = key.kind == STATEFUL_SET
        numbers = (ordinal_of(key.name, pod.metadata.name) for pod in pods)
        first = 1 + max(numbers, default=0)
        for number in range(scaling.replicas - len(pods)):
            ending = f"-new-{len(pods) + number}"
            name = f"{key.name}-{first + number}" if is_stateful else pods[0].metadata.name + ending
            self._model.add(POD, _pod_copy(pods[0], name))

    def _controller(self, scaling: Scaling) -> tuple[ObjectKey, Content | None]:
        """The workload to scale, and its content if that was read."""
        for kind in CONTROLLERS:
            if kind.rpartition(" ")[2] != scaling.kind:
                continue
            key = object_key(kind, scaling.namespace, scaling.name)
            present = self._model.get(key.kind, key.namespace, key.name)
            if present is not None:
                return key, self._model.source.manifest(key, present)
            if self._pods_of(key):
                return key, None
        named = f"{scaling.kind} {scaling.namespace}/{scaling.name}"
        workloads = {workload_of(cast(Pod, each)) for each in self._model.objects(POD)}
        hint = suggestion(named, workloads)
        raise BadInputError(f"there is no {named}" + (f"; {hint}" if hint else ""))

    def _scale_down(self, key: ObjectKey, replicas: int) -> None:
        """Delete the pods that a controller would delete first. A StatefulSet deletes its highest
        ordinals."""
        pods = [self._manifest(pod) for pod in self._pods_of(key)]
        count = max(len(pods) - replicas, 0)
        if key.kind == STATEFUL_SET:
            removed = sorted(pods, key=lambda pod: -ordinal_of(key.name, key_of(pod).name))[:count]
        else:
            ages = filter(isfinite, map(creation_seconds, pods))
            now_seconds = max(self._model.source.epoch_seconds, *ages, 0.0)
            removed = first_to_go(pods, count, now_seconds)
        for pod in map(key_of, removed):
            present = self._model.pod(f"{pod.namespace}/{pod.name}")
            info = self._model.scheduler.cache.pod((present and present.metadata.uid) or "")
            self._model.remove(*pod)
            if info is not None:
                evictions.release_claims(self._model, info)
            self._placer.is_gone(f"{pod.namespace}/{pod.name}", "scaled down")

    def _manifest(self, pod: Pod) -> Content:
        key = key_of_metadata(POD, pod.metadata)
        return self._model.source.manifest(key, pod) or with_kind(POD, plain(pod))

    def _pods_of(self, key: ObjectKey) -> list[Pod]:
        name = f"{key.kind.rpartition(' ')[2]} {key.namespace}/{key.name}"
        pods = (cast(Pod, each) for each in self._model.objects(POD))
        return [
            pod
            for pod in pods
            if workload_of(pod) == name
            and not is_terminal(pod)
            and pod.metadata.deletion_timestamp is None
        ]

    def _add(self, contents: Sequence[Content]) -> None:
        if contents:
            additions = self._read(contents)
            self._outcome.notes += additions.notes
            hidden = (each for each in additions.unjudged if each.hides_pods)
            self._outcome.notes += [f"{each.object} {each.message}" for each in hidden]
            self._placer.take(add(self._model, additions))

    # ---- pods -------------------------------------------------------------------------------

    def _pods_on(self, name: str) -> list[PodInfo]:
        cache = self._model.scheduler.cache
        row = cache.table.row_of.get(name)
        return [] if row is None else list(cache.table.pods[row].values())


def _template(controller: Content) -> Content:
    return (controller.get("spec") or {}).get("template") or {}


def _node_copy(template: Node, name: str) -> Node:
    """A ready node without pods that offers the same amounts."""
    labels = dict(template.metadata.labels or {})
    if HOSTNAME_LABEL in labels:
        labels[HOSTNAME_LABEL] = name
    metadata = replace(template.metadata, name=name, uid=None, resource_version=None, labels=labels)
    taints = tuple(taint for taint in template.spec.taints or () if not is_broken(taint.key))
    spec = replace(template.spec, unschedulable=None, taints=taints or None)
    return replace(template, metadata=metadata, spec=spec)


def _pod_copy(pod: Pod, name: str) -> Pod:
    metadata = replace(pod.metadata, name=name, uid=None, resource_version=None)
    return Pod(metadata=metadata, spec=replace(pod.spec, node_name=None), declared=pod.declared)
