"""A workload runs on its own cluster, under the caller's clock."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bayplan.clock import ManualClock, RealClock
from bayplan.perf.planning import Plan, Selection, Setting, plan_all
from bayplan.perf.reading import read_files
from bayplan.perf.running import WorkloadRun
from bayplan.plugins.registry import Registry
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.loop import run
from tests.perf.kit import SMALL_POD, case, op, plan, run_cases, run_of, write_cases

NODES = op("createNodes", count=3)
PODS = op("createPods", count=5, collectMetrics=True)


def test_an_outcome_has_counts_and_measurements(tmp_path: Path) -> None:
    whole = case(NODES, PODS)
    whole["workloads"][0]["threshold"] = 7
    outcome = run_cases(write_cases(tmp_path, whole))
    assert (outcome.name, outcome.nodes, outcome.pods) == ("Case/small", 3, 5)
    assert (outcome.threshold, outcome.failure) == (7, "")
    assert [one.pods for one in outcome.measured] == [5]


def test_thresholds_by_topic_are_ignored(tmp_path: Path) -> None:
    whole = case(NODES)
    whole["workloads"][0]["threshold"] = {"dra": 7}
    assert run_cases(write_cases(tmp_path, whole)).threshold == 0


def test_with_a_real_clock_the_duration_is_real(tmp_path: Path) -> None:
    one = plan(write_cases(tmp_path, case(NODES, PODS)))
    outcome = asyncio.run(WorkloadRun(one, Registry(), RealClock()).play())
    assert outcome.measured[0].pods_per_second
    assert outcome.measured[0].seconds > 0


def test_measurements_before_a_failure_are_kept(tmp_path: Path) -> None:
    outcome = run_cases(write_cases(tmp_path, case(NODES, PODS, op("stopCollectingMetrics"))))
    assert outcome.failure
    assert len(outcome.measured) == 1


def test_a_bug_outside_of_the_operations_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = op(
        "deletePods", namespace="namespace-1", deletePodsPerSecond=1, skipWaitToCompletion=True
    )
    path = write_cases(tmp_path, case(NODES, PODS, delete, op("sleep", duration="3s")))
    clock = ManualClock()
    whole = run_of(path, clock)

    def fails(key: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr(whole._operations, "_delete", fails)
    with pytest.raises(AssertionError, match="a bug"):
        run(whole.play(), clock)


def test_the_seed_determines_ties(tmp_path: Path) -> None:
    path = write_cases(tmp_path, case(op("createNodes", count=50), PODS), pod=SMALL_POD)

    def nodes(seed: int) -> list[str]:
        clock = ManualClock()
        whole = run_of(path, clock, seed=seed)
        run(whole.play(), clock)
        return [one.content["spec"]["nodeName"] for one in whole._cluster.objects("v1 Pod")]

    assert nodes(1) == nodes(1)
    assert nodes(1) != nodes(2)


SCENARIOS = Path(__file__).parents[2] / "benchmarks" / "scenarios"


def own_plans() -> list[Any]:
    """The plans of all scenarios in the repository."""
    errors = InputErrors()
    cases = read_files([str(SCENARIOS)], errors)
    errors.raise_if_any()
    return list(plan_all(cases, Selection(), Setting(Registry())))


def test_all_scenarios_of_the_repository_can_run() -> None:
    assert [one for one in own_plans() if not isinstance(one, Plan)] == []


@pytest.mark.parametrize(
    "one", [one for one in own_plans() if "short" in one.workload.labels], ids=lambda one: one.name
)
def test_all_scenarios_of_the_repository_end(one: Plan) -> None:
    clock = ManualClock()
    outcome = run(WorkloadRun(one, Registry(), clock).play(), clock)
    assert not outcome.failure
    (measured,) = outcome.measured
    # One of every eleven pods fits nowhere.
    expected = one.workload.params.get("pods", one.workload.params["nodes"])
    assert measured.pods == (100 if one.name.startswith("Unschedulable") else expected)
