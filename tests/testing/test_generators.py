"""All drawn objects come from one generator and one vocabulary."""

import msgspec

from bayplan.api.objects import HOSTNAME_LABEL, LabelSelector, NodeSelectorTerm
from bayplan.api.selectors import label_selector, node_term
from bayplan.rng import stream
from bayplan.testing.generators import READ_KEY_VALUES, Draws, Vocabulary


def draws(name: str = "x") -> Draws:
    return Draws(stream(1, name))


def test_generators_with_one_seed_draw_equally() -> None:
    assert [draws().happens(0.5) for _ in range(9)] == [draws().happens(0.5) for _ in range(9)]


def test_some_draws_distinct_values() -> None:
    drawn = draws()
    for _ in range(50):
        values = drawn.some("abc", 2)
        assert len(values) <= 2
        assert len(set(values)) == len(values)


def test_several_draws_at_least_one_value() -> None:
    drawn = draws()
    assert {len(drawn.several(lambda: 1, 3)) for _ in range(50)} == {1, 2, 3}


def test_requested_keys_get_values_of_all_kinds() -> None:
    vocabulary = Vocabulary().with_keys(node_labels=frozenset({"price", "disktype"}))
    assert vocabulary.node_labels["price"] == READ_KEY_VALUES
    assert vocabulary.node_labels["disktype"] == ("ssd", "hdd")


def test_a_hostname_is_a_name() -> None:
    vocabulary = Vocabulary().with_keys(node_labels=frozenset({HOSTNAME_LABEL}))
    assert HOSTNAME_LABEL not in vocabulary.node_labels


def test_drawn_selectors_can_be_parsed() -> None:
    drawn = draws()
    for _ in range(100):
        term = node_term(msgspec.convert(drawn.node_term(), NodeSelectorTerm))
        assert term.error is None
        label_selector(msgspec.convert(drawn.label_selector(), LabelSelector))
