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
    made = table("name", "said")
    made.add_row("a", "yes")
    assert printed(made) == ["name   said", "───────────", "a      yes"]


def test_numbers_are_right_aligned_except_in_the_first_column() -> None:
    made = table("name", "count", numbers=True)
    made.add_row("a", "7")
    assert printed(made)[-1] == "a          7"


def test_long_text_is_wrapped_and_not_cut() -> None:
    made = table("name")
    made.add_row("abcdefghij")
    assert "".join(printed(made, width=6)[2:]) == "abcdefghij"
