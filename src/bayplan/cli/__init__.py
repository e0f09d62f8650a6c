"""The command line: demo, simulate, why, run, bench, config, plugins.

Wrong input ends with exit code 2 and one line per error: the place, what was found, what was
wanted. It never ends with a traceback. Answers go to standard output, progress and errors to
standard error.
"""

from bayplan.cli.entry import cli, kubectl_main, main

__all__ = ["cli", "kubectl_main", "main"]
