"""Causes of volumes, devices, ports and node rules name the objects at fault."""

from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, decode
from bayplan.explain.causes import causes_of, device_details, volume_details
from bayplan.explain.diagnosis import diagnose
from bayplan.explain.explainer import comparison_of
from tests.kit.objects import node, pod
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
    model = model_of([node("n1")], [pod("p", volumes=DATA)], objects)
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert (cause.plugin, cause.nodes) == ("VolumeBinding", 1)
    text = "PersistentVolumeClaim default/data: bound to pv, which is reachable from nodes with"
    assert cause.details == (f"{text} zone In (a)",)
    assert list(volume_details(model, pod("p", volumes=DATA))) == list(cause.details)


def test_a_device_claim_has_its_requests_in_the_details() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    waiting = pod("p", resourceClaims=claims)
    assert list(device_details(model_of([node("n1")], [waiting]), waiting)) == [
        "ResourceClaim default/gpu does not exist"
    ]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
    claim = {
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    objects = {RESOURCE_CLAIM: [decode(RESOURCE_CLAIM, claim)]}
    assert list(device_details(model_of([node("n1")], [waiting], objects), waiting)) == [
        "ResourceClaim default/gpu requests 2 of DeviceClass gpu, which does not exist",
        "the cluster offers 0 devices in 0 ResourceSlices",
    ]


def test_a_port_names_the_pod_that_uses_it() -> None:
    port = {"containerPort": 80, "hostPort": 80}
    containers = [{"name": "c", "ports": [port]}]
    user = pod("web", on="n1", containers=containers)
    model = model_of([node("n1")], [user, pod("p", containers=containers)])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert cause.details == ("default/web uses port 80 on n1",)


def test_node_rules_have_the_number_of_matching_nodes_in_the_details() -> None:
    model = model_of([node("n1", labels={"disk": "ssd"})], [pod("p", nodeSelector={"disk": "hdd"})])
    (cause,) = causes_of(model, diagnose(model, "default/p"))
    assert cause.details == ("node selector disk=hdd matches 0 of 1 nodes; disk is ssd elsewhere",)


def test_a_comparison_removes_the_pod_from_its_node() -> None:
    placed = pod("p", on="n1", cpu="1")
    comparison = comparison_of(model_of([node("n1", cpu="1")], [placed]), placed.pod)
    assert (comparison.feasible, comparison.rejection) == (1, "")
