"""Each node's first rejection, and how many nodes have the same."""

from collections.abc import Mapping

import numpy as np
import pytest

from bayplan.engine.kept_answers import KeptVerdicts
from bayplan.engine.out_of_date import TOO_MUCH_CHANGED, OutOfDate
from bayplan.engine.standing import FEASIBLE, NO_NODE, Standing
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.status import Code, Rejection
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node

NAMES = ("n0", "n1", "n2", "n3", "n4")
FULL, TAINTED = ("full",), ("tainted", "and more")


class Stood:
    """Five nodes, what the plugins A and B said of them, and the standing made of it."""

    def __init__(self, **said: Mapping[int, tuple[str, ...]]) -> None:
        """By plugin, row → reasons. What B says of a node that A turned down does not count."""
        self.cluster = SampleCluster().add(*(node(name) for name in NAMES))
        table = self.cluster.cache.table
        self.nodes = self.cluster.lend().nodes
        self.given = FilterOutcome(self.nodes, np.ones(len(NAMES), np.bool_))
        self.kept = {name: KeptVerdicts(table, Facet.LABELS) for name in "AB"}
        for name, kept in self.kept.items():
            asked = self.given.feasible
            self.given.add(name, [_rejection(*each) for each in said.get(name, {}).items()])
            for row in np.flatnonzero(asked).tolist():
                reasons = said.get(name, {}).get(row)
                kept.learn_one(row, ((Code.UNSCHEDULABLE, reasons),) if reasons else ())
        self.standing = Standing(list(self.kept.items()), table.capacity)
        self.standing.read(self.given)

    def told(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Node → (plugin, reasons)."""
        statuses = self.standing.statuses_among(self.nodes)
        return {name: (status.plugin, status.reasons) for name, status in statuses.items()}

    def turn_down(self, row: int, by: str, *reasons: str) -> int:
        """As an answer about one row has it; returns the rejection's number."""
        kept = self.kept[by]
        verdict = kept.learn_one(row, ((Code.UNSCHEDULABLE, reasons),))
        number = self.standing.number(list(self.kept).index(by), verdict)
        self.standing.set(row, number)
        return number


def _rejection(row: int, reasons: tuple[str, ...]) -> Rejection:
    return Rejection(np.array([row], np.intp), Code.UNSCHEDULABLE, reasons)


def test_who_was_turned_down_by_whom_is_read_and_told_again() -> None:
    stood = Stood(A={1: FULL, 3: TAINTED}, B={1: TAINTED, 2: FULL})
    assert stood.told() == {"n1": ("A", FULL), "n2": ("B", FULL), "n3": ("A", TAINTED)}
    assert stood.standing.feasible_count == 2
    assert stood.standing.feasible_rows().tolist() == [0, 4]
    told = stood.standing.outcome(stood.nodes)
    assert told.reason_counts() == stood.given.reason_counts()
    assert told.feasible.tolist() == stood.given.feasible.tolist()


def test_codes_are_those_of_the_answer_and_follow_what_changes() -> None:
    stood = Stood(A={1: FULL, 3: TAINTED}, B={1: TAINTED, 2: FULL})
    for absent in (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING):
        expected = stood.given.codes(stood.nodes, absent).tolist()
        assert stood.standing.codes(stood.nodes, absent).tolist() == expected
    stood.turn_down(0, "A", "full")
    found = stood.standing.codes(stood.nodes, Code.PENDING).tolist()
    assert found == [Code.UNSCHEDULABLE, *expected[1:]]


def test_where_all_nodes_are_feasible_there_is_nothing_to_tell() -> None:
    stood = Stood()
    assert stood.told() == {}
    assert [stood.standing.of_row(row) for row in range(5)] == [FEASIBLE] * 5


def test_a_row_without_a_node_is_neither_feasible_nor_turned_down() -> None:
    stood = Stood()
    assert len(stood.standing) > len(NAMES)
    assert stood.standing.of_row(len(NAMES)) == NO_NODE
    stood.standing.set(2, NO_NODE)
    assert stood.standing.feasible_rows().tolist() == [0, 1, 3, 4]
    assert stood.told() == {}


def test_the_same_rejection_has_one_number_and_another_plugins_has_its_own() -> None:
    stood = Stood(A={1: FULL})
    by_a = stood.standing.of_row(1)
    assert stood.turn_down(2, "A", *FULL) == by_a
    assert stood.turn_down(3, "A", *TAINTED) != by_a
    assert stood.turn_down(4, "B", *FULL) not in (by_a, FEASIBLE, NO_NODE)
    assert stood.told() == {
        "n1": ("A", FULL),
        "n2": ("A", FULL),
        "n3": ("A", TAINTED),
        "n4": ("B", FULL),
    }


def test_a_row_counts_where_it_stands_now() -> None:
    stood = Stood(A={1: FULL, 2: FULL})
    stood.standing.set(1, FEASIBLE)
    assert stood.standing.feasible_count == 4
    assert stood.told() == {"n2": ("A", FULL)}
    stood.standing.set(2, FEASIBLE)
    assert stood.standing.feasible_count == 5
    assert stood.standing.outcome(stood.nodes).plugins() == set()
    stood.turn_down(0, "B", *TAINTED)
    assert stood.standing.feasible_count == 4
    assert stood.told() == {"n0": ("B", TAINTED)}


def test_more_kinds_of_rejections_than_it_can_number_are_not_followed() -> None:
    standing = Stood().standing
    # Two numbers are not of rejections, and all have to fit into two bytes.
    assert [standing.number(0, verdict) for verdict in range((1 << 16) - 2)][-1] == (1 << 16) - 1
    with pytest.raises(OutOfDate, match=TOO_MUCH_CHANGED):
        standing.number(1, 0)
