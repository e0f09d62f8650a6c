"""Runs of the engine do the work that is measured."""

from dataclasses import replace

import pytest

from benchmarks.engine_run import problem_of, run
from benchmarks.shapes import SHAPES, Shape


def small(name: str, nodes: int) -> Shape:
    shape = next(shape for shape in SHAPES if shape.name == name)
    per_node = shape.init_pods // shape.nodes
    return replace(shape, nodes=nodes, pods=nodes, init_pods=nodes * per_node)


def test_each_preemptor_evicts_three_pods_and_takes_their_node() -> None:
    result = run(small("preemption-1000", 12), 60.0)
    assert (result.attempts, result.bound, result.victims, result.problem) == (12, 12, 36, "")
    assert result.nodes_used(12) == 12


def test_the_bindings_of_a_workload_are_told_with_the_zones_of_the_nodes() -> None:
    result = run(small("workload-zones-5000", 12), 60.0)
    assert (result.attempts, result.bound, result.problem) == (12, 12, "")


@pytest.mark.parametrize(
    ("name", "bound", "victims", "problem"),
    [
        ("preemption-1000", 9, 27, "9 of 10 bound, expected 10"),
        ("preemption-1000", 10, 31, "31 pods evicted, expected 30"),
        ("basic-500", 10, 1, "1 pods evicted, expected 0"),
        ("basic-500", 10, 0, ""),
    ],
)
def test_a_measurement_of_incomplete_work_has_a_problem(
    name: str, bound: int, victims: int, problem: str
) -> None:
    assert problem_of(small(name, 10), 10, bound, victims) == problem
