"""The command line: simulate, why, config, plugins.

Bad input ends with exit code 2 and lines that say what, where, found and wanted; never with a
traceback. What a person asked for goes to standard output, progress and problems to standard error.
"""

import sys

import click

from bayplan.cli.config import config_group
from bayplan.cli.plugins import plugins_command
from bayplan.cli.simulate import simulate_command
from bayplan.cli.why import why_command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="bayplan")
def cli() -> None:
    """Bayplan: a Kubernetes scheduler in Python.

    Write a policy, try it on your own cluster's objects under virtual time, and ask it why.
    """


for command in (simulate_command, why_command, config_group, plugins_command):
    cli.add_command(command)


def main() -> None:
    """The entry point."""
    if not __debug__:
        sys.exit("bayplan: python -O strips the assertions it relies on; run it without -O")
    cli(prog_name="bayplan")
