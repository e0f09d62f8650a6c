"""Which pods an affinity term selects."""

from typing import Any

import msgspec
import pytest

from bayplan.api.affinity import AffinityTerm, affinity_term, compile_terms
from bayplan.api.objects import PodAffinity, PodAffinityTerm

BAD = {"labelSelector": {"matchLabels": {"app": "not a value"}}, "topologyKey": "zone"}
GOOD = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(**wire: Any) -> AffinityTerm:
    """The term of a pod in namespace a."""
    return affinity_term(msgspec.convert(wire, PodAffinityTerm), "a")


@pytest.mark.parametrize(
    ("wire", "selected"),
    [
        pytest.param({"labelSelector": {}}, {"a"}, id="the pod's own namespace"),
        pytest.param({}, set(), id="no selector selects no pod"),
        pytest.param({"labelSelector": {}, "namespaces": ["b"]}, {"b"}, id="the listed namespaces"),
        pytest.param(
            {"labelSelector": {}, "namespaceSelector": {}}, {"a", "b"}, id="all namespaces"
        ),
        pytest.param(
            {"labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "b"}}},
            {"b"},
            id="the selected namespaces without the pod's own",
        ),
        pytest.param(
            {
                "labelSelector": {},
                "namespaces": ["a"],
                "namespaceSelector": {"matchLabels": {"team": "b"}},
            },
            {"a", "b"},
            id="the listed and the selected namespaces",
        ),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "db"}}},
            set(),
            id="no pod has the labels",
        ),
    ],
)
def test_a_term_selects_pods_by_namespace_and_labels(
    wire: dict[str, Any], selected: set[str]
) -> None:
    compiled = term(**wire)
    results = {n for n in ("a", "b") if compiled.matches(n, {"app": "web"}, {"team": n})}
    assert results == selected


def test_label_keys_to_match_are_ignored_because_the_api_server_merges_them() -> None:
    with_keys = term(labelSelector={}, matchLabelKeys=["app"], mismatchLabelKeys=["x"])
    assert with_keys == term(labelSelector={})


def compiled(wire: dict[str, Any] | None) -> tuple[Any, list[str]]:
    errors: list[str] = []
    affinity = None if wire is None else msgspec.convert(wire, PodAffinity)
    return compile_terms(affinity, "a", "spec.x", errors), errors


def test_an_invalid_term_is_reported_and_empties_its_own_list_only() -> None:
    wire = {REQUIRED: [GOOD, BAD], PREFERRED: [{"weight": 3, "podAffinityTerm": GOOD}]}
    terms, errors = compiled(wire)
    assert terms.required == ()
    assert len(terms.preferred) == 1
    assert errors == ["spec.x.required[1]: 'not a value' is no label value"]


def test_an_invalid_preferred_term_empties_the_list_of_preferred_terms() -> None:
    bad = {**GOOD, "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}
    wire = [{"weight": weight, "podAffinityTerm": each} for weight, each in ((1, GOOD), (2, bad))]
    terms, errors = compiled({REQUIRED: [GOOD], PREFERRED: wire})
    assert terms.preferred == ()
    assert len(terms.required) == 1
    assert errors == ['spec.x.preferred[1]: "Foo" is not a valid label selector operator']
