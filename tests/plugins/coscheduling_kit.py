"""Groups, their members, and the plugin over a small cluster."""

from typing import Any, Unpack

from bayplan.api.objects import decode
from bayplan.api.pod_groups import COSCHEDULING_LABEL, KINDS
from bayplan.plugins.coscheduling import Coscheduling
from bayplan.state.pods import PodInfo
from bayplan.testing import NodeOptions, PodOptions, SampleCluster, api_pod, node, plugin, pod

KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"


def group_manifest(name: str = "g", *, created: str = "", **spec: Any) -> dict[str, Any]:
    """The manifest of a PodGroup."""
    metadata = {"name": name, "namespace": "default"}
    if created:
        metadata["creationTimestamp"] = created
    api_version, _, kind = KIND.partition(" ")
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def labels(group: str = "g") -> dict[str, str]:
    return {COSCHEDULING_LABEL: group}


def member(name: str, group: str = "g", **options: Unpack[PodOptions]) -> PodInfo:
    return pod(name, **{**options, "labels": labels(group)})


def nodes(**options: NodeOptions) -> SampleCluster:
    return SampleCluster().add(
        *(node(name, **node_options) for name, node_options in options.items())
    )


def put_group(cluster: SampleCluster, name: str = "g", **spec: Any) -> None:
    manifest = group_manifest(name, **spec)
    content = {part: manifest[part] for part in ("metadata", "spec")}
    cluster.pod_groups.put(KINDS[KIND].compile(KIND, decode(KIND, content)))


def put_members(cluster: SampleCluster, *names: str, group: str = "g") -> None:
    for name in names:
        cluster.pod_groups.put_pod(api_pod(name, labels=labels(group)))


def coscheduling(cluster: SampleCluster, **args: Any) -> Coscheduling:
    """The plugin with placement pod by pod, unless args have another one."""
    result = plugin(Coscheduling, {"placement": "pod", **args}, cluster=cluster)
    assert isinstance(result, Coscheduling)
    return result
