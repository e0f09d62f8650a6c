"""The profile of an attempt: which function gets a sample, and the row of the table."""

import sys
from collections import Counter
from dataclasses import replace

from bayplan.journal import Journal, NoteRecord, Record
from benchmarks.bench_calls import OTHER, PARTS, Samples, measure, part_of, running_function
from benchmarks.shapes import SHAPES

SMALL = replace(SHAPES[0], nodes=20, init_pods=0, pods=40)


def test_the_first_part_that_fits_a_module_counts() -> None:
    assert part_of("engine/ranking/ranked_nodes.py") == "ranking"
    assert part_of("engine/reuse_steps.py") == "reuse"
    assert part_of("engine/schedule_one.py") == "engine"
    assert part_of("clock.py") == OTHER


def test_a_frame_outside_of_bayplan_counts_for_no_function() -> None:
    assert running_function(sys._getframe()) == (OTHER, "")


def test_a_sample_counts_for_the_innermost_function_of_bayplan() -> None:
    seen: list[tuple[str, str]] = []

    class Sink:
        def write(self, record: Record) -> None:
            seen.append(running_function(sys._getframe()))

    Journal([Sink()]).write(NoteRecord(at_seconds=0.0, subject="", text=""))
    assert seen == [("journal, metrics", "Journal.write")]


def test_the_microseconds_of_a_row_add_up_to_those_of_an_attempt() -> None:
    functions = Counter({("queue", "Queue.pop"): 3, ("ranking", "RankedNodes.follow"): 1})
    cells = Samples(SMALL, 40.0, functions, 12.4, 5.6).cells()
    assert cells[:4] == (SMALL.name, "40", "12", "6")
    by_part = dict(zip((*PARTS, OTHER), cells[4:-1], strict=True))
    assert (by_part["queue"], by_part["ranking"], by_part["state"]) == ("30.0", "10.0", "0.0")
    assert cells[-1] == "`Queue.pop` 30.0, `RankedNodes.follow` 10.0"


def test_a_measured_shape_has_calls_and_functions() -> None:
    samples = measure(SMALL, 0.5)
    assert samples.micros > 0
    assert samples.python_calls > 50
    assert samples.c_calls > 20
