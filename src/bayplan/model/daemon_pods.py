"""The pods that DaemonSets create for new nodes of a model.

A new node gets the pods of its DaemonSets first, before any pod that waits: what they request is
not free for other pods. Every question that adds a node calls `place_daemon_pods` after it: a
what-if, a fix that adds a node, a workload that brings nodes. In a simulation, the timeline has the
same rule.

A DaemonSet that was not read cannot say where it belongs. If the new node is a copy of another, it
gets copies of the pods that such DaemonSets have there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, final

import msgspec
from msgspec.structs import replace

from bayplan.api.object_meta import controller_of
from bayplan.api.objects import DAEMON_SET, NODE, POD, Pod, Unstructured, decode
from bayplan.api.pod_requests import requested
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.objects.keys import Content
from bayplan.objects.workloads import pod_name
from bayplan.sim.input.controller_pods import (
    DaemonTemplate,
    daemon_copy,
    pod_for_node,
    pod_names,
    target_node,
)
from bayplan.state.pods import PodInfo

#: The name of a node that does not exist yet.
_NEW_NODE = "new-node"


@final
@dataclass(frozen=True, slots=True)
class DaemonPod:
    """A pod that a DaemonSet created for a new node."""

    #: "namespace/name".
    name: str
    #: "": it does not fit.
    node: str
    #: kube-scheduler's sentence; "" with a node.
    message: str = ""
    #: What preemption evicts for it.
    victims: tuple[PodInfo, ...] = ()


def place_daemon_pods(
    model: ClusterModel,
    nodes: Sequence[str],
    read: AdditionsReader,
    template: str = "",
    *,
    note: Callable[[str], object] = bool,
) -> list[DaemonPod]:
    """Create the pods of DaemonSets for new nodes of the model, and place them.

    ``nodes``: names of nodes that the model has. ``template``: the node of which they are copies;
    "": of none. ``note`` gets a line about each pod that the API server refuses. Pods of higher
    priority are placed first. A pod of a scheduler that the model does
    not have is bound to its node at once. Raises BadInputError for a DaemonSet whose pods the API
    server would refuse.
    """
    contents = [msgspec.to_builtins(model.get(NODE, "", name)) for name in nodes]
    created = _created(model, contents)
    pods = list(_copies(model, nodes, template))
    if created:
        additions = read(created)
        pods = [*additions.pods, *pods]
        for line in additions.notes:
            note(line)
    pods.sort(key=lambda pod: -(pod.spec.priority or 0))
    for pod in pods:
        model.add(POD, pod)
    return [_placed(model, pod) for pod in pods]


def requests_with_daemons(
    model: ClusterModel, node: Content, requests: Mapping[str, int], template: str = ""
) -> dict[str, int]:
    """What a new node must offer so that a pod fits beside the pods of its DaemonSets, which have
    what admission adds to them.

    ``requests``: those of the pod: cpu in millicores, others in whole units. ``node``: the content
    of the new node, whose labels and taints count; ``template``: the node of which it is a copy.
    """
    total = Counter(requests)
    named = {**node, "metadata": {**node["metadata"], "name": _NEW_NODE}}
    created = _created(model, [named])
    admitted = AdditionsReader(model, scheduler_name=None)(created).pods if created else ()
    for pod in (*admitted, *_copies(model, [_NEW_NODE], template)):
        total.update({name: amount for name, amount in requested(pod).items() if name in requests})
    return dict(total)


def _placed(model: ClusterModel, pod: Pod) -> DaemonPod:
    name = pod_name(pod)
    if not model.scheduler.is_responsible_for(pod.spec.scheduler_name):
        node = target_node(msgspec.to_builtins(pod)) or ""
        present = cast(Pod, model.pod(name))
        model.replace(POD, replace(present, spec=replace(present.spec, node_name=node)))
        return DaemonPod(name, node)
    attempt: Attempt = model.place(name)
    return DaemonPod(name, attempt.node, attempt.reason, attempt.victims)


def _created(model: ClusterModel, nodes: Sequence[Content]) -> list[Content]:
    """The pods of the DaemonSets that the model has, as their controller creates them."""
    made: list[Content] = []
    for controller in _daemon_sets(model):
        template = DaemonTemplate(controller)
        names = _free_names(model, controller)
        made += [
            pod_for_node(controller, next(names), node["metadata"]["name"])
            for node in nodes
            if template.is_meant_for(node)
        ]
    return made


def _daemon_sets(model: ClusterModel) -> Iterator[Content]:
    version, _, kind = DAEMON_SET.rpartition(" ")
    for each in model.objects(DAEMON_SET):
        if isinstance(each, Unstructured) and each.metadata.deletion_timestamp is None:
            metadata = {**each.content["metadata"], "uid": each.metadata.uid}
            yield {**each.content, "apiVersion": version, "kind": kind, "metadata": metadata}


def _free_names(model: ClusterModel, controller: Content) -> Iterator[str]:
    namespace = controller["metadata"].get("namespace") or ""
    return pod_names(controller, lambda name: model.get(POD, namespace, name) is not None)


def _copies(model: ClusterModel, nodes: Iterable[str], template: str) -> Iterator[Pod]:
    """Copies of the pods that DaemonSets which were not read have on the template."""
    pods = [pod for pod in _pods_on(model, template) if _is_of_unread(model, pod)]
    for node in nodes:
        for pod in pods:
            copy = cast(Pod, decode(POD, daemon_copy(msgspec.to_builtins(pod), node)))
            yield replace(copy, declared=dict(pod.declared))


def _pods_on(model: ClusterModel, node: str) -> Iterator[Pod]:
    table = model.scheduler.cache.table
    row = table.row_of.get(node)
    for info in () if row is None else table.pods[row].values():
        if info.metadata.deletion_timestamp is None:
            yield info.pod


def _is_of_unread(model: ClusterModel, pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind != "DaemonSet":
        return False
    return model.get(DAEMON_SET, pod.metadata.namespace or "", owner.name) is None
