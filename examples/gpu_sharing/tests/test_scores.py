"""The six ways to score, with numbers computed by hand."""

import math
from typing import Any

import pytest
from gpu_sharing.best_fit import BestFit
from gpu_sharing.dot_product import DotProduct
from gpu_sharing.fgd import FGD
from gpu_sharing.gpu_clustering import GpuClustering
from gpu_sharing.gpu_packing import GpuPacking
from gpu_sharing.least_free_gpu import LeastFreeGpu
from gpu_sharing.random_node import RandomNode
from gpu_sharing.typical_pods import (
    CONFIG_MAP,
    TypicalPodsError,
    most_frequent,
    with_typical_pods,
)

from bayplan import CycleState, Plugin
from bayplan.testing import check_plugin, cluster, node, plugin, pod
from examples.gpu_sharing.tests.kit import gpu

#: Node → what the pods on its two GPUs leave free.
FREE = {"empty": (1000, 1000), "half": (500, 1000), "shared": (300, 700), "whole": (0, 1000)}


def world(typical: tuple[Any, ...] = ()) -> Any:
    nodes = [node(name, cpu=64, allocatable={"nvidia.com/gpu": 2}) for name in FREE]
    placed = [
        gpu(f"{name}-{device}", 1000 - free, devices=str(device)).on_node(name)
        for name, left in FREE.items()
        for device, free in enumerate(left)
        if free < 1000
    ]
    found = cluster(nodes, placed)
    return found.put(CONFIG_MAP, *with_typical_pods(typical)) if typical else found


def scores(scorer: type[Plugin], asking: Any, over: Any = None) -> dict[str, int]:
    over = over or world()
    nodes = over.lend().nodes
    instance: Any = plugin(scorer, cluster=over)
    found = instance.score(CycleState(), asking, nodes).tolist()
    return dict(zip(nodes.names(), found, strict=True))


@pytest.mark.parametrize(
    "scorer", [BestFit, DotProduct, GpuClustering, GpuPacking, LeastFreeGpu, RandomNode]
)
def test_every_scorer_keeps_to_the_contract(scorer: type[Plugin]) -> None:
    check_plugin(scorer, clusters=5)


def test_so_does_the_one_that_wants_typical_pods() -> None:
    [typical] = with_typical_pods([gpu("a", 500)])
    check_plugin(FGD, clusters=5, prepare=lambda found: found.put(CONFIG_MAP, typical))


def test_packing_prefers_gpus_in_use_then_nodes_in_use_then_small_empty_ones() -> None:
    # empty: 33 - 2; half: the GPU with 500, 100 - 5; shared: that with 700 or 300; whole: begins
    # its free one, 50 - 1.
    assert scores(GpuPacking, gpu("p", 400)) == {"empty": 31, "half": 95, "shared": 93, "whole": 49}
    assert scores(GpuPacking, gpu("p", 200))["shared"] == 97
    # 50 % and 100 % of a GPU: one of them is begun.
    assert scores(GpuPacking, gpu("p", 500, count=2))["half"] == 49
    assert set(scores(GpuPacking, pod("p")).values()) == {0}


def test_clustering_prefers_the_company_of_its_sort() -> None:
    # Of 8000: 6000 used where 2000 are left … 25 x 6000 // 8000 = 18, 6500 → 20, 7000 → 21.
    shares = {"empty": 25 + 18, "half": 75 + 20, "shared": 75 + 21, "whole": 0 + 21}
    assert scores(GpuClustering, gpu("p", 400)) == shares
    assert scores(GpuClustering, gpu("p"))["whole"] == 75 + 21
    mixed = world().add(gpu("more", 300, devices="1").on_node("whole"))
    assert scores(GpuClustering, gpu("p"), mixed)["whole"] == 50 + 22
    assert set(scores(GpuClustering, pod("p")).values()) == {0}


def test_best_fit_is_what_is_left_over() -> None:
    # empty: 100 x (1 - (62000/128000 + 1600/8000) / 2) = 65.78
    found = scores(BestFit, gpu("p", 400, cpu=2))
    assert found["empty"] == int(100 * (1 - (62_000 / 128_000 + 1_600 / 8_000) / 2))
    assert found["shared"] == int(100 * (1 - (62_000 / 128_000 + 600 / 8_000) / 2))
    assert found["whole"] == found["shared"]


def test_the_dot_product_is_of_what_is_free_and_what_is_asked() -> None:
    found = scores(DotProduct, gpu("p", 1000, count=2, cpu=32))
    assert found["empty"] == int(100 * (1 - (0.5 * 0.25 + 0.25 * 0.25) / 2))
    assert found["shared"] == int(100 * (1 - (0.5 * 0.25 + 0.125 * 0.25) / 2))


def test_the_least_free_has_the_least_free() -> None:
    assert scores(LeastFreeGpu, pod("p")) == {
        "empty": 2000, "half": 1500, "shared": 1000, "whole": 1000,
    }  # fmt: skip


def test_a_random_node_is_the_only_best_and_another_for_another_pod() -> None:
    found = world()
    chosen = set[str]()
    for index in range(40):
        asking = pod(f"p{index}")
        raw = scores(RandomNode, asking, found)
        assert raw == scores(RandomNode, asking, world())
        instance: Any = plugin(RandomNode, cluster=found)
        nodes = found.lend().nodes
        state = CycleState()
        final = instance.normalize(state, asking, instance.score(state, asking, nodes)).tolist()
        assert sorted(final) == [0, 0, 0, 100]
        chosen.add(nodes.name(final.index(100)))
    assert chosen == set(FREE)


def test_fgd_prefers_what_fragments_least() -> None:
    # One typical pod: half a GPU and no CPU. Before: 300 of "shared" fit nobody, nothing else.
    found = scores(FGD, gpu("p", 500), world((gpu("t", 500),)))
    # empty, whole and half: the other half of a GPU stays usable. shared: 200 more are lost.
    assert found["empty"] == found["half"] == found["whole"] == 50
    assert found["shared"] == int(100 / (1 + math.exp(200 / 1000)))


def test_fgd_counts_what_no_cpu_is_left_for() -> None:
    # Takes all CPU: what is idle then fits nobody; 1500 of "half" with 500 of them taken.
    found = scores(FGD, gpu("p", 500, cpu=64), world((gpu("t", 500, cpu=1),)))
    assert found["half"] == int(100 / (1 + math.exp(1000 / 1000)))


def test_fgd_without_typical_pods_says_how_to_have_them() -> None:
    with pytest.raises(TypicalPodsError, match=r"default/typical-pods .* prepare: \[typicalPods\]"):
        scores(FGD, gpu("p"), world())


def test_typical_pods_are_the_most_frequent_until_enough_are_covered() -> None:
    pods = [gpu(f"a{i}", 500) for i in range(15)] + [gpu(f"b{i}") for i in range(4)] + [pod("c")]
    found = list(most_frequent(pods))
    assert [(one.gpus, one.gpu_milli, one.share) for one in found] == [
        (1, 500, 0.75), (1, 1000, 0.2),
    ]  # fmt: skip
