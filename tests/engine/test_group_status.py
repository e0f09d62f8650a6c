"""How a group stands."""

import pytest

from bayplan.api.objects import decode
from bayplan.api.pod_groups import GroupKey, compiled
from bayplan.engine.group_status import phase_of
from bayplan.state.pod_groups import GroupState, Standing
from bayplan.testing import api_pod

KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"


def _state(bound: int, running: int, succeeded: int, failed: int, pending: int) -> GroupState:
    """``bound``: members that have, or had, a node."""
    content = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
    group = compiled(KIND, decode(KIND, content))
    state = GroupState(GroupKey("scheduling.x-k8s.io", "default", "g"), group)
    counts = {
        Standing.BOUND: bound - running - succeeded - failed,
        Standing.RUNNING: running,
        Standing.SUCCEEDED: succeeded,
        Standing.FAILED: failed,
        Standing.PENDING: pending,
    }
    for standing, count in counts.items():
        for index in range(count):
            name = f"{standing.value}-{index}"
            state.sort_in(name, api_pod(name), standing)
    return state


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0, 0, 3), "Pending"),
        ((3, 1, 0, 0, 0), "Scheduling"),
        ((3, 3, 0, 0, 0), "Running"),
        ((3, 2, 1, 0, 0), "Running"),
        ((3, 0, 3, 0, 0), "Finished"),
        ((3, 2, 0, 1, 0), "Failed"),
        pytest.param((3, 2, 0, 1, 1), "Scheduling", id="a failed member has its replacement"),
    ],
)
def test_the_phase_follows_from_the_counts(
    counts: tuple[int, int, int, int, int], expected: str
) -> None:
    assert phase_of(_state(*counts)) == expected
