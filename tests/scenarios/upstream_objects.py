"""Objects of Kubernetes' integration tests of groups, and what becomes of the pods."""

from typing import Any

from bayplan.api.objects import POD, Pod
from bayplan.objects.keys import object_key
from tests.scenarios.gangs import UPSTREAM, put_group
from tests.scenarios.trees import put_tree
from tests.scenarios.world import World


def create(world: World, content: dict[str, Any]) -> None:
    if "pod" in content:
        create_pod(world, content)
    elif "tree" in content:
        put_tree(
            world,
            content["tree"],
            content["minimum"],
            content.get("parent", ""),
            **group_fields(content),
        )
    elif "group" in content:
        fields = group_fields(content)
        if content["minimum"] is None:
            fields["schedulingPolicy"] = {"basic": {}}
        if "parent" in content:
            fields["parentCompositePodGroupName"] = content["parent"]
        put_group(world, content["group"], content["minimum"] or 1, UPSTREAM, **fields)
    else:
        taints = [f"{key}=:NoSchedule" for key in content.get("taints", ())]
        room = {name: content[name] for name in ("cpu", "memory", "pods") if name in content}
        options: dict[str, Any] = {"memory": "64Gi", "pods": 110, **room}
        options["pods"] = int(options["pods"])
        world.add_node(content["node"], labels=content.get("labels", {}), taints=taints, **options)


def group_fields(content: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "priority" in content:
        fields["priority"] = content["priority"]
    if "topology" in content:
        fields["schedulingConstraints"] = {"topology": [{"key": content["topology"]}]}
    if "whole" in content:
        fields["disruptionMode"] = {"all" if content["whole"] else "single": {}}
    if "policy" in content:
        fields["preemptionPolicy"] = content["policy"]
    return fields


def create_pod(world: World, content: dict[str, Any]) -> None:
    spec: dict[str, Any] = {}
    if "group" in content:
        spec["schedulingGroup"] = {"podGroupName": content["group"]}
    if "policy" in content:
        spec["preemptionPolicy"] = content["policy"]
    options: dict[str, Any] = {name: content[name] for name in ("cpu", "memory") if name in content}
    options |= {name: content[name] for name in ("priority", "node") if name in content}
    if "selector" in content:
        options["node_selector"] = content["selector"]
    if "podlevel" in content:
        spec["resources"] = {"requests": content["podlevel"]}
    if "labels" in content:
        options["labels"] = content["labels"]
    if "gates" in content:
        options["gates"] = content["gates"]
    if "apart" in content:
        selected, key = content["apart"]
        exists = [{"key": selected, "operator": "Exists"}]
        selector = (
            {"matchExpressions": exists} if isinstance(selected, str) else {"matchLabels": selected}
        )
        terms = [{"labelSelector": selector, "topologyKey": key}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        options["affinity"] = {"podAntiAffinity": required}
    if "tolerates" in content:
        options["tolerations"] = [{"key": key} for key in content["tolerates"]]
    if "port" in content:
        options["host_ports"] = [content["port"]]
    if "prefers" in content:
        fields = [{"key": "metadata.name", "operator": "In", "values": [content["prefers"]]}]
        term = {"weight": 100, "preference": {"matchFields": fields}}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        options["affinity"] = {"nodeAffinity": preferred}
    world.add_pod(content["pod"], spec=spec, **options)


def node_of(world: World, name: str) -> str:
    pod = world.pod(name).object
    assert isinstance(pod, Pod)
    return pod.spec.node_name or ""


def is_gone(world: World, name: str) -> bool:
    return world.cluster.get(object_key(POD, "default", name)) is None


def is_refused(world: World, name: str) -> bool:
    return not node_of(world, name) and world.reason(name) == "Unschedulable"
