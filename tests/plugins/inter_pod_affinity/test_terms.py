"""The pods that a pod's own terms select."""

from typing import Any, cast

import pytest

from bayplan.api.selectors import map_selector
from bayplan.framework.handle import Objects
from bayplan.plugins.inter_pod_affinity.terms import own_terms
from bayplan.state.domain_counts import PodSet
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.plugins.affinity_kit import Namespaces
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted

WEB, FRONT = {"app": "web"}, {"tier": "front"}
NAMESPACES = cast(Objects, Namespaces({"default": {}, "one": {"team": "a"}, "two": {"team": "a"}}))
TEAM_A = {"matchLabels": {"team": "a"}}


def near(*terms: dict[str, Any]) -> PodInfo:
    return pod(affinity={"podAffinity": {REQUIRED: list(terms)}})


@pytest.mark.parametrize(
    ("where", "namespaces"),
    [
        pytest.param({}, {"default"}, id="its own namespace"),
        pytest.param({"namespaces": ["x", "y"]}, {"x", "y"}, id="listed namespaces"),
        pytest.param({"namespaceSelector": {}}, None, id="all namespaces"),
        pytest.param({"namespaceSelector": TEAM_A}, {"one", "two"}, id="selected namespaces"),
        pytest.param(
            {"namespaces": ["x"], "namespaceSelector": TEAM_A},
            {"x", "one", "two"},
            id="listed and selected namespaces",
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "z"}}},
            set[str](),
            id="a namespace that does not exist",
        ),
    ],
)
def test_namespaces_of_a_term(where: dict[str, Any], namespaces: set[str] | None) -> None:
    (want,) = own_terms(near(term(WEB, **where))).together
    expected = frozenset(namespaces) if namespaces is not None else None
    assert want.pods(NAMESPACES) == PodSet(expected, map_selector(WEB))


def test_a_term_for_all_namespaces_does_not_narrow_another_term() -> None:
    everywhere, listed = term(WEB, namespaceSelector={}), term(FRONT, namespaces=["x"])
    for terms in ((everywhere, listed), (listed, everywhere)):
        pods = own_terms(near(*terms)).matching_all(NAMESPACES)
        assert pods == PodSet(frozenset(("x",)), map_selector(WEB | FRONT))
    both = own_terms(near(everywhere, everywhere)).matching_all(NAMESPACES)
    assert both == PodSet(None, map_selector(WEB))


def test_terms_without_namespace_selectors_are_compiled_once_for_a_shape() -> None:
    first, second = own_terms(near(term(WEB))), own_terms(near(term(WEB)))
    assert first is second
    assert first.settled is first.matching_all(NAMESPACES)
    assert own_terms(near(term(WEB, namespaceSelector=TEAM_A))).settled is None


def test_topology_keys_are_listed_once_and_anti_affinity_has_negative_weights() -> None:
    prefer = {PREFERRED: [weighted(3, term(WEB))]}
    own = own_terms(pod(affinity={"podAffinity": prefer, "podAntiAffinity": prefer}))
    assert [want.weight for want in own.preferred] == [3, -3]
    assert own_terms(near(term(WEB, key="k"), term(FRONT, key="k"))).keys == ("k",)


# ---- what does not parse -----------------------------------------------------------------------

BAD = {"topologyKey": "k", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}
INVALID = '"X" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("affinity", "error", "is_unclear"),
    [
        pytest.param({}, "", False, id="valid terms"),
        pytest.param(
            {"podAffinity": {REQUIRED: [BAD, BAD]}},
            f"requiredAffinityTerms: {INVALID}",
            True,
            id="the first invalid term of a list",
        ),
        pytest.param(
            {"podAffinity": {PREFERRED: [weighted(1, BAD)]}},
            f"preferredAffinityTerms: {INVALID}",
            False,
            id="a preferred term, which hints do not read",
        ),
        pytest.param(
            {
                "podAffinity": {PREFERRED: [weighted(1, BAD)]},
                "podAntiAffinity": {REQUIRED: [BAD], PREFERRED: [weighted(1, BAD)]},
            },
            f"[requiredAntiAffinityTerms: {INVALID}, preferredAffinityTerms: {INVALID}, "
            f"preferredAntiAffinityTerms: {INVALID}]",
            True,
            id="several, required ones first",
        ),
    ],
)
def test_a_term_that_does_not_parse_is_reported_in_upstreams_words(
    affinity: dict[str, Any], error: str, is_unclear: bool
) -> None:
    own = own_terms(pod(affinity=affinity))
    assert (own.error, own.is_unclear) == (error, is_unclear)
