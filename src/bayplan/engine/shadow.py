"""Shadow: what is kept, compared with what the plugins say now.

Reuse is exact as long as plugins sign all that they read. One attempt in a thousand asks them
anew, goes by that, and names those whose kept answers differ.
"""

from collections.abc import Iterator

from bayplan.engine.kept_answers import PASSES, UNKNOWN
from bayplan.engine.known_pods import KnownPods
from bayplan.framework.interface import CycleState
from bayplan.framework.rows import verdicts_of
from bayplan.framework.runtime import Framework
from bayplan.state.columns import places_of
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
        said, ids = verdicts_of(outcome), kept.ids[nodes.selection]
        # Most nodes pass, and need not be compared one by one.
        ids_told: list[tuple[int, int]] = [(p, ids.item(p)) for p in said]
        rejected = places_of(ids > PASSES)
        ids_told += zip(rejected.tolist(), ids[rejected].tolist(), strict=True)
        if any(
            number != UNKNOWN and kept.verdicts[number] != said.get(position, ())
            for position, number in ids_told
        ):
            yield name


def _wrong_scores(known: KnownPods, framework: Framework, asked: Asked) -> Iterator[str]:
    state, pod, nodes = asked
    for call in framework.calls(state, pod).score:
        kept = known.scores.get(call.name)
        if kept is None or call.name in state.skip_score_plugins:
            continue
        said = nodes.take(places_of(kept.known[nodes.selection]))
        if len(said) and (call.score(state, pod, said) != kept.of(said)).any():
            yield call.name
