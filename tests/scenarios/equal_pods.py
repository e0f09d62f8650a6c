"""S-07: many equal pods, and a filter that counts the rows it evaluates."""

from collections.abc import Awaitable, Callable, Hashable

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import ScalarFilterPlugin, SignPlugin
from bayplan.framework.status import Status, unschedulable
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from tests.scenarios.world import Setup, World, config_dict

COUNTING, FIT, PLAIN = "CountingFilter", "NodeResourcesFit", "plain"


LEAST = {"type": "LeastAllocated", "resources": [{"name": "cpu"}, {"name": "memory"}]}


class CountingFilter(ScalarFilterPlugin, SignPlugin):
    """Accepts every node without the label bad, and counts the evaluated rows."""

    name = COUNTING
    evaluated_rows = 0

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.evaluated_rows += 1
        return unschedulable("bad") if node.labels.get("bad") == "true" else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The signature has the requests, although the result does not depend on them."""
        return tuple(sorted(pod.requests.items()))


def setup(*, is_on: bool = True) -> Setup:
    """The two profiles of the scenario."""
    first = Setup(
        plugins=[COUNTING, (FIT, 1)],
        classes=[CountingFilter],
        args={FIT: {"scoringStrategy": LEAST}},
        gates={"OpportunisticBatching": is_on},
    )
    names = ("PrioritySort", FIT, "DefaultBinder")
    multi_point = {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": name} for name in names],
    }
    plain = {"schedulerName": PLAIN, "plugins": {"multiPoint": multi_point}}
    first.config = {"profiles": [*config_dict(first)["profiles"], plain]}
    return first


def add_nodes(world: World, count: int) -> None:
    for number in range(1, count + 1):
        world.add_node(f"n{number}", cpu=4, memory="8Gi")


def add_equal(world: World, name: str, cpu: str = "500m") -> None:
    world.add_pod(name, cpu=cpu, memory="1Gi")


EQUAL = [f"a{number}" for number in range(1, 21)]


def part_a(node_count: int) -> Callable[[World], Awaitable[None]]:
    async def scene(world: World) -> None:
        add_nodes(world, node_count)
        for name in EQUAL:
            add_equal(world, name)
        await world.until(1)

    return scene


IN_TURNS = [f"{kind}{number}" for number in range(1, 11) for kind in "ab"]


async def part_b(world: World) -> None:
    add_nodes(world, 50)
    for name in IN_TURNS:
        add_equal(world, name, "500m" if name.startswith("a") else "1")
    await world.until(1)
