"""NodeResourcesBalancedAllocation: compared with a plain rule, and by examples."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayplan.plugins.node_resources_balanced_allocation as module
from bayplan.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from bayplan.state.cache import Cache
from bayplan.testing import plugin as made
from tests.plugins import scored_devices
from tests.plugins.devices_kit import allocated, claim, put
from tests.plugins.resource_kit import (
    GPU,
    HUGE,
    LARGE,
    NIC,
    POSITIONS,
    RESOURCES,
    ROOM,
    Amounts,
    Place,
    clusters,
    lent,
    node_offering,
    pod_of_containers,
    pods,
    total,
)
from tests.plugins.row_kit import NO_HANDLE, score_is_row_wise, scored
from tests.plugins.scored_devices import BY_CLASS, asking, scores

PLUGIN = NodeResourcesBalancedAllocation(None, NO_HANDLE)


def balanced(*resources: str) -> NodeResourcesBalancedAllocation:
    args = {"resources": [{"name": name} for name in resources]}
    config = msgspec.convert(args, NodeResourcesBalancedAllocationArgs)
    assert not list(config.problems())
    return NodeResourcesBalancedAllocation(config, NO_HANDLE)


# ---- the plain rule ----------------------------------------------------------------


def balance(fractions: Sequence[float]) -> int:
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        squares = sum((f - mean) * (f - mean) for f in fractions)
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)


def rule(resources: Sequence[str], containers: Sequence[Amounts], place: Place) -> int:
    before: list[float] = []
    after: list[float] = []
    for name in resources:
        expected, offered = total(containers, name), place.offered.get(name, 0)
        if offered and (expected or name not in (GPU, NIC, HUGE)):
            before.append(min(place.used(name) / offered, 1.0))
            after.append(min((place.used(name) + expected) / offered, 1.0))
    return 50 + (50 + balance(after) - balance(before)) // 2


CHOSEN = st.lists(st.sampled_from(RESOURCES), min_size=1, max_size=5, unique=True)
NUMBERS = LARGE | st.integers(1, 500)


@given(CHOSEN, clusters(NUMBERS, ROOM), pods(NUMBERS), POSITIONS, st.sampled_from([0, 500]))
def test_all_nodes_have_the_scores_of_the_plain_rule(
    resources: list[str],
    places: list[Place],
    containers: list[dict[str, int]],
    positions: list[int],
    few_nodes: int,
) -> None:
    """Whether the balance without the pod is a cached column or computed each time."""
    plugin, nodes, asking = (
        balanced(*resources),
        lent(places),
        pod_of_containers(containers=containers),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW_NODES", few_nodes)
        result = scored(plugin, asking, nodes)
        if not any(total(containers, name) for name in resources):
            assert result is None
            return
        expected = {f"n{i}": rule(resources, containers, each) for i, each in enumerate(places)}
        assert result == expected
        chosen = [p for p in positions if p < len(places)]
        assert score_is_row_wise(plugin, asking, nodes, chosen)


# ---- examples ------------------------------------------------------------------------------

EVEN = {"cpu": 1000, "memory": 1000}


def test_pod_level_requests_count() -> None:
    asking = pod_of_containers(
        containers=[{}], resources={"requests": {"cpu": "1", "memory": 1000}}
    )
    assert scored(PLUGIN, asking, lent([Place(EVEN)])) == {"n0": 75}


# ---- args ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "path"),
    [
        pytest.param([{"name": "cpu", "weight": 2}], "resources[0].weight", id="a weight"),
        pytest.param(
            [{"name": "cpu"}, {"name": "cpu"}], "resources[1].name", id="a repeated resource"
        ),
    ],
)
def test_invalid_args_are_reported(resources: list[Any], path: str) -> None:
    args = msgspec.convert({"resources": resources}, NodeResourcesBalancedAllocationArgs)
    assert [problems for problems, _ in args.problems()] == [path]


def test_no_resources_means_cpu_and_memory() -> None:
    asking = pod_of_containers(containers=[{"memory": 1}])
    assert balanced().sign_pod(asking) == PLUGIN.sign_pod(asking)


# ---- devices that stand for a resource -----------------------------------------------------


@pytest.mark.parametrize(
    ("resources", "amount", "recorded"),
    [
        (("cpu", "memory", GPU), 1, {"a": 70, "b": 70, "c": 70, "d": 68, "e": 68, "f": 52}),
        (("cpu", "memory", GPU), 2, {"a": 64, "b": 64, "c": 64, "d": 60, "e": 60}),
        (("cpu", GPU), 1, {"a": 70, "b": 70, "c": 70, "d": 68, "e": 68, "f": 51}),
        (("cpu", GPU), 2, {"a": 64, "b": 64, "c": 64, "d": 60, "e": 59}),
        (("cpu", BY_CLASS), 1, {"a": 70, "b": 70, "d": 68, "e": 68, "f": 51}),
    ],
)
def test_devices_are_balanced_as_kube_scheduler_balances_them(
    resources: tuple[str, ...], amount: int, recorded: dict[str, int]
) -> None:
    cluster = scored_devices.cluster()
    args = {"resources": [{"name": name} for name in resources]}
    balances = made(NodeResourcesBalancedAllocation, args, cluster=cluster)
    answers = scores(balances, cluster, asking(amount=amount, resource=resources[-1]))
    assert {name: answers[name] for name in recorded} == recorded


def test_devices_are_balanced_equally_for_few_and_many_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = scored_devices.cluster()
    args = {"resources": [{"name": name} for name in ("cpu", GPU)]}
    balances = made(NodeResourcesBalancedAllocation, args, cluster=cluster)
    among_few = scores(balances, cluster, asking())
    monkeypatch.setattr(module, "FEW_NODES", 0)
    assert scores(balances, cluster, asking()) == among_few
    # All devices are taken: full and 0 of 8 cpu becomes full and half a cpu.
    put(cluster.store, claim("more", status=allocated(*(("a", f"g{n}") for n in (1, 2, 3)))))
    assert scores(balances, cluster, asking())["a"] == math.floor(75 + (53 - 50) / 2)


def test_a_pod_without_balanced_resources_is_skipped_with_devices_too() -> None:
    cluster = scored_devices.cluster()
    args = {"resources": [{"name": GPU}]}
    balances = made(NodeResourcesBalancedAllocation, args, cluster=cluster)
    assert scored(balances, asking(amount=0), cluster.lend().nodes) is None


def test_the_cached_column_follows_placements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW_NODES", 0)
    cache, asking = Cache(), pod_of_containers(containers=[{"memory": 500}])
    for name in ("a", "b"):
        cache.add_node(node_offering(EVEN, name=name))
    for _ in range(2):
        snapshot = cache.lend()
        assert scored(PLUGIN, asking, snapshot.nodes) == {"a": 62, "b": 62}
        snapshot.end()
    cache.add_pod(pod_of_containers("running", [{"cpu": 500}], on="b"))
    assert scored(PLUGIN, asking, cache.lend().nodes) == {"a": 62, "b": 87}
