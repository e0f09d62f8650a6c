"""What is said of groups."""

import pytest

from bayplan.api.pod_groups import GroupKey
from bayplan.engine.group_sentences import ordinal, too_few_fit, waiting_for
from bayplan.state.pod_groups import GroupState

STATE = GroupState(GroupKey("scheduling.x-k8s.io", "default", "g"))


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (21, "21st")],
)
def test_members_are_counted_as_people_do(count: int, expected: str) -> None:
    assert ordinal(count) == expected


def test_a_group_without_an_object_is_not_found() -> None:
    assert waiting_for(STATE) == (
        "group default/g: PodGroup not found in scheduling.x-k8s.io (current pods number: 0)"
    )


def test_the_first_that_does_not_fit_is_explained() -> None:
    assert too_few_fit(STATE, 0, 1, "default/a", "no") == (
        "group default/g: 0 of 1 members fit; the 1st, default/a: no"
    )
