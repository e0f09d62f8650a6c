"""Names, keys, uids, labels and selectors as the API server checks them."""

from typing import Any

import pytest

from bayplan.adapters.embedded.field_validation import (
    ObjectKey,
    is_dns_label,
    is_dns_subdomain,
    key_of,
    label_selector,
    labels,
    node_selector,
    node_term,
    object_key,
    stable_suffix,
    stable_uid,
)
from bayplan.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
)
from bayplan.problems import Problem
from tests.adapters.manifests import node, pod

# ---- object names ---------------------------------------------------------------------------


def test_a_pod_without_namespace_is_in_default() -> None:
    bare = {**pod(), "metadata": {"name": "web"}}
    assert key_of(bare) == ObjectKey("v1 Pod", "default", "web")


def test_a_node_never_has_a_namespace() -> None:
    namespaced = {**node("a"), "metadata": {"name": "a", "namespace": "kube-system"}}
    assert (
        key_of(namespaced) == object_key("v1 Node", "other", "a") == ObjectKey("v1 Node", "", "a")
    )


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ObjectKey("apps/v1 Deployment", "shop", "web"), "Deployment shop/web"),
        (ObjectKey("v1 Node", "", "a"), "Node a"),
    ],
)
def test_a_key_has_a_readable_form(key: ObjectKey, text: str) -> None:
    assert str(key) == text


def test_a_uid_is_derived_from_key_and_ordinal_and_has_the_form_of_a_uid() -> None:
    key = ObjectKey("v1 Pod", "default", "web")
    uid = stable_uid(key, 0)
    assert uid == stable_uid(key, 0)
    assert [len(part) for part in uid.split("-")] == [8, 4, 4, 4, 12]
    different = {stable_uid(key, 1), stable_uid(ObjectKey("v1 Pod", "default", "web2"), 0)}
    assert uid not in different
    assert len(different) == 2


def test_suffixes_have_no_vowels_and_the_requested_length() -> None:
    suffix = stable_suffix("web", length=9)
    assert len(suffix) == 9
    assert not set(suffix) & set("aeiouy013")
    assert suffix == stable_suffix("web", length=9) != stable_suffix("web2", length=9)


# ---- selector validation --------------------------------------------------------------------


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
OPERATORS = "one of In, NotIn, Exists, DoesNotExist, Gt, Lt"


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (
            requirement("Inn", "a"),
            f'{PLACE}.operator: found "Inn", wanted {OPERATORS}; did you mean "In"?',
        ),
        (requirement(""), f"{PLACE}.operator: found nothing, wanted {OPERATORS}"),
        (requirement("In"), f"{PLACE}.values: found nothing, wanted at least one value for In"),
        (
            requirement("Exists", "a"),
            f"{PLACE}.values: found a list, wanted no values for Exists",
        ),
        (
            requirement("Gt", "1", "2"),
            f"{PLACE}.values: found a list, wanted exactly one value for Gt",
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


def test_absent_selectors_are_valid() -> None:
    assert list(label_selector(None, "s")) == list(node_selector(None, "s")) == []


@pytest.mark.parametrize(
    ("metadata_labels", "path"),
    [
        ({"app": "web", "example.com/app": ""}, None),
        ({"a b": "x"}, "metadata.labels"),
        ({"app": "-x"}, "metadata.labels.app"),
        ({"app": "x" * 64}, "metadata.labels.app"),
    ],
)
def test_labels_are_checked(metadata_labels: dict[str, str], path: str | None) -> None:
    assert [p.path for p in labels(metadata_labels, "metadata.labels")] == ([path] if path else [])


def test_names_are_dns_names() -> None:
    assert is_dns_subdomain("a.b-c.0")
    assert not any(map(is_dns_subdomain, ("", "A", "a..b", "a_b", "-a", "a" * 254, "a\n")))
    assert is_dns_label("kube-system")
    assert not any(map(is_dns_label, ("a.b", "a" * 64)))
