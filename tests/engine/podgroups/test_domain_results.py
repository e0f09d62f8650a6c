"""Results of trials of domains are shared only by domains with equal resources.

Each scenario runs with the cache of results and without; journals must be equal to the last score.
"""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.rng import stream
from tests.engine.podgroups.reuse_kit import Content, GroupScheduler, member, rack_node
from tests.seeded import depth

CHECK_PERIOD = "bayplan.engine.reuse.cache.CHECK_PERIOD"


def _run_events(groups: GroupScheduler, seed: int) -> None:
    """Groups and other pods arrive at racks of unequal nodes; nodes change in between."""
    rng = stream(seed, "racks")
    rack_count, node_count = rng.choice((2, 3, 5)), 20
    sizes = rng.choice(((4,), (4,), (2, 4, 8)))
    for index in range(node_count):
        spec: Content = {}
        if rng.random() < 0.1:
            spec = {"unschedulable": True}
        elif seed % 3 == 0 and rng.random() < 0.3:
            spec = {"taints": [{"key": "t", "value": "v", "effect": "PreferNoSchedule"}]}
        groups.add(NODE, rack_node(index, rack_count, rng.choice(sizes), **spec))
    for index in range(rng.choice((0, 0, 10, 30))):
        there = f"n{rng.randrange(node_count)}"
        groups.add(POD, member(f"there-{index}", rng.choice((100, 300)), nodeName=there))
    for number in range(12):
        event = rng.random()
        if event < 0.15:
            groups.modify(NODE, rack_node(rng.randrange(node_count), rack_count, rng.choice(sizes)))
        elif event < 0.3:
            groups.add(POD, member(f"alone-{number}", rng.choice((250, 500, 5000))))
        spec = {"nodeSelector": {"rack": "r0"}} if event > 0.9 else {}
        count = rng.choice((1, 3, 5, 20))
        groups.add_group(f"g{number}", count, rng.choice((250, 500, 500, 900)), **spec)
        groups.schedule()


@pytest.mark.parametrize("seed", range(depth(4, 12)))
def test_the_cache_changes_no_record_of_a_group_in_racks(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(CHECK_PERIOD, 7)
    cached, evaluated = GroupScheduler(is_cached=True), GroupScheduler(is_cached=False)
    for groups in (cached, evaluated):
        _run_events(groups, seed)
    assert cached.nodes_of == evaluated.nodes_of
    assert cached.nodes_of, "no group was placed"
    assert cached.sink.digest == evaluated.sink.digest


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str] | None]:
    """The nodes of each pass that ran."""
    tried: list[frozenset[str] | None] = []
    run = PodGroupTrial.run

    def recorded(self: PodGroupTrial, *args: Any) -> PodGroupTrial:
        tried.append(self._within)  # pyright: ignore[reportPrivateUsage]
        return run(self, *args)

    monkeypatch.setattr(PodGroupTrial, "run", recorded)
    return tried


def test_racks_with_equal_resources_are_tried_once(passes: list[frozenset[str] | None]) -> None:
    groups = GroupScheduler(is_cached=True)
    for index in range(40):
        groups.add(NODE, rack_node(index, 10))
    groups.add_group("a", 4)
    groups.schedule()
    # One trial, and the pass that places the group.
    assert len(passes) == 2
    groups.add_group("b", 4)
    groups.schedule()
    # The rack of the first group is tried, too.
    assert len(passes) == 4
    for name in ("c", "d", "e"):
        groups.add_group(name, 4)
        groups.schedule()
    assert len(passes) == 7
    assert len(groups.nodes_of) == 20


def test_racks_are_tried_once_for_members_with_labels_that_nothing_reads(
    passes: list[frozenset[str] | None],
) -> None:
    groups = GroupScheduler(is_cached=True)
    for index in range(40):
        groups.add(NODE, rack_node(index, 10))
    groups.add_group("a", 4, label_keys=("index",))
    groups.schedule()
    assert len(passes) == 2
    groups.add_group("b", 4)
    groups.schedule()
    assert len(passes) == 4


def test_racks_are_tried_once_though_a_check_calls_the_plugins_for_a_member(
    passes: list[frozenset[str] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CHECK_PERIOD, 4)
    groups = GroupScheduler(is_cached=True)
    for index in range(40):
        groups.add(NODE, rack_node(index, 10))
    groups.add_group("a", 4)
    groups.schedule()
    assert len(passes) == 2


def test_a_rack_is_tried_again_after_one_of_its_nodes_changed(
    passes: list[frozenset[str] | None],
) -> None:
    groups = GroupScheduler(is_cached=True)
    for index in range(40):
        groups.add(NODE, rack_node(index, 10))
    groups.add_group("a", 4)
    groups.schedule()
    passes.clear()
    groups.modify(NODE, rack_node(7, 10, cpu=16))
    groups.add_group("b", 4)
    groups.schedule()
    changed = frozenset(f"n{index}" for index in range(40) if index % 10 == 7)
    assert passes.count(changed) == 2, "tried, and chosen: it has the most room"
    assert {groups.nodes_of[f"b-{index}"] for index in range(4)} <= changed


def test_a_draw_among_unequal_nodes_is_not_shared(passes: list[frozenset[str] | None]) -> None:
    groups = GroupScheduler(is_cached=True)
    for index in range(12):
        # Each rack has two nodes of equal score and unequal size.
        groups.add(NODE, rack_node(index, 6, cpu=4 if index < 6 else 8))
    groups.add_group("a", 1, cpu=0)
    groups.schedule()
    assert len(passes) == 7


def _place_in_zones(groups: GroupScheduler) -> None:
    """Four racks in two zones; groups require a rack or a zone in turn."""
    for index in range(8):
        content = rack_node(index, 4)
        content["metadata"]["labels"]["zone"] = f"z{index % 2}"
        groups.add(NODE, content)
    for number in range(6):
        topology = ("rack", "zone")[number % 2]
        groups.add_group(f"g{number}", 4, 900, topology=topology)
        groups.schedule()


def test_a_pod_in_a_zone_changes_the_results_of_the_rack_too() -> None:
    cached, evaluated = GroupScheduler(is_cached=True), GroupScheduler(is_cached=False)
    for groups in (cached, evaluated):
        _place_in_zones(groups)
    assert cached.nodes_of == evaluated.nodes_of
    assert cached.sink.digest == evaluated.sink.digest
