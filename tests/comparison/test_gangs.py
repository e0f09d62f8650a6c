"""Groups of pods, from enough members being there to enough members being bound."""

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
        spec(folder, metrics=("gangs",)),
        inputs=(InputSpec(paths=(str(GANGS / "cluster.yaml"), str(GANGS / "jobs.yaml"))),),
        configurations=(ConfigurationSpec(name="one", file=str(GANGS / config)),),
    )
    [job] = plan(wanted, "test").jobs
    return perform(job).result.metrics


def test_the_second_of_two_jobs_waits_for_the_first_one_to_end(tmp_path: Path) -> None:
    """GPUs are free after five minutes, and a job takes ten."""
    assert metrics(tmp_path, "one_pass.yaml") == pytest.approx(
        {
            "gangs_placed": 2,
            "gangs_waiting": 0,
            "gang_waiting_seconds_mean": 600,
            "gang_waiting_seconds_p50": 600,
            "gang_waiting_seconds_p95": 870,
            "gang_waiting_seconds_max": 900,
        }
    )


def test_groups_that_never_ran_are_counted_and_have_no_span(tmp_path: Path) -> None:
    found = metrics(tmp_path, "pod_by_pod.yaml")
    assert found == {"gangs_placed": 0, "gangs_waiting": 2}


def test_where_there_are_no_groups_nothing_is_said(tmp_path: Path) -> None:
    [packed, _] = plan(spec(tmp_path, metrics=("gangs",)), "test").jobs
    assert perform(packed).result.metrics == {}
