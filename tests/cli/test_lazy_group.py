"""Commands that are imported when they are called."""

from collections.abc import Iterator
from typing import Any

import click
import pytest

from bayplan.cli.entry import cli
from bayplan.cli.lazy_group import LazyGroup
from tests.cli.command_line import bayplan, process


def test_every_command_is_in_its_table() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name


@pytest.mark.parametrize("names", [(), ("config",), ("plugins",)])
def test_a_group_lists_the_first_sentence_of_each_command(names: tuple[str, ...]) -> None:
    group = COMMANDS[names]
    assert isinstance(group, LazyGroup)
    assert group.entries
    for name, entry in group.entries.items():
        assert entry.summary == COMMANDS[*names, name].get_short_help_str(limit=1000)


def test_the_shell_completes_commands_and_options() -> None:
    def completed(words: str) -> list[str]:
        env = {"_BAYPLAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "1"}
        ended = process(env=env)
        return [line.partition(",")[2] for line in ended.stdout.decode().splitlines()]

    assert completed("bayplan s") == ["serve-extender", "shadow", "simulate", "schema"]
    assert completed("bayplan --v") == ["--version"]


def test_all_commands_are_listed_with_a_description() -> None:
    listed = bayplan("--help").stdout
    assert "Schedule the pods of a real cluster." in listed
    places = [listed.index(f"\n  {name} ") for name in ("run", "simulate", "plugins")]
    assert places == sorted(places)


def every_command(command: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from every_command(inner, *names, name)


COMMANDS = dict(every_command(cli))


def test_descriptions_in_a_list_are_not_truncated() -> None:
    for names, command in COMMANDS.items():
        if isinstance(command, click.Group):
            _, _, listed = bayplan(*names, "--help").stdout.partition("Commands:")
            assert listed and "..." not in listed


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_option_has_help(names: tuple[str, ...]) -> None:
    options = [one for one in COMMANDS[names].params if isinstance(one, click.Option)]
    assert [one.name for one in options if not one.help and not one.hidden] == []


@pytest.mark.parametrize("name", ["simulate", "compare", "why", "capture", "bench"])
def test_help_ends_with_examples(name: str) -> None:
    _, _, after = bayplan(name, "--help").stdout.partition("Examples:\n")
    assert f"  bayplan {name} " in after


def test_a_command_of_a_group_is_suggested_for_a_misspelled_name() -> None:
    assert 'No such command "chek"; did you mean "check"?' in bayplan("config", "chek").stderr


def test_an_unknown_command_is_refused() -> None:
    ended = bayplan("scheduel")
    assert ended.exit_code == 2
    assert "No such command" in ended.stderr


def test_modules_for_a_real_cluster_are_not_imported_by_other_commands() -> None:
    code = "import sys; from bayplan.cli import cli; cli(['plugins'], standalone_mode=False); "
    code += "sys.stderr.write(str(sorted({'aiohttp', 'kubernetes_asyncio'} & set(sys.modules))))"
    ended = process(script=code)
    assert ended.stderr.decode() == "[]"
