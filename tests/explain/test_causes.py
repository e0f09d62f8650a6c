"""Causes of volumes, devices, ports and node rules name the objects at fault."""

from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, decode
from bayplan.explain.causes import causes_of
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.explainer import comparison_of
from bayplan.testing import node, pod
from tests.explain.reported_causes import case, causes_in
from tests.model.clusters import model_of

DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def test_an_unreachable_volume_has_its_node_affinity_in_the_details() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    volume = {
        "metadata": {"name": "pv"},
        "spec": {
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
            "claimRef": {"namespace": "default", "name": "data"},
        },
    }
    claim = {
        "metadata": {
            "name": "data",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "pv"},
    }
    objects = {
        PERSISTENT_VOLUME: [decode(PERSISTENT_VOLUME, volume)],
        PERSISTENT_VOLUME_CLAIM: [decode(PERSISTENT_VOLUME_CLAIM, claim)],
    }
    model = model_of([node("n1")], [pod("p", spec={"volumes": DATA})], objects)
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert (cause.plugin, cause.nodes) == ("VolumeBinding", 1)
    text = "PersistentVolumeClaim default/data: bound to pv, which is reachable from nodes with"
    assert cause.details == (f"{text} zone In (a)",)


def test_a_port_names_the_pod_that_uses_it() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    containers = [{"name": "c", "ports": [port]}]
    user = pod("web", node="n1", containers=containers)
    model = model_of([node("n1")], [user, pod("p", containers=containers)])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert cause.details == ("default/web uses port 80 on n1",)


def test_node_rules_have_the_number_of_matching_nodes_in_the_details() -> None:
    nodes = [node(f"n{size}", labels={"disk": f"ssd-{size}"}) for size in (10, 2)]
    model = model_of(nodes, [pod("p", node_selector={"disk": "hdd"})])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    rule = "node selector disk=hdd matches 0 of 2 nodes"
    assert cause.details == (f"{rule}; disk is ssd-2, ssd-10 elsewhere",)


def test_terms_of_a_node_affinity_are_alternatives() -> None:
    terms = [
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
        {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    waiting = pod("p", affinity={"nodeAffinity": required})
    model = model_of([node("n1", labels={"disk": "hdd"})], [waiting])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert cause.details == (
        "node affinity: a node must match one of 2 terms",
        "  term disk In (ssd) matches 0 of 1 nodes",
        "  term gpu Exists matches 0 of 1 nodes",
    )


def test_a_nominated_pod_holds_the_room() -> None:
    [cause] = causes_in(case("153-nominated.yaml"), pod="default/low")
    assert cause.nearest is not None
    assert cause.nearest.distance == "lacks 1"
    assert cause.details == (
        "default/pre (priority 1000) is nominated to n1 and holds 2 cpu there",
        "default/victim on n1 is terminating and holds 2 cpu",
    )


def test_a_terminating_pod_holds_its_room() -> None:
    leaving = pod("leaving", node="n1", cpu="2", terminating=True)
    model = model_of([node("n1", cpu="2")], [leaving, pod("p", cpu="1")])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert cause.details == ("default/leaving on n1 is terminating and holds 2 cpu",)


def test_a_group_that_lacks_members_names_those_that_exist() -> None:
    [cause] = causes_in(case("50-pgbig.yaml"), pod="default/a")
    assert cause.reason == (
        "group default/train: 2 of 3 members are here (current pods number: 2, minMember of "
        "group: 3)"
    )
    assert cause.details == (
        "2 members exist, 3 are needed, 1 missing: a, b",
        (
            "old (pod-group.scheduling.sigs.k8s.io=train) is no member: no known kind of group has "
            "this label"
        ),
    )
    [missing] = causes_in(case("50-pgbig.yaml"), pod="default/ghost")
    assert missing.details == (
        "the object of PodGroup default/missing (scheduling.x-k8s.io) does not exist",
    )


def test_a_comparison_removes_the_pod_from_its_node() -> None:
    placed = pod("p", node="n1", cpu="1")
    comparison = comparison_of(model_of([node("n1", cpu="1")], [placed]), placed.pod)
    assert (comparison.feasible, comparison.rejection) == (1, "")


def test_a_terminating_pod_that_leaves_too_little_is_not_named() -> None:
    """Without it, the node would still lack 2 cpu."""
    leaving = pod("leaving", node="n1", cpu="1", terminating=True)
    model = model_of([node("n1", cpu="4")], [leaving, pod("p", cpu="6")])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert cause.nearest is not None
    assert cause.details == ()
