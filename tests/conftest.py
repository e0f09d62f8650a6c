"""How Hypothesis draws, and how a draw is repeated.

A failing property prints a blob to paste as `@reproduce_failure`; every run prints its seed first,
so the whole run can be had again with `--hypothesis-seed`. No deadline: on a busy machine the same
example may take ten times as long, which says nothing about the code.
"""

import os
import random  # noqa: TID251 - the one number drawn by chance; it is printed
from typing import Any

import pytest
from hypothesis import settings

from tests.seeded import REPLAY

# pytest-xdist sets it for its workers; what is printed in a test is as wide as in a pipe.
os.environ.pop("COLUMNS", None)

settings.register_profile(
    "bayplan",
    deadline=None,
    derandomize=False,
    print_blob=True,
    max_examples=int(os.environ.get("BAYPLAN_EXAMPLES", "100")),
)
# A push fails for what it changed, not for a new draw: here the examples are always the same.
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, database=None, max_examples=100
)
settings.load_profile("ci" if os.environ.get("CI") else "bayplan")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before Hypothesis reads it; xdist hands the same one to every worker."""
    if config.option.hypothesis_seed is None and not settings().derandomize:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    if config.option.hypothesis_seed is None:
        return "hypothesis: the same examples every time (profile ci)"
    return f"hypothesis: again with --hypothesis-seed={config.option.hypothesis_seed}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """At the end, one line for each failure that a seed replays."""
    reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    lines = (line for report in reports for line in report.longreprtext.splitlines())
    found = {line[line.index(REPLAY) :].strip() for line in lines if REPLAY in line}
    for line in sorted(found):
        terminalreporter.write_line(line)
