"""Controllers with their pods, for tests of plans."""

from collections.abc import Iterable, Iterator
from typing import Any

from bayplan.objects.keys import key_of
from bayplan.sim.input.controller_pods import pod_names
from bayplan.sim.world.workloads.plans import Plan, Surroundings
from tests.kit.manifests import Content, pod
from tests.sim.manifests import owned

NOW = 1_767_225_600.0
LEAVES = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def around(*nodes: Content, names: Iterable[str] = (), objects: Iterable[Any] = ()) -> Surroundings:
    used_names, there = set(names), {*objects, *map(key_of, nodes)}

    def new_names(subject: Content) -> Iterator[str]:
        return pod_names(subject, used_names.__contains__)

    return Surroundings(
        now_seconds=NOW,
        exists=there.__contains__,
        was_named=lambda _, name: name in used_names,
        names=new_names,
        nodes=nodes,
    )


def of(subject: Content, name: str, phase: str = "Running", **meta: Any) -> Content:
    """A pod of a controller; a running pod is on node n1."""
    spec: Content = {} if phase == "Pending" else {"nodeName": "n1"}
    content = owned(pod(name, **spec), subject, controller=True)
    annotations = {**content["metadata"].get("annotations", {}), **meta.pop("annotations", {})}
    more = {"uid": name, "annotations": annotations, **meta}
    return {**content, "metadata": {**content["metadata"], **more}, "status": {"phase": phase}}


def created(plan: Plan) -> list[str]:
    return [one["metadata"]["name"] for one in plan.create]


def deleted(plan: Plan) -> list[str]:
    return [key.name for key in plan.delete]
