"""The state that the parts of the engine share, and the serial executor."""

import pytest

from bayplan.api.objects import Condition
from bayplan.clock import ManualClock
from bayplan.engine.core import EngineCore, SerialExecutor
from bayplan.engine.outbox import NOTE_BYTES_MAX, cut
from bayplan.journal import Journal, MemorySink
from bayplan.ports import EmitEvent, ObjectReference, PatchPodStatus
from bayplan.testing import pod

# ---- engine state ---------------------------------------------------------------------------


UNTRUE = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no")


def state(raise_bugs: bool = False) -> tuple[EngineCore, MemorySink]:
    sink = MemorySink()
    return EngineCore(ManualClock(), 1, Journal([sink]), raise_bugs=raise_bugs), sink


# ---- events ---------------------------------------------------------------------------------


def test_an_event_names_its_pod_and_profile() -> None:
    engine, _ = state()
    engine.outbox.emit("bayplan", pod("p"), "Warning", "FailedScheduling", "Scheduling", "why")
    assert list(engine.outbox.effects) == [
        EmitEvent(
            ObjectReference("v1 Pod", "default", "p", "uid-default/p"),
            "Warning",
            "FailedScheduling",
            "Scheduling",
            "why",
            "bayplan",
        )
    ]


@pytest.mark.parametrize("letter", ["a", "é", "猫", "🐈"])
@pytest.mark.parametrize("length", [1, NOTE_BYTES_MAX // 4, NOTE_BYTES_MAX, NOTE_BYTES_MAX + 1])
@pytest.mark.parametrize("beginning", ["", "b"])
def test_a_long_note_is_cut_by_bytes(beginning: str, letter: str, length: int) -> None:
    text = beginning + letter * length
    result = cut(text, NOTE_BYTES_MAX)
    if len(text.encode()) <= NOTE_BYTES_MAX:
        assert result == text
    else:
        assert len(result.encode()) <= NOTE_BYTES_MAX
        assert len(result.encode()) > NOTE_BYTES_MAX - 4
        assert text.startswith(result.removesuffix(" ..."))


def test_a_cut_note_ends_as_in_upstream() -> None:
    assert cut("x" * 2000, 1024) == "x" * 1020 + " ..."


# ---- a pod's status -------------------------------------------------------------------------


def patches(engine: EngineCore) -> list[tuple[Condition | None, str | None]]:
    effects = [e for e in engine.outbox.effects if isinstance(e, PatchPodStatus)]
    engine.outbox.effects.clear()
    return [(patch.condition, patch.nominated_node_name) for patch in effects]


def test_a_condition_or_a_nomination_is_written() -> None:
    engine, _ = state()
    engine.outbox.patch_status(pod("p"), UNTRUE, None)
    engine.outbox.patch_status(pod("q"), None, "n1")
    assert patches(engine) == [(UNTRUE, None), (None, "n1")]


def test_an_unchanged_nomination_is_not_written() -> None:
    engine, _ = state()
    engine.outbox.patch_status(pod("p", nominated_node="n1"), None, "n1")
    engine.outbox.patch_status(pod("p", nominated_node="n1"), UNTRUE, "n1")
    engine.outbox.patch_status(pod("q"), None, "")
    assert patches(engine) == [(UNTRUE, None)]


def test_a_written_nomination_counts_before_the_api_reports_it() -> None:
    """Otherwise a nomination that is cleared at once would stay for ever."""
    engine, _ = state()
    engine.outbox.patch_status(pod("p"), None, "n1")
    engine.outbox.patch_status(pod("p"), None, "n1")
    engine.outbox.patch_status(pod("p"), UNTRUE, "")
    assert patches(engine) == [(None, "n1"), (UNTRUE, "")]


# ---- nominations ----------------------------------------------------------------------------


def test_a_pod_unknown_to_the_api_cannot_be_nominated() -> None:
    engine, _ = state()
    engine.nominator.add_nominated_pod(pod("p", nominated_node="n1"))
    assert engine.nominator.nominated_nodes() == []
    engine.cluster.pods["uid-default/p"] = pod("p")
    engine.nominator.add_nominated_pod(pod("p", nominated_node="n1"))
    assert engine.nominator.nominated_nodes() == ["n1"]


# ---- the serial executor --------------------------------------------------------------------


Failures = list[tuple[str, str]]


def begun(failures: Failures | None = None) -> SerialExecutor:
    failure_list: Failures = [] if failures is None else failures
    turns = SerialExecutor(lambda subject, problem: failure_list.append((subject, str(problem))))
    turns.start()
    return turns


def test_work_submitted_inside_a_turn_runs_after_it_in_order() -> None:
    turns, done = begun(), list[str]()

    def first() -> None:
        turns.run("b", second)
        turns.run("c", lambda: done.append("third"))
        done.append("first")

    def second() -> None:
        turns.run("d", lambda: done.append("fourth"))
        done.append("second")

    turns.run("a", first)
    assert done == ["first", "second", "third", "fourth"]


def test_observers_run_between_turns() -> None:
    turns, seen = begun(), list[str]()

    def first() -> None:
        turns.run("b", lambda: seen.append("second"))
        seen.append("first")

    turns.observe(lambda: seen.append("look"))
    turns.run("a", first)
    assert seen == ["first", "look", "second", "look"]


def test_work_before_the_start_is_deferred() -> None:
    done: list[int] = []
    turns = SerialExecutor(lambda subject, problem: None)
    turns.run("a", lambda: done.append(1))
    assert done == []
    turns.start()
    assert done == [1]


def test_a_failure_is_reported_and_the_remaining_work_runs() -> None:
    failures: Failures = []
    turns, done = begun(failures), list[int]()

    def fails() -> None:
        turns.run("later", lambda: done.append(1))
        raise ValueError("boom")

    turns.run("a", fails)
    assert (failures, done) == ([("a", "boom")], [1])


def test_the_failure_callback_may_end_the_run() -> None:
    def ends(subject: str, problem: Exception) -> None:
        raise problem

    def fails() -> None:
        raise ValueError("boom")

    turns, done = SerialExecutor(ends), list[int]()
    turns.start()
    with pytest.raises(ValueError, match="boom"):
        turns.run("a", fails)
    turns.run("b", lambda: done.append(1))
    assert done == [1]
