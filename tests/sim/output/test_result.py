"""The result of a run as an object for scripts: counts, groups, reuse and failures."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.journal import BUG_PREFIX, AttemptRecord, BindingRecord, GateRecord, NoteRecord, Record
from bayplan.sim.output.collectors import AttemptCounts, group_results
from bayplan.sim.output.result import (
    FailureResult,
    SimulationResult,
)
from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import node, pod
from tests.scenarios.gangs import FIT, MING, X_K8S, add_member, put_group
from tests.scenarios.world import World, scenario
from tests.sim.runs import simulate

# ---- result ---------------------------------------------------------------------------------


def plain(result: object) -> dict[str, object]:
    decoded = msgspec.json.decode(msgspec.json.encode(result))
    assert isinstance(decoded, dict)
    return decoded


def test_the_object_has_its_keys_in_order() -> None:
    result = simulate(node("n1"), pod("a"))
    assert list(plain(result)) == [
        "apiVersion",
        "kind",
        "nodes",
        "counts",
        "placements",
        "unschedulable",
        "pods",
        "seed",
        "digest",
        "simulatedSeconds",
        "wallSeconds",
        "attempts",
        "usage",
        "nodeUsage",
        "podGroups",
        "signatures",
        "ignoredKinds",
        "failures",
        "lost",
        "notes",
        "earlierPods",
    ]


def test_a_result_survives_encoding_and_decoding() -> None:
    result = simulate(node("n1"), pod("a"))
    assert msgspec.json.decode(msgspec.json.encode(result), type=SimulationResult) == result


# ---- group results --------------------------------------------------------------------------


@scenario(plugins=FIT)
async def test_a_group_result_has_phase_and_message(world: World) -> None:
    world.add_node("n1")
    put_group(world, "g", 2)
    add_member(world, "a", "g")
    await world.until(1)
    result = group_results(world.scheduler)["default/g"]
    assert (result.phase, result.scheduled) == ("Pending", 0)
    assert "1 of 2 members are here" in (result.message or "")
    add_member(world, "b", "g")
    await world.until(2)
    result = group_results(world.scheduler)["default/g"]
    assert (result.phase, result.scheduled, result.running) == ("Running", 2, 2)
    assert result.message is None


@scenario(plugins=FIT)
async def test_groups_of_two_kinds_with_one_name_are_both_reported(world: World) -> None:
    put_group(world, "g", 2, MING)
    put_group(world, "g", 3, X_K8S)
    await world.until(1)
    groups = group_results(world.scheduler)
    assert {name: each.min_member for name, each in groups.items()} == {
        "default/g": 2,
        "default/g (scheduling.x-k8s.io)": 3,
    }


# ---- results by signature -------------------------------------------------------------------


def kinds(tmp_path: Path, *flags: str) -> list[dict[str, Any]]:
    nodes = [node(f"n{number}") for number in range(4)]
    pods = [pod(f"small-{number}", cpu="100m") for number in range(6)]
    pods += [pod(f"large-{number}", cpu="2") for number in range(2)]
    path = write_objects(tmp_path / "cluster.yaml", *nodes, *pods)
    return json.loads(answer("simulate", path, "-o", "json", *flags))["signatures"]


def test_each_signature_has_its_pods_cycles_and_rows(tmp_path: Path) -> None:
    small, large = kinds(tmp_path)
    assert (small["example"], small["pods"], small["cycles"]) == ("default/small-0", 6, 6)
    assert (large["example"], large["pods"], large["cycles"]) == ("default/large-0", 2, 2)
    assert small["profile"] == "default-scheduler"
    assert small["rowsCached"] > small["rowsEvaluated"] > 0


def test_without_reuse_the_result_has_no_reuse_part(tmp_path: Path) -> None:
    rows = kinds(tmp_path, "--feature-gates", "OpportunisticBatching=false")
    assert all(kind["rowsCached"] == 0 for kind in rows)


# ---- failures -------------------------------------------------------------------------------


def attempt(pod: str, result: str, plugin: str = "Mine", message: str = "broken") -> Record:
    return AttemptRecord(
        at_seconds=0.0,
        pod=pod,
        uid=pod,
        profile="p",
        attempt=1,
        result=result,
        plugin=plugin,
        message=message,
    )


def results(*records: Record) -> tuple[FailureResult, ...]:
    failures = AttemptCounts()
    for record in records:
        failures.write(record)
    return failures.failures()


def test_a_rejected_attempt_is_not_a_failure() -> None:
    assert results(attempt("ns/a", "unschedulable"), attempt("ns/b", "scheduled")) == ()


def test_equal_failures_are_counted_with_the_first_pod_as_example() -> None:
    records = [attempt(f"ns/p{i}", "error", message=f"ns/p{i}: broken") for i in range(3)]
    assert results(*records) == (
        FailureResult(plugin="Mine", count=3, example="ns/p0", message="ns/p0: broken"),
    )


def test_failures_are_grouped_by_plugin_and_message() -> None:
    failures = results(
        attempt("ns/a", "error", "One"),
        attempt("ns/b", "error", "Two"),
        attempt("ns/c", "error", "One", "also broken"),
    )
    assert [(one.plugin, one.message) for one in failures] == [
        ("One", "broken"),
        ("Two", "broken"),
        ("One", "also broken"),
    ]


def test_the_number_of_distinct_messages_of_a_plugin_is_bounded() -> None:
    failures = results(*(attempt("ns/a", "error", message=f"broken {i}!") for i in range(100)))
    assert len(failures) == 20
    assert sum(one.count for one in failures) == 100


def test_a_binding_fails_with_an_error_or_a_rejection() -> None:
    bindings = [
        BindingRecord(
            at_seconds=0.0,
            pod=f"ns/{code}",
            uid=code,
            node="n",
            result="failed",
            message="no",
            plugin="Mine",
            code=code,
        )
        for code in ("Error", "Unschedulable")
    ]
    assert [one.example for one in results(*bindings)] == ["ns/Error"]


def test_only_a_note_that_names_a_plugin_is_a_failure() -> None:
    failures = results(
        NoteRecord(at_seconds=0.0, subject="ns/a", text="went on without an extender"),
        NoteRecord(at_seconds=0.0, subject="ns/a", text="PostBind raised", plugin="Mine"),
    )
    assert [one.message for one in failures] == ["PostBind raised"]


def test_a_closed_gate_is_a_failure_only_if_its_plugin_failed() -> None:
    def gate(code: str) -> Record:
        return GateRecord(at_seconds=0.0, pod="ns/a", uid="a", plugin="Mine", code=code)

    assert [one.plugin for one in results(gate(""), gate("Error"))] == ["Mine"]


@pytest.mark.parametrize(
    ("plugin", "message", "is_defect"),
    [
        pytest.param("Mine", "broken", True, id="a plugin"),
        pytest.param("", f"{BUG_PREFIX}: KeyError", True, id="Bayplan itself"),
        pytest.param("", 'Post "http://x/filter": connection refused', False, id="an extender"),
    ],
)
def test_a_failure_outside_of_the_scheduler_is_not_a_defect(
    plugin: str, message: str, is_defect: bool
) -> None:
    (failure,) = results(attempt("ns/a", "error", plugin, message))
    assert failure.is_defect == is_defect
