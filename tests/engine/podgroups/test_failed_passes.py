"""The result of a failed pass is reused for equal members until something changes.

Each scenario runs with the cache of results and without; journals must be equal to the last field.
"""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.rng import stream
from tests.engine.podgroups.reuse_kit import Content, GroupScheduler, member, rack_node
from tests.seeded import depth

NODE_COUNT = 12
#: After so long a group is tried again, although no event has helped.
LONG_SECONDS = 400.0


def filler(index: int, cpu: int = 4000) -> Content:
    return member(f"filler-{index}", cpu, nodeName=f"n{index}")


def fill(groups: GroupScheduler, cpu: int = 4000) -> None:
    for index in range(NODE_COUNT):
        groups.add(NODE, rack_node(index, 3))
        groups.add(POD, filler(index, cpu))


def _run_events(groups: GroupScheduler, seed: int) -> None:
    """Groups of several kinds wait in a full cluster; pods end, and other pods use their nodes."""
    rng = stream(seed, "full")
    fill(groups)
    for number in range(14):
        cpu, count = rng.choice((500, 1000, 1000, 2000)), rng.choice((3, 5, 6))
        topology = rng.choice(("", "", "", "", "rack"))
        spec: Content = {"priority": rng.choice((0, 0, 0, 10))}
        if rng.random() < 0.15:
            spec["nodeSelector"] = {"rack": "r1"}
        groups.add_group(f"g{number}", count, cpu, topology=topology, **spec)
    groups.schedule()
    for _ in range(12):
        for index in {rng.randrange(NODE_COUNT) for _ in range(rng.choice((1, 1, 2, 3)))}:
            groups.delete(POD, filler(index))
            if rng.random() < 0.5:
                groups.schedule()
            if rng.random() < 0.7:
                groups.add(POD, filler(index, rng.choice((1000, 4000))))
        if rng.random() < 0.2:
            groups.modify(NODE, rack_node(rng.randrange(NODE_COUNT), 3, rng.choice((4, 5))))
        groups.wait(LONG_SECONDS)


@pytest.mark.parametrize("seed", range(depth(3, 10)))
def test_the_cache_changes_no_record_of_a_group_that_fails(seed: int) -> None:
    cached, evaluated = GroupScheduler(is_cached=True), GroupScheduler(is_cached=False)
    for groups in (cached, evaluated):
        _run_events(groups, seed)
    assert cached.nodes_of == evaluated.nodes_of
    assert cached.sink.digest == evaluated.sink.digest


@pytest.fixture
def pass_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of members of each pass that ran."""
    counts: list[int] = []
    run = PodGroupTrial.run

    def recorded(self: PodGroupTrial, members: Any, needed_count: int) -> PodGroupTrial:
        counts.append(len(members))
        return run(self, members, needed_count)

    monkeypatch.setattr(PodGroupTrial, "run", recorded)
    return counts


def waiting_groups(groups: GroupScheduler, names: str) -> None:
    """Groups of five that have been tried, in a cluster with room for three members."""
    fill(groups)
    groups.delete(POD, filler(0))
    groups.add(POD, filler(0, 1000))
    for name in names:
        groups.add_group(name, 5, 1000, topology="")
    groups.schedule()


def test_equal_groups_fail_with_one_pass(pass_counts: list[int]) -> None:
    groups = GroupScheduler(is_cached=True)
    waiting_groups(groups, "abcdefgh")
    # The first cycles of a new signature are not ranked.
    assert len(pass_counts) < 4
    pass_counts.clear()
    groups.wait(LONG_SECONDS)
    assert pass_counts == [], "nothing changed"
    tried = groups.scheduler.queue.find("h-0")
    assert tried is not None and tried.attempts == 2
    states = groups.scheduler.pod_groups.all()
    messages = {state.key.name: state.message for state in states}
    assert len(messages) == 8
    for name, message in messages.items():
        prefix = f"group default/{name}: 3 of 5 members fit; the 4th, default/{name}-3: 0/12 nodes"
        assert message.startswith(prefix)


def test_a_change_needs_a_new_pass(pass_counts: list[int]) -> None:
    groups = GroupScheduler(is_cached=True)
    waiting_groups(groups, "abcd")
    groups.wait(LONG_SECONDS)
    pass_counts.clear()
    groups.modify(NODE, rack_node(3, 3, cpu=5))
    groups.wait(LONG_SECONDS)
    assert 1 <= len(pass_counts) < 4
    groups.modify(NODE, rack_node(4, 3, cpu=5))
    groups.wait(LONG_SECONDS)
    assert len(groups.nodes_of) == 5, "two nodes have room for one more each"


def test_groups_of_another_size_need_their_own_pass(pass_counts: list[int]) -> None:
    groups = GroupScheduler(is_cached=True)
    waiting_groups(groups, "abcd")
    groups.wait(LONG_SECONDS)
    pass_counts.clear()
    groups.add_group("small", 4, 1000, topology="")
    groups.schedule()
    assert pass_counts == [4]


def test_a_pass_that_a_draw_decided_is_not_reused(pass_counts: list[int]) -> None:
    """The record of each group names the nodes that were drawn for its members."""
    groups = GroupScheduler(is_cached=True)
    fill(groups, cpu=3000)
    for name in "abcd":
        groups.add_group(name, NODE_COUNT + 1, 1000, topology="")
    groups.schedule()
    pass_counts.clear()
    groups.wait(LONG_SECONDS)
    assert pass_counts == [NODE_COUNT + 1] * 4
