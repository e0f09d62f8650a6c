"""What kube-scheduler of one version does with each pod of a cluster.

A pod that waits is tried as it is. A pod that runs is tried as if it were created again: it goes,
and its replacement is placed with everything else unchanged. All nodes are evaluated, so that the
answer does not depend on a sample of the nodes. The answer is the set of the best nodes, whichever
of them is drawn. A member of a group is decided with its group.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from msgspec.structs import replace

from bayplan.answers.names import in_natural_order
from bayplan.api.objects import POD, Pod, is_terminal
from bayplan.config import SchedulerConfig
from bayplan.engine.cycle import Cycle
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.workloads import is_mirror
from bayplan.plugins.registry import Registry
from bayplan.state.pods import PodInfo, pod_info
from bayplan.whatif.evictions import create_again


@dataclass(frozen=True, slots=True)
class Decision:
    """What one version does with one pod."""

    #: The best nodes in the order of their names; (): the pod waits.
    nodes: tuple[str, ...]
    #: Why it waits.
    message: str = ""
    #: The node on which preemption makes room, and the pods that leave for it.
    nominated_node: str = ""
    victims: tuple[str, ...] = ()


@contextmanager
def version_model(
    picture: ClusterPicture, config: SchedulerConfig, registry: Registry, seed: int
) -> Iterator[ClusterModel]:
    """The cluster under a configuration whose version decides, whatever the cluster reports.
    Raises ConfigError."""
    profiles = tuple(
        replace(profile, percentage_of_nodes_to_score=None) for profile in config.spec.profiles
    )
    spec = replace(config.spec, percentage_of_nodes_to_score=100, profiles=profiles)
    model = ClusterModel(
        picture, replace(config, spec=spec, names_version=True), registry, seed=seed
    )
    try:
        yield model
    finally:
        model.close()


def decisions(model: ClusterModel, pods: Sequence[PodInfo]) -> dict[str, Decision]:
    """Each pod → its decision."""
    return {pod.key: _decision(model, pod) for pod in pods}


def _decision(model: ClusterModel, pod: PodInfo) -> Decision:
    best: list[tuple[str, ...]] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.key == pod.key:
            best.append(_best_nodes(cycle))

    with model.trial():
        if pod.node_name:
            # The uid breaks ties, because it is the same in each model.
            model.remove(POD, pod.namespace, pod.name)
            create_again(model, pod, uid=f"again-{pod.uid}")
        attempt = model.attempt(pod.key, look)
    nodes = best[-1] if best and attempt.node else ()
    return Decision(
        nodes or tuple(filter(None, (attempt.node,))),
        attempt.reason,
        attempt.nominated_node,
        tuple(in_natural_order(victim.key for victim in attempt.victims)),
    )


def _best_nodes(cycle: Cycle) -> tuple[str, ...]:
    choice = cycle.choice
    if choice is None:
        return ()
    table = cycle.score_table()
    if table is None:
        return (choice.node_name,)
    names = table.nodes.names()
    return tuple(in_natural_order(names[one] for one in table.best_positions().tolist()))


# ---- which pods ----------------------------------------------------------------------------


def pods_to_decide(model: ClusterModel) -> tuple[list[PodInfo], dict[str, list[str]]]:
    """The pods that this scheduler decides about, those that wait first; and, by reason, the keys
    of those that it does not. Pods that have ended are neither."""
    pods = model.in_queue_order()
    omitted: dict[str, list[str]] = {}
    waiting = {pod.key for pod in pods}
    names = {profile.scheduler_name for profile in model.config.spec.profiles}
    for each in model.objects(POD):
        pod = pod_info(cast(Pod, each), rules=model.scheduler.pod_rules)
        if pod.key in waiting or is_terminal(pod.pod):
            continue
        reason = _omission(pod, names)
        if reason:
            omitted.setdefault(reason, []).append(pod.key)
        else:
            pods.append(pod)
    return pods, omitted


def _omission(pod: PodInfo, scheduler_names: set[str | None]) -> str:
    """Why no decision about a pod is made; "": this scheduler decides about it."""
    if is_mirror(pod.metadata):
        return "a static pod: its kubelet runs it, and no scheduler"
    if pod.scheduler_name not in scheduler_names:
        return f"the scheduler {pod.scheduler_name} decides about it"
    if pod.is_terminating:
        return "it is being deleted"
    return "" if pod.node_name else "it does not wait for this scheduler"
