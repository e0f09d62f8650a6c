"""Why a ranking is thrown away is told in upstream's words."""

import pytest

from bayplan.engine.out_of_date import (
    EXTREME_MOVED,
    NODES_CAME_OR_WENT,
    OTHER_PLUGINS,
    PLUGIN_FAILED,
    TOO_MUCH_CHANGED,
    OutOfDate,
)

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


def test_every_reason_is_one_of_upstreams_and_no_two_are_the_same() -> None:
    assert len({*OURS} & UPSTREAM) == len(OURS)


@pytest.mark.parametrize("reason", OURS)
def test_who_catches_it_knows_why(reason: str) -> None:
    with pytest.raises(OutOfDate, match=f"^{reason}$") as problem:
        raise OutOfDate(reason)
    assert problem.value.reason == reason
