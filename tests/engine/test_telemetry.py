"""Reports of the engine to the journal and to the metrics."""

from bayplan.clock import ManualClock
from bayplan.engine.telemetry import Telemetry
from bayplan.journal import BUG_NOTE, Journal, MemorySink, NoteRecord


def telemetry(*, raise_bugs: bool = False) -> tuple[Telemetry, MemorySink]:
    sink = MemorySink()
    return Telemetry(ManualClock(5.0), Journal([sink]), raise_bugs=raise_bugs), sink


def test_a_plugin_failure_is_counted_and_noted_under_its_name() -> None:
    reports, sink = telemetry()
    reports.plugin_failed("default/p", "Broken", "it raised")
    assert reports.metrics.value("bayplan_plugin_failures_total", plugin="Broken") == 1
    expected = NoteRecord(at_seconds=5.0, subject="default/p", text="it raised", plugin="Broken")
    assert list(sink.records) == [expected]


def test_a_bug_in_bayplan_has_its_own_kind_of_note() -> None:
    reports, sink = telemetry()
    reports.bug("default/p", ValueError("no"))
    (note,) = sink.records
    assert isinstance(note, NoteRecord)
    assert reports.metrics.value("bayplan_bugs_total") == 1
    assert note.text.startswith("bug in the scheduler: ")
    assert (note.kind, note.subject) == (BUG_NOTE, "default/p")
    assert "ValueError: no" in note.text


def test_without_a_sink_no_record_is_made() -> None:
    reports = Telemetry(ManualClock(), Journal())
    reports.note("default/p", "nobody reads this")
    assert not reports.journal.is_recording
