"""Groups that stay together."""

from tests.scenarios.gangs import FIT, add_member
from tests.scenarios.world import World, play


def test_a_required_domain_holds_all_members() -> None:
    async def story(world: World) -> None:
        for rack, cpu in (("r1", 2), ("r2", 3)):
            for index in range(2):
                world.add_node(f"{rack}-{index}", cpu=cpu, labels={"rack": rack})
        meta = {"name": "g", "namespace": "default"}
        meta["annotations"] = {"bayplan.dev/required-topology": "rack"}  # type: ignore[assignment]
        api_version = "scheduling.x-k8s.io/v1alpha1"
        spec = {"minMember": 2}
        world.cluster.create(
            {"apiVersion": api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}
        )
        for name in ("a", "b"):
            add_member(world, name, "g", cpu=3)
        await world.until(1)
        assert {world.bound(name)[1] for name in ("a", "b")} == {"r2-0", "r2-1"}  # type: ignore[index]

    play(story, plugins=FIT)
