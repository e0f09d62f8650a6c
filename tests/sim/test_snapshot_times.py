"""Ages of a cluster that was read in."""

from typing import Any

import pytest

from bayplan.sim.snapshot_times import in_the_past
from tests.adapters.manifests import Content, pod


def stamped(created: Any, started: Any = None) -> Content:
    content = pod(status={"phase": "Running", "startTime": started})
    return {**content, "metadata": {**content["metadata"], "creationTimestamp": created}}


def times(*contents: Content) -> list[tuple[Any, Any]]:
    return [
        (one["metadata"]["creationTimestamp"], one["status"]["startTime"])
        for one in in_the_past(contents)
    ]


def test_the_newest_is_made_as_virtual_time_begins_and_the_others_stay_as_much_older() -> None:
    old = stamped("2026-11-01T10:00:00Z", "2026-11-01T10:00:05Z")
    new = stamped("2026-11-03T10:00:00+00:00", "2026-11-03T10:01:00Z")
    assert times(old, new) == [
        ("2025-12-29T23:59:00Z", "2025-12-29T23:59:05Z"),
        ("2025-12-31T23:59:00Z", "2026-01-01T00:00:00Z"),
    ]


def test_a_cluster_of_the_past_stays_as_it_is() -> None:
    old = stamped("2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z")
    assert in_the_past([old, pod()]) == [old, pod()]


@pytest.mark.parametrize("stamp", ["yesterday", 5, None, "", "2027-01-01"])
def test_what_is_no_time_stamp_is_left_alone_or_read_as_one(stamp: Any) -> None:
    (created, started) = times(stamped(stamp, "2020-01-01T00:00:00Z"))[0]
    assert created == ("2026-01-01T00:00:00Z" if stamp == "2027-01-01" else stamp)
    assert started is not None


def test_nothing_becomes_older_than_the_calendar() -> None:
    assert times(stamped("0001-01-01T00:00:00Z", "2027-01-01T00:00:00Z"))[0][0] == (
        "1970-01-01T00:00:00Z"
    )
