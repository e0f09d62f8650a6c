"""Affinity terms of placed pods, compared with every term of every pod."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.affinity import AffinityTerm
from bayplan.api.objects import ZONE_LABEL
from bayplan.state.placed_terms import PlacedTerm, PlacedTerms, TermKind
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted

CAPACITY = 4
TEAM_A = {"matchLabels": {"team": "a"}}

APPS = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.just("x")})
SELECTORS = st.one_of(
    st.none(),
    st.just({}),
    st.sampled_from("ab").map(lambda app: {"matchLabels": {"app": app}}),
    st.just({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}),
    st.just({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
)


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    rows = {
        "topologyKey": draw(st.sampled_from(["zone", "host"])),
        "labelSelector": draw(SELECTORS),
        "namespaces": draw(st.sampled_from([None, ["n1"], ["n1", "n2"]])),
        "namespaceSelector": draw(st.sampled_from([None, {}, TEAM_A])),
    }
    return {name: value for name, value in rows.items() if value is not None}


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    some = st.lists(terms(), max_size=2)
    scored = st.lists(st.tuples(st.sampled_from([1, 5]), terms()), max_size=2)

    def affinity() -> dict[str, Any]:
        preferred = [weighted(weight, of) for weight, of in draw(scored)]
        return {REQUIRED: draw(some), PREFERRED: preferred}

    return pod(
        namespace=draw(st.sampled_from(["n1", "n2"])),
        labels=draw(APPS),
        affinity={"podAffinity": affinity(), "podAntiAffinity": affinity()},
    )


def stated(pod: PodInfo, kind: TermKind) -> list[tuple[AffinityTerm, int]]:
    """The terms of one kind as the pod states them, with their weights."""
    near, away = pod.shape.affinity, pod.shape.anti_affinity
    required = {TermKind.REQUIRED_AFFINITY: near, TermKind.REQUIRED_ANTI_AFFINITY: away}
    if kind in required:
        return [(term, 1) for term in required[kind].required]
    preferred = near if kind is TermKind.PREFERRED_AFFINITY else away
    return [(weighted.term, weighted.weight) for weighted in preferred.preferred]


def counts_of(terms: PlacedTerms, placed: list[PlacedTerm]) -> Counter[Any]:
    """(term, weight, row) → pods."""
    return Counter(
        {
            (each.term, each.weight, row): int(count)
            for each in placed
            for row, count in enumerate(terms.pods(each).lent)
            if count
        }
    )


Placements = list[tuple[int, PodInfo]]
#: Only pods with terms are counted here.
WITH_TERMS = pods().filter(lambda each: each.shape.has_affinity)
PLACEMENTS = st.lists(st.tuples(st.integers(0, CAPACITY - 1), WITH_TERMS), max_size=8)


@given(placements=PLACEMENTS, gone=st.sets(st.integers(0, 7)), is_read_before=st.booleans())
def test_terms_are_counted_by_row_while_pods_are_added_and_removed(
    placements: Placements, gone: set[int], is_read_before: bool
) -> None:
    terms = PlacedTerms(CAPACITY, columns_max=2)
    for row, each in placements:
        terms.add(row, each)
        if is_read_before:
            [terms.pods(placed) for kind in TermKind for placed in terms.of(kind)]
    for index, (row, each) in enumerate(placements):
        if index in gone:
            terms.remove(row, each)
    left = [placement for index, placement in enumerate(placements) if index not in gone]
    for kind in TermKind:
        expected = Counter((*term, row) for row, each in left for term in stated(each, kind))
        placed = terms.of(kind)
        assert counts_of(terms, placed) == expected
        assert sum(each.pod_count for each in placed) == expected.total()
        assert len({(each.term, each.weight) for each in placed}) == len(placed)


@given(placements=PLACEMENTS, gone=st.sets(st.integers(0, 7)), incoming=pods())
def test_the_terms_about_a_pod_are_those_that_select_it(
    placements: Placements, gone: set[int], incoming: PodInfo
) -> None:
    terms = PlacedTerms(CAPACITY)
    for row, each in placements:
        terms.add(row, each)
        [terms.about(kind, incoming.shape) for kind in TermKind]  # cached, and then stale
    for index, (row, each) in enumerate(placements):
        if index in gone:
            terms.remove(row, each)
    for kind in TermKind:
        about = terms.about(kind, incoming.shape)
        for team in ("a", "b"):
            labels = {"team": team}
            rows = [*about.certain]
            rows += [p for p in about.conditional if p.term.namespace_selector.matches(labels)]
            expected = [
                placed
                for placed in terms.of(kind)
                if placed.term.matches(incoming.namespace, incoming.labels, labels)
            ]
            assert Counter(map(id, rows)) == Counter(map(id, expected))
    assert terms.about(TermKind.REQUIRED_AFFINITY, incoming.shape) == terms.about(
        TermKind.REQUIRED_AFFINITY, incoming.shape
    )


@given(placements=PLACEMENTS)
def test_rows_know_how_many_of_their_pods_have_terms(placements: Placements) -> None:
    terms = PlacedTerms(CAPACITY)
    for row, each in placements:
        terms.add(row, each)
    with_terms = Counter(row for row, _ in placements)
    away = Counter(row for row, each in placements if each.shape.anti_affinity.required)
    rows = range(CAPACITY)
    assert terms.with_affinity.lent.tolist() == [with_terms[row] for row in rows]
    assert terms.with_required_anti_affinity.lent.tolist() == [away[row] for row in rows]


def keeping_away(name: str, app: str, key: str = ZONE_LABEL) -> PodInfo:
    away = {REQUIRED: [term({"app": app}, key=key)]}
    return pod(name, labels={"app": app}, affinity={"podAntiAffinity": away})


def test_columns_grow_with_the_table_and_continue_to_count() -> None:
    terms = PlacedTerms(2)
    terms.add(1, keeping_away("w1", "web"))
    (placed,) = terms.of(TermKind.REQUIRED_ANTI_AFFINITY)
    terms.pods(placed)
    terms.grow(4)
    terms.add(3, keeping_away("w2", "web"))
    assert terms.pods(placed).lent.tolist() == [0, 1, 0, 1]
    assert terms.with_required_anti_affinity.lent.tolist() == [0, 1, 0, 1]


def test_only_recently_read_columns_are_cached() -> None:
    terms = PlacedTerms(CAPACITY, columns_max=2)
    for row, app in enumerate("abc"):
        terms.add(row, keeping_away(app, app))
    first, second, third = terms.of(TermKind.REQUIRED_ANTI_AFFINITY)
    for placed in (first, second, first, third):
        terms.pods(placed)
    assert [placed.column is not None for placed in (first, second, third)] == [True, False, True]
