"""The report of a failure contains only the steps that matter."""

import pytest

from bayplan.plugins.node_resources_fit import NodeResourcesFit
from tests.sim.fault_plan import Plan
from tests.sim.invariants import name_of
from tests.sim.shrinking import Failure, failure_of, shrunk

SEEDS = 20
#: Two nodes or pods more than the minimum of the fault.
STEPS_MAX = 6


def first_failure(name: str) -> Failure:
    for seed in range(SEEDS):
        failure = failure_of(Plan.drawn(seed))
        if failure is not None and failure.name == name:
            return failure
    raise AssertionError(f"no seed violates {name}")


def test_a_planted_fault_shrinks_to_few_steps_that_fail_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NodeResourcesFit, "filter", lambda *_: ())
    monkeypatch.setattr(NodeResourcesFit, "filter_row", lambda *_: ())
    failure = first_failure("resources")
    small = shrunk(failure)
    assert len(small.plan.steps) <= STEPS_MAX < len(failure.plan.steps)
    verbs = {step.verb for step in small.plan.steps}
    assert "add_node" in verbs
    again = failure_of(small.plan)
    assert again == small
    assert str(small).splitlines()[-1].startswith("resources: at ")


def test_a_plan_without_a_step_leaves_the_other_steps_as_they_are() -> None:
    plan = Plan.drawn(3)
    every_other = Plan(plan.seed, plan.faults, plan.options, plan.steps[::2])
    numbers = {step.number for step in every_other.steps}
    assert numbers == set(range(0, len(plan.steps), 2))
    for smaller in plan.simpler():
        assert smaller.steps == plan.steps
        assert smaller != plan


def test_an_error_that_is_no_violation_is_named_by_its_first_words() -> None:
    assert name_of(ValueError("row 17 of 20 is gone for good")) == "ValueError: row of is gone"
