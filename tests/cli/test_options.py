"""Options that several commands share."""

import click

from bayplan.cli.options import examples, format_option
from tests.cli.command_line import bayplan


def test_examples_are_printed_line_by_line_in_help() -> None:
    command = click.Command("x", epilog=examples("bayplan x a.yaml", "bayplan x b.yaml"))
    text = command.get_help(click.Context(command))
    assert "Examples:\n    bayplan x a.yaml\n    bayplan x b.yaml" in text


def test_a_format_has_a_default_that_help_names() -> None:
    @click.command()
    @format_option(("text", "svg"))
    def draw(output: str) -> None:
        click.echo(output)

    text = " ".join(draw.get_help(click.Context(draw)).split())
    assert "--format [text|svg]" in text
    assert "[default: text]" in text


def test_every_format_is_described_equally() -> None:
    for name in ("simulate", "compare", "bench", "plugins"):
        assert "Format of the output" in bayplan(name, "--help").stdout
