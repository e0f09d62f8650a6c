"""Labels and selectors as the API server checks them."""

from typing import Any

import pytest

from bayplan.adapters.embedded.selector_validation import (
    label_selector,
    labels,
    node_selector,
    node_term,
)
from bayplan.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
)
from bayplan.problems import Problem


def requirement(operator: str, *values: str, key: str = "zone") -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def term(*requirements: LabelSelectorRequirement, **fields: Any) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=requirements, **fields)


def of_node(one: LabelSelectorRequirement) -> list[str]:
    return [str(p) for p in node_selector(NodeSelector(node_selector_terms=(term(one),)), "s")]


def of_labels(one: LabelSelectorRequirement) -> list[Problem]:
    return list(label_selector(LabelSelector(match_expressions=(one,)), "s"))


@pytest.mark.parametrize(
    "one",
    [
        requirement("In", "a", "b"),
        requirement("NotIn", "a"),
        requirement("Exists"),
        requirement("DoesNotExist"),
        requirement("Gt", "5"),
        requirement(
            "Lt", "many"
        ),  # the value is parsed as a number only when the selector is evaluated
    ],
)
def test_selectors_valid_upstream_are_accepted(one: LabelSelectorRequirement) -> None:
    assert of_node(one) == []


PLACE = "s.nodeSelectorTerms[0].matchExpressions[0]"
NO_OPERATOR = "not a valid selector operator"


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (
            requirement("Inn", "a"),
            f'{PLACE}.operator: Invalid value: "Inn": {NO_OPERATOR}; did you mean "In"?',
        ),
        (requirement(""), f'{PLACE}.operator: Invalid value: "": {NO_OPERATOR}'),
        (
            requirement("In"),
            f"{PLACE}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            requirement("Exists", "a"),
            (
                f"{PLACE}.values: Forbidden: may not be specified when `operator` is 'Exists' or "
                "'DoesNotExist'"
            ),
        ),
        (
            requirement("Gt", "1", "2"),
            (
                f"{PLACE}.values: Required value: must be specified single value when `operator` "
                "is 'Lt' or 'Gt'"
            ),
        ),
    ],
)
def test_selectors_invalid_upstream_are_refused_with_a_message(
    one: LabelSelectorRequirement, message: str
) -> None:
    assert of_node(one) == [message]


def test_keys_and_values_are_checked() -> None:
    assert [p.path for p in of_labels(requirement("Exists", key="-bad-"))] == [
        "s.matchExpressions[0].key"
    ]
    assert [p.path for p in of_labels(requirement("In", "ok", "not ok"))] == [
        "s.matchExpressions[0].values[1]"
    ]


def test_numeric_operators_apply_to_nodes_only() -> None:
    assert [p.path for p in of_labels(requirement("Gt", "5"))] == ["s.matchExpressions[0].operator"]


def test_an_empty_list_of_terms_is_refused() -> None:
    assert [p.path for p in node_selector(NodeSelector(), "s")] == ["s.nodeSelectorTerms"]


def test_a_preferred_term_may_have_values_that_no_label_can_have() -> None:
    odd = term(requirement("In", "not ok"))
    assert list(node_term(odd, "s", checks_values=False)) == []
    assert len(list(node_term(odd, "s", checks_values=True))) == 1


@pytest.mark.parametrize(
    ("one", "field"),
    [
        (requirement("In", "n1", key="metadata.name"), None),
        (requirement("In", "n1", key="metadata.nam"), "key"),
        (requirement("Exists", key="metadata.name"), "operator"),
        (requirement("In", "n1", "n2", key="metadata.name"), "values"),
        (requirement("In", "N 1", key="metadata.name"), "values[0]"),
    ],
)
def test_field_selectors_of_a_node_select_its_name(
    one: LabelSelectorRequirement, field: str | None
) -> None:
    problems = node_term(NodeSelectorTerm(match_fields=(one,)), "s", checks_values=True)
    assert [p.path for p in problems] == ([f"s.matchFields[0].{field}"] if field else [])


@pytest.mark.parametrize(
    ("metadata_labels", "path"),
    [
        ({"app": "web", "example.com/app": ""}, None),
        ({"a b": "x"}, "metadata.labels"),
        ({"app": "-x"}, "metadata.labels"),
        ({"app": "x" * 64}, "metadata.labels"),
    ],
)
def test_labels_are_checked(metadata_labels: dict[str, str], path: str | None) -> None:
    assert [p.path for p in labels(metadata_labels, "metadata.labels")] == ([path] if path else [])
