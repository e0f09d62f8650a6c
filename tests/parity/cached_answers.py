"""The same cycles with cached results must give the recorded answers, too.

Each pod is tried until its signature has a ranking, if it can have one. Before some cycles a row
changes and changes back: the pod is assumed on it and removed again. So the compared results come
from an evaluation of all nodes, of the changed nodes, and of no node.
"""

from dataclasses import replace
from typing import Final

from bayplan.engine.cycle import Cycle
from bayplan.framework.status import is_rejected
from tests.parity.filter_answers import compare_filter
from tests.parity.question import PodQuestion
from tests.parity.score_answers import compare_table

#: The first cycle makes a cache entry, the second a ranking; the last two use the ranking.
TIMES: Final = 4
#: Before these cycles a row changes.
_AFTER_A_CHANGE: Final = (1, 3)
SUITE: Final = "{}, cached"


def compare_cached(question: PodQuestion) -> None:
    """Compare every answer of a cycle, several times."""
    sheet = replace(question.sheet, suite=SUITE.format(question.sheet.suite))
    again = replace(question, sheet=sheet)
    for time in range(TIMES):
        if time in _AFTER_A_CHANGE:
            _touch(question, time)
        cycle, counts = question.cached_cycle()
        sheet.tally.cached_counts.update(counts)
        _compare(again, cycle)


def _touch(question: PodQuestion, time: int) -> None:
    """Change one row and change it back."""
    nodes, pod = question.snapshot.nodes, question.pod
    if len(nodes):
        name = nodes.name(time % len(nodes))
        with question.snapshot.trial() as trial:
            trial.assume(pod, name)


def _compare(question: PodQuestion, cycle: Cycle) -> None:
    sheet, expected = question.sheet, question.expected
    erred = cycle.status is not None and not question.has_no_fit(cycle)
    if not sheet.compare("error", "error" in expected, erred) or erred:
        return
    compare_filter(question, cycle)
    message = cycle.fit_error().message if is_rejected(cycle.status) else None
    sheet.compare("fitError", expected.get("fitError"), message)
    table = cycle.score_table()
    if table is not None:
        compare_table(question, table)
    best = expected.get("best") or (None,)
    chosen = cycle.choice.node_name if cycle.choice is not None else None
    if not question.pod.nominated_node_name:
        sheet.compare("choice", True, chosen in best, f"of {chosen}")
