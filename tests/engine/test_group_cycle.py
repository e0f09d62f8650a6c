"""One pass over a group."""

from collections.abc import Hashable

from bayplan.framework.interface import CycleState, NodeInfo, ScalarFilterPlugin, SignPlugin
from bayplan.framework.status import Status
from bayplan.state.pods import PodInfo
from tests.scenarios.gangs import FIT, add_member, bound, put_group
from tests.scenarios.world import PROFILE, World, play


class Counting(ScalarFilterPlugin, SignPlugin):
    """Takes every node, and counts the rows it is asked about."""

    name = "Counting"
    rows_asked = 0

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.rows_asked += 1
        return None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ()


def test_s13_part_d_equal_members_reuse_each_others_answers() -> None:
    async def story(world: World) -> None:
        for index in range(50):
            world.add_node(f"n{index}", cpu=4, memory="8Gi")
        put_group(world, "g", 20)
        names = [f"m{index}" for index in range(20)]
        for name in names:
            add_member(world, name, "g", cpu="500m", memory="1Gi")
        await world.until(0.5)
        assert list(bound(world, *names)) == [0] * 20
        assert len({world.bound(name)[1] for name in names}) == 20  # type: ignore[index]
        plugins = world.scheduler.framework(PROFILE).plugins
        counting = next(p for p in plugins.filter if isinstance(p, Counting))
        assert counting.rows_asked == 50 + 19

    play(story, plugins=["Counting", *FIT], classes=[Counting])
