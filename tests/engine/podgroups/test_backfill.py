"""The nodes of a reservation. test_reservations.py tests the consequences."""

from types import SimpleNamespace
from typing import Any

import pytest

from bayplan.api.pod_groups import GroupKey
from bayplan.clock import ManualClock
from bayplan.engine.podgroups.backfill import DepartureOrder, find_reservation
from bayplan.state.pods import PodInfo
from bayplan.testing import pod

KEY = GroupKey("x", "default", "g")


class TrialOfNames:
    """A trial that contains only the names of placed pods."""

    def __init__(self, pods: list[PodInfo]) -> None:
        self.here = {each.name: each for each in pods}
        self._gone: list[PodInfo] = []

    def remove(self, gone: PodInfo) -> None:
        del self.here[gone.name]
        self._gone.append(gone)

    def undo_last(self) -> None:
        back = self._gone.pop()
        self.here[back.name] = back


def ending(name: str, seconds: float | None, node: str) -> PodInfo:
    annotations = {} if seconds is None else {"bayplan.dev/duration": str(seconds)}
    return pod(name, annotations=annotations, node=node)


def reserved(pods: list[PodInfo], needs: set[str]) -> tuple[Any, TrialOfNames]:
    """The reservation of a group that fits when the pods of these nodes have ended."""
    trial: Any = TrialOfNames(pods)
    nodes = {each.node_name for each in pods if each.name in needs}

    def place() -> Any:
        if needs & set(trial.here):
            return None
        placed = [SimpleNamespace(pod=SimpleNamespace(node_name=name)) for name in nodes]
        return SimpleNamespace(placed=placed, undo=lambda: None)

    departures = DepartureOrder(trial, pods, KEY, ManualClock())
    reservation = find_reservation(KEY, 5, place, departures, widen=frozenset)
    departures.depart(0)
    return reservation, trial


PODS = [
    ending("d", None, "n4"),
    ending("c", 3, "n3"),
    ending("a", 1, "n1"),
    ending("b", 2, "n2"),
]


@pytest.mark.parametrize(
    ("needs", "nodes", "start"),
    [
        pytest.param({"a"}, {"n1"}, 1, id="one pod"),
        pytest.param({"a", "b"}, {"n1", "n2"}, 2, id="two pods"),
        pytest.param({"c"}, {"n3"}, 3, id="the last pod to end"),
        pytest.param({"a", "d"}, {"n1", "n4"}, float("inf"), id="a pod of unknown duration"),
    ],
)
def test_a_reservation_starts_when_its_last_victim_has_ended(
    needs: set[str], nodes: set[str], start: float
) -> None:
    result, trial = reserved(PODS, needs)
    assert (result.nodes, result.start_seconds, result.priority) == (nodes, start, 5)
    assert set(trial.here) == set("abcd")


@pytest.mark.parametrize("pods", [PODS, []], ids=["pods", "no pod in the cluster"])
def test_a_group_that_fits_nowhere_gets_no_reservation_and_the_trial_is_undone(
    pods: list[PodInfo],
) -> None:
    trial: Any = TrialOfNames(pods)
    departures = DepartureOrder(trial, pods, KEY, ManualClock())
    assert find_reservation(KEY, 0, lambda: None, departures, widen=frozenset) is None
    departures.depart(0)
    assert set(trial.here) == {each.name for each in pods}
