"""Each invariant of the fault simulation finds a fault that is planted into the scheduler."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.state import pods
from tests.sim.fault_plan import SEEDS_BY_DEFAULT, Plan
from tests.sim.invariants import INVARIANTS
from tests.sim.planted_faults import PLANTS, Plant
from tests.sim.shrinking import failure_of


@pytest.fixture(autouse=True)
def _shapes() -> Iterator[None]:
    """No compiled pod lives on from one planted fault to the next."""
    yield
    pods._shapes.clear()
    pods._shapes_by_spec.clear()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant that the plant names finds the fault. Other failures, for instance an assertion
    of the engine, do not count."""
    plant.apply(monkeypatch)
    failures = (failure_of(Plan.drawn(seed)) for seed in range(SEEDS_BY_DEFAULT))
    assert any(failure is not None and failure.name in plant.invariants for failure in failures)


def test_each_invariant_has_a_planted_fault_that_only_it_finds() -> None:
    proven = {plant.invariants[0] for plant in PLANTS if len(plant.invariants) == 1}
    assert proven == INVARIANTS.keys()


def test_the_page_about_faults_lists_each_invariant() -> None:
    page = Path("docs/faults.md").read_text(encoding="utf-8")
    missing = [
        name for name, meaning in INVARIANTS.items() if f"| {name} | {meaning} |" not in page
    ]
    assert not missing
