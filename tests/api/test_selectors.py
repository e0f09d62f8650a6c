"""Label selectors, node selector terms and tolerations against plain restatements of the rules."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api import selectors
from bayplan.api.objects import (
    LabelSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)


def selector(wire: dict[str, Any] | None) -> selectors.Selector:
    return selectors.label_selector(None if wire is None else msgspec.convert(wire, LabelSelector))


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


# ---- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "1", 1),
    ],
)
def test_text_that_go_reads_as_an_integer_is_an_integer(text: str, number: int) -> None:
    assert selectors.parse_int64(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "+", "1.0", "1_0", " 1", "1\n", "0x1", "９", "9223372036854775808", "9" * 5000],
)
def test_text_that_go_does_not_read_as_an_integer_is_refused(text: str) -> None:
    assert selectors.parse_int64(text) is None


@given(st.integers(min_value=-(2**64), max_value=2**64))
def test_only_64_bits_are_integers(number: int) -> None:
    expected = number if -(2**63) <= number < 2**63 else None
    assert selectors.parse_int64(str(number)) == expected


# ---- label selectors -----------------------------------------------------------------------


def test_a_missing_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert selector(None) == selectors.NOTHING
    assert selector({}) == selectors.EVERYTHING
    assert not selectors.NOTHING.matches({})
    assert selectors.EVERYTHING.matches({})
    assert selectors.EVERYTHING.is_everything
    assert not selectors.NOTHING.is_everything


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param({"matchExpressions": [condition("a", "In")]}, id="In needs values"),
        pytest.param({"matchExpressions": [condition("a", "NotIn")]}, id="NotIn needs values"),
        pytest.param({"matchExpressions": [condition("a", "Exists", "x")]}, id="Exists takes none"),
        pytest.param({"matchExpressions": [condition("a", "Gt", "1")]}, id="Gt is for nodes only"),
        pytest.param({"matchExpressions": [condition("a b", "Exists")]}, id="an invalid key"),
        pytest.param({"matchLabels": {"a": "b c"}}, id="an invalid value"),
    ],
)
def test_a_selector_that_does_not_parse_is_an_error(wire: dict[str, Any]) -> None:
    with pytest.raises(selectors.SelectorError):
        selector(wire)


def test_equal_selectors_are_equal_however_they_are_written() -> None:
    one = selector(
        {"matchLabels": {"a": "1"}, "matchExpressions": [condition("b", "In", "x", "y")]}
    )
    other = selector(
        {"matchExpressions": [condition("b", "In", "y", "x", "y"), condition("a", "In", "1")]}
    )
    assert one == other
    assert hash(one) == hash(other)


def test_the_labels_of_a_map_selector_are_not_checked() -> None:
    assert selectors.map_selector({"a": "not a value"}).matches({"a": "not a value"})
    assert selectors.map_selector({}) == selectors.EVERYTHING


def test_added_requirements_narrow_a_selector_and_a_selector_of_nothing_stays_one() -> None:
    more = [selectors.Requirement("b", "In", ("2",))]
    narrowed = selectors.with_requirements(selector({"matchLabels": {"a": "1"}}), more)
    assert narrowed == selector({"matchLabels": {"a": "1", "b": "2"}})
    assert selectors.with_requirements(selectors.NOTHING, more) == selectors.NOTHING


def test_the_index_entry_of_a_selector_is_one_that_every_match_carries() -> None:
    several = selector({"matchExpressions": [condition("a", "In", "1", "2")]})
    assert several.equality() is None
    assert selector({"matchLabels": {"b": "3"}}).equality() == ("b", "3")


KEYS = st.sampled_from(["a", "b"])
VALUES = st.sampled_from(["", "1", "2", "10", "x"])
LABELS = st.dictionaries(KEYS, VALUES)
CONDITIONS = st.one_of(
    st.builds(
        lambda key, operator, values: condition(key, operator, *values),
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, max_size=4),
    ),
    st.builds(condition, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
COMPARISONS = st.builds(
    condition, KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["1", "2", "007"])
)


def is_true(wire: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether the labels meet one condition, by the plain rules."""
    value, expected = labels.get(wire["key"]), wire["values"]
    match wire["operator"]:
        case "In":
            return value is not None and value in expected
        case "NotIn":
            return value is None or value not in expected
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.isdigit() and int(value) > int(expected[0])
        case _:
            return value is not None and value.isdigit() and int(value) < int(expected[0])


@given(st.dictionaries(KEYS, VALUES), st.lists(CONDITIONS, max_size=3), LABELS)
def test_a_selector_matches_if_all_conditions_are_true(
    pairs: dict[str, str], conditions: list[dict[str, Any]], labels: dict[str, str]
) -> None:
    expected = pairs.items() <= labels.items() and all(is_true(c, labels) for c in conditions)
    result = selector({"matchLabels": pairs, "matchExpressions": conditions})
    assert result.matches(labels) == expected
    pair = result.equality()
    assert pair is None or not expected or labels[pair[0]] == pair[1]


# ---- node selector terms -------------------------------------------------------------------


@given(st.lists(st.one_of(CONDITIONS, COMPARISONS), max_size=3), LABELS)
def test_a_node_term_matches_if_all_conditions_are_true(
    conditions: list[dict[str, Any]], labels: dict[str, str]
) -> None:
    term = selectors.node_term(msgspec.convert({"matchExpressions": conditions}, NodeSelectorTerm))
    expected = bool(conditions) and all(is_true(c, labels) for c in conditions)
    assert term.matches(labels, "n1") == expected


@pytest.mark.parametrize(
    ("fields", "matching"),
    [
        pytest.param([condition("metadata.name", "In", "n1")], {"n1"}, id="one node"),
        pytest.param([condition("metadata.name", "NotIn", "n1")], {"n2"}, id="any other"),
        pytest.param([condition("spec.foo", "In", "x")], set(), id="no node has other fields"),
        pytest.param(
            [condition("spec.foo", "In", "")], {"n1", "n2"}, id="other fields read as empty"
        ),
        pytest.param(
            [condition("spec.foo", "NotIn", "x")], {"n1", "n2"}, id="an empty field differs from x"
        ),
        pytest.param(
            [condition("spec.foo", "NotIn", "")], set(), id="an empty field equals the empty value"
        ),
    ],
)
def test_conditions_on_fields(fields: list[dict[str, Any]], matching: set[str]) -> None:
    term = selectors.node_term(msgspec.convert({"matchFields": fields}, NodeSelectorTerm))
    assert {name for name in ("n1", "n2") if term.matches({}, name)} == matching
    assert not term.is_empty


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(
            {"matchExpressions": [condition("a", "Gt", "1", "1")]}, id="Gt takes one value"
        ),
        pytest.param({"matchExpressions": [condition("a", "Lt", "x")]}, id="Lt takes a number"),
        pytest.param({"matchExpressions": [condition("a", "Foo", "x")]}, id="an unknown operator"),
        pytest.param(
            {"matchFields": [condition("metadata.name", "Exists")]}, id="Exists is not for fields"
        ),
        pytest.param(
            {"matchFields": [condition("metadata.name", "In")]}, id="a field without a value"
        ),
        pytest.param(
            {"matchFields": [condition("metadata.name", "In", "a", "a")]},
            id="a field with two values",
        ),
    ],
)
def test_a_node_term_that_does_not_parse_matches_nothing_and_has_an_error(
    wire: dict[str, Any],
) -> None:
    term = selectors.node_term(msgspec.convert(wire, NodeSelectorTerm))
    assert term.error
    assert not term.is_empty
    assert not term.matches({"a": "2"}, "a")


def test_preferred_terms_that_are_empty_or_weigh_nothing_are_left_out() -> None:
    wire = [
        {"weight": 1, "preference": {}},
        {"weight": 0, "preference": {"matchExpressions": [condition("a", "Exists")]}},
        {"weight": 5, "preference": {"matchExpressions": [condition("a", "Exists")]}},
        {"weight": 7, "preference": {"matchExpressions": [condition("a", "Foo")]}},
    ]
    terms = selectors.preferred_terms(msgspec.convert(wire, tuple[PreferredSchedulingTerm, ...]))
    assert [(t.weight, t.term.error is None) for t in terms] == [(5, True), (7, False)]
    assert selectors.preferred_terms(None) == ()


# ---- taints --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        pytest.param({"operator": "Exists"}, True, id="Exists without key covers every taint"),
        pytest.param(
            {"key": "k", "operator": "Exists", "value": "no"}, True, id="Exists covers every value"
        ),
        pytest.param({"key": "k", "value": "v"}, True, id="no operator means Equal"),
        pytest.param({"key": "k", "operator": "Equal", "value": "v"}, True, id="Equal"),
        pytest.param(
            {"key": "k", "value": "v", "effect": "NoSchedule"}, True, id="the same effect"
        ),
        pytest.param({"value": "v"}, True, id="a value without a key"),
        pytest.param({"key": "k", "value": "w"}, False, id="another value"),
        pytest.param({"key": "k"}, False, id="no value means the empty value"),
        pytest.param({"key": "l", "operator": "Exists"}, False, id="another key"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "k", "operator": "Gt", "value": "v"}, False, id="Gt is an alpha gate"),
    ],
)
def test_tolerations_cover_taints(toleration: dict[str, str], covered: bool) -> None:
    taint = Taint(key="k", value="v", effect="NoSchedule")
    assert selectors.tolerates(msgspec.convert(toleration, Toleration), taint) is covered


def test_only_taints_that_count_can_be_the_first_untolerated_taint() -> None:
    soft, hard, covered = (
        Taint(key="soft", effect="PreferNoSchedule"),
        Taint(key="hard", effect="NoSchedule"),
        Taint(key="covered", effect="NoSchedule"),
    )
    tolerations = [Toleration(key="covered", operator="Exists")]

    def counts(taint: Taint) -> bool:
        return taint.effect == "NoSchedule"

    assert selectors.first_untolerated([soft, covered, hard], tolerations, counts) == hard
    assert selectors.first_untolerated([soft, covered], tolerations, counts) is None


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a/b/c", "A/b", "a" * 64, "a" * 254 + "/b", "-a", "a..b/c"]
)
def test_invalid_label_keys(key: str) -> None:
    assert not selectors.is_label_key(key)
