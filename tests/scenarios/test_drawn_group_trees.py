"""Drawn trees of groups: none holds less than its quorum, and with room all are placed."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from tests.scenarios.trees import GATES, PLUGINS, add_pods, put_part, put_tree
from tests.scenarios.world import World, play

#: (minimum, pods) of a group of pods.
_LEAVES = st.tuples(st.integers(1, 2), st.integers(0, 3))
#: (minimum of its groups, the groups below).
_BRANCHES = st.recursive(
    st.tuples(st.integers(1, 2), st.lists(_LEAVES, min_size=1, max_size=3)),
    lambda below: st.tuples(st.integers(1, 2), st.lists(below | _LEAVES, min_size=1, max_size=2)),
    max_leaves=3,
)


def create(world: World, name: str, drawn: tuple[int, object], parent: str) -> None:
    minimum, below = drawn
    if not isinstance(below, list):
        put_part(world, name, minimum, parent)
        add_pods(world, name, int(str(below)))
        return
    put_tree(world, name, minimum, parent)
    for index, each in enumerate(below):
        create(world, f"{name}{index}", each, name)


def roots(world: World) -> Iterator[GroupTree]:
    """The trees that have a group of pods."""
    trees = world.scheduler.group_trees
    states = world.scheduler.pod_groups.all()
    keys = {root.key: root for state in states if (root := trees.root_of(state.key)) is not None}
    for root in keys.values():
        yield trees.tree(root)


def complete_leaves(tree: GroupTree) -> Iterator[GroupState]:
    """The groups of pods that have enough pods, below groups that have enough groups."""
    for child in tree.children if tree.is_complete else ():
        if isinstance(child, GroupTree):
            yield from complete_leaves(child)
        elif child.is_complete:
            yield child


def check_quorums(world: World) -> None:
    for tree in roots(world):
        if tree.assigned_count:
            assert tree.is_met(lambda leaf: leaf.assigned_count), f"{tree.key} is short"


@settings(max_examples=40)
@given(st.lists(_BRANCHES, min_size=1, max_size=3), st.lists(st.integers(1, 4), max_size=3))
def test_no_tree_holds_less_than_its_quorum(
    drawn: list[tuple[int, object]], cpus: list[int]
) -> None:
    async def scene(world: World) -> None:
        for index, cpu in enumerate(cpus):
            world.add_node(f"n{index}", cpu=cpu, labels={"rack": f"r{index % 2}"})
        for index, each in enumerate(drawn):
            create(world, f"t{index}", each, "")
            await world.until(world.now + 1)
            check_quorums(world)
        await world.until(world.now + 60)
        check_quorums(world)
        world.add_node("room", cpu=64)
        await world.until(world.now + 400)
        for tree in roots(world):
            placeable = {leaf.key for leaf in complete_leaves(tree)}
            assert {leaf.key for leaf in tree.leaves() if leaf.is_met} == placeable

    play(scene, plugins=PLUGINS, gates=GATES)
