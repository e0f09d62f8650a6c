"""An arrangement of all members: found where one exists, and only there."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from bayplan.engine.podgroups.arrangement import (
    Arrangement,
    ArrangementProblem,
    Layer,
    MemberKind,
    NoArrangement,
    arrange,
)
from bayplan.rng import Stream, stream


def kind(*amounts: int, feasible: Sequence[bool]) -> MemberKind:
    return MemberKind(np.array(amounts, np.int64), np.array(feasible, np.bool_))


def is_valid(problem: ArrangementProblem, places: Sequence[int]) -> bool:
    """Whether the members fit on these nodes, and each slice shares a domain."""
    free = problem.free.copy()
    for member, node in zip(problem.members, places, strict=True):
        amounts, feasible = problem.kinds[member]
        free[node] -= amounts
        if not feasible[node] or ((free[node] < 0) & (amounts > 0)).any():
            return False
    for size, domain_ids in problem.layers:
        for begin in range(0, len(places), size):
            domains = {int(domain_ids[node]) for node in places[begin : begin + size]}
            if len(domains) > 1 or -1 in domains:
                return False
    return True


def one_by_one(problem: ArrangementProblem, answer: Arrangement) -> list[int]:
    """A node for each member, the first of its nodes that has room."""
    free, places = problem.free.copy(), list[int]()
    for member, nodes in zip(problem.members, answer.nodes, strict=True):
        amounts, feasible = problem.kinds[member]
        room = ((free[nodes] >= amounts) | (amounts == 0)).all(axis=1) & feasible[nodes]
        node = int(nodes[room.argmax()])
        free[node] -= amounts
        places.append(node)
    return places


def draw_problem(rng: Stream) -> ArrangementProblem:
    """A small problem: up to 5 nodes, 5 members, 3 kinds and 2 layers."""
    node_count = rng.randrange(1, 6)
    free = [[rng.randrange(9), rng.randrange(5)] for _ in range(node_count)]
    kinds = [
        kind(
            rng.randrange(6),
            rng.randrange(4),
            feasible=[rng.random() < 0.8 for _ in range(node_count)],
        )
        for _ in range(rng.randrange(1, 4))
    ]
    members = [rng.randrange(len(kinds)) for _ in range(rng.randrange(1, 6))]
    racks = [rng.randrange(-1, 3) for _ in range(node_count)]
    blocks = [-1 if rack < 0 else rack // 2 for rack in racks]
    inner_size = rng.choice([1, 2, 3])
    layers = [
        Layer(inner_size * rng.choice([1, 2]), np.array(blocks)),
        Layer(inner_size, np.array(racks)),
    ]
    layers = layers[2 - rng.randrange(3) :] if rng.random() < 0.7 else []
    return ArrangementProblem(kinds, members, np.array(free, np.int64), layers, rng.random() < 0.5)


@pytest.mark.parametrize("seed", range(40))
def test_an_arrangement_is_found_exactly_where_one_exists(seed: int) -> None:
    rng = stream(seed, "arrangements")
    for _ in range(10):
        problem = draw_problem(rng)
        nodes = range(len(problem.free))
        exists = any(
            is_valid(problem, each) for each in product(nodes, repeat=len(problem.members))
        )
        answer = arrange(problem)
        assert isinstance(answer, Arrangement) == exists, problem
        if isinstance(answer, Arrangement):
            assert is_valid(problem, one_by_one(problem, answer)), problem


def draw_tight(rng: Stream) -> ArrangementProblem:
    """5,000 nodes in racks of 18. Members of five kinds that fill one rack, and fit in no other."""
    node_count = 5_000
    racks = np.arange(node_count) // 18
    gpus = np.array([rng.choice([0, 1, 2, 3, 4, 8]) for _ in range(node_count)])
    cpus = np.array([rng.randrange(8, 65) for _ in range(node_count)])
    amounts = [(8, 16), (4, 8), (2, 4), (1, 2), (0, 3)]
    target = rng.randrange(node_count // 18)
    members: list[int] = []
    for node in np.flatnonzero(racks == target).tolist():
        gpu, cpu = int(gpus[node]), int(cpus[node])
        for _ in range(6):
            drawn = rng.randrange(len(amounts))
            if amounts[drawn][0] <= gpu and amounts[drawn][1] <= cpu:
                members.append(drawn)
                gpu, cpu = gpu - amounts[drawn][0], cpu - amounts[drawn][1]
    rng.shuffle(members)
    gpus[(racks != target) & np.array([rng.random() < 0.5 for _ in range(node_count)])] = 0
    everywhere = [True] * node_count
    kinds = [kind(*each, feasible=everywhere) for each in amounts]
    return ArrangementProblem(
        kinds, members, np.column_stack([gpus, cpus]), [Layer(len(members), racks)]
    )


@pytest.mark.parametrize("seed", range(12))
def test_members_that_fill_a_rack_of_a_large_cluster_are_arranged_in_few_steps(seed: int) -> None:
    problem = draw_tight(stream(seed, "arrangements"))
    answer = arrange(problem)
    assert isinstance(answer, Arrangement)
    assert is_valid(problem, one_by_one(problem, answer))
    assert answer.step_count <= 40 * len(problem.members)


def nvl72() -> tuple[np.ndarray, Layer, Layer]:
    """33 racks of 18 hosts with 4 GPUs each, 11 racks in a block."""
    racks = np.arange(33 * 18) // 18
    return np.full((len(racks), 1), 4, np.int64), Layer(48, racks // 11), Layer(16, racks)


@pytest.mark.parametrize(
    ("is_balanced", "racks"), [(False, [0, 1, 2, 3, 4, 5]), (True, [0, 1, 2, 11, 12, 13])]
)
def test_slices_of_96_hosts_share_racks_and_blocks(is_balanced: bool, racks: list[int]) -> None:
    free, blocks, of_16 = nvl72()
    host = kind(4, feasible=[True] * len(free))
    answer = arrange(ArrangementProblem([host], [0] * 96, free, [blocks, of_16], is_balanced))
    assert isinstance(answer, Arrangement)
    assert [int(of_16.domain_ids[nodes[0]]) for nodes in answer.nodes[::16]] == racks
    assert all(len({*of_16.domain_ids[nodes].tolist()}) == 1 for nodes in answer.nodes)


def test_equal_members_that_do_not_fit_have_the_number_of_slices_that_do() -> None:
    free, blocks, of_16 = nvl72()
    free[18:] = 0
    free[18 * 12 :] = 4
    free[18 * 14 :] = 0
    host = kind(4, feasible=[True] * len(free))
    answer = arrange(ArrangementProblem([host], [0] * 96, free, [blocks, of_16]))
    assert answer == NoArrangement(is_proven=True, fitting_counts=(0, 3))


def test_a_search_that_may_take_too_few_steps_does_not_say_that_there_is_none() -> None:
    problem = draw_tight(stream(0, "arrangements"))
    answer = arrange(problem, steps_max=10)
    assert answer == NoArrangement(is_proven=False, step_count=10)
