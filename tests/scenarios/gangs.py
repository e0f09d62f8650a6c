"""Groups of pods in the scenarios' world."""

from collections.abc import Iterable, Iterator
from typing import Any

from bayplan.api.pod_groups import COSCHEDULING_LABEL, MING_LABEL
from bayplan.journal import GroupRecord
from bayplan.objects.keys import object_key
from tests.scenarios.world import PROFILE, World

X_K8S = "scheduling.x-k8s.io/v1alpha1 PodGroup"
UPSTREAM = "scheduling.k8s.io/v1beta1 PodGroup"
SLICES = "bayplan.dev/topology-slices"
MING = "scheduling.ming.io/v1 PodGroup"
#: Defined only by the configuration.
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
    """``metadata``: further fields of the metadata."""
    if kind in LABELS:
        options["labels"] = {**options.get("labels", {}), LABELS[kind]: group}
    else:
        options["spec"] = {**options.get("spec", {}), "schedulingGroup": {"podGroupName": group}}
    fields: dict[str, Any] = {"cpu": "100m", "memory": "200Mi", **options}
    world.add_pod(name, metadata, **fields)


def add_members(
    world: World, names: Iterable[str], group: str, kind: str = X_K8S, **options: Any
) -> None:
    """Equal members. ``options``: those of add_member."""
    for name in names:
        add_member(world, name, group, kind, **options)


def timed_count(world: World, counter: str, duration: str, result: str) -> float:
    """The count of a result in a counter, which must equal the count in a histogram."""
    labels = {"result": result, "profile": PROFILE}
    count = world.metric(f"scheduler_{counter}_total", **labels)
    assert world.metric(f"scheduler_{duration}_seconds_count", **labels) == count
    return count


def owned_by(name: str) -> dict[str, Any]:
    """``metadata`` of a pod of a ReplicaSet."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}"}
    return {"ownerReferences": [owner]}


def status(world: World, name: str, kind: str = X_K8S) -> dict[str, Any]:
    stored = world.cluster.get(object_key(kind, "default", name))
    assert stored is not None
    return stored.content.get("status", {})


def condition(world: World, name: str, condition_type: str, kind: str = X_K8S) -> dict[str, Any]:
    """The group's condition of this type, or {} if it is absent."""
    conditions = status(world, name, kind).get("conditions", ())
    return next((each for each in conditions if each["type"] == condition_type), {})


def scheduled_status(world: World, name: str, kind: str = X_K8S) -> tuple[int, int]:
    """(scheduled, running)"""
    counts = status(world, name, kind)
    return counts.get("scheduled", 0), counts.get("running", 0)


def group_attempts(world: World, name: str) -> list[GroupRecord]:
    records = world.journal.records
    key = f"default/{name}"
    return [r for r in records if isinstance(r, GroupRecord) and r.group == key and r.attempt]


def explanation(world: World, group: str) -> str:
    """Why the members of a group wait, in the words of `why` and the journal."""
    states = world.scheduler.pod_groups.all()
    return next(state.message for state in states if state.key.name == group)


def message(world: World, name: str) -> str:
    """The message of the pod's condition PodScheduled."""
    conditions = world.pod(name).content["status"].get("conditions", ())
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


def bound(world: World, *names: str) -> Iterator[float | None]:
    """The time of each pod's binding."""
    for name in names:
        place = world.bound(name)
        yield None if place is None else place[0]


# ---- racks ------------------------------------------------------------------------------------


def racks(world: World, *cpus: tuple[int, ...], first: int = 0) -> None:
    """Racks r0, r1 …, two in a block, with the cpus of their nodes."""
    for rack, of_nodes in enumerate(cpus, first):
        for index, cpu in enumerate(of_nodes):
            labels = {"rack": f"r{rack}", "block": f"b{rack // 2}"}
            world.add_node(f"r{rack}-{index}", cpu=cpu, labels=labels)


def members(world: World, *cpus: int, kind: str = X_K8S, **options: Any) -> list[str]:
    """Members m00, m01 … with these cpus."""
    names = [f"m{index:02d}" for index in range(len(cpus))]
    for name, cpu in zip(names, cpus, strict=True):
        add_member(world, name, "g", kind, cpu=cpu, **options)
    return names


def node_of(world: World, name: str) -> str:
    place = world.bound(name)
    return "" if place is None else place[1]


def racks_of(world: World, *names: str) -> list[str]:
    """The rack of each member; "" without a node."""
    return [node_of(world, name).partition("-")[0] for name in names]
