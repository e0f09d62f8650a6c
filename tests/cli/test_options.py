"""Options that several commands share."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bayplan.answers.formats import OutputFormat
from bayplan.cli.entry import cli
from bayplan.cli.epilogs import examples
from bayplan.cli.options import output_option
from tests.cli.command_line import bayplan


def test_examples_are_printed_line_by_line_in_help() -> None:
    command = click.Command("x", epilog=examples("bayplan x a.yaml", "bayplan x b.yaml"))
    text = command.get_help(click.Context(command))
    assert "Examples:\n    bayplan x a.yaml\n    bayplan x b.yaml" in text


def test_a_format_has_a_default_that_help_names() -> None:
    @click.command()
    @output_option("text", "svg")
    def draw(output: OutputFormat) -> None:
        click.echo(output.name)

    text = " ".join(draw.get_help(click.Context(draw)).split())
    assert "-o, --output text|svg" in text
    assert "[default: text]" in text


_FORMATS = "text, wide, json, yaml, csv, name, markdown or jsonpath=TEMPLATE"
#: Command → what -o may be.
_COMMANDS = {
    "bench x": "text or json",
    "config graph x": "text, dot or svg",
    **dict.fromkeys(
        (
            "compare x",
            "fit -f x",
            "headroom -f x",
            "plugins",
            "shadow",
            "simulate x",
            "whatif x",
            "why x",
        ),
        _FORMATS,
    ),
}


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_format_that_does_not_exist_is_refused_with_those_that_do(command: str) -> None:
    result = bayplan(*command.split(), "-o", "jsno")
    meant = '; did you mean "json"?' if "json" in _COMMANDS[command] else ""
    line = f'bayplan: -o: found "jsno", wanted {_COMMANDS[command]}{meant}\n'
    assert (result.exit_code, result.stderr) == (2, line)


_DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "output.md"


def _rows_of_options() -> Iterator[tuple[list[str], set[str], set[str]]]:
    """Options, the commands that have them, and those that do not."""
    section = _DOCUMENT.read_text().split("## The same options everywhere")[1].split("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| `-"):
            _, options, _, commands, missing, _ = line.split("|")
            words = [set(re.findall(r"`([a-z]+)`", cell)) for cell in (commands, missing)]
            yield re.findall(r"`(-[-A-Za-z]+)`", options), words[0], words[1]


def test_the_document_says_which_command_lacks_an_option_of_kubectl() -> None:
    rows = list(_rows_of_options())
    options = {option for names, _, _ in rows for option in names}
    assert options == {"-n", "-A", "-l", "-o", "--sort-by", "--context", "--kubeconfig", "--at"}
    for names, commands, missing in rows:
        assert commands | missing == {
            *("why", "fit", "headroom", "whatif", "upgrade", "shadow", "capture", "mcp", "ui")
        }
        for name in names:
            having = {
                command
                for command in commands | missing
                if any(name in each.opts for each in _command(command).params)
            }
            assert (name, having) == (name, commands)


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command
