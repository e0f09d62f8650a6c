"""InterPodAffinity compared with a scalar rule, and by small examples."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import NAMESPACE, ZONE_LABEL
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, EventResource
from bayplan.framework.status import Code, Status
from bayplan.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.affinity_kit import (
    AffinityCluster,
    drawn_pods,
    drawn_worlds,
    filter_answers,
    filtered,
    must_filter,
    must_score,
    scored,
)
from tests.state.affinity_terms import PREFERRED, REQUIRED, term, weighted

WEB, DB = {"app": "web"}, {"app": "db"}
NO_AFFINITY = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "node(s) didn't match pod affinity rules")
REFUSED = (Code.UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules")


def near(*terms: dict[str, Any], prefer: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms), PREFERRED: prefer or []}}


def away(*terms: dict[str, Any], prefer: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms), PREFERRED: prefer or []}}


def zones(*placed: PodInfo, **more: Any) -> AffinityCluster:
    """Nodes a and b in zone z1, c in z2, d in no zone."""
    nodes = [node("a", zone="z1"), node("b", zone="z1"), node("c", zone="z2"), node("d")]
    return AffinityCluster(nodes, list(placed), **more)


# ---- against the oracle ------------------------------------------------------------------------


@given(world=drawn_worlds(), pod=drawn_pods("new"))
def test_filter_equals_a_count_pod_by_pod(world: AffinityCluster, pod: PodInfo) -> None:
    assert filtered(world, pod) == must_filter(world, pod)


@given(world=drawn_worlds(), pod=drawn_pods("new"))
def test_score_equals_a_count_pod_by_pod(world: AffinityCluster, pod: PodInfo) -> None:
    assert scored(world, pod) == must_score(world, pod)


@given(world=drawn_worlds(), pod=drawn_pods("new"), data=st.data())
def test_selected_nodes_have_the_same_results_as_among_all_nodes(
    world: AffinityCluster, pod: PodInfo, data: st.DataObject
) -> None:
    """The counts cover the cluster; only the nodes of the view are evaluated."""
    plugin, state, nodes = world.plugin(), CycleState(), world.lend().nodes
    chosen = data.draw(st.permutations(range(len(nodes))))[: data.draw(st.integers(1, len(nodes)))]
    some = nodes.take(chosen)
    if plugin.pre_filter(state, pod, nodes) is None:
        everywhere = filter_answers(plugin, state, pod, nodes)
        result = filter_answers(plugin, state, pod, some)
        assert result == {name: everywhere[name] for name in some.names()}
    if plugin.pre_score(state, pod, some) is None:
        assert plugin.score(state, pod, some).tolist() == [
            plugin.score(state, pod, nodes)[position] for position in chosen
        ]


@given(world=drawn_worlds(), pod=drawn_pods("new"), data=st.data())
def test_notes_follow_pods_added_and_removed_in_a_what_if(
    world: AffinityCluster, pod: PodInfo, data: st.DataObject
) -> None:
    """They equal the notes of a PreFilter that runs inside the what-if."""
    plugin, state, snapshot = world.plugin(), CycleState(), world.lend()
    if plugin.pre_filter(state, pod, snapshot.nodes) is not None:
        return
    names = snapshot.nodes.names()
    before = filter_answers(plugin, state, pod, snapshot.nodes)
    what_if = state.clone()
    with snapshot.trial() as trial:
        for index in range(data.draw(st.integers(1, 3))):
            there = [each for each in world.placed if each.node_name in names]
            if there and data.draw(st.booleans()):
                gone = data.draw(st.sampled_from(there))
                world.placed.remove(gone)
                trial.remove(gone)
                plugin.remove_pod(what_if, pod, gone, snapshot.node(gone.node_name))
            else:
                drawn = data.draw(drawn_pods(f"tried-{index}", names))
                world.placed.append(drawn)
                trial.assume(drawn, drawn.node_name)
                plugin.add_pod(what_if, pod, drawn, snapshot.node(drawn.node_name))
        expected = must_filter(world, pod)
        if expected is Code.SKIP:
            expected = dict.fromkeys(names)
        assert filter_answers(plugin, what_if, pod, snapshot.nodes) == expected
    assert filter_answers(plugin, state, pod, snapshot.nodes) == before


# ---- required affinity -------------------------------------------------------------------------


def test_the_first_pod_of_a_self_affine_group_may_use_any_node_with_the_label() -> None:
    first = pod(labels=WEB, affinity=near(term(WEB, key=ZONE_LABEL)))
    assert filtered(zones(), first) == {"a": None, "b": None, "c": None, "d": NO_AFFINITY}


def test_a_matching_pod_outside_all_domains_does_not_count_as_the_first() -> None:
    """Upstream keeps counts by domain: a match on a node without the label leaves no trace."""
    next_one = pod(labels=WEB, affinity=near(term(WEB, key=ZONE_LABEL)))
    answers = filtered(zones(pod("web", node="d", labels=WEB)), next_one)
    assert answers == {"a": None, "b": None, "c": None, "d": NO_AFFINITY}


# ---- namespaces --------------------------------------------------------------------------------

TEAM_A = {"matchLabels": {"team": "a"}}


def test_the_namespace_selector_of_a_placed_pod_reads_the_namespace_of_the_incoming_pod() -> None:
    refusing = pod("web", node="a", affinity=away(term(DB, namespaceSelector=TEAM_A)))
    namespaces = {"default": dict[str, str](), "other": {"team": "a"}}
    world = zones(refusing, namespaces=namespaces)
    assert filtered(world, pod(labels=DB)) is Code.SKIP
    assert filtered(world, pod(labels=DB, namespace="unknown")) is Code.SKIP
    coming = pod(labels=DB, namespace="other")
    assert filtered(world, coming) == {"a": REFUSED, "b": None, "c": None, "d": None}


# ---- what does not parse -----------------------------------------------------------------------

BROKEN = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}


def test_a_pod_whose_terms_do_not_parse_is_rejected_for_good() -> None:
    broken = pod(affinity=near({**BROKEN, "topologyKey": "zone"}))
    plugin, nodes = zones().plugin(), zones().lend().nodes
    answer = plugin.pre_filter(CycleState(), broken, nodes)
    assert isinstance(answer, Status)
    assert answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert answer.reasons == (
        'parsing pod: requiredAffinityTerms: "Foo" is not a valid label selector operator',
    )
    status = plugin.pre_score(CycleState(), broken, nodes)
    assert status is not None
    assert status.code is Code.ERROR


# ---- args, signatures, events --------------------------------------------------------------------


@pytest.mark.parametrize("weight", [-1, 101])
def test_a_weight_out_of_range_is_named(weight: int) -> None:
    args = msgspec.convert({"hardPodAffinityWeight": weight}, InterPodAffinityArgs)
    assert list(args.problems()) == [
        ("hardPodAffinityWeight", f"{weight}; wanted a number in 0..100")
    ]


def test_unknown_args_are_refused_and_defaults_are_upstreams() -> None:
    with pytest.raises(msgspec.ValidationError, match="hardPodAfinityWeight"):
        msgspec.convert({"hardPodAfinityWeight": 1}, InterPodAffinityArgs)
    args = InterPodAffinityArgs()
    assert args.hard_pod_affinity_weight == 1
    assert not args.ignore_preferred_terms_of_existing_pods


def test_two_instances_have_separate_notes() -> None:
    world, state = zones(pod("web", node="a", labels=WEB)), CycleState()
    nodes, wanting = world.lend().nodes, pod(affinity=near(term(WEB)))
    plain, named = world.plugin(), world.plugin()
    named = InterPodAffinity(named.args, named.handle, "InterPodAffinity/two")
    plain.pre_filter(state, wanting, nodes)
    named.pre_filter(state, wanting, nodes)
    plain.remove_pod(state, wanting, world.placed[0], nodes.info(0))
    assert filter_answers(plain, state, wanting, nodes)["a"] == NO_AFFINITY
    assert filter_answers(named, state, wanting, nodes)["a"] is None


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param(near(term(WEB)), id="required affinity"),
        pytest.param(away(prefer=[weighted(1, term(WEB))]), id="preferred anti-affinity"),
        pytest.param(near({**BROKEN, "topologyKey": "zone"}), id="terms that do not parse"),
    ],
)
def test_a_pod_with_terms_is_unsigned(affinity: dict[str, Any]) -> None:
    assert zones().plugin().sign_pod(pod(affinity=affinity)) is None


def test_it_waits_for_pods_of_other_nodes_its_own_labels_and_nodes() -> None:
    registered = {e.event.resource: e.event.action for e in zones().plugin().events_to_register()}
    assert registered == {
        EventResource.ASSIGNED_POD: ActionType.ADD
        | ActionType.DELETE
        | ActionType.UPDATE_POD_LABEL,
        EventResource.TARGET_POD: ActionType.UPDATE_POD_LABEL,
        EventResource.NODE: ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
    }


def test_its_scope_is_the_cluster_and_it_reads_namespaces() -> None:
    assert (InterPodAffinity.scope, InterPodAffinity.kinds) == ("cluster", (NAMESPACE,))
