"""The settings of Hypothesis, how to repeat a draw, and tests that are coroutines.

A failing property prints a blob to paste as `@reproduce_failure`. Every run prints its seed first,
and `--hypothesis-seed` repeats the whole run. There is no deadline: on a busy machine the same
example may take ten times as long, and that is not a defect of the code.
"""

import asyncio
import inspect
import os
import random  # noqa: TID251 - the one number drawn by chance; it is printed
from typing import Any

import pytest
from hypothesis import settings

from tests.seeded import REPLAY, depth

# pytest-xdist sets it for its workers. Without it, text is as wide as in a pipe.
os.environ.pop("COLUMNS", None)

settings.register_profile(
    "bayplan",
    deadline=None,
    derandomize=False,
    print_blob=True,
    max_examples=int(os.environ.get("BAYPLAN_EXAMPLES", depth(30, 50))),
)
# On CI the examples are always the same, so that a push fails only because of its own changes.
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, database=None, max_examples=50
)
settings.load_profile("ci" if os.environ.get("CI") else "bayplan")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before Hypothesis reads it; xdist passes the same seed to every worker."""
    if config.option.hypothesis_seed is None and not settings().derandomize:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own: that of the fixture
    ``loop_factory``, if the test uses one."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    names = inspect.signature(pyfuncitem.function).parameters
    given = {name: pyfuncitem.funcargs[name] for name in names}
    new_loop: Any = pyfuncitem.funcargs.get("loop_factory")
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(pyfuncitem.function(**given))
    return True


def pytest_report_header(config: pytest.Config) -> str:
    if config.option.hypothesis_seed is None:
        return "hypothesis: the same examples every time (profile ci)"
    return f"hypothesis: repeat with --hypothesis-seed={config.option.hypothesis_seed}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print one line at the end for each failure that a seed replays."""
    reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    lines = (line for report in reports for line in report.longreprtext.splitlines())
    replays = {line[line.index(REPLAY) :].strip() for line in lines if REPLAY in line}
    for line in sorted(replays):
        terminalreporter.write_line(line)
