"""Shadow: what is kept, compared with what the plugins say now.

Reuse is exact as long as plugins sign all that they read. One attempt in a thousand asks them
anew, goes by that, and names those whose kept answers differ.
"""

from collections.abc import Iterator

import numpy as np

from bayplan.engine.kept_answers import PASSES, UNKNOWN, KeptVerdicts
from bayplan.engine.known_pods import KnownPods
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import CycleState
from bayplan.framework.rows import verdicts_of
from bayplan.framework.runtime import Framework
from bayplan.state.columns import Rows, places_of
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

Asked = tuple[CycleState, PodInfo, NodeView]


def mismatches(known: KnownPods, framework: Framework, asked: Asked) -> list[str]:
    """Instances whose kept answers are wrong. The state asked with is one without reuse."""
    for part in known.parts:
        part.catch_up()
    wrong = {*_wrong_filters(known, framework, asked), *_wrong_scores(known, framework, asked)}
    return sorted(wrong)


def _wrong_filters(known: KnownPods, framework: Framework, asked: Asked) -> Iterator[str]:
    nodes = asked[2]
    for name, outcome in framework.filter_answers(*asked):
        kept = known.verdicts.get(name)
        if kept is None or outcome.error is not None:
            continue
        ids = kept.ids[nodes.selection]
        if ((ids != _numbers_of(kept, outcome)) & (ids != UNKNOWN)).any():
            yield name


def _numbers_of(kept: KeptVerdicts, outcome: FilterOutcome) -> Rows:
    """intp[nodes]: what the verdicts are kept as; of a verdict that no node was given so far -1."""
    numbers = np.full(len(outcome.nodes), PASSES, np.intp)
    for entry in outcome.entries:
        if entry.codes is None and (numbers[entry.positions] == PASSES).all():
            numbers[entry.positions] = kept.find(((entry.code, entry.reasons),))
            continue
        # Some nodes have several reasons, or codes of their own.
        for position, verdict in verdicts_of(outcome).items():
            numbers[position] = kept.find(verdict)
        break
    return numbers


def _wrong_scores(known: KnownPods, framework: Framework, asked: Asked) -> Iterator[str]:
    state, pod, nodes = asked
    for call in framework.calls(state, pod).score:
        kept = known.scores.get(call.name)
        if kept is None or call.name in state.skip_score_plugins:
            continue
        said = nodes.take(places_of(kept.known[nodes.selection]))
        if len(said) and (call.score(state, pod, said) != kept.of(said)).any():
            yield call.name
