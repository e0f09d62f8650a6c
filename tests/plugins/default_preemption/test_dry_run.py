"""The dry run: nodes together give the same results as one by one, with minimal victims."""

from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.framework.status import Code, is_success
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import EARLY, LATER, LATEST, Scene, budget, scene, started

LABELS = ({"app": "a"}, {"app": "b"}, {})


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Scene, PodInfo]:
    """A few nearly full nodes, budgets, and a pod that fits on none of the nodes. Some pods belong
    to groups, whose priority may be another one."""
    nodes = [node(f"n{index}", cpu=draw(st.integers(2, 6)), pods=6) for index in range(4)]
    placed: list[PodInfo] = []
    for each in nodes:
        for _ in range(draw(st.integers(0, 5))):
            status = draw(st.sampled_from(({}, started(EARLY), started(LATER))))
            options: dict[str, Any] = {
                "cpu": draw(st.integers(0, 2)),
                "priority": draw(st.integers(-1, 3)),
                "labels": draw(st.sampled_from(LABELS)),
                "status": status,
            }
            group = draw(st.sampled_from((None, None, "g", "h")))
            if group is not None:
                options["spec"] = {"schedulingGroup": {"podGroupName": group}}
            placed.append(pod(f"p{len(placed)}", node=each.metadata.name, **options))
    over = scene(*nodes, *placed, gates={"GenericWorkload": draw(st.booleans())})
    if draw(st.booleans()):
        over.put_group("g", priority=draw(st.integers(-1, 3)))
    over.put_budgets(
        budget("one", {"app": "a"}, draw(st.integers(0, 2))),
        budget("two", {"app": "b"}, draw(st.integers(0, 2))),
    )
    if draw(st.booleans()):
        over.nominate(pod("n", cpu=1, priority=draw(st.integers(0, 3)), nominated_node="n1"))
    return over, pod("wants", cpu=draw(st.integers(1, 5)), priority=draw(st.integers(0, 4)))


def dry_run(over: Scene, pod: PodInfo) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """(node → victims and violations, node → reasons, reason → count)."""
    findings = over.find(pod)
    snapshot, batch = over.cluster.lent_snapshot, findings.candidates
    assert snapshot is not None
    statuses = {name: (s.code, s.reasons) for name, s in findings.statuses().items()}
    if batch is None:
        return {}, statuses, findings.reasons
    names = [snapshot.nodes.name(position) for position in batch.positions.tolist()]
    victims = [batch.victims(index) for index in range(len(batch))]
    reports = [([p.name for p in each.pods], each.pdb_violation_count) for each in victims]
    costs = [str(batch.costs.take([index])) for index in range(len(batch))]  # type: ignore[arg-type]
    candidates = dict(zip(names, zip(reports, costs, strict=True), strict=True))
    return candidates, statuses, findings.reasons


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_nodes_together_have_the_same_results_as_nodes_one_by_one(
    drawn: tuple[Scene, PodInfo],
) -> None:
    over, preemptor = drawn
    if over.cycle(preemptor).choice is not None:
        return
    together = dry_run(over, preemptor)
    with patch("bayplan.profile.filter_runner.only_amounts_matter", return_value=False):
        assert dry_run(over, preemptor) == together


def test_among_equal_victims_protected_ones_are_listed_first() -> None:
    over = scene(
        node("n1", cpu=2),
        pod("a", cpu=1, node="n1"),
        pod("b", cpu=1, node="n1", labels={"app": "b"}),
    )
    over.put_budgets(budget("one", {"app": "b"}, 0))
    assert over.candidates(pod("p", cpu=2, priority=1)) == {"n1": ["b", "a"]}


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_victims_are_less_important_and_sufficient_and_minimal(
    drawn: tuple[Scene, PodInfo],
) -> None:
    """If nothing else changes, the pod fits without its victims, and not beside any one of them."""
    over, preemptor = drawn
    if over.cycle(preemptor).choice is not None:
        return
    batch, lent = over.find(preemptor).candidates, over.cluster.lent_snapshot
    if batch is None or lent is None:
        return
    names = [lent.nodes.name(position) for position in batch.positions.tolist()]
    candidates = {name: batch.victims(index).pods for index, name in enumerate(names)}
    for name, victims in candidates.items():
        trees = over.cluster.cluster.group_trees
        assert victims
        assert all(trees.priority_of_pod(each) < preemptor.priority for each in victims)
        assert _fits_without(over, preemptor, name, victims)
        for reprieved in victims:
            evicted = [victim for victim in victims if victim is not reprieved]
            assert not _fits_without(over, preemptor, name, evicted)


@settings(max_examples=80, deadline=None)
@given(worlds())
def test_no_pod_is_evicted_from_a_node_with_room(drawn: tuple[Scene, PodInfo]) -> None:
    """Even if the statuses reject all nodes."""
    over, preemptor = drawn
    cycle = over.cycle(preemptor)
    codes = cycle.node_to_status().codes(cycle.snapshot.nodes).copy()
    codes[:] = Code.UNSCHEDULABLE
    nodes = cycle.snapshot.nodes
    fitting = {name for name in nodes.names() if _fits_without(over, preemptor, name, ())}
    cycle = over.cycle(preemptor)
    batch = over.plugin.find(cycle.state, preemptor, codes).candidates
    positions = [] if batch is None else batch.positions.tolist()
    assert not fitting & {cycle.snapshot.nodes.name(position) for position in positions}


@settings(max_examples=80, deadline=None)
@given(worlds())
def test_a_pod_fits_its_nominated_node_once_its_victims_are_gone(
    drawn: tuple[Scene, PodInfo],
) -> None:
    """If nothing else changes, no eviction is in vain."""
    over, preemptor = drawn
    if over.cycle(preemptor).choice is not None:
        return
    nominated = over.attempt(preemptor).nominated
    gone = over.perform().deleted
    assert bool(gone) == bool(nominated)
    over.cluster.take_back()
    for key in gone:
        name = key.partition("/")[2]
        evicted = over.cluster.cache.remove_pod(pod(name).uid)
        assert evicted is not None
        assert over.cluster.cluster.group_trees.priority_of_pod(evicted) < preemptor.priority
        assert evicted.node_name == nominated
    if nominated:
        assert _fits_without(over, preemptor, nominated, ())


def _fits_without(over: Scene, pod: PodInfo, name: str, gone: Any) -> bool:
    state, snapshot = over.cycle(pod).state, over.cluster.lent_snapshot
    assert snapshot is not None
    with snapshot.trial() as trial:
        for victim in gone:
            trial.remove(victim)
        state.cached_results = None
        verdict = over.framework.filter_with_nominated(state, pod, snapshot, name)
    return is_success(verdict)


def test_nodes_that_evictions_do_not_help_are_left_out() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    over = scene(
        node("n1", cpu=2, taints=taints), pod("a", cpu=2, node="n1"),
        node("n2", cpu=1), pod("b", cpu=1, node="n2"),
        node("n3", cpu=2), pod("c", cpu=2, node="n3"),
    )  # fmt: skip
    assert over.candidates(pod("p", cpu=2, priority=1)) == {"n3": ["c"]}


def test_the_search_goes_on_while_all_candidates_violate_a_budget() -> None:
    labels = {"app": "a"}
    nodes = [node(f"n{index}", cpu=2) for index in range(6)]
    pods = [pod(f"other{index}", cpu=2, node=f"n{index}", labels=labels) for index in range(5)]
    free = pod("free", cpu=2, node="n5")
    few: dict[str, Any] = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 1}
    over = scene(*nodes, *pods, free, **few)
    over.put_budgets(budget("b", labels, 0))
    for uid in range(12):
        new_pod = pod(f"p{uid}", cpu=2, priority=9)
        candidates = over.candidates(new_pod)
        assert next(iter(candidates)) == "n5" and over.attempt(new_pod).nominated == "n5"


def test_room_of_nominated_pods_with_higher_priority_is_not_taken() -> None:
    over = scene(
        node("n1", cpu=2), pod("a", cpu=2, node="n1"), node("n2", cpu=2), pod("b", cpu=2, node="n2")
    )
    over.nominate(pod("first", cpu=2, priority=9, nominated_node="n1"))
    assert over.candidates(pod("p", cpu=2, priority=9)) == {"n2": ["b"]}
    assert set(over.candidates(pod("q", cpu=2, priority=10))) == {"n1", "n2"}


@pytest.mark.parametrize("count", [1, 300])
def test_errors_are_reported_without_a_candidate(count: int) -> None:
    nodes = [node(f"n{index}", cpu=2) for index in range(count)]
    pods = [pod(f"low{index}", cpu=1, node=f"n{index}") for index in range(count)]
    over = scene(*nodes, *pods)
    new_pod = pod("p", cpu=1, priority=9)
    cycle = over.cycle(new_pod)
    codes = cycle.node_to_status().codes(cycle.snapshot.nodes).copy()
    codes[:] = Code.UNSCHEDULABLE
    findings = over.plugin.find(cycle.state, new_pod, codes)
    assert findings.candidates is None
    assert len(findings.errors) == count
    assert findings.errors[0].message.startswith("expected at least one victim pod on node")


# ---- groups that leave as one -----------------------------------------------------------------

WHOLE: dict[str, Any] = {"disruptionMode": {"all": {}}}


def member(name: str, where: str, group: str = "g", **options: Any) -> PodInfo:
    spec = {"schedulingGroup": {"podGroupName": group}}
    fields: dict[str, Any] = {"cpu": 2, "spec": spec, **options}
    return pod(name, node=where, **fields)


def gang_on_two_nodes(mode: dict[str, Any], *more: PodInfo) -> Scene:
    nodes = [node(name, cpu=2) for name in ("n1", "n2")]
    over = scene(*nodes, member("a", "n1"), member("b", "n2"), *more)
    over.put_group("g", **mode)
    return over


@pytest.mark.parametrize("ask_many", [True, False])
def test_a_group_with_disruption_mode_all_is_evicted_from_all_its_nodes(
    ask_many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = gang_on_two_nodes(WHOLE)
    if not ask_many:
        monkeypatch.setattr(type(over.plugin.handle.runner), "only_amounts_matter", never)
    new_pod = pod("p", cpu=2, priority=9)
    assert over.candidates(new_pod) == {"n1": ["a", "b"], "n2": ["a", "b"]}


def never(*_: Any) -> bool:
    return False


def test_a_group_without_a_disruption_mode_is_evicted_pod_by_pod() -> None:
    for mode in ({}, {"disruptionMode": {"single": {}}}):
        over = gang_on_two_nodes(mode)
        assert over.candidates(pod("p", cpu=2, priority=9)) == {"n1": ["a"], "n2": ["b"]}


@pytest.mark.parametrize(
    ("gates", "victim"),
    [({"GenericWorkload": True}, "lone"), ({"GenericWorkload": False}, "a")],
)
@pytest.mark.parametrize("count", [1, 200])
def test_a_pod_of_a_group_outranks_a_plain_pod_that_started_earlier(
    gates: dict[str, bool], victim: str, count: int
) -> None:
    """One node is searched alone, many are searched at once."""
    nodes = [node(f"n{index}", cpu=4) for index in range(count)]
    placed = [
        each
        for index in range(count)
        for each in (
            pod(f"lone{index}", node=f"n{index}", cpu=2, status=started(EARLY)),
            member(f"a{index}", f"n{index}", status=started(LATER)),
        )
    ]
    over = scene(*nodes, *placed, gates=gates)
    over.put_group("g")
    candidates = over.candidates(pod("p", cpu=2, priority=9))
    assert candidates
    assert all(victims == [f"{victim}{name[1:]}"] for name, victims in candidates.items())


def test_a_pod_of_a_group_does_not_outrank_others_in_older_versions() -> None:
    lone = pod("lone", node="n1", cpu=2, status=started(EARLY))
    placed = [lone, member("a", "n1", status=started(LATER))]
    for version, expected in ((KubernetesVersion.V1_36, "a"), (KubernetesVersion.V1_37, "lone")):
        gates = {"GenericWorkload": True}
        over = scene(node("n1", cpu=4), *placed, gates=gates, kubernetes=version)
        over.put_group("g")
        assert over.candidates(pod("p", cpu=2, priority=9)) == {"n1": [expected]}


def test_the_start_that_counts_is_the_earliest_of_the_most_important_victims() -> None:
    """A member comes before a plain pod that started earlier, and that pod's start decides."""
    nodes = [node(f"n{index}", cpu=4) for index in (1, 2)]
    placed = [
        pod("early", node="n1", cpu=2, status=started(EARLY)),
        member("a", "n1", status=started(LATEST)),
        pod("later", node="n2", cpu=2, status=started(LATER)),
        member("b", "n2", status=started(LATER)),
    ]
    over = scene(*nodes, *placed, gates={"GenericWorkload": True})
    over.put_group("g")
    new_pod = pod("p", cpu=4, priority=9)
    assert over.candidates(new_pod) == {"n1": ["a", "early"], "n2": ["b", "later"]}
    assert over.attempt(new_pod).nominated == "n2"


def test_members_of_a_group_that_leave_one_by_one_have_the_priority_of_the_group() -> None:
    for priority, expected in ((9, {}), (1, {"n1": ["a"], "n2": ["b"]})):
        nodes = [node(name, cpu=2) for name in ("n1", "n2")]
        placed = [member(n, w, priority=10 - priority) for n, w in (("a", "n1"), ("b", "n2"))]
        over = scene(*nodes, *placed, gates={"GenericWorkload": True})
        over.put_group("g", priority=priority)
        assert over.candidates(pod("p", cpu=2, priority=9)) == expected


def test_nodes_without_a_whole_group_are_cheaper() -> None:
    nodes = [node(name, cpu=2) for name in ("n1", "n2", "n3")]
    lone = pod("lone", node="n3", cpu=2)
    over = scene(*nodes, member("a", "n1"), member("b", "n2"), lone)
    over.put_group("g", **WHOLE)
    attempted = over.attempt(pod("p", cpu=2, priority=9))
    assert attempted.nominated == "n3"


def test_a_group_is_reprieved_as_a_whole_before_less_important_pods() -> None:
    """The single pod suffices, and the group is more important."""
    over = scene(
        node("n1", cpu=4),
        node("n2", cpu=2),
        member("a", "n1"),
        member("b", "n2"),
        pod("lone", node="n1", cpu=2),
    )
    over.put_group("g", **WHOLE)
    assert over.candidates(pod("p", cpu=2, priority=9))["n1"] == ["lone"]


def test_no_member_is_evicted_if_the_group_is_as_important_as_the_pod() -> None:
    over = gang_on_two_nodes({**WHOLE, "priority": 9})
    assert over.candidates(pod("p", cpu=2, priority=9)) == {}


def test_a_group_may_be_less_important_than_its_pods() -> None:
    nodes = [node(name, cpu=2) for name in ("n1", "n2")]
    over = scene(*nodes, member("a", "n1", priority=20), member("b", "n2", priority=20))
    over.put_group("g", priority=1, **WHOLE)
    assert set(over.candidates(pod("p", cpu=2, priority=9))) == {"n1", "n2"}


def test_each_violation_of_a_budget_by_a_whole_group_counts() -> None:
    labels = {"app": "a"}
    nodes = [node(name, cpu=2) for name in ("n1", "n2")]
    over = scene(*nodes, *(member(n, w, labels=labels) for n, w in (("a", "n1"), ("b", "n2"))))
    over.put_group("g", **WHOLE)
    for allowed, expected in ((2, 0), (1, 1), (0, 2)):
        over.put_budgets(budget("keeps", labels, allowed))
        batch = over.find(pod("p", cpu=2, priority=9)).candidates
        assert batch is not None
        assert batch.costs.pdb_violation_counts.tolist() == [expected, expected]
