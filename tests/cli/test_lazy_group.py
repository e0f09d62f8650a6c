"""Commands that are imported when they are called."""

import click

from bayplan.cli.entry import cli
from tests.cli.command_line import bayplan, process


def test_every_command_is_where_the_table_says() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_all_are_listed_with_what_they_do() -> None:
    listed = bayplan("--help").stdout
    assert "Schedule pods whose schedulerName" in listed
    assert listed.index("run ") < listed.index("simulate ") < listed.index("plugins ")


def test_one_that_does_not_exist_is_refused() -> None:
    ended = bayplan("scheduel")
    assert ended.exit_code == 2
    assert "No such command" in ended.stderr


def test_what_only_a_real_cluster_needs_is_not_imported_for_the_others() -> None:
    code = "import sys; from bayplan.cli import cli; cli(['plugins'], standalone_mode=False); "
    code += "sys.stderr.write(str(sorted({'aiohttp', 'kubernetes_asyncio'} & set(sys.modules))))"
    ended = process(script=code)
    assert ended.stderr.decode() == "[]"
