"""Tables at several widths."""

import pytest
from rich.console import Console

from bayplan.answers.table import Column, Table, name_columns, node_columns, number_columns

AWS = ".eu-west-1.compute.internal"


def drawn(table: Table, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def departures(reason: str = "52 lack cpu, 6 tainted, 2 cordoned") -> Table:
    counts = number_columns("pods", "left over", "blocked")
    table = Table(*name_columns("node"), "can go", *counts, Column("why not", "line"))
    for number in range(60):
        table.add_row(f"ip-10-0-{number}-101{AWS}", "no", "12", "3", "", reason)
    return table


def test_a_table_has_one_rule_below_its_header() -> None:
    rows = Table("name", "word")
    rows.add_row("a", "yes")
    assert drawn(rows) == ["name   word", "───────────", "a      yes"]


def test_numbers_are_right_aligned() -> None:
    rows = Table("name", *number_columns("count"))
    rows.add_row("a", "7")
    assert drawn(rows)[-1] == "a          7"


def test_long_text_is_wrapped_and_not_cut() -> None:
    rows = Table("name")
    rows.add_row("abcdefghij")
    assert "".join(drawn(rows, width=6)[2:]) == "abcdefghij"


def test_sixty_nodes_with_long_names_are_one_line_each_at_80_columns() -> None:
    lines = drawn(departures("52 out of reach of the volume, 6 tainted, 2 cordoned"))
    assert len(lines) == 2 + 60 + 1
    assert max(map(len, lines)) <= 80
    assert lines[2].split()[:4] == ["ip-10-0-0-101", "no", "12", "3"]
    assert lines[2].endswith("…")
    assert lines[-1] == f"names without {AWS}"


def test_a_column_without_content_gives_its_room_to_the_others() -> None:
    table = Table(*name_columns("node"), *number_columns("blocked"), "why not")
    table.add_row("n1", "", "52 lack cpu, 6 tainted")
    assert drawn(table, 27)[0].split() == ["node", "why", "not"]
    assert drawn(table, 27)[2] == "n1     52 lack cpu, 6"
    assert drawn(table, 80)[0].split() == ["node", "blocked", "why", "not"]


def test_names_are_whole_where_they_fit() -> None:
    lines = drawn(departures(), 200)
    assert len(lines) == 2 + 60
    assert lines[2].split()[:2] == [f"ip-10-0-0-101{AWS}", "no"]
    assert lines[2].endswith("52 lack cpu, 6 tainted, 2 cordoned")


def test_a_wide_table_keeps_names_and_lines_whole() -> None:
    table = departures("a reason of many words that is longer than a line of the terminal")
    table.is_wide = True
    text = " ".join(drawn(table, 100))
    assert f"ip-10-0-0-101{AWS}" in text
    assert "…" not in text


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_columns_of_nodes_are_divided_into_tables_that_fit(width: int) -> None:
    names = [f"ip-10-0-{number}-101{AWS}" for number in range(5)]
    table = Table("score", *node_columns(names))
    table.add_row("NodeResourcesBalancedAllocation", *["100 (100; 3)"] * 5)
    table.add_row("total", *["432"] * 5, is_bold=True)
    lines = drawn(table, width)
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    assert text.count("(100;3)") == text.count("432") == 5
    if width >= 80:
        assert all(any(f"ip-10-0-{number}-101" in line for line in lines) for number in range(5))


def test_a_text_wraps_before_a_word_of_another_text_is_broken() -> None:
    table = Table(*name_columns("plugin"), "code", "reason")
    table.add_row("NodeResourcesFit", "UnschedulableAndUnresolvable", "a reason of several words")
    lines = drawn(table, 62)
    assert "UnschedulableAndUnresolvable" in lines[2]
    assert max(map(len, lines)) <= 62


def test_a_long_name_and_a_text_with_a_long_word_share_the_room() -> None:
    table = Table(*name_columns("workload"), "cause", "fix")
    cause = "10 nodes lack cpu: 2 needed, at most 1410m free"
    fix = f"add one node like ip-10-0-0-101{AWS} (m6i.2xlarge)"
    table.add_row("Deployment checkout-production/checkout-frontend-canary", cause, fix)
    lines = drawn(table, 74)
    assert "ip-10-0-0-" in "".join(lines)
    assert len(lines) == 2 + 5


def test_a_name_that_is_too_long_is_broken_behind_a_dash() -> None:
    table = Table(*name_columns("pod", "node"))
    table.add_row("shop/a-job-with-a-very-long-name-7f8d9c5b5f-abcde", "n1")
    lines = drawn(table, 40)
    assert [line.split()[0] for line in lines[2:]] == [
        "shop/a-job-with-a-very-long-name-",
        "7f8d9c5b5f-abcde",
    ]


def test_control_characters_cannot_widen_or_leave_a_cell() -> None:
    table = Table(*name_columns("pod\x1b[2J"))
    table.add_row("a\nb\x1b[1A")
    assert drawn(table) == [r"pod\x1b[2J", "───────────", r"a\nb\x1b[1A"]
