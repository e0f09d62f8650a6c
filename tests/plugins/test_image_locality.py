"""ImageLocality: compared with a plain rule, and by examples."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import NODE, Node, decode
from bayplan.plugins.image_locality import ImageLocality
from bayplan.state.cache import Cache
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.plugins.row_kit import NO_HANDLE, score_is_row_wise, scored

PLUGIN = ImageLocality(None, NO_HANDLE)
MIB = 1024 * 1024

#: Full name → bytes.
Images = dict[str, int]


def holding(name: str, images: Images) -> Node:
    listed = [{"names": [image], "sizeBytes": size} for image, size in images.items()]
    node = decode(NODE, {"metadata": {"name": name}, "status": {"images": listed}})
    assert isinstance(node, Node)
    return node


def lent(cluster: list[Images]) -> NodeView:
    """Nodes n0, n1 … with these images."""
    cache = Cache()
    for row, images in enumerate(cluster):
        cache.add_node(holding(f"n{row}", images))
    return cache.lend().nodes


def running(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> PodInfo:
    return pod(
        containers=[{"name": "c", "image": image} for image in images],
        init_containers=[{"name": "i", "image": image} for image in init],
        spec={"volumes": [{"name": "v", "image": {"reference": image}} for image in volumes]},
    )


# ---- the plain rule ----------------------------------------------------------------


def rule(named: list[str], cluster: list[Images], row: int) -> int:
    """The plain rule. ``named``: full names, as often as the pod names them."""
    present_bytes = 0
    for name in named:
        holders = [images for images in cluster if name in images]
        if name in cluster[row]:
            # An image has one size: that of the first node with the image.
            present_bytes += int(holders[0][name] * (len(holders) / len(cluster)))
    most = 1000 * MIB * len(named)
    counted = min(max(present_bytes, 23 * MIB), most)
    return 100 * (counted - 23 * MIB) // (most - 23 * MIB)


NAMES = st.sampled_from(["a:1", "b:latest", "registry:5000/c:latest"])
SIZES = st.sampled_from([0, 1, 23 * MIB, 250 * MIB + 1, 999 * MIB, 3000 * MIB])
CLUSTERS = st.lists(st.dictionaries(NAMES, SIZES), min_size=1, max_size=6)
POSITIONS = st.lists(st.integers(0, 5), unique=True)


@given(CLUSTERS, st.lists(NAMES, min_size=1, max_size=4), st.integers(0, 4), POSITIONS)
def test_all_nodes_have_the_scores_of_the_plain_rule(
    cluster: list[Images], named: list[str], init_count: int, positions: list[int]
) -> None:
    asking = running(*named[init_count:], init=tuple(named[:init_count]))
    nodes = lent(cluster)
    expected = {f"n{row}": rule(named, cluster, row) for row in range(len(cluster))}
    assert scored(PLUGIN, asking, nodes) == expected
    chosen = [p for p in positions if p < len(cluster)]
    assert score_is_row_wise(PLUGIN, asking, nodes, chosen)


# ---- examples ------------------------------------------------------------------------------


def test_a_port_is_not_a_tag() -> None:
    nodes = lent([{"registry:5000/web:latest": 1000 * MIB}])
    assert scored(PLUGIN, running("registry:5000/web"), nodes) == {"n0": 100}


def test_fields_without_images_are_not_signed() -> None:
    volume: dict[str, Any] = {"name": "v", "configMap": {"name": "settings"}}
    assert PLUGIN.sign_pod(pod(spec={"volumes": [volume]})) == PLUGIN.sign_pod(pod())
