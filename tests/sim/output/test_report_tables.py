"""The layout of the tables in a report."""

from rich.console import Console

from bayplan.sim.output.report import new_table as table


def printed(*parts: object, width: int = 40) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_table_has_one_rule_below_its_header() -> None:
    rows = table("name", "said")
    rows.add_row("a", "yes")
    assert printed(rows) == ["name   said", "───────────", "a      yes"]


def test_numbers_are_right_aligned_except_in_the_first_column() -> None:
    rows = table("name", "count", numbers=True)
    rows.add_row("a", "7")
    assert printed(rows)[-1] == "a          7"


def test_long_text_is_wrapped_and_not_cut() -> None:
    rows = table("name")
    rows.add_row("abcdefghij")
    assert "".join(printed(rows, width=6)[2:]) == "abcdefghij"
