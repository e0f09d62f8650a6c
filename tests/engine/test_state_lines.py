"""Entries of a state log as lines."""

import pytest

from bayplan.api.objects import NODE, POD, decode
from bayplan.engine.state_log import (
    AttemptStart,
    Decision,
    Entry,
    Head,
    StatesError,
    decoded_head,
    encoded_entries,
    encoded_head,
    entries_in,
)
from bayplan.ports import EventType, WatchEvent
from tests.adapters.manifests import node, pod

WIDGET = "example.com/v1 Widget"


def test_entries_are_read_as_they_were_written() -> None:
    widget = decode(WIDGET, {"metadata": {"name": "w", "uid": "u"}, "spec": {"size": 3}})
    node_with_field = decode(NODE, {**node(), "x": {"y": 1}}, declared=("x.y",))
    tolerating = pod(tolerations=[{"operator": "Exists"}], nodeName="n1")
    entries: list[Entry] = [
        WatchEvent(EventType.ADDED, NODE, node_with_field),
        WatchEvent(EventType.MODIFIED, POD, decode(POD, tolerating)),
        WatchEvent(EventType.DELETED, WIDGET, widget),
        AttemptStart(
            at_seconds=2.5, attempts={"u": 3}, sampling_starts={"default": 7}, record_count=4
        ),
        Decision("u", "n1"),
    ]
    read = list(entries_in(encoded_entries(entries).splitlines()))
    assert [encoded_entries([each]) for each in read] == [encoded_entries([e]) for e in entries]
    assert [each.object for each in read if isinstance(each, WatchEvent)] == [
        each.object for each in entries if isinstance(each, WatchEvent)
    ]


def test_the_first_line_has_the_count_of_records() -> None:
    assert decoded_head(encoded_head(Head(record_count=12))).record_count == 12


@pytest.mark.parametrize("line", [b"x", b"{}", encoded_entries([Decision("u")])])
def test_another_first_line_is_refused(line: bytes) -> None:
    with pytest.raises(StatesError):
        decoded_head(line)


def test_a_damaged_line_is_refused() -> None:
    with pytest.raises(StatesError):
        list(entries_in([b'{"line":"object","type":"ADDED","kind":"v1 Pod","object":[]}']))
