"""Percentiles of the webhook's benchmark."""

from benchmarks.bench_webhook import buckets_of, less, percentile

SAMPLES = {
    'seconds_bucket{a="x",le="0.01"}': 90.0,
    'seconds_bucket{a="x",le="0.05"}': 98.0,
    'seconds_bucket{a="x",le="+Inf"}': 100.0,
    "seconds_count": 100.0,
}


def test_a_percentile_is_the_upper_bound_of_its_bucket() -> None:
    buckets = buckets_of(SAMPLES, "seconds_bucket")
    assert percentile(buckets, 0.5) == 0.01
    assert percentile(buckets, 0.98) == 0.05
    assert percentile(buckets, 0.99) == float("inf")
    assert percentile(less(buckets, {0.01: 90.0, 0.05: 98.0, float("inf"): 98.0}), 0.5) == float(
        "inf"
    )
