"""The benchmark of a million nodes, at a small size."""

from io import BytesIO

from bayplan.journal import AttemptRecord, read
from benchmarks.bench_million import FULL_SIZE, Result, measure


def test_every_pod_is_bound_and_recorded() -> None:
    records = BytesIO()
    result = measure(node_count=150, pod_count=200, records=records)
    assert (result.bound, result.exceeded()) == (200, [])
    journal = read(records.getvalue().splitlines())
    attempts = [record for record in journal if isinstance(record, AttemptRecord)]
    assert len(attempts) == 200
    assert result.records_mib == len(records.getvalue()) / 2**20
    assert "200 of 200 pods bound on 150 nodes" in list(result.lines())


def test_a_limit_is_exceeded_at_full_size_only() -> None:
    slow = Result(FULL_SIZE, FULL_SIZE, FULL_SIZE, 1.0, 91.0, 1.0, 1.0, 1.0)
    assert slow.exceeded() == ["scheduling_seconds: 91.0, at most 90"]
    small = Result(1000, 1000, 999, 1.0, 91.0, 1.0, 1.0, 1.0)
    assert small.exceeded() == ["999 of 1,000 bound"]
