"""The summary for human readers."""

from typing import Any

import pytest

from bayplan.answers.pod_tables import EXAMPLES_MAX, GROUPS_MAX, message_kind
from bayplan.sim.output.pod_counts import PodEnd
from bayplan.sim.output.result import NODES_MAX, Counts, NodeUsage, SimulationResult, Usage
from tests.sim.printing import printed


def result(unschedulable: dict[str, str] | None = None, **fields: Any) -> SimulationResult:
    """A result with zeros and empty values except for the arguments."""
    waiting = unschedulable or {}
    defaults: dict[str, Any] = {
        "nodes": 3,
        "counts": Counts(unschedulable=len(waiting)),
        "placements": {},
        "unschedulable": waiting,
        "pods": {},
        "seed": 7,
        "digest": "0123456789abcdef",
        "simulated_seconds": 0.0,
        "wall_seconds": 0.5,
        "attempts": 0,
        **fields,
    }
    return SimulationResult(**defaults)


def read(of: SimulationResult, width: int = 120) -> list[str]:
    return printed(of.parts(), width).splitlines()


# ---- headline -------------------------------------------------------------------------------


def test_the_summary_has_its_parts_in_order() -> None:
    counts = Counts(
        pods=12,
        running=1,
        scheduled=2,
        unschedulable=1,
        completed=3,
        other_schedulers=4,
        missing_nodes=1,
        gone={PodEnd.PREEMPTED: 3},
        replaced={PodEnd.PREEMPTED: 2},
    )
    usage = (
        Usage(resource="cpu", requested=1500, peak=1500, allocatable=4000, peak_allocatable=4000),
    )
    of = result({"default/a": "no room"}, counts=counts, usage=usage, attempts=3, notes=("made",))
    assert read(of) == [
        "2 of 3 pods placed on 3 nodes",
        "1 pod still waiting",
        "1 pod had a node already",
        "1 pod on nodes that do not exist",
        "4 pods without a node left to other schedulers",
        "3 pods left out, completed or failed",
        "3 pods gone: 3 preempted (2 replaced)",
        "",
        "resource   requested           allocatable",
        "──────────────────────────────────────────",
        "cpu            1500m   37.5%             4",
        "",
        "pods   why they wait   for example",
        "──────────────────────────────────",
        "   1   no room         default/a",
        "",
        "made",
        "0.0 s simulated in 0.50 s: 3 decisions, 6 per second",
        "seed 7, digest 0123456789ab",
    ]


def test_counts_of_one_use_the_singular() -> None:
    of = result(nodes=1, counts=Counts(scheduled=1), attempts=1)
    assert read(of)[0] == "1 of 1 pod placed on 1 node"
    assert ": 1 decision, " in read(of)[2]


def test_a_run_without_pods_to_place_is_reported() -> None:
    assert read(result(nodes=0))[0] == "no pod to be placed on 0 nodes"


def test_a_run_whose_pods_are_all_gone_is_reported() -> None:
    of = result(counts=Counts(pods=2, gone={PodEnd.ENDED: 2}))
    assert read(of)[:2] == ["no pod of this run is left on 3 nodes", "2 pods gone: 2 ended"]


def test_a_run_of_zero_seconds_has_a_rate_of_zero() -> None:
    assert "0 per second" in "\n".join(read(result(wall_seconds=0.0)))


# ---- unschedulable pods ---------------------------------------------------------------------


def rows(of: SimulationResult) -> list[str]:
    lines = read(of)
    return lines[lines.index("") + 3 :][: lines[lines.index("") + 3 :].index("")]


def test_pods_with_one_reason_form_one_row_with_examples() -> None:
    waiting = {f"default/p{i}": "no room" for i in range(EXAMPLES_MAX + 2)}
    assert rows(result(waiting)) == ["   5   no room         default/p0, default/p1, default/p2, …"]


def test_messages_that_differ_only_in_counts_are_one_reason() -> None:
    waiting = {
        "default/a": "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had taint.",
        "default/b": "0/6 nodes are available: 2 node(s) had taint, 4 Insufficient cpu.",
    }
    [row] = rows(result(waiting))
    assert row == "   2   3 had taint, 2 lack cpu   default/a, default/b"


def test_the_largest_group_comes_first_and_small_groups_are_summed() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    waiting = {f"default/p-{c}": f"reason {c}" for c in letters[: GROUPS_MAX + 2]}
    waiting |= {"default/z1": "most", "default/z2": "most"}
    lines = rows(result(waiting))
    assert lines[0].startswith("   2   most ")
    assert len(lines) == GROUPS_MAX + 1
    assert lines[-1].startswith("   3   3 further reasons ")


def test_one_further_reason_uses_the_singular() -> None:
    waiting = {
        f"default/p-{c}": f"reason {c}" for c in "abcdefghijklmnopqrstuvwxyz"[: GROUPS_MAX + 1]
    }
    assert rows(result(waiting))[-1].startswith("   1   1 further reason ")


def test_a_pod_without_a_message_was_not_tried() -> None:
    assert rows(result({"default/a": ""})) == ["   1   not tried yet   default/a"]


def test_brackets_in_a_message_are_printed_literally() -> None:
    message = "node(s) didn't satisfy plugin(s) [a b] simultaneously [/bold] :boom:"
    assert message in rows(result({"default/a": message}))[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("1 Too many pods", "3 Too many pods", id="counts of nodes"),
        pytest.param("0/5 nodes: 1 a, 2 b.", "0/3 nodes: 1 b, 2 a.", id="order of reasons"),
        pytest.param("default/p failed", "default/q failed", id="the pod's own name"),
        pytest.param(
            'plugin "X": p: boom', 'plugin "X": q: boom', id="the pod's name without its namespace"
        ),
    ],
)
def test_these_messages_are_one_reason(one: str, other: str) -> None:
    assert message_kind("default/p", one) == message_kind("default/q", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("1 Insufficient cpu", "1 Insufficient memory", id="reasons"),
        pytest.param("node n1 is gone", "node n2 is gone", id="digits in a name"),
        pytest.param("default/pp failed", "default/qq failed", id="names of other pods"),
    ],
)
def test_these_messages_are_two_reasons(one: str, other: str) -> None:
    assert message_kind("default/p", one) != message_kind("default/q", other)


# ---- usage ----------------------------------------------------------------------------------


def test_peak_usage_is_printed_beside_the_usage_at_the_end() -> None:
    usage = (
        Usage(resource="cpu", requested=0, peak=3000, allocatable=4000, peak_allocatable=4000),
        Usage(resource="pods", requested=2, peak=2, allocatable=110, peak_allocatable=110),
    )
    assert read(result(usage=usage))[2:5] == [
        "resource   requested          peak           allocatable",
        "────────────────────────────────────────────────────────",
        "cpu                0   0.0%      3   75.0%             4",
    ]


def test_more_than_is_allocatable_has_a_share_above_100_percent() -> None:
    gpus = Usage(
        resource="nvidia.com/gpu", requested=31, allocatable=24, peak=48, peak_allocatable=24
    )
    row = ["nvidia.com/gpu", "31", "129.2%", "48", "200.0%", "24"]
    assert read(result(usage=(gpus,)))[4].split() == row


def test_a_resource_without_requests_has_no_row() -> None:
    usage = (
        Usage(resource="cpu", requested=1, peak=1, allocatable=4000, peak_allocatable=4000),
        Usage(
            resource="ephemeral-storage", requested=0, peak=0, allocatable=100, peak_allocatable=100
        ),
    )
    assert not any("ephemeral" in line for line in read(result(usage=usage)))


# ---- nodes ----------------------------------------------------------------------------------


def node_usage(pods: int, cpu: int) -> NodeUsage:
    has = {"cpu": 4000, "memory": 100, "ephemeral-storage": 7}
    return NodeUsage(pods=pods, requested={"cpu": cpu, "memory": 50 * pods}, allocatable=has)


def test_nodes_are_sorted_by_placed_pods_and_usage() -> None:
    nodes = {"a": node_usage(1, 1000), "b": node_usage(2, 3000), "c": node_usage(0, 0)}
    lines = read(result(node_usage=nodes, placements={"d/x": "b", "d/y": "b"}))
    assert lines[2:7] == [
        "node   placed   pods   cpu   memory",
        "───────────────────────────────────",
        "b           2      2   75%     100%",
        "a           0      1   25%      50%",
        "c           0      0    0%       0%",
    ]


def test_many_nodes_are_counted() -> None:
    nodes = {f"n{i:02}": node_usage(i % 2, 0) for i in range(NODES_MAX + 6)}
    lines = read(result(node_usage=nodes, placements={"d/x": "n15", "d/y": "n00"}))
    assert sum(line.startswith("n") and line[1].isdigit() for line in lines) == NODES_MAX
    assert "and 6 more nodes with 0 placed pods; 6 of them empty" in lines
    full = {f"n{i:02}": node_usage(1, 0) for i in range(NODES_MAX + 2)}
    placements = {f"d/{name}": name for name in full}
    lines = read(result(node_usage=full, placements=placements))
    assert "and 2 more nodes with 2 placed pods" in lines


# ---- rates ----------------------------------------------------------------------------------


def test_a_narrow_terminal_wraps_without_loss() -> None:
    text = "0/3 nodes are available: 3 Insufficient example.com/very-long-resource-name."
    lines = read(result({"default/a-pod-with-a-long-name": text}), width=40)
    assert all(len(line) <= 40 for line in lines if "simulated" not in line)
    squeezed = "".join("".join(lines).split())
    assert all(piece in squeezed for piece in ("very-long-", "resource-name", "with-a-long-"))
