"""What fails by an error in a run: attempts, bindings, and calls of plugins that decide nothing.

A pod that fits nowhere is an answer. An exception, or the code Error, is a failure: what the run
says about the pod then says nothing about the cluster. Failures are read from the journal's
records, so whatever the engine records is counted, whoever caused it.
"""

from typing import final

from bayplan.framework.status import Code
from bayplan.journal import (
    AttemptRecord,
    BindingRecord,
    GateRecord,
    GroupRecord,
    NoteRecord,
    Record,
    subject_of,
)
from bayplan.sim.result import FailureResult

#: So many ways to fail are told apart; a further one counts as an earlier one of its plugin.
_WAYS_MAX = 20
_ERROR = "error"
_CODE_ERROR = str(Code.ERROR)


class _Way:
    """One way to fail."""

    __slots__ = ("count", "example", "message", "plugin")

    def __init__(self, plugin: str, example: str, message: str) -> None:
        self.plugin = plugin
        self.example = example
        self.message = message
        self.count = 0


@final
class Failures:
    """A journal sink."""

    def __init__(self) -> None:
        self._ways: dict[tuple[str, str], _Way] = {}

    def write(self, record: Record) -> None:
        failure = _failure(record)
        if failure is not None:
            plugin, message = failure
            self._way(plugin, subject_of(record), message).count += 1

    def _way(self, plugin: str, subject: str, message: str) -> _Way:
        own_name = subject.partition("/")[2] or subject
        key = plugin, message.replace(subject, "").replace(own_name, "")
        if key not in self._ways and len(self._ways) >= _WAYS_MAX:
            key = next((known for known in self._ways if known[0] == plugin), (plugin, ""))
        return self._ways.setdefault(key, _Way(plugin, subject, message))

    def results(self) -> tuple[FailureResult, ...]:
        """In the order of the first failures."""
        return tuple(
            FailureResult(
                plugin=way.plugin, count=way.count, example=way.example, message=way.message
            )
            for way in self._ways.values()
        )


def _failure(record: Record) -> tuple[str, str] | None:
    """Plugin and message of a record that tells of a failure."""
    if isinstance(record, AttemptRecord):
        return (record.plugin, record.message) if record.result == _ERROR else None
    if isinstance(record, BindingRecord | GateRecord):
        return (record.plugin, record.message) if record.code == _CODE_ERROR else None
    if isinstance(record, NoteRecord):
        return (record.plugin, record.text) if record.plugin else None
    assert isinstance(record, GroupRecord)
    return None
