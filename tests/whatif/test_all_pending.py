"""Why all pods of a cluster wait, by workload and decisive cause."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.api.selectors import SelectorError, selector_of_text
from bayplan.engine.attempt_record import OnAttempt
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.problems import BadInputError
from bayplan.whatif.all_pending import PendingGroup, PendingPods
from bayplan.whatif.cluster import Cluster
from bayplan.whatif.placing import Placer
from tests.cli.command_line import bayplan, write_objects
from tests.kit.manifests import Content, node, pod, pod_group
from tests.whatif.clusters import cluster_of, model_of

GPU = "nvidia.com/gpu"


def machine(name: str, cpu: str = "4", **more: Any) -> Content:
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "110", **more.pop("offers", {})}
    return node(name, status={"allocatable": allocatable}, **more)


def waiting(name: str, workload: str, cpu: str = "1", **spec: Any) -> Content:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": workload, "uid": workload}
    metadata = {"ownerReferences": [{**owner, "controller": True}], "labels": {"app": workload}}
    content = pod(name, cpu=cpu, **spec)
    content["metadata"] |= metadata
    return content


def asked(*objects: Content, **options: Any) -> PendingPods:
    """The answer; the cluster is afterwards as it was before."""
    with Cluster.from_files(*objects) as cluster:
        before = list(cluster.pods["node"])
        answer = cluster.why_all_pending(**options)
        assert list(cluster.pods["node"]) == before
    return answer


def summary(answer: PendingPods) -> list[tuple[str, int, str]]:
    return [(group.workload, group.pods, group.cause) for group in answer.groups]


NODES = [machine(f"n{number}") for number in range(5)]
TAINT = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}


def test_the_largest_group_comes_first_with_its_cause_and_fix() -> None:
    few = [waiting(f"few-{i}", "few", "9") for i in range(2)]
    many = [waiting(f"many-{i}", "many", nodeSelector={"zone": "x"}) for i in range(3)]
    answer = asked(*NODES, *few, *many)
    assert summary(answer) == [
        ("Job default/many", 3, "5 nodes not selected by node affinity"),
        ("Job default/few", 2, "no node has 9 cpu free; 5 nodes have 4"),
    ]
    fix = answer.groups[1].fix
    assert fix is not None
    assert (fix.waiting, fix.helped) == (2, 2)
    assert "lower the request for cpu from 9 to 4 (2 of 2)" in str(answer)


def test_the_head_says_which_pods_are_meant() -> None:
    answer = asked(*NODES, waiting("a", "a", "9"), waiting("b", "b"), labels="app=b")
    assert str(answer).startswith("no pod with the labels app=b of ")


def test_a_pod_on_a_node_that_the_cluster_lacks_adds_no_node() -> None:
    assert asked(*NODES, pod("stray", nodeName="gone"), waiting("a", "a", "9")).nodes == len(NODES)


def test_the_decisive_cause_is_the_one_that_alone_keeps_most_nodes_out() -> None:
    """Three nodes are tainted and small, two are only small: without the shortage, two fit."""
    tainted = [machine(f"t{i}", spec=TAINT) for i in range(3)]
    answer = asked(*tainted, *NODES[:2], waiting("a", "a", "8"))
    assert summary(answer) == [("Job default/a", 1, "no node has 8 cpu free; 5 nodes have 4")]
    assert answer.groups[0].decisive_nodes == 2


def test_a_shortage_is_about_all_nodes_unless_some_have_enough() -> None:
    large = machine("large", "64", spec=TAINT)
    answer = asked(large, *NODES, waiting("a", "a", "8"))
    assert summary(answer) == [("Job default/a", 1, "5 nodes lack cpu: 8 needed, at most 4 free")]


def test_room_on_nodes_that_the_pod_may_not_use_is_not_offered() -> None:
    some = machine("g", spec=TAINT, offers={"cpu": "64"})
    answer = asked(*NODES, some, pod("huge", cpu="90"))
    assert summary(answer)[0][2] == "5 nodes lack cpu: 90 needed, at most 4 free"


def test_a_resource_that_no_node_offers_is_named() -> None:
    gpu = {"requests": {"cpu": "1", GPU: "8"}, "limits": {GPU: "8"}}
    content = pod("train", containers=[{"name": "c", "image": "x", "resources": gpu}])
    some = machine("g", spec=TAINT, offers={GPU: "4"})
    assert summary(asked(*NODES, content))[0][2] == f"no node has any {GPU} free, and 8 is needed"
    assert summary(asked(*NODES, some, content))[0][2] == (
        f"no node has 8 {GPU} free; 1 node has 4"
    )


def test_pods_that_fit_wait_for_nothing_and_the_cluster_stays_as_it_is() -> None:
    answer = asked(*NODES, waiting("a", "a"), waiting("b", "b", "9"))
    assert (answer.pods, answer.fitting) == (2, 1)
    assert [group.workload for group in answer.groups] == ["Job default/b"]


def test_of_equal_pods_that_fit_nowhere_one_is_placed_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placed: list[str] = []
    place = ClusterModel.place

    def noted(model: ClusterModel, name: str, look: OnAttempt | None = None) -> Attempt:
        placed.append(name)
        return place(model, name, look)

    monkeypatch.setattr(ClusterModel, "place", noted)
    sizes = {"huge": "9", "vast": "9", "tiny": "3"}
    pods = [waiting(f"{name}-{i}", name, cpu) for name, cpu in sizes.items() for i in range(8)]
    model = model_of(cluster_of(NODES[0], *pods))
    with model.trial():
        placer = Placer(model)
        placer.place_waiting()
        left_over = placer.left_over()
    # One tiny pod fits. Then each of the others is tried once more, one of each workload.
    assert len(left_over) == 23
    assert len(placed) <= 2 * len(sizes) + 1
    none = "0/1 nodes are available: 1"
    assert {(each.pod.partition("-")[0], each.message) for each in left_over} == {
        (f"default/{name}", f"{none} Insufficient cpu. preemption: {none} {why}.")
        for name, why in (
            ("huge", "Preemption is not helpful for scheduling"),
            ("vast", "Preemption is not helpful for scheduling"),
            ("tiny", "No preemption victims found for incoming pod"),
        )
    }


def test_a_gated_pod_and_a_cluster_without_nodes_have_their_reasons() -> None:
    gated = waiting("a", "a", schedulingGates=[{"name": "example.com/quota"}])
    assert summary(asked(*NODES, gated)) == [
        ("Job default/a", 1, "scheduling gates: example.com/quota")
    ]
    assert summary(asked(waiting("a", "a")))[0][2] == "no nodes available to schedule pods"


def test_a_pod_that_is_rejected_before_any_node_has_its_cause_and_fix() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "nope"}}
    missing = "StorageClass on-demand and the missing PersistentVolumeClaim default/nope"
    (group,) = asked(*NODES, waiting("a", "a", volumes=[volume])).groups
    assert (group.cause, group.plugin, group.fix_text) == (
        'persistentvolumeclaim "nope" not found',
        "VolumeRestrictions",
        f"create the missing {missing}",
    )


def test_the_members_of_a_pod_group_wait_for_the_cause_of_the_first_that_does_not_fit() -> None:
    """The volumes differ from pod to pod, as those of service account tokens do."""
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    members = [
        pod(
            f"train-{i}",
            cpu="3",
            labels=labels,
            volumes=[{"name": f"token-{i}", "projected": {"sources": []}}],
            ownerReferences=[
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": "PyTorchJob",
                    "name": "train",
                    "uid": "u",
                    "controller": True,
                }
            ],
        )
        for i in range(4)
    ]
    answer = asked(*NODES[:3], pod_group("train", 4), *members)
    assert summary(answer) == [
        ("PyTorchJob default/train", 4, "no node has 3 cpu free; 3 nodes have 1")
    ]
    fix = answer.groups[0].fix
    assert fix is not None
    assert (fix.waiting, fix.helped) == (4, 4)


def test_a_pod_group_without_its_members_says_how_many_there_are() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    answer = asked(*NODES, pod_group("train", 3), pod("train-0", labels=labels))
    assert summary(answer) == [
        (
            "Pod default/train-0",
            1,
            (
                "group default/train: 1 of 3 members are here (current pods number: 1, "
                "minMember of group: 3)"
            ),
        )
    ]


def test_pods_of_other_schedulers_are_counted() -> None:
    others = [waiting(f"v-{i}", "v", schedulerName="volcano") for i in range(3)]
    others[0]["spec"]["nodeName"] = "n0"
    answer = asked(*NODES, *others, waiting("y", "y", schedulerName="yunikorn"))
    assert answer.notes[0] == "3 pods wait for other schedulers: 2 for volcano, 1 for yunikorn"
    chosen = asked(*NODES, *others, waiting("y", "y"), labels="app=y")
    assert not [note for note in chosen.notes if "other schedulers" in note]


def test_pods_are_chosen_by_namespace_and_label() -> None:
    pods = [waiting("a", "a", "9"), waiting("b", "b", "9"), waiting("b2", "b", "9")]
    pods[0]["metadata"]["namespace"] = "shop"
    assert summary(asked(*NODES, *pods, namespace="shop"))[0][0] == "Job shop/a"
    chosen = asked(*NODES, *pods, labels="app!=b")
    assert [group.workload for group in chosen.groups] == ["Job shop/a"]
    assert [group.workload for group in asked(*NODES, *pods).groups] == [
        "Job default/b",
        "Job shop/a",
    ]
    with pytest.raises(BadInputError, match="labels: unable to parse"):
        asked(*NODES, labels="a b")


def test_the_rows_are_groups_and_the_names_are_workloads() -> None:
    answer = asked(*NODES, waiting("a", "a", "9"))
    assert [*answer.names()] == ["Job default/a"]
    group: PendingGroup = answer.groups[0]
    assert next(iter(answer.rows().rows))[:3] == (group.workload, 1, group.cause)
    assert answer.page(1, 10)[0].groups == ()


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("", "ab"),
        ("app=a", "a"),
        ("app==a,tier", "a"),
        ("app!=a", "b"),
        ("!tier", "b"),
        ("app in (a, b)", "ab"),
        ("app notin (a),!tier", "b"),
    ],
)
def test_a_selector_is_that_of_kubectl(text: str, matching: str) -> None:
    labels = {"a": {"app": "a", "tier": "x"}, "b": {"app": "b"}}
    selector = selector_of_text(text)
    assert "".join(name for name, each in labels.items() if selector.matches(each)) == matching


@pytest.mark.parametrize("text", ["=a", "app in a", "a b", "app=a,,b", "app in ()("])
def test_a_wrong_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        selector_of_text(text)


def test_each_question_says_whether_its_amounts_count_pods_that_fit(tmp_path: Path) -> None:
    room, other = node("n1", cpu="4"), node("n2", cpu="1")
    small, large = pod("small", cpu="2"), pod("large", cpu="5")
    file = write_objects(tmp_path / "a.yaml", room, other, small, large)
    now = bayplan("why", "large", file).stdout
    assert "lower the request for cpu from 5 to 4" in now
    assert "the amounts are those of now; default/small waits, too, and fits on n1: `bayplan" in now
    after = bayplan("why", "--all-pending", file).stdout
    assert "the amounts below are what is free after the room that it takes" in after
    assert "lower the request for cpu from 5 to 2" in after
    # Where nothing that waits fits, both name the same amounts.
    alone = write_objects(tmp_path / "b.yaml", room, other, pod("larger", cpu="6"), large)
    assert "the amounts are" not in bayplan("why", "large", alone).stdout
    assert "the amounts below" not in bayplan("why", "--all-pending", alone).stdout


def test_nodes_that_lack_two_resources_are_rejected_by_one_plugin() -> None:
    """Most nodes are not selected and small; the three that are selected lack cpu and memory."""
    chosen = [machine(f"c{i}", labels={"pool": "c"}) for i in range(3)]
    large = {"requests": {"memory": "32Gi"}, "nodeSelector": {"pool": "c"}}
    answer = asked(*chosen, *NODES, waiting("a", "a", "8", **large))
    assert answer.groups[0].plugin == "NodeResourcesFit"
    assert answer.groups[0].decisive_nodes == 3
