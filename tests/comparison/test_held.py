"""What pods hold while they wait."""

from pathlib import Path

import msgspec
import pytest

from bayplan.comparison.experiment import ConfigurationSpec, InputSpec
from bayplan.comparison.job import perform
from bayplan.comparison.planning import plan
from tests.comparison.kit import spec
from tests.examples.policies import EXAMPLES

GANGS = EXAMPLES / "gangs"


def metrics(folder: Path, config: str) -> dict[str, float]:
    wanted = msgspec.structs.replace(
        spec(folder, metrics=("held",)),
        inputs=(InputSpec(paths=(str(GANGS / "cluster.yaml"), str(GANGS / "jobs.yaml"))),),
        configurations=(ConfigurationSpec(name="one", file=str(GANGS / config)),),
    )
    [job] = plan(wanted, "test").jobs
    return perform(job).result.metrics


def test_a_group_placed_in_one_pass_holds_nothing_while_it_waits(tmp_path: Path) -> None:
    assert metrics(tmp_path, "one_pass.yaml") == {
        "held_cpu_hours": 0,
        "held_nvidia.com/gpu_hours": 0,
    }


def test_members_placed_one_by_one_hold_what_they_found(tmp_path: Path) -> None:
    """Four GPUs and four cpus each, a minute long at least."""
    found = metrics(tmp_path, "pod_by_pod.yaml")
    gpu_hours = found["held_nvidia.com/gpu_hours"]
    assert gpu_hours >= 4 / 60
    assert found["held_cpu_hours"] == pytest.approx(4 * gpu_hours)
