"""A cluster whose devices represent a resource in every possible way, and its scores.

The tests contain the scores of kube-scheduler v1.37.0 for this cluster.
"""

from typing import Any

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import RowScore, ScorePlugin
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, node, pod
from tests.plugins.devices_kit import allocated, claim, class_of, device, put, slice_of
from tests.plugins.row_kit import scored

GPU, BY_CLASS = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
#: Fails for the device without a model.
BIG = "device.attributes['gpu.example.com'].model=='big'"
BIG_IF_PRESENT = "device.attributes['gpu.example.com'].?model.orValue('')=='big'"


def _big(name: str, **fields: Any) -> dict[str, Any]:
    return device(name, attributes={"model": "big"}, **fields)


def _small(name: str, **fields: Any) -> dict[str, Any]:
    return device(name, attributes={"model": "small"}, **fields)


_IN_ZONE = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    ]
}


def cluster(*expressions: str) -> SampleCluster:
    """``expressions``: the selectors of the class."""
    room: Any = {"cpu": 8, "memory": "16Gi"}
    sample = SampleCluster()
    sample.add(
        node("a", **room),
        node("b", **room),
        node("c", **room, allocatable={GPU: 4}),
        node("d", **room, labels={"zone": "z"}),
        node("e", **room, allocatable={GPU: 0}),
        node("f", **room),
        asking("on-b").on_node("b"),
        asking("on-c").on_node("c"),
    )
    put(
        sample.store,
        class_of("gpu", *expressions, extendedResourceName=GPU),
        slice_of("a", *(_big(f"g{number}") for number in range(4))),
        slice_of("b", _big("g0"), _small("g1"), _big("g2")),
        slice_of("e", _big("g0"), device("g1"), _big("g2")),
        slice_of("rack", _big("r0"), _big("r1"), nodeSelector=_IN_ZONE),
        slice_of(
            "each",
            _big("p0", nodeName="b"),
            _big("p1", nodeSelector=_IN_ZONE),
            _small("p2", nodeName="f"),
            perDeviceNodeSelection=True,
        ),
    )
    as_admin = claim("admin", status=allocated(("a", "g0"), ("a", "g1")))
    as_admin["status"]["allocation"]["devices"]["results"][1]["adminAccess"] = True
    put(sample.store, as_admin, claim("c", status=allocated(("rack", "r0"), ("each", "p0"))))
    return sample


def asking(name: str = "p", amount: int = 1, resource: str = GPU) -> PodInfo:
    return pod(name, cpu="500m", memory="1Gi", requests={resource: amount})


def scores(plugin: ScorePlugin, cluster: SampleCluster, requesting: PodInfo) -> dict[str, int]:
    """Node → score. All nodes, selected nodes and single nodes must have the same scores."""
    nodes = cluster.lend().nodes
    together = scored(plugin, requesting, nodes)
    assert together is not None and isinstance(plugin, RowScore)
    some = nodes.take([5, 1, 4])
    assert scored(plugin, requesting, some) == {name: together[name] for name in some.names()}
    for info in nodes.infos():
        assert plugin.score_row(CycleState(), requesting, info) == together[info.name]
    return together
