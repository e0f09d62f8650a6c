"""Tables of pods by node and by message."""

import pytest

from bayplan.answers.amounts import pod_count
from bayplan.answers.pages import as_text
from bayplan.answers.pod_tables import messages_table, named_pods, nodes_table


@pytest.mark.parametrize(("count", "text"), [(0, "0 pods"), (1, "1 pod"), (1234, "1,234 pods")])
def test_one_pod_is_singular_and_other_counts_are_plural(count: int, text: str) -> None:
    assert pod_count(count) == text


def test_a_long_list_of_names_is_shortened() -> None:
    names = [f"default/a{number}" for number in range(7)]
    assert named_pods(names[:2]) == "2 pods: default/a0, default/a1"
    assert named_pods(names).endswith("default/a4 and 2 more")


def test_the_nodes_with_the_most_pods_come_first() -> None:
    lines = as_text(nodes_table({"n1": ["a"], "n2": ["b", "c"]})).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["n2", "n1"]
    many = {f"n{number:02}": ["a"] for number in range(14)}
    assert as_text(nodes_table(many)).endswith("and 2 pods on 2 more nodes")


def test_pods_with_one_message_are_one_row() -> None:
    text = as_text(
        [messages_table("pods", "why", {"a": "no room", "b": "no room", "c": "tainted"})]
    )
    assert "2   no room" in text
    assert "1   tainted" in text


def test_the_members_of_a_group_are_one_row() -> None:
    first = "group ml/g: 0 of 2 members fit; the 1st, ml/g-0: 0/3 nodes are available: 3 x."
    table = messages_table("pods", "why", {"ml/g-0": first, "ml/g-1": first})
    assert table.rows == [("2", "group ml/g: 0 of 2 members fit: 3 x", "ml/g-0, ml/g-1")]


def test_a_message_is_short_and_whole_with_wide() -> None:
    sentence = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available."
    short = messages_table("pods", "why", {"a/p10": sentence, "a/p9": sentence})
    assert short.rows == [("2", "3 lack cpu", "a/p9, a/p10")]
    assert messages_table("pods", "why", {"a": sentence}, is_wide=True).rows[0][1] == sentence
