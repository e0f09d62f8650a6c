"""The order of activeQ, kept safe from the plugin that decides it."""

from typing import Any

import pytest

from bayplan.engine.queue_order import QueueOrder
from bayplan.framework.interface import QueuedPodInfo
from bayplan.journal import AttemptRecord
from bayplan.testing import pod
from tests.engine.kit import Engine, waiting_pod
from tests.framework.answering import answering, made

Failures = list[tuple[str, str, str]]


def order(key: Any, failures: Failures | None = None) -> QueueOrder:
    told: Failures = [] if failures is None else failures

    def failed(queued: QueuedPodInfo, plugin: str, error: BaseException) -> None:
        told.append((queued.pod.name, plugin, str(error)))

    return QueueOrder(made(answering("Sort", key=key)), failed)


def queued(name: str) -> QueuedPodInfo:
    return QueuedPodInfo(pod(name), 0.0)


def test_pods_are_in_the_order_of_their_keys() -> None:
    by_name = order(lambda each: each.pod.name)
    assert sorted(map(queued, "cab"), key=by_name)[0].pod.name == "a"


def test_a_pod_whose_key_fails_comes_after_all_others() -> None:
    def key(each: QueuedPodInfo) -> int:
        return {"a": 3, "b": 1}[each.pod.name]

    failures: Failures = []
    found = sorted(map(queued, "xab"), key=order(key, failures))
    assert [each.pod.name for each in found] == ["b", "a", "x"]
    assert failures == [("x", "Sort", "'x'")]


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        pytest.param(1, 2.5, True, id="numbers of any kind"),
        pytest.param((1, "a"), (0.5, "b"), True, id="tuples of the same"),
        pytest.param(1, "a", False, id="a number and a text"),
        pytest.param((1, 2), (1, None), False, id="deep inside"),
        pytest.param((1,), (1, 2), False, id="of another length"),
        pytest.param(1, None, False, id="nothing"),
    ],
)
def test_all_keys_must_be_of_one_kind(first: Any, second: Any, fits: bool) -> None:
    keys, failures = {"a": first, "b": second}, Failures()
    by = order(lambda each: keys[each.pod.name], failures)
    assert by(queued("a")) == (0, first)
    assert by(queued("b")) == ((0, second) if fits else (1, 0))
    assert bool(failures) is not fits


def test_keys_that_cannot_be_compared_at_all_are_refused() -> None:
    failures: Failures = []
    by = order(lambda each: object(), failures)
    assert [by(queued("a")), by(queued("b"))] == [(1, 0), (1, 0)]
    assert len(failures) == 2


def test_a_failing_queue_sort_stops_neither_the_queue_nor_the_pod() -> None:
    def key(each: QueuedPodInfo) -> int:
        if each.pod.name == "odd":
            raise ValueError("no idea")
        return each.sequence

    sort = answering("Sort", key=key)
    engine = Engine(classes=[sort], queue_sort="Sort")
    engine.add(waiting_pod("odd"), waiting_pod("even"))
    engine.run()
    records = engine.journal.records
    tried = [record.pod for record in records if isinstance(record, AttemptRecord)]
    assert tried == ["default/even", "default/odd"]
    assert any('running QueueSort plugin "Sort": ValueError: no idea' in t for t in engine.texts())
    assert engine.metric("bayplan_plugin_failures_total", plugin="Sort") >= 1
