"""The outcome of one attempt at a pod group, in the format of the recorded answers."""

from typing import Any, cast

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ResourceClaim,
)
from bayplan.api.objects import NODE, POD
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.objects.keys import object_key
from tests.kit.manifests import priority_class
from tests.scenarios.gangs import condition
from tests.scenarios.world import World, play

Json = dict[str, Any]

GROUP = "scheduling.k8s.io/v1beta1 PodGroup"
#: The members wait until the group exists, so that all of them are in the first attempt.
_GROUP_COMES_SECONDS = 1.0
#: The first backoff has not ended.
_END_SECONDS = 1.5


def outcome(case: Json, kubernetes: KubernetesVersion) -> Json:
    """Play a case up to the end of the first attempt."""
    result: Json = {}

    async def scene(world: World) -> None:
        for priority in (0, 100):
            world.cluster.create(priority_class(f"p{priority}", priority))
            never = priority_class(f"never{priority}", priority, preemptionPolicy="Never")
            world.cluster.create(never)
        for kind, listed in (
            (NODE, case["nodes"]),
            (RESOURCE_SLICE, case.get("slices", [])),
            (DEVICE_CLASS, case.get("classes", [])),
            (RESOURCE_CLAIM, case.get("claims", [])),
            (POD, [*case["pods"], *case["members"]]),
        ):
            for content in listed:
                _create(world, kind, content)
        await world.until(_GROUP_COMES_SECONDS)
        _create(world, GROUP, case["group"])
        await world.until(_END_SECONDS)
        result.update(_outcome(world, case))

    profile = {"plugins": {}, "schedulerName": "default-scheduler"}
    play(scene, gates=case["gates"], profile=profile, kubernetes=kubernetes)
    return result


_CLUSTER_WIDE = (NODE, RESOURCE_SLICE, DEVICE_CLASS)


def _create(world: World, kind: str, content: Json) -> None:
    api_version, _, name = kind.partition(" ")
    namespaced = {} if kind in _CLUSTER_WIDE else {"namespace": "default"}
    metadata = {**content["metadata"], **namespaced}
    world.cluster.create({**content, "apiVersion": api_version, "kind": name, "metadata": metadata})


def _outcome(world: World, case: Json) -> Json:
    of_group = condition(world, "g", "PodGroupInitiallyScheduled", GROUP)
    members = {name: _member(world, name) for name in _names(case["members"])}
    victims = sorted(name for name in _names(case["pods"]) if _is_victim(world, name))
    fields = ("status", "reason", "message")
    result: Json = {
        "group": {name: of_group.get(name, "") for name in fields},
        "members": members,
    }
    claims = {name: _claim(world, name) for name in _names(case.get("claims", []))}
    return {
        **result,
        **({"victims": victims} if victims else {}),
        **({"claims": claims} if claims else {}),
    }


def _claim(world: World, name: str) -> Json:
    """The devices of a claim and its users."""
    stored = world.cluster.get(object_key(RESOURCE_CLAIM, "default", name))
    assert stored is not None
    status = cast(ResourceClaim, stored.object).status
    results = () if status.allocation is None else status.allocation.results
    fields = {
        "devices": [f"{each.pool}/{each.device}" for each in results],
        "users": sorted(f"{each.resource}/{each.name}" for each in status.reserved_for or ()),
    }
    return {key: value for key, value in fields.items() if value}


def _names(pods: list[Json]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def _member(world: World, name: str) -> Json:
    content = world.pod(name).content
    node_name, status = content["spec"].get("nodeName"), content.get("status", {})
    if node_name:
        return {"node": node_name}
    conditions = status.get("conditions", ())
    scheduled = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    fields = {
        "nominated": status.get("nominatedNodeName"),
        "reason": scheduled.get("reason"),
        "message": scheduled.get("message"),
    }
    return {key: value for key, value in fields.items() if value}


def _is_victim(world: World, name: str) -> bool:
    stored = world.cluster.get(object_key(POD, "default", name))
    return stored is None or "deletionTimestamp" in stored.content["metadata"]
