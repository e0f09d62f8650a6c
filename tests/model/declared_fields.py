"""A plugin that reads a field which plugins must declare, and its configuration."""

from typing import Any, final

from bayplan import Code, CycleState, NodeInfo, PodInfo, ScalarFilterPlugin, Status

VERSION = "v1.30.0"
CONFIG: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "KubeletVersion"}]}}}],
}


@final
class KubeletVersion(ScalarFilterPlugin[Any]):
    """Nodes whose kubelet has another version do not fit."""

    name = "KubeletVersion"
    fields = ("Node.status.nodeInfo.kubeletVersion",)

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        version = node.declared.get("Node.status.nodeInfo.kubeletVersion")
        fits = version == VERSION
        return None if fits else Status(Code.UNSCHEDULABLE, (f"kubelet {version}",))
