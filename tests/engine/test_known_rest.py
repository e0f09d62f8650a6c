"""A table of which one part was known adds up to what asking all gives."""

from bayplan.engine.known_rest import table_of
from bayplan.engine.row_totals import RowTotals
from bayplan.framework.rest import score_rest
from tests.engine.kept_kit import Attempts, Bad, Rank
from tests.engine.test_row_totals import Company, labelled


def known_part() -> tuple[Attempts, RowTotals]:
    known = Attempts(Bad, Company, Rank, nodes=labelled(6))
    for _ in range(3):
        known.attempt()
    totals = known.known.picks
    assert totals is not None
    return known, totals


def test_totals_are_of_both_parts_and_columns_in_the_order_of_the_profile() -> None:
    known, totals = known_part()
    asking = known.asking()
    totals.refresh(asking)
    totals.score(asking)
    nodes, state = known.cluster.lend().nodes, asking.state
    calls = [call for call in asking.calls.score if call.name == "Company"]
    asked = score_rest(known.framework, calls, state, known.pod, nodes)
    assert isinstance(asked, list)
    table = table_of(totals, asked, known.framework, nodes)
    assert [column.name for column in table.columns] == ["Company", "Rank"]
    assert len(table.columns) == 2
    assert table.columns[1].raw.tolist() == [n % 7 for n in range(6)]
    row, sums = table.row("n001"), table.totals.tolist()
    fresh = known.fresh().table
    assert fresh is not None
    assert row == fresh.row("n001")
    assert sums == fresh.totals.tolist()
