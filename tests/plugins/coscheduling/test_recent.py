"""Recent: each group for the same time, and not a moment longer."""

from bayplan.api.pod_groups import GroupKey
from bayplan.plugins.coscheduling.recent import Recent

A, B = GroupKey("g", "default", "a"), GroupKey("g", "default", "b")


def test_a_group_is_remembered_until_its_time_is_over() -> None:
    recent = Recent(3.0)
    recent.note(A, 10.0)
    assert [recent.has(A, at) for at in (10.0, 12.9, 13.0)] == [True, True, False]
    assert not recent.has(B, 10.0)


def test_noting_it_again_does_not_extend_that() -> None:
    recent = Recent(3.0)
    recent.note(A, 0.0)
    recent.note(A, 2.0)
    assert not recent.has(A, 3.0)


def test_after_that_it_may_be_noted_anew() -> None:
    recent = Recent(3.0)
    recent.note(A, 0.0)
    recent.note(A, 3.0)
    assert recent.has(A, 5.9)


def test_a_group_may_be_dropped() -> None:
    recent = Recent(3.0)
    recent.note(A, 0.0)
    recent.drop(A)
    recent.drop(B)
    assert not recent.has(A, 0.0)


def test_zero_seconds_remember_nothing() -> None:
    recent = Recent(0.0)
    recent.note(A, 0.0)
    assert not recent.has(A, 0.0)
    assert len(recent) == 0


def test_groups_leave_nothing_behind() -> None:
    recent = Recent(3.0)
    for second in range(100):
        recent.note(GroupKey("g", "default", str(second)), float(second))
    assert len(recent) == 3
