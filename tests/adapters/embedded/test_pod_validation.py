"""What the API server refuses in a pod's spec: each rule with its path."""

from typing import Any

import pytest

from bayplan.adapters.embedded.pod_validation import pod_spec
from bayplan.api.objects import Pod, decode
from tests.kit.manifests import container, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = "topology.kubernetes.io/zone"
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def complaints(**spec: Any) -> list[str]:
    result = decode("v1 Pod", pod(**spec))
    assert isinstance(result, Pod)
    return [str(problem) for problem in pod_spec(result.spec, "spec")]


def paths(**spec: Any) -> list[str]:
    return list(dict.fromkeys(one.partition(": ")[0] for one in complaints(**spec)))


def affinity(kind: str, **term: Any) -> dict[str, Any]:
    return {kind: {REQUIRED: [{"topologyKey": ZONE, **term}]}}


GOOD: list[dict[str, Any]] = [
    {},
    {"nodeSelector": {"disk": "ssd"}, "nodeName": "n1", "schedulerName": "bayplan"},
    {"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"}]},
    {"tolerations": [{"key": "a", "operator": "Exists", "effect": "", "value": ""}]},
    {"topologySpreadConstraints": [SPREAD, {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
    {"topologySpreadConstraints": [{**SPREAD, "minDomains": 2, "nodeTaintsPolicy": "Honor"}]},
    {"affinity": affinity("podAffinity", labelSelector={}, matchLabelKeys=["h"])},
    {"affinity": affinity("podAntiAffinity", namespaces=["kube-system"], namespaceSelector={})},
    {"schedulingGates": [{"name": "example.com/quota"}, {"name": "x"}]},
    {"priority": -10, "preemptionPolicy": "Never", "restartPolicy": "OnFailure"},
    {"initContainers": [container(name="init", restartPolicy="Always")]},
    {"schedulerName": "whatever it is called"},
    {"resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}},
    {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 80}])]},
    {"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]},
]


@pytest.mark.parametrize("spec", GOOD)
def test_specs_valid_upstream_are_accepted(spec: dict[str, Any]) -> None:
    assert complaints(**spec) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"containers": []}, "spec.containers"),
    ({"containers": [container(), container()]}, "spec.containers[1].name"),
    ({"containers": [container("1x")]}, "spec.containers[0].resources.requests.cpu"),
    ({"initContainers": [container()]}, "spec.initContainers[0].name"),
    (
        {"initContainers": [container("-1", name="init")]},
        "spec.initContainers[0].resources.requests[cpu]",
    ),
    ({"resources": {"requests": {"cpu": "500m"}}}, "spec.resources.requests[cpu]"),
    (
        {
            "resources": {"limits": {"cpu": "500m"}},
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
        },
        "spec.resources.containers[0][cpu].limits",
    ),
    ({"schedulingGates": [{"name": "a"}], "nodeName": "n1"}, "spec.nodeName"),
    ({"resources": {"requests": {"storage": 1}}}, "spec.resources.requests[storage]"),
    ({"overhead": {"cpu": "-1"}}, "spec.overhead.limits[cpu]"),
    ({"nodeSelector": {"disk": "a b"}}, "spec.nodeSelector"),
    ({"nodeName": "N1"}, "spec.nodeName"),
    ({"priorityClassName": "_"}, "spec.priorityClassName"),
    ({"priority": 2**31}, "spec.priority"),
    ({"restartPolicy": "Allways"}, "spec.restartPolicy"),
    ({"preemptionPolicy": "Nevr"}, "spec.preemptionPolicy"),
    ({"schedulingGates": [{"name": "a b"}]}, "spec.schedulingGates[0]"),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates[1]"),
]


@pytest.mark.parametrize(("spec", "path"), BAD)
def test_specs_invalid_upstream_are_refused_with_the_path(spec: dict[str, Any], path: str) -> None:
    assert paths(**spec) == [path]


@pytest.mark.parametrize(
    ("ports", "path"),
    [
        ([{"containerPort": 0}], "[0].containerPort"),
        ([{"hostPort": 80}], "[0].containerPort"),
        ([{"containerPort": 80, "hostPort": 65536}], "[0].hostPort"),
        ([{"containerPort": 80, "protocol": "TPC"}], "[0].protocol"),
        (
            [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}],
            "[1].hostPort",
        ),
    ],
)
def test_ports_are_validated(ports: list[dict[str, Any]], path: str) -> None:
    assert paths(containers=[container(ports=ports)]) == [f"spec.containers[0].ports{path}"]


def test_on_the_host_network_host_ports_must_equal_container_ports() -> None:
    ports = [{"containerPort": 80, "hostPort": 81}]
    assert paths(hostNetwork=True, containers=[container(ports=ports)]) == [
        "spec.containers[0].ports[0].hostPort"
    ]


def test_a_host_port_is_unique_per_protocol_and_address() -> None:
    ports = [
        {"containerPort": 80, "hostPort": 80},
        {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
        {"containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1"},
    ]
    assert paths(containers=[container(ports=ports)]) == []


@pytest.mark.parametrize(
    ("toleration", "field"),
    [
        ({"key": "a", "operator": "Equals"}, "operator"),
        ({"key": "a", "operator": "Exists", "value": "b"}, "operator"),
        ({"value": "b"}, "operator"),
        ({"key": "a", "value": "b c"}, "operator"),
        ({"key": "a b", "operator": "Exists"}, "key"),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedul"}, "effect"),
        ({"key": "a", "operator": "Exists", "tolerationSeconds": 3}, "effect"),
    ],
)
def test_tolerations_are_validated(toleration: dict[str, Any], field: str) -> None:
    assert paths(tolerations=[toleration]) == [f"spec.tolerations[0].{field}"]


@pytest.mark.parametrize(
    ("value", "details"),
    [
        ("900", []),
        ("-3", []),
        ("07", ["must be a valid decimal integer in canonical form"]),
        (
            "x",
            [
                "must be a valid decimal integer in canonical form",
                'strconv.ParseInt: parsing "x": invalid syntax',
            ],
        ),
        ("", ["must be non-empty", 'strconv.ParseInt: parsing "": invalid syntax']),
        (
            "9223372036854775808",
            ['strconv.ParseInt: parsing "9223372036854775808": value out of range'],
        ),
    ],
)
def test_a_toleration_compares_with_a_number_of_64_bits(value: str, details: list[str]) -> None:
    """The texts are those of kube-apiserver with the gate TaintTolerationComparisonOperators."""
    toleration = {"key": "a", "operator": "Gt", "value": value}
    start = f'spec.tolerations[0].value: Invalid value: "{value}": '
    assert complaints(tolerations=[toleration]) == [start + detail for detail in details]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"maxSkew": 0}, ["maxSkew"]),
        ({"topologyKey": ""}, ["topologyKey"]),
        ({"whenUnsatisfiable": "DoNotSchedul"}, ["whenUnsatisfiable"]),
        ({"minDomains": 0}, ["minDomains"]),
        ({"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}, ["minDomains"]),
        ({"nodeAffinityPolicy": "Honour"}, ["nodeAffinityPolicy"]),
        ({"nodeTaintsPolicy": "No"}, ["nodeTaintsPolicy"]),
        ({"matchLabelKeys": ["h"]}, ["matchLabelKeys"]),
        ({"matchLabelKeys": ["a b"], "labelSelector": {}}, ["matchLabelKeys[0]"]),
        ({"labelSelector": {"matchLabels": {"a": "b c"}}}, ["labelSelector.matchLabels"]),
    ],
)
def test_topology_spread_constraints_are_validated(
    change: dict[str, Any], fields: list[str]
) -> None:
    expected = [f"spec.topologySpreadConstraints[0].{field}" for field in fields]
    assert paths(topologySpreadConstraints=[{**SPREAD, **change}]) == expected


def test_two_equal_spread_constraints_are_refused() -> None:
    assert paths(topologySpreadConstraints=[SPREAD, SPREAD]) == [
        "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}"
    ]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"topologyKey": ""}, ["topologyKey"]),
        ({"topologyKey": "a b"}, ["topologyKey"]),
        ({"namespaces": ["a.b"]}, ["namespace"]),
        ({"labelSelector": {"matchLabels": {"a b": ""}}}, ["labelSelector.matchLabels"]),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]}},
            ["namespaceSelector.matchExpressions[0].operator"],
        ),
        ({"matchLabelKeys": ["h"]}, ["matchLabelKeys"]),
        (
            {"labelSelector": {}, "matchLabelKeys": ["h"], "mismatchLabelKeys": ["h"]},
            ["matchLabelKeys[0]"],
        ),
    ],
)
def test_pod_affinity_is_validated(kind: str, change: dict[str, Any], fields: list[str]) -> None:
    expected = [f"spec.affinity.{kind}.{REQUIRED}[0].{field}" for field in fields]
    assert paths(affinity=affinity(kind, **change)) == expected


@pytest.mark.parametrize("weight", [0, 101, -1])
def test_weights_range_from_1_to_100(weight: int) -> None:
    preference = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    nodes = {PREFERRED: [{"weight": weight, "preference": preference}]}
    pods = {PREFERRED: [{"weight": weight, "podAffinityTerm": {"topologyKey": ZONE}}]}
    assert paths(affinity={"nodeAffinity": nodes, "podAffinity": pods}) == [
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
        f"spec.affinity.podAffinity.{PREFERRED}[0].weight",
    ]


def test_a_misspelled_operator_is_reported_with_its_whole_path() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Inn", "values": ["a"]}]}]
    nodes = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    place = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
    expected = 'not a valid selector operator; did you mean "In"?'
    assert complaints(affinity=nodes) == [f'{place}.operator: Invalid value: "Inn": {expected}']


CLAIM = {"name": "a", "resourceClaimName": "c"}


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (
            {"activeDeadlineSeconds": 0},
            (
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
                "inclusive"
            ),
        ),
        (
            {"volumes": [{"name": "v"}, {"name": "v"}]},
            'spec.volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"resourceClaims": [{**CLAIM, "resourceClaimTemplateName": "t"}]},
            (
                'spec.resourceClaims[0]: Invalid value: {"Name":"a","ResourceClaimName":"c",'
                '"ResourceClaimTemplateName":"t"}: at most one of `resourceClaimName` or '
                "`resourceClaimTemplateName` may be specified"
            ),
        ),
        (
            {"containers": [container(resources={"claims": [{"name": "a"}]})]},
            (
                'spec.containers[0].resources.claims[0]: Not found: "a": must be one of the names '
                "in pod.spec.resourceClaims which is empty"
            ),
        ),
        (
            {
                "resourceClaims": [CLAIM],
                "containers": [container(resources={"claims": [{"name": "b"}]})],
            },
            (
                'spec.containers[0].resources.claims[0]: Not found: "b": must be one of the names '
                "in pod.spec.resourceClaims: a"
            ),
        ),
    ],
)
def test_volumes_claims_and_deadlines_are_validated(spec: dict[str, Any], complaint: str) -> None:
    assert complaints(**spec) == [complaint]


def test_what_a_server_has_stored_may_mount_what_is_not_there() -> None:
    mounts = [{"name": "gone", "mountPath": "/v"}]
    stored = decode("v1 Pod", pod(containers=[container(volumeMounts=mounts)]))
    assert isinstance(stored, Pod)
    assert list(pod_spec(stored.spec, "spec", is_new=False)) == []
