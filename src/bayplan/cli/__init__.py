"""The command line: simulate, why, bench, config, plugins.

Bad input ends with exit code 2 and lines that say what, where, found and wanted; never with a
traceback. What a person asked for goes to standard output, progress and problems to standard error.
"""

from bayplan.cli.entry import cli, main

__all__ = ["cli", "main"]
