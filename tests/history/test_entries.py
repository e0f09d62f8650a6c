"""Entries of a log as lines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.adapters.embedded.json_merge import difference, merge_patch
from bayplan.api.objects import NODE, POD, decode
from bayplan.history.entries import (
    AttemptStart,
    Decision,
    Entry,
    Head,
    LineWriter,
    ObjectChange,
    Origin,
    QueueLengths,
    StatesError,
    decoded_head,
    encoded_head,
    entries_in,
)
from bayplan.ports import EventType
from tests.kit.manifests import node, pod

WIDGET = "example.com/v1 Widget"
ORIGIN = Origin(
    profiles=("default-scheduler",),
    queue_names=("active",),
    wake_events={"NodeName": ("Node: added",)},
    declared_fields={NODE: ("x.y",)},
)


def change(event: EventType, kind: str, content: Any, *, has_content: bool = True) -> ObjectChange:
    return ObjectChange(
        at_seconds=1.5,
        type=event,
        kind=kind,
        object=decode(kind, content, declared=dict(ORIGIN.declared_fields).get(kind, ())),
        version=7,
        content=content if has_content else None,
    )


def identified(content: Any, uid: str) -> Any:
    return {**content, "metadata": {**content["metadata"], "uid": uid}}


@pytest.mark.parametrize("has_content", [True, False])
def test_entries_are_read_as_they_were_written(has_content: bool) -> None:
    first, second = identified(pod("a"), "a"), identified(pod("b", labels={"x": "y"}), "b")
    bound = {**first, "spec": {**first["spec"], "nodeName": "n1"}}
    widget = {"metadata": {"name": "w", "uid": "u"}, "spec": {"size": 3}}
    entries: list[Entry] = [
        ORIGIN,
        *(
            change(event, kind, content, has_content=has_content)
            for event, kind, content in (
                (EventType.ADDED, NODE, {**identified(node(), "n"), "x": {"y": 1}}),
                (EventType.ADDED, POD, first),
                (EventType.ADDED, POD, second),
                (EventType.MODIFIED, POD, bound),
                (EventType.ADDED, WIDGET, widget),
                (EventType.DELETED, WIDGET, widget),
                (EventType.DELETED, POD, second),
            )
        ),
        AttemptStart(
            at_seconds=2.5, attempts={"a": 3}, sampling_starts={"d": 7}, learned_versions={POD: 4}
        ),
        Decision("a", "n1"),
        QueueLengths(3.0, (4,)),
    ]
    assert list(entries_in(LineWriter().lines(entries).splitlines(keepends=True))) == entries


_CONTENTS = st.recursive(
    st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(*[st.dictionaries(st.sampled_from("abc"), _CONTENTS, max_size=3)] * 2)
def test_a_difference_leads_from_one_content_to_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert merge_patch(before, difference(before, after)) == after
    assert (difference(before, after) == {}) == (before == after)


def test_pods_of_one_template_differ_in_their_names() -> None:
    lines = LineWriter()
    for name in ("a", "b"):
        added = change(EventType.ADDED, POD, identified(pod(name), name))
        line = lines.lines([added])
    assert line == (b'["object",1.5,"ADDED","v1 Pod","",7,{"metadata":{"name":"b","uid":"b"}}]\n')


def test_the_first_line_says_what_came_before() -> None:
    head = Head(at_seconds=2.0, entry_count=5, record_count=12, checkpoint_count=3)
    assert decoded_head(encoded_head(head)) == head


@pytest.mark.parametrize("line", [b"x", b"{}", b'["decision","u","",""]', b'["head",0.0,0,0,-1]'])
def test_another_first_line_is_refused(line: bytes) -> None:
    with pytest.raises(StatesError):
        decoded_head(line)


@pytest.mark.parametrize(
    "line",
    [
        b'["object",0.0,"ADDED","v1 Pod","",1,[]]',
        b'["object",0.0,"ADDED","v1 Pod","",1,{"spec":5}]',
        b'["object",0.0,"MODIFIED","v1 Pod","u",1,{}]',
        b'["object",0.0,"DELETED","v1 Pod","u",1,null]',
        b'["object",0.0,"ADDED","v1 Node","",1,{"metadata":5}]',
        b'["queues",0.0,[1]]',
        b'["decoded",0.0,"ADDED","v1 Pod",1,[]]',
        b'["object",0.0,"ADDED","v1 Pod","",1,' + b'{"a":' * 5000,
    ],
)
def test_a_damaged_line_is_refused(line: bytes) -> None:
    with pytest.raises(StatesError):
        list(entries_in([line]))
