"""The same question again, with answers kept: what was recorded must come out of these as well.

Each pod is asked about as often as it takes until its like has a ranking, where it can have one. In
between a row changes and changes back: a pod is tried on it and taken away. So what is compared was
found by asking about all nodes, about the changed ones, and about none.
"""

from dataclasses import replace
from typing import Final

from bayplan.engine.cycle import Cycle
from bayplan.engine.reuse_steps import score_table_of
from bayplan.framework.status import is_rejected
from bayplan.state.pods import PodInfo
from tests.parity.filter_answers import compare_filter
from tests.parity.question import PodQuestion
from tests.parity.score_answers import compare_table

#: The first may open an entry, the second makes a ranking, the last two are answered from it.
TIMES: Final = 4
#: Before these a row changes.
_AFTER_A_CHANGE: Final = (1, 3)
SUITE: Final = "{}, answers kept"


def compare_kept(question: PodQuestion) -> None:
    """Every answer of a cycle, several times."""
    sheet = replace(question.sheet, suite=SUITE.format(question.sheet.suite))
    missing = question.missing
    shared = {*missing.in_pre_filter(), *missing.in_filter(), *missing.in_choice()}
    shared |= {*missing.in_error()}
    if shared:
        sheet.pass_over("asked again", shared)
        return
    again = replace(question, sheet=sheet)
    for time in range(TIMES):
        if time in _AFTER_A_CHANGE:
            _touch(question, time)
        cycle, told = question.kept_cycle()
        sheet.tally.kept.update(told)
        _compare(again, cycle)


def _touch(question: PodQuestion, time: int) -> None:
    """One row changes, and is what it was."""
    nodes, pod = question.snapshot.nodes, question.pod
    if len(nodes):
        name = nodes.name(time % len(nodes))
        with question.snapshot.trial() as trial:
            trial.assume(PodInfo(pod.metadata, pod.status, pod.shape, ""), name)


def _compare(question: PodQuestion, cycle: Cycle) -> None:
    sheet, wanted = question.sheet, question.wanted
    erred = cycle.status is not None and not question.found_no_fit(cycle)
    if not sheet.compare("error", "error" in wanted, erred) or erred:
        return
    compare_filter(question, cycle)
    message = cycle.fit_error().message if is_rejected(cycle.status) else None
    sheet.compare("fitError", wanted.get("fitError"), message)
    table = score_table_of(cycle)
    if table is not None:
        compare_table(question, table)
    best = wanted.get("best") or (None,)
    chosen = cycle.choice.node_name if cycle.choice is not None else None
    if not question.pod.nominated_node_name:
        sheet.compare("choice", True, chosen in best, f"of {chosen}")
