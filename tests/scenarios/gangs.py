"""Groups of pods in the scenarios' world."""

from collections.abc import Iterator
from typing import Any

from bayplan.adapters.embedded.field_validation import object_key
from bayplan.api.pod_groups import COSCHEDULING_LABEL, MING_LABEL
from bayplan.journal import GroupRecord
from tests.scenarios.world import PROFILE, World

X_K8S = "scheduling.x-k8s.io/v1alpha1 PodGroup"
MING = "scheduling.ming.io/v1 PodGroup"
#: Known by configuration only.
CONFIGURED = "batch.example.com/v1 Gang"
CONFIGURED_ROW = {
    "group": "batch.example.com",
    "version": "v1",
    "kind": "Gang",
    "label": "batch.example.com/gang",
}
LABELS = {
    X_K8S: COSCHEDULING_LABEL,
    MING: MING_LABEL,
    CONFIGURED: CONFIGURED_ROW["label"],
}
FIT = [("NodeResourcesFit", 1)]


def put_group(
    world: World,
    name: str,
    minimum: int,
    kind: str = X_K8S,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> None:
    api_version, _, bare = kind.partition(" ")
    if kind in LABELS:
        spec = {"minMember": minimum, **spec}
    else:
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec}
    meta = {"name": name, "namespace": "default", "annotations": annotations or {}}
    content = {"apiVersion": api_version, "kind": bare, "metadata": meta, "spec": spec}
    if world.cluster.get(object_key(kind, "default", name)) is None:
        world.cluster.create(content)
    else:
        world.cluster.update(content)


def add_member(
    world: World,
    name: str,
    group: str,
    kind: str = X_K8S,
    metadata: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """``metadata``: further fields of it."""
    if kind in LABELS:
        options["labels"] = {**options.get("labels", {}), LABELS[kind]: group}
    else:
        options["spec"] = {**options.get("spec", {}), "schedulingGroup": {"podGroupName": group}}
    asks: dict[str, Any] = {"cpu": "100m", "memory": "200Mi", **options}
    world.add_pod(name, metadata, **asks)


def timed_count(world: World, counter: str, duration: str, result: str) -> float:
    """How many had a result, by a counter; by a histogram as many took their time."""
    labels = {"result": result, "profile": PROFILE}
    count = world.metric(f"scheduler_{counter}_total", **labels)
    assert world.metric(f"scheduler_{duration}_seconds_count", **labels) == count
    return count


def owned_by(name: str) -> dict[str, Any]:
    """``metadata`` of a pod that a ReplicaSet made."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}"}
    return {"ownerReferences": [owner]}


def status(world: World, name: str, kind: str = X_K8S) -> dict[str, Any]:
    stored = world.cluster.get(object_key(kind, "default", name))
    assert stored is not None
    return stored.content.get("status", {})


def condition(world: World, name: str, wanted: str, kind: str = X_K8S) -> dict[str, Any]:
    """One of the group's conditions; empty: it is not there."""
    found = status(world, name, kind).get("conditions", ())
    return next((each for each in found if each["type"] == wanted), {})


def scheduled_status(world: World, name: str, kind: str = X_K8S) -> tuple[int, int]:
    """(scheduled, running)"""
    found = status(world, name, kind)
    return found.get("scheduled", 0), found.get("running", 0)


def group_attempts(world: World, name: str) -> list[GroupRecord]:
    records = world.journal.records
    key = f"default/{name}"
    return [r for r in records if isinstance(r, GroupRecord) and r.group == key and r.attempt]


def explanation(world: World, group: str) -> str:
    """Why the members of a group wait, as `why` and the journal say it."""
    states = world.scheduler.pod_groups.all()
    return next(state.message for state in states if state.key.name == group)


def message(world: World, name: str) -> str:
    """Of the pod's condition."""
    found = world.pod(name).content["status"].get("conditions", ())
    return next((c.get("message", "") for c in found if c["type"] == "PodScheduled"), "")


def bound(world: World, *names: str) -> Iterator[float | None]:
    """When."""
    for name in names:
        found = world.bound(name)
        yield None if found is None else found[0]
