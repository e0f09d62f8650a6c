"""What a pod's own terms ask for."""

from typing import Any, cast

import pytest

from bayplan.api.selectors import EVERYTHING, NOTHING, map_selector
from bayplan.framework.handle import Objects
from bayplan.plugins.inter_pod_affinity.terms import own_terms
from bayplan.state.domain_counts import PodSet
from bayplan.state.pods import PodInfo
from tests.kit.objects import pod
from tests.plugins.affinity_kit import Namespaces
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted

WEB, FRONT = {"app": "web"}, {"tier": "front"}
KNOWN = cast(Objects, Namespaces({"default": {}, "one": {"team": "a"}, "two": {"team": "a"}}))
TEAM_A = {"matchLabels": {"team": "a"}}


def near(*terms: dict[str, Any]) -> PodInfo:
    return pod(affinity={"podAffinity": {REQUIRED: list(terms)}})


@pytest.mark.parametrize(
    ("where", "namespaces"),
    [
        pytest.param({}, {"default"}, id="its own"),
        pytest.param({"namespaces": ["x", "y"]}, {"x", "y"}, id="listed ones"),
        pytest.param({"namespaceSelector": {}}, None, id="all"),
        pytest.param({"namespaceSelector": TEAM_A}, {"one", "two"}, id="selected ones"),
        pytest.param(
            {"namespaces": ["x"], "namespaceSelector": TEAM_A}, {"x", "one", "two"}, id="both"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "z"}}}, set[str](), id="none that exists"
        ),
    ],
)
def test_a_term_means_pods_of(where: dict[str, Any], namespaces: set[str] | None) -> None:
    (want,) = own_terms(near(term(WEB, **where))).together
    expected = frozenset(namespaces) if namespaces is not None else None
    assert want.pods(KNOWN) == PodSet(expected, map_selector(WEB))


def test_to_match_all_terms_is_to_match_one_set() -> None:
    own = own_terms(near(term(WEB, namespaces=["one", "x"]), term(FRONT, namespaceSelector=TEAM_A)))
    assert own.matching_all(KNOWN) == PodSet(frozenset(("one",)), map_selector(WEB | FRONT))


def test_a_term_for_all_namespaces_narrows_no_other() -> None:
    everywhere, listed = term(WEB, namespaceSelector={}), term(FRONT, namespaces=["x"])
    for terms in ((everywhere, listed), (listed, everywhere)):
        pods = own_terms(near(*terms)).matching_all(KNOWN)
        assert pods == PodSet(frozenset(("x",)), map_selector(WEB | FRONT))
    both = own_terms(near(everywhere, everywhere)).matching_all(KNOWN)
    assert both == PodSet(None, map_selector(WEB))


def test_a_term_without_a_selector_matches_no_pod() -> None:
    nobody = {"topologyKey": "zone"}
    for terms in ((nobody, term(WEB)), (term(WEB), nobody)):
        assert own_terms(near(*terms)).matching_all(KNOWN).selector == NOTHING
    assert own_terms(near(term())).matching_all(KNOWN).selector == EVERYTHING


def test_what_needs_no_labels_of_namespaces_is_settled_once_for_a_shape() -> None:
    first, second = own_terms(near(term(WEB))), own_terms(near(term(WEB)))
    assert first is second
    assert first.settled is first.matching_all(KNOWN)
    assert own_terms(near(term(WEB, namespaceSelector=TEAM_A))).settled is None


def test_keys_are_named_once_and_dislikes_weigh_negative() -> None:
    prefer = {PREFERRED: [weighted(3, term(WEB))]}
    own = own_terms(pod(affinity={"podAffinity": prefer, "podAntiAffinity": prefer}))
    assert [want.weight for want in own.preferred] == [3, -3]
    assert own_terms(near(term(WEB, key="k"), term(FRONT, key="k"))).keys == ("k",)


# ---- what does not parse -----------------------------------------------------------------------

BAD = {"topologyKey": "k", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}
SAYS = '"X" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("affinity", "error", "is_unclear"),
    [
        pytest.param({}, "", False, id="nothing is wrong"),
        pytest.param(
            {"podAffinity": {REQUIRED: [BAD, BAD]}},
            f"requiredAffinityTerms: {SAYS}",
            True,
            id="the first of a list",
        ),
        pytest.param(
            {"podAffinity": {PREFERRED: [weighted(1, BAD)]}},
            f"preferredAffinityTerms: {SAYS}",
            False,
            id="a preferred term, of which hints know nothing",
        ),
        pytest.param(
            {
                "podAffinity": {PREFERRED: [weighted(1, BAD)]},
                "podAntiAffinity": {REQUIRED: [BAD], PREFERRED: [weighted(1, BAD)]},
            },
            f"[requiredAntiAffinityTerms: {SAYS}, preferredAffinityTerms: {SAYS}, "
            f"preferredAntiAffinityTerms: {SAYS}]",
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
