"""Which nodes and domains can be drained or removed, and which pods are left over."""

from typing import Any

import pytest

from bayplan.api.objects import NODE, POD
from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.engine.attempt_record import OnAttempt
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.independent_pods import IndependentPods
from bayplan.rng import stream
from bayplan.whatif import drain_each as module
from bayplan.whatif.drain_each import (
    Departure,
    DepartureReport,
    Departures,
    drain_each,
    remove_each,
)
from tests.kit.manifests import Content, node, pod, priority_class
from tests.whatif.clusters import budget, cluster_of, model_of, owned_pod


def by_name(report: DepartureReport) -> dict[str, Departure]:
    return {departure.name: departure for departure in report.departures}


def anti_affinity(app: str) -> Content:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def host(name: str, **parts: Any) -> Content:
    labels = {"kubernetes.io/hostname": name, **parts.pop("labels", {})}
    return node(name, labels=labels, **parts)


def test_a_node_can_be_drained_if_its_pods_fit_elsewhere() -> None:
    model = model_of(
        cluster_of(
            node("n1"),
            node("n2"),
            owned_pod("web-a", "n1", "2"),
            owned_pod("db-a", "n2", "3"),
        )
    )
    rows = by_name(drain_each(model))
    assert rows["n2"].can_go is False
    [left] = rows["n2"].left_over
    assert left.pod == "default/db-a"
    assert left.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were")
    assert rows["n1"].left_over[0].pod == "default/web-a"


def test_a_pod_that_its_group_holds_back_says_what_the_group_lacks() -> None:
    member = owned_pod("train-a", "n1")
    member["metadata"]["labels"] = {COSCHEDULING_LABEL: "train"}
    [left] = by_name(drain_each(model_of(cluster_of(node("n1"), node("n2"), member))))[
        "n1"
    ].left_over
    assert left.message == (
        "group default/train: PodGroup not found in scheduling.x-k8s.io (current pods number: 1)"
    )


def test_the_model_stays_unchanged() -> None:
    model = model_of(cluster_of(*[node(f"n{i}") for i in range(4)], owned_pod("web-a", "n1")))
    before = sorted((str(key), each) for key, each in _objects(model))
    drain_each(model)
    remove_each(model)
    after = sorted((str(key), each) for key, each in _objects(model))
    assert [name for name, _ in before] == [name for name, _ in after]
    assert not model.pending()


def _objects(model: Any) -> list[tuple[str, str]]:
    return [
        (kind, f"{each.metadata.name} {getattr(each.spec, 'node_name', None)}")
        for kind in (NODE, POD)
        for each in model.objects(kind)
    ]


def test_enough_feasible_nodes_prove_the_drain_without_a_trial() -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    model = model_of(cluster_of(*nodes, owned_pod("web-a", "n1"), owned_pod("web-b", "n1")))
    row = by_name(drain_each(model))["n1"]
    assert (row.can_go, row.pods, row.is_tried) == (True, 2, False)


def test_one_node_with_room_for_all_pods_proves_the_drain_without_a_trial() -> None:
    pods = [owned_pod(f"web-{number}", "n1", "500m") for number in range(6)]
    row = by_name(drain_each(model_of(cluster_of(node("n1"), node("n2"), *pods))))["n1"]
    assert (row.can_go, row.pods, row.is_tried) == (True, 6, False)
    crowd = owned_pod("db-a", "n2", "1500m")
    row = by_name(drain_each(model_of(cluster_of(node("n1"), node("n2"), *pods, crowd))))["n1"]
    assert (len(row.left_over), row.is_tried) == (1, True)


def test_pods_of_a_daemon_set_or_of_the_kubelet_stay() -> None:
    mirror = pod("etcd", nodeName="n1", annotations={"kubernetes.io/config.mirror": "x"})
    daemon = owned_pod("logs-a", "n1", kind="DaemonSet")
    row = by_name(drain_each(model_of(cluster_of(node("n1"), mirror, daemon))))["n1"]
    assert (row.can_go, row.pods) == (True, 0)


def test_pods_without_a_controller_block_a_drain_unless_the_drain_is_forced() -> None:
    model = model_of(cluster_of(node("n1"), pod("bare", nodeName="n1")))
    [row] = drain_each(model).departures
    assert (row.can_go, row.unmanaged) == (False, ("default/bare",))
    assert drain_each(model, force=True).departures[0].can_go
    assert remove_each(model).departures[0].can_go


def test_a_budget_without_disruptions_blocks_a_drain_but_not_a_removal() -> None:
    objects = [node("n1"), node("n2"), owned_pod("web-a", "n1"), owned_pod("web-b", "n2")]
    model = model_of(cluster_of(*objects, budget("web", 2)))
    row = by_name(drain_each(model))["n1"]
    assert (row.can_go, row.pods) == (False, 0)
    [blocked] = row.blocked
    assert (blocked.pod, blocked.budgets) == ("default/web-a", ("web",))
    assert by_name(remove_each(model))["n1"].can_go


def test_with_a_budget_of_one_disruption_all_pods_are_evicted_one_by_one() -> None:
    pods = [owned_pod(f"web-{number}", "n1") for number in range(3)]
    nodes = [node(f"n{number}") for number in range(1, 5)]
    row = by_name(drain_each(model_of(cluster_of(*nodes, *pods, budget("web", 2)))))["n1"]
    assert (row.can_go, row.pods) == (True, 3)


def test_a_replacement_that_does_not_fit_uses_the_disruption_of_the_budget() -> None:
    pods = [owned_pod(f"web-{number}", "n1", "1") for number in range(3)]
    nodes = [node("n1"), node("n2", status={"allocatable": {"cpu": "0", "pods": "9"}})]
    row = by_name(drain_each(model_of(cluster_of(*nodes, *pods, budget("web", 2)))))["n1"]
    assert [left.pod for left in row.left_over] == ["default/web-0"]
    assert [blocked.pod for blocked in row.blocked] == ["default/web-1", "default/web-2"]


def test_two_budgets_for_one_pod_block_its_eviction() -> None:
    second = {**budget("web", 0), "metadata": {"name": "second", "namespace": "default"}}
    objects = [node("n1"), node("n2"), owned_pod("web-a", "n1"), budget("web", 0), second]
    [blocked] = by_name(drain_each(model_of(cluster_of(*objects))))["n1"].blocked
    assert blocked.budgets == ("web", "second")


def test_pods_with_anti_affinity_are_placed_in_a_trial() -> None:
    hosts = [host("n1"), host("n2")]
    pods = [owned_pod(f"web-{on}", on, affinity=anti_affinity("web")) for on in ("n1", "n2")]
    row = by_name(drain_each(model_of(cluster_of(*hosts, *pods))))["n1"]
    assert row.is_tried
    assert "anti-affinity" in row.left_over[0].message
    more = by_name(drain_each(model_of(cluster_of(*hosts, host("n3"), *pods))))["n1"]
    assert (more.is_tried, more.can_go) == (True, True)


def test_pods_that_differ_only_in_the_volume_of_their_token_share_an_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pods = [
        owned_pod(f"web-{on}", on, volumes=[{"name": f"token-{on}", "emptyDir": {}}])
        for on in ("n1", "n2", "n3")
    ]
    # Another placed pod keeps equal pods of its own namespace away from n4.
    guard = owned_pod("guard-a", "n4", affinity=anti_affinity("web"))
    abroad = [owned_pod(f"web-{on}", on, namespace="abroad") for on in ("n1", "n2")]
    model = model_of(cluster_of(*map(host, ("n1", "n2", "n3", "n4")), *pods, guard, *abroad))
    attempted: list[str] = []
    attempt = ClusterModel.attempt

    def counting(self: ClusterModel, name: str, look: OnAttempt | None = None) -> Attempt:
        attempted.append(name)
        return attempt(self, name, look)

    monkeypatch.setattr(ClusterModel, "attempt", counting)
    feasible = module._FeasibleNodes(model)  # pyright: ignore[reportPrivateUsage]
    infos = {info.key: info for info in model.scheduler.cache.pods()}
    for on in ("n1", "n2", "n3"):
        assert feasible.of(infos[f"default/web-{on}"]) == {"n1", "n2", "n3"}
    for on in ("n1", "n2"):
        assert feasible.of(infos[f"abroad/web-{on}"]) == {"n1", "n2", "n3", "n4"}
    assert len(attempted) == 2


def test_a_domain_is_drained_as_a_whole() -> None:
    nodes = [node(f"n{i}", labels={"zone": "ab"[i % 2]}) for i in range(4)] + [node("outside")]
    pods = [owned_pod(f"web-{i}", f"n{i}", "3") for i in range(4)]
    report = drain_each(model_of(cluster_of(*nodes, *pods)), Departures(topology_key="zone"))
    assert report.nodes_without_domain == 1
    rows = by_name(report)
    assert {name: row.nodes for name, row in rows.items()} == {"a": 2, "b": 2}
    assert len(rows["a"].left_over) == 1
    assert rows["a"].pods == 2


def test_victims_of_preemption_are_replaced_or_left_over() -> None:
    low = owned_pod("low-a", "n2", "3", priority=0)
    high = owned_pod("high-a", "n1", "3", priority=100)
    model = model_of(cluster_of(node("n1"), node("n2"), priority_class("x", 1), low, high))
    row = by_name(drain_each(model))["n1"]
    assert [left.pod for left in row.left_over] == ["default/low-a"]


def test_pods_of_other_schedulers_are_counted() -> None:
    stranger = owned_pod("web-a", "n1", schedulerName="volcano")
    row = by_name(drain_each(model_of(cluster_of(node("n1"), node("n2"), stranger))))["n1"]
    assert (row.can_go, row.pods, row.other_schedulers) == (True, 0, 1)


@pytest.mark.parametrize("seed", range(8))
def test_a_trial_confirms_every_proof(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = stream(seed, "drain")
    nodes = [node(f"n{i}", labels={"disk": draws.choice(["ssd", "hdd"])}) for i in range(12)]
    pods: list[Content] = []
    for number in range(draws.randrange(8, 30)):
        fields: dict[str, Any] = {}
        if draws.random() < 0.3:
            fields["nodeSelector"] = {"disk": "ssd"}
        if draws.random() < 0.2:
            fields["affinity"] = anti_affinity(f"w{number % 5}")
        on = f"n{draws.randrange(12)}"
        pods.append(owned_pod(f"w{number % 5}-{number}", on, draws.choice(["1", "500m"]), **fields))
    model = model_of(cluster_of(*nodes, *pods))
    report = by_name(drain_each(model))
    monkeypatch.setattr(IndependentPods, "covers", lambda _self, _shape: False)
    tried = by_name(drain_each(model))
    assert any(not row.is_tried for row in report.values() if row.pods)
    for name, row in report.items():
        assert row.can_go == tried[name].can_go, name
