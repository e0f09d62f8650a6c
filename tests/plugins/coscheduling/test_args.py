"""CoschedulingArgs: both sets decode, and what is out of range is told."""

from typing import Any

import pytest

from bayplan.plugins.coscheduling import CoschedulingArgs
from tests.plugins.coscheduling_kit import coscheduling, nodes


def args(**given: Any) -> CoschedulingArgs:
    found = coscheduling(nodes(), **given).args
    assert isinstance(found, CoschedulingArgs)
    return found


def test_defaults_are_upstreams() -> None:
    found = CoschedulingArgs()
    assert (found.placement, found.wait_seconds, found.denied_seconds) == ("group", 60, 0)
    assert found.pod_group_reject_percentage == 10


def test_upstreams_set_decodes() -> None:
    given = {"permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 5}
    found = args(**given, podGroupRejectPercentage=0, kind="CoschedulingArgs")
    assert (found.wait_seconds, found.denied_seconds) == (10, 5)
    assert found.pod_group_reject_percentage == 0


def test_the_older_set_decodes() -> None:
    access = {"kubeMaster": "", "kubeConfigPath": "/etc/kubernetes/admin.conf"}
    found = args(permitWaitingTimeSeconds=10, deniedPGExpirationTimeSeconds=3, **access)
    assert (found.wait_seconds, found.denied_seconds) == (10, 3)


def test_no_waiting_time_is_the_default_one() -> None:
    assert args(permitWaitingTimeSeconds=0).wait_seconds == 60


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"permit_waiting_time_seconds": -1}, "permitWaitingTimeSeconds"),
        ({"pod_group_backoff_seconds": -1}, "podGroupBackoffSeconds"),
        ({"denied_pg_expiration_time_seconds": -1}, "deniedPGExpirationTimeSeconds"),
        ({"pod_group_reject_percentage": 101}, "podGroupRejectPercentage"),
        ({"pod_group_reject_percentage": -1}, "podGroupRejectPercentage"),
    ],
)
def test_what_is_out_of_range_is_told(given: dict[str, int], path: str) -> None:
    assert [found for found, _ in CoschedulingArgs(**given).problems()] == [path]


def test_the_bounds_are_in_range() -> None:
    for percentage in (0, 100):
        assert not list(CoschedulingArgs(pod_group_reject_percentage=percentage).problems())
