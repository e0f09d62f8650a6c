"""Words and tables that several answers share."""

import pytest

from bayplan.pages import as_text
from bayplan.whatif.text import (
    Answer,
    WaitingPods,
    left_over_rows,
    named_pods,
    node_rows,
    note_lines,
    pod_count,
)


@pytest.mark.parametrize(("count", "text"), [(0, "0 pods"), (1, "1 pod"), (1234, "1,234 pods")])
def test_one_pod_is_singular_and_other_counts_are_plural(count: int, text: str) -> None:
    assert pod_count(count) == text


def test_a_long_list_of_names_is_shortened() -> None:
    names = [f"default/a{number}" for number in range(7)]
    assert named_pods(names[:2]) == "2 pods: default/a0, default/a1"
    assert named_pods(names).endswith("default/a4 and 2 more")


def test_the_nodes_with_the_most_pods_come_first() -> None:
    lines = as_text(node_rows({"n1": ["a"], "n2": ["b", "c"]})).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["n2", "n1"]
    many = {f"n{number:02}": ["a"] for number in range(14)}
    assert as_text(node_rows(many)).endswith("and 2 pods on 2 more nodes")


def test_pods_with_one_message_are_one_row() -> None:
    text = as_text(left_over_rows({"a": "no room", "b": "no room", "c": "tainted"}))
    assert "2   no room" in text
    assert "1   tainted" in text


def test_pods_that_wait_are_noted() -> None:
    assert list(WaitingPods(placed=1, waiting=2).lines()) == [
        "1 pod of the cluster without a node: placed first, as its scheduler would",
        "2 pods of the cluster without a node: no room, still waiting",
    ]
    assert list(WaitingPods(waiting=2, is_ignored=True).lines()) == [
        "2 pods of the cluster without a node: not tried"
    ]
    assert note_lines(WaitingPods().lines()) == []
    assert as_text(note_lines(["a note"])) == "\na note"


def test_the_base_class_of_answers_has_no_text() -> None:
    with pytest.raises(NotImplementedError):
        str(Answer())
