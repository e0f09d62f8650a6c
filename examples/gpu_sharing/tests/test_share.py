"""GpuShare: who has the GPUs a pod asks for, and which it is given."""

import asyncio
from typing import Any

import pytest
from gpu_sharing.devices import DEVICES_ANNOTATION, shown
from gpu_sharing.share import TOO_LITTLE, WRONG_MODEL, GpuShare
from gpu_sharing.typical_pods import CONFIG_MAP, with_typical_pods

from bayplan import SKIP, CycleState
from bayplan.testing import check_plugin, cluster, node, plugin, pod
from examples.gpu_sharing.tests.kit import gpu

MODEL = "bayplan.dev/gpu-model"


def world(*pods: Any) -> Any:
    has = {"nvidia.com/gpu": 2}
    nodes = [node(name, allocatable=has, labels={MODEL: name.upper()}) for name in ("t4", "p100")]
    return cluster(nodes, pods)


def share(over: Any, **args: Any) -> Any:
    return plugin(GpuShare, args or None, cluster=over)


def rejected(instance: Any, asking: Any, over: Any) -> dict[str, set[str]]:
    """Reason → nodes."""
    nodes = over.lend().nodes
    mask = nodes.table.mask(nodes.table.rows)
    return {
        one.reasons[0]: {
            name for name, is_out in zip(nodes.names(), one.positions, strict=True) if is_out
        }
        for one in instance.filter(CycleState(), asking, nodes, mask)
    }


@pytest.mark.parametrize("pick", ["bestFit", "random", "leastFragmentation"])
def test_it_keeps_to_the_contract(pick: str) -> None:
    [typical] = with_typical_pods([gpu("a", 500)])
    asks = ({"requests": {"nvidia.com/gpu": 1}, "annotations": {"bayplan.dev/gpu-milli": "300"}},)
    prepare = lambda found: found.put(CONFIG_MAP, typical)  # noqa: E731
    check_plugin(GpuShare, {"pick": pick}, pods=asks, prepare=prepare, clusters=5)  # type: ignore[arg-type]


def test_a_node_needs_so_many_devices_with_so_much_free() -> None:
    over = world(gpu("a", 300, devices="0").on_node("t4"))
    instance = share(over)
    assert rejected(instance, gpu("p", 700), over) == {TOO_LITTLE: set()}
    assert rejected(instance, gpu("p", 700, count=2), over) == {TOO_LITTLE: set()}
    assert rejected(instance, gpu("p", 701, count=2), over) == {TOO_LITTLE: {"t4"}}
    assert rejected(instance, gpu("p", 100, count=3), over) == {TOO_LITTLE: {"t4", "p100"}}


def test_a_model_that_may_not_be_used_is_no_matter_of_room() -> None:
    over = world()
    asking = pod(
        "p",
        requests={"nvidia.com/gpu": 1},
        annotations={"bayplan.dev/gpu-spec": "T4|V100"},
    )
    assert rejected(share(over), asking, over)[WRONG_MODEL] == {"p100"}


def test_a_pod_without_gpus_is_not_looked_at_and_one_that_asks_nonsense_goes_nowhere() -> None:
    over = world()
    instance, nodes = share(over), over.lend().nodes
    assert instance.pre_filter(CycleState(), pod("p"), nodes) is SKIP
    told = instance.pre_filter(CycleState(), gpu("p", "x"), nodes)  # type: ignore[arg-type]
    assert "found 'x', wanted a whole number from 1 to 1000" in told.message


class Port:
    """Keeps what would be patched."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    async def patch(self, *patch: Any) -> None:
        self.patches.append(patch)


def test_devices_are_given_remembered_and_written() -> None:
    over = world(gpu("a", 300, devices="1").on_node("t4"))
    instance, state, asking = share(over), CycleState(), gpu("p", 500)
    over.lend()
    assert instance.reserve(state, asking, "t4") is None
    # Assumed, and not yet written: the next cycle counts what was given all the same.
    over.add(asking.on_node("t4"))
    nodes = over.lend().nodes
    instance.pre_filter(state, gpu("q"), nodes)
    assert shown(state).free(nodes)[0, :2].tolist() == [1000, 200]
    assert instance.pre_bind_preflight(state, asking, "t4") is None
    port = Port()
    asyncio.run(instance.pre_bind(state, asking, "t4", port))
    annotations = {"metadata": {"annotations": {DEVICES_ANNOTATION: "1"}}}
    assert port.patches == [("v1 Pod", "default", "p", annotations)]


def test_what_was_given_back_is_free_again() -> None:
    over = world()
    instance, state, asking = share(over), CycleState(), gpu("p", 500)
    over.lend()
    instance.reserve(state, asking, "t4")
    instance.unreserve(state, asking, "t4")
    assert instance._reserved == {"t4": {}}


def test_a_pod_that_no_longer_fits_is_not_reserved() -> None:
    over = world(*(gpu(f"a{i}", devices=str(i)).on_node("t4") for i in range(2)))
    over.lend()
    told = share(over).reserve(CycleState(), gpu("p", 500), "t4")
    assert told.reasons == (TOO_LITTLE,)


def given(over: Any, pick: str, name: str = "p") -> tuple[int, ...]:
    instance, asking = share(over, pick=pick), gpu(name, 500)
    over.lend()
    instance.reserve(CycleState(), asking, "t4")
    return instance._reserved["t4"][asking.uid]


def test_best_fit_takes_the_fuller_device() -> None:
    assert given(world(gpu("a", 300, devices="1").on_node("t4")), "bestFit") == (1,)


def test_random_takes_any_and_the_same_for_the_same_pod() -> None:
    found = {name: given(world(), "random", name) for name in map(str, range(20))}
    assert set(found.values()) == {(0,), (1,)}
    assert found == {name: given(world(), "random", name) for name in found}


def test_least_fragmentation_takes_what_leaves_most_to_typical_pods() -> None:
    # 700 are left of the second. Typical pods want 700: its use would lose 200, that of the
    # first only the 500 that it leaves.
    over = world(gpu("a", 300, devices="1").on_node("t4"))
    over.put(CONFIG_MAP, *with_typical_pods([gpu("t", 700)]))
    assert given(over, "leastFragmentation") == (1,)
    over.put(CONFIG_MAP, *with_typical_pods([gpu("t", 500)]))
    assert given(over, "leastFragmentation") == (0,)
