"""A failed pass is repeated for members of the same kind while nothing changes, and only then.

Each story runs with the cache of results and without; journals must be equal to the last field.
"""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.rng import stream
from tests.engine.podgroups.reuse_kit import Content, Story, node, pod

NODE_COUNT = 12
#: Whoever waits so long is tried again, although no event may help.
LONG_SECONDS = 400.0


def filler(index: int, cpu: int = 4000) -> Content:
    return pod(f"filler-{index}", cpu, nodeName=f"n{index}")


def fill(story: Story, cpu: int = 4000) -> None:
    for index in range(NODE_COUNT):
        story.add(NODE, node(index, 3))
        story.add(POD, filler(index, cpu))


def _tells(story: Story, seed: int) -> None:
    """Groups of several kinds wait in a full cluster; pods end, and others take their nodes."""
    rng = stream(seed, "full")
    fill(story)
    for number in range(14):
        cpu, count = rng.choice((500, 1000, 1000, 2000)), rng.choice((3, 5, 6))
        topology = rng.choice(("", "", "", "", "rack"))
        spec: Content = {"priority": rng.choice((0, 0, 0, 10))}
        if rng.random() < 0.15:
            spec["nodeSelector"] = {"rack": "r1"}
        story.add_group(f"g{number}", count, cpu, topology=topology, **spec)
    story.schedule()
    for _ in range(12):
        for index in {rng.randrange(NODE_COUNT) for _ in range(rng.choice((1, 1, 2, 3)))}:
            story.delete(POD, filler(index))
            if rng.random() < 0.5:
                story.schedule()
            if rng.random() < 0.7:
                story.add(POD, filler(index, rng.choice((1000, 4000))))
        if rng.random() < 0.2:
            story.modify(NODE, node(rng.randrange(NODE_COUNT), 3, rng.choice((4, 5))))
        story.wait(LONG_SECONDS)


@pytest.mark.parametrize("seed", range(10))
def test_the_cache_changes_no_record_of_a_group_that_fails(seed: int) -> None:
    cached, evaluated = Story(is_cached=True), Story(is_cached=False)
    for story in (cached, evaluated):
        _tells(story, seed)
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


def waiting_groups(story: Story, names: str) -> None:
    """Groups of five that have been tried, in a cluster with room for three members."""
    fill(story)
    story.delete(POD, filler(0))
    story.add(POD, filler(0, 1000))
    for name in names:
        story.add_group(name, 5, 1000, topology="")
    story.schedule()


def test_equal_groups_fail_by_one_pass(pass_counts: list[int]) -> None:
    story = Story(is_cached=True)
    waiting_groups(story, "abcdefgh")
    # The first cycles of a new signature are not ranked.
    assert len(pass_counts) < 4
    pass_counts.clear()
    story.wait(LONG_SECONDS)
    assert pass_counts == [], "nothing changed"
    tried = story.scheduler.queue.find("h-0")
    assert tried is not None and tried.attempts == 2
    states = story.scheduler.pod_groups.all()
    messages = {state.key.name: state.message for state in states}
    assert len(messages) == 8
    for name, message in messages.items():
        prefix = f"group default/{name}: 3 of 5 members fit; the 4th, default/{name}-3: 0/12 nodes"
        assert message.startswith(prefix)


def test_a_change_needs_a_new_pass(pass_counts: list[int]) -> None:
    story = Story(is_cached=True)
    waiting_groups(story, "abcd")
    story.wait(LONG_SECONDS)
    pass_counts.clear()
    story.modify(NODE, node(3, 3, cpu=5))
    story.wait(LONG_SECONDS)
    assert 1 <= len(pass_counts) < 4
    story.modify(NODE, node(4, 3, cpu=5))
    story.wait(LONG_SECONDS)
    assert len(story.nodes_of) == 5, "two nodes have room for one more each"


def test_groups_of_another_size_are_not_of_the_same_kind(pass_counts: list[int]) -> None:
    story = Story(is_cached=True)
    waiting_groups(story, "abcd")
    story.wait(LONG_SECONDS)
    pass_counts.clear()
    story.add_group("small", 4, 1000, topology="")
    story.schedule()
    assert pass_counts == [4]


def test_a_pass_that_a_draw_decided_is_not_repeated(pass_counts: list[int]) -> None:
    """The record of each group names the nodes that were drawn for its members."""
    story = Story(is_cached=True)
    fill(story, cpu=3000)
    for name in "abcd":
        story.add_group(name, NODE_COUNT + 1, 1000, topology="")
    story.schedule()
    pass_counts.clear()
    story.wait(LONG_SECONDS)
    assert pass_counts == [NODE_COUNT + 1] * 4
