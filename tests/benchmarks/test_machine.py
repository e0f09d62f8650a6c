"""Tables in documents."""

from pathlib import Path

import pytest

from benchmarks.bench_growth import KINDS, Point, problems, write_docs
from benchmarks.bench_peer import Comparison, PeerRun, write_markdown
from benchmarks.engine_run import Run
from benchmarks.machine import markdown_table, put_between
from benchmarks.shapes import Shape


def document(folder: Path, name: str) -> Path:
    path = folder / "benchmarks.md"
    path.write_text(f"before\n<!-- {name}: begin -->\nold\n<!-- {name}: end -->\nafter\n")
    return path


def test_a_table_replaces_the_previous_one(tmp_path: Path) -> None:
    path = document(tmp_path, "a")
    put_between(path, "a", markdown_table(("x", "y"), [("one", "1")]))
    lines = path.read_text().splitlines()
    assert lines[0] == "before"
    assert lines[2:5] == ["| x | y |", "| --- | ---: |", "| one | 1 |"]
    assert lines[-1] == "after"
    assert "old" not in lines


def test_a_document_without_the_marks_is_refused(tmp_path: Path) -> None:
    path = document(tmp_path, "a")
    with pytest.raises(ValueError, match="has no lines <!-- b: begin -->"):
        put_between(path, "b", [])
    assert path.read_text().count("old") == 1


SHAPE = Shape("basic-5000", 5000, "default", 10)


def test_the_comparison_with_the_peer_is_a_table(tmp_path: Path) -> None:
    peer = [PeerRun(SHAPE, cores, 50.0 * cores, 2, 2, 2, 0) for cores in (1, 2)]
    ours = Run(SHAPE, (0.001, 0.002), ("a", "b"), event_seconds=0.001)
    path = document(tmp_path, "peer")
    write_markdown(path, [Comparison(SHAPE, 5, peer, [ours])], "python -m somewhere")
    text = path.read_text()
    assert "    python -m somewhere" in text
    assert "kube-scheduler v1.37.0" in text
    assert "| basic-5000 | 50 | 100 | 1,000 | 500 | 10.0 | 5 met | 2 | 2 / 2 |" in text


POINTS = [
    Point("basic-5000", 1000, 50.0, 1024),
    Point("basic-5000", 50_000, 99.0, 2048),
    Point("pod-affinity", 1000, 100.0, 0),
    Point("pod-affinity", 50_000, 4900.0, 0),
    Point(KINDS, 10, 10.0, 0),
    Point(KINDS, 100, 20.0, 0),
]


def test_growth_is_compared_with_its_limits() -> None:
    assert problems(POINTS) == []
    worse = [*POINTS[:1], Point("basic-5000", 50_000, 100.0, 1 << 30)]
    grown, memory = problems(worse)
    assert grown == "basic-5000: 2.00 times the first, wanted less than 2"
    assert memory == "basic-5000 50,000: 1,073,741,824 bytes kept"


def test_growth_is_two_plots_and_a_table(tmp_path: Path) -> None:
    path = document(tmp_path, "growth")
    write_docs(POINTS, tmp_path)
    assert "| basic-5000 | 50,000 | 99 | 1.98 | 2 |" in path.read_text()
    for name in ("nodes", "kinds"):
        assert "<svg" in (tmp_path / "images" / f"growth-{name}.svg").read_text()
