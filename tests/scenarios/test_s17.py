"""S-17, parts B and D: decisions follow from the seed alone, and pages have their topics.

Part A is in tests/live/test_run.py, part C in tests/live/test_replays.py.
"""

import os
import subprocess
import sys

import msgspec
import pytest

from bayplan.journal import AttemptRecord
from benchmarks.bench_reuse import LOADS
from benchmarks.ranges import ranges
from tests.documents.reading import ROOT
from tests.scenarios.digests import SCENARIOS, s07_part_b
from tests.scenarios.world import World

# ---- part B ---------------------------------------------------------------------------------


def digests(hash_seed: int) -> list[str]:
    """The digests of the journals, computed in a separate process."""
    completed = subprocess.run(
        [sys.executable, "-m", "tests.scenarios.digests"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.splitlines()


def test_two_processes_with_different_hash_seeds_write_the_same_journal() -> None:
    first, other = digests(0), digests(1)
    assert len(first) == len(SCENARIOS)
    assert first == other
    assert first == [f"{name} {played(1).digest}" for name, played in SCENARIOS.items()]


def attempts(world: World) -> list[AttemptRecord]:
    return [each for each in world.journal.records if isinstance(each, AttemptRecord)]


def but_for_the_draw(record: AttemptRecord) -> AttemptRecord:
    """The record without the names of nodes: a different draw among equal nodes changes the chosen
    node and the best five nodes, but not their scores."""
    scores = tuple(msgspec.structs.replace(line, node="") for line in record.scores)
    tied = {"node": "", "tied_index": 0} if record.tied_count > 1 else {}
    return msgspec.structs.replace(record, uid="", scores=scores, **tied)


@pytest.mark.parametrize("name", SCENARIOS)
def test_seeds_differ_only_in_choices_that_the_journal_marks_as_ties(name: str) -> None:
    one, two = (attempts(SCENARIOS[name](seed)) for seed in (1, 2))
    assert one
    assert list(map(but_for_the_draw, one)) == list(map(but_for_the_draw, two))


def test_seeds_differ_if_nodes_are_equal() -> None:
    one, two = (attempts(s07_part_b(seed)) for seed in (1, 2))
    assert [record.node for record in one] != [record.node for record in two]
    assert all(record.tied_count > 1 for record in one)


# ---- part D ---------------------------------------------------------------------------------

#: Page → the words that it must contain. tests/documents tests that the commands run.
PAGES = {
    "batching.md": ("bayplan_reuse_rows_evaluated_total", "OpportunisticBatching", "reuse: false"),
    "plugins.md": ("scoreFrom", "handle.make", "**In code**"),
    "gangs.md": ("PodGroup", "minMember", "bayplan why podgroup"),
    "operations.md": ("schedulerName: bayplan", "helm install bayplan", "To go back"),
    "benchmarks.md": ("make bench", "kube-scheduler"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_contains_its_required_words(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    missing = [words for words in PAGES[page] if words not in text]
    assert missing == []


def test_the_decision_on_caching_names_the_test_that_proves_it() -> None:
    """Rows B-065 and B-081."""
    (record,) = (ROOT / "docs" / "decisions").glob("*results-are-cached-per-row.md")
    assert "tests/engine/test_reuse_machine.py" in record.read_text(encoding="utf-8")


def test_the_benchmark_covers_all_loads_for_reuse() -> None:
    """Rows B-002, B-005 and B-012: `make bench` runs all of them."""
    expected = {
        "large job",
        "reschedule after nodes fail",
        "replicas in a row",
        "one host port a node",
        "one pod fills a node",
        "200 kinds in short turns",
        "1,000 kinds in short turns",
    }
    assert {load.name for load in LOADS} == expected
    assert ranges().reuse_at_least["large job"] >= 3
    assert "-m benchmarks reuse" in (ROOT / "Makefile").read_text(encoding="utf-8")
