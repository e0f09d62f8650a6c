"""For tests of plugins, ours and yours: pods, nodes and clusters to hand, and `check_plugin`.

from bayplan.testing import check_plugin, cluster, node, plugin, pod

def test_my_policy_keeps_to_the_contract() -> None:
    check_plugin(MyPolicy)
"""

from bayplan.testing.clusters import SampleCluster, cluster, handle, plugin
from bayplan.testing.conformance import CheckReport, check_plugin
from bayplan.testing.evaluation import CheckFailed, PluginAnswer, ask
from bayplan.testing.factories import NodeOptions, PodOptions, api_pod, node, pod
from bayplan.testing.memory_devices import MemoryDevices

__all__ = [
    "CheckFailed",
    "CheckReport",
    "MemoryDevices",
    "NodeOptions",
    "PluginAnswer",
    "PodOptions",
    "SampleCluster",
    "api_pod",
    "ask",
    "check_plugin",
    "cluster",
    "handle",
    "node",
    "plugin",
    "pod",
]
