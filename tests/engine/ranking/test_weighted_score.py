"""One plugin's share of the totals, updated row by row, equals normalizing all rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.ranking.evaluation_plan import (
    EXTREME_MOVED,
    NODES_CAME_OR_WENT,
    OTHER_PLUGINS,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
    RankingInvalid,
    WeightedScore,
)
from bayplan.engine.ranking.row_cache import CachedScores
from bayplan.framework.arithmetic import normalized
from bayplan.framework.types import Normalizer
from bayplan.state.change_log import Facet
from bayplan.testing import SampleCluster, node

# ---- invalid rankings -----------------------------------------------------------------------


#: Upstream: metrics.go, reasons of batch_cache_flushed_total (v1.37).
UPSTREAM = {
    "pod_failed",
    "pod_skipped",
    "pod_nominated",
    "node_missing",
    "empty_list",
    "expired",
    "pod_incompatible",
    "pod_not_batchable",
    "filter_error",
    "prescore_error",
    "rescore_error",
    "normalize_error",
}
OURS = (EXTREME_MOVED, NODES_CAME_OR_WENT, OTHER_PLUGINS, PLUGIN_FAILED, TOO_MUCH_CHANGED)


def test_each_reason_is_one_of_upstreams_and_all_are_distinct() -> None:
    assert len({*OURS} & UPSTREAM) == len(OURS)


# ---- shares ---------------------------------------------------------------------------------


WEIGHT = 3
NORMALIZERS = list(Normalizer)


class Shared:
    """Nodes with these raw scores, all feasible, and the plugin's share of their totals."""

    def __init__(self, normalizer: Normalizer, *raw: int) -> None:
        self.cluster = SampleCluster().add(*(node(f"n{row}") for row in range(len(raw))))
        table = self.cluster.cache.table
        self.cache = CachedScores(table, Facet.LABELS)
        nodes = self.cluster.lend().nodes
        self.cache.learn(nodes.table.rows, np.array(raw, np.int64))
        self.share = WeightedScore("Any", WEIGHT, normalizer, self.cache)
        self.share.start(nodes)

    def move(self, row: int, score: int) -> int:
        """Change the raw score of a feasible row. Returns its new share of the total."""
        self.share.remove_row(row)
        self.cache.learn_one(row, score)
        return self.share.add_row(row)

    def stay(self, row: int) -> int:
        """The share of a row that is removed and added again unchanged."""
        self.share.remove_row(row)
        return self.share.add_row(row)


def test_extremes_take_eight_bytes_a_row() -> None:
    shared = Shared(Normalizer.MAX, 1, 2)
    assert shared.share.bytes_used == 8 * shared.cluster.cache.table.capacity


SCORES = st.integers(0, 6)


@given(
    st.sampled_from(NORMALIZERS),
    st.lists(SCORES, min_size=2, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), SCORES), max_size=8),
)
def test_normalizing_row_by_row_equals_normalizing_all_rows(
    normalizer: Normalizer, raw: list[int], moves: list[tuple[int, int]]
) -> None:
    shared = Shared(normalizer, *raw)
    for row, score in moves:
        place = row % len(raw)
        try:
            added = shared.move(place, score)
            shared.share.check()
        except RankingInvalid:
            # Allowed only if an extreme moved, or if all scores were equal.
            before = (min(raw), max(raw))
            raw[place] = score
            assert normalizer is not Normalizer.NONE
            assert (min(raw), max(raw)) != before
            return
        raw[place] = score
        expected = normalized(normalizer, np.array(raw, np.int64)) * WEIGHT
        assert added == expected[place]
        assert [shared.stay(each) for each in range(len(raw))] == expected.tolist()
