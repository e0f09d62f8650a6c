"""Pods drawn over everything that admission and validation read, valid and invalid.

`setup` has the objects that decide: namespaces with limits and quotas, classes of runtimes,
priorities and storage. `PodDraw` draws a pod that is valid, and then makes up to three changes,
most of which are mistakes.
"""

import random
from collections.abc import Callable
from typing import Any

from tests.kit.manifests import Content, api_object

PLAIN, DEFAULTED, BOUNDED, LIMITED, SCOPED = "plain", "defaulted", "bounded", "limited", "scoped"
NAMESPACES = (PLAIN, DEFAULTED, BOUNDED, LIMITED, SCOPED)
GPU = "nvidia.com/gpu"
PAGES = "hugepages-2Mi"


def _limits(name: str, namespace: str, *items: Content) -> Content:
    return api_object("v1 LimitRange", name, namespace, spec={"limits": list(items)})


def _quota(name: str, namespace: str, hard: Content, **spec: Any) -> Content:
    return api_object("v1 ResourceQuota", name, namespace, spec={"hard": hard, **spec})


def _priority(name: str, value: int, **parts: Any) -> Content:
    return api_object("scheduling.k8s.io/v1 PriorityClass", name, value=value, **parts)


def _runtime(name: str, **parts: Any) -> Content:
    return api_object("node.k8s.io/v1 RuntimeClass", name, handler="h", **parts)


def setup() -> list[Content]:
    """The objects that decide about pods, in the order of their creation."""
    toleration = {"key": "kata", "operator": "Exists", "effect": "NoSchedule"}
    wide = {"operator": "Exists", "effect": "NoExecute"}
    return [
        *(api_object("v1 Namespace", name) for name in NAMESPACES),
        _runtime(
            "kata",
            overhead={"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            scheduling={"nodeSelector": {"kata": "true"}, "tolerations": [toleration]},
        ),
        _runtime("wide", scheduling={"tolerations": [wide, toleration]}),
        _runtime("bare"),
        _priority("high", 1000),
        _priority("meek", -5, preemptionPolicy="Never"),
        _limits(
            "containers",
            DEFAULTED,
            {
                "type": "Container",
                "default": {"cpu": "2", "memory": "1Gi"},
                "defaultRequest": {"cpu": "500m"},
            },
        ),
        _limits(
            "bounds",
            BOUNDED,
            {
                "type": "Container",
                "min": {"cpu": "100m"},
                "max": {"cpu": "4", "memory": "4Gi"},
                "maxLimitRequestRatio": {"cpu": "4"},
            },
            {"type": "Pod", "max": {"cpu": "6", "memory": "6Gi"}},
        ),
        _quota(
            "compute",
            LIMITED,
            {
                "requests.cpu": "6",
                "limits.memory": "8Gi",
                "pods": "5",
                f"requests.{GPU}": "2",
                f"requests.{PAGES}": "64Mi",
            },
        ),
        _quota("besteffort", SCOPED, {"pods": "1"}, scopes=["BestEffort"]),
        _quota(
            "important",
            SCOPED,
            {"requests.memory": "3Gi"},
            scopeSelector={
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                ]
            },
        ),
        _quota("ending", SCOPED, {"count/pods": "1", "cpu": "1"}, scopes=["Terminating"]),
    ]


def residents() -> list[Content]:
    """Pods that use a part of the quotas."""
    resources = {"requests": {"cpu": "1500m"}, "limits": {"memory": "1536Mi", "cpu": "2"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    bare = [{"name": "c", "image": "i"}]
    return [
        api_object("v1 Pod", "resident", LIMITED, spec={"containers": containers}),
        api_object("v1 Pod", "resident", SCOPED, spec={"containers": bare}),
    ]


class PodDraw:
    """Draws pods; equal seeds draw equal pods."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def pod(self) -> Content:
        draw = self._random
        self._count += 1
        containers = [self._container(name) for name in ("c", "d")[: draw.choice((1, 1, 2))]]
        spec: Content = {"containers": containers}
        if draw.random() < 0.25:
            policy = {"restartPolicy": "Always"} if draw.random() < 0.5 else {}
            spec["initContainers"] = [{**self._container("init"), **policy}]
        pod = api_object("v1 Pod", f"p{self._count}", draw.choice(NAMESPACES), spec=spec)
        for change in draw.sample(_CHANGES, draw.choice((0, 1, 1, 1, 2, 2, 3))):
            change(draw, pod)
        return pod

    def _container(self, name: str) -> Content:
        draw = self._random
        requests: Content = {}
        limits: Content = {}
        for resource, amounts in _AMOUNTS.items():
            if draw.random() < 0.6:
                requests[resource] = draw.choice(amounts)
            if draw.random() < 0.4:
                limits[resource] = draw.choice(amounts[-2:])
        parts = {"requests": requests, "limits": limits}
        resources = {field: part for field, part in parts.items() if part}
        return {"name": name, "image": "i", **({"resources": resources} if resources else {})}


_AMOUNTS = {
    "cpu": ("50m", "0.5", "1", "1500m", "3"),
    "memory": ("64Mi", "0.5Gi", "1Gi", "2048Mi", "3G"),
    "ephemeral-storage": ("1Gi", "2Gi"),
}
Change = Callable[[random.Random, Content], None]


def _first(pod: Content) -> Content:
    container: Content = pod["spec"]["containers"][0]
    return container


def _resource(draw: random.Random, pod: Content) -> None:
    """Extended resources, huge pages, and names that no container has."""
    resources = _first(pod).setdefault("resources", {})
    name = draw.choice((GPU, PAGES, "example.com/x", "gpu", "a/b/c", "kubernetes.io/x", "pods"))
    amounts = ("1", "2", "500m") if name != PAGES else ("4Mi", "3Mi", "32Mi", "128Mi")
    for field in draw.choice((["limits"], ["requests"], ["limits", "requests"])):
        resources[field] = {**resources.get(field, {}), name: draw.choice(amounts)}
    if draw.random() < 0.3:
        _first(pod)["resources"] = {"limits": {name: draw.choice(amounts)}}


def _negative(draw: random.Random, pod: Content) -> None:
    field = draw.choice(("requests", "limits"))
    _first(pod)["resources"] = {field: {draw.choice(("cpu", "memory")): "-1"}}


def _runtime_class(draw: random.Random, pod: Content) -> None:
    spec = pod["spec"]
    spec["runtimeClassName"] = draw.choice(("kata", "kata", "wide", "bare", "gone", "Bad_"))
    if draw.random() < 0.3:
        spec["nodeSelector"] = draw.choice(({"kata": "false"}, {"kata": "true"}, {"disk": "ssd"}))
    if draw.random() < 0.3:
        amounts = ({"cpu": "0.25", "memory": "120Mi"}, {"cpu": "1"}, {"memory": "1"})
        spec["overhead"] = draw.choice(amounts)


def _overhead(draw: random.Random, pod: Content) -> None:
    pod["spec"]["overhead"] = draw.choice(({"cpu": "1"}, {"cpu": "-1"}, {"x": "1"}, {GPU: "1"}))


def _priorities(draw: random.Random, pod: Content) -> None:
    spec = pod["spec"]
    names = ("high", "meek", "gone", "system-node-critical", "Bad_")
    spec["priorityClassName"] = draw.choice(names)
    if draw.random() < 0.3:
        spec["preemptionPolicy"] = draw.choice(("Never", "PreemptLowerPriority", "Sometimes"))
    if draw.random() < 0.3 and spec["priorityClassName"] in ("high", "meek"):
        spec["priority"] = draw.choice((1000, -5, 7))


def _tolerations(draw: random.Random, pod: Content) -> None:
    choices: tuple[Content, ...] = (
        {"operator": "Exists"},
        {"key": "kata", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "kata", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "a", "operator": "Exists", "value": "v"},
        {"key": "a", "value": "b c"},
        {"key": "a b", "operator": "Exists"},
        {"value": "v"},
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "effect": "Never"},
        {"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    )
    pod["spec"]["tolerations"] = draw.sample(choices, draw.choice((1, 1, 2)))


def _claims(draw: random.Random, pod: Content) -> None:
    one, other = {"resourceClaimName": "c"}, {"resourceClaimTemplateName": "t"}
    choices: tuple[list[Content], ...] = (
        [{"name": "a", **one}],
        [{"name": "a", **other}],
        [{"name": "a", **one, **other}],
        [{"name": "a"}],
        [{"name": "a", **one}, {"name": "a", **other}],
        [{"name": "A_", **one}],
        [{"name": "a", "resourceClaimName": "C_"}],
        [],
    )
    pod["spec"]["resourceClaims"] = draw.choice(choices)
    uses = ([{"name": "a"}], [{"name": "b"}], [{"name": "a"}, {"name": "a"}])
    requests = ([{"name": "a", "request": "r"}, {"name": "a"}], [{"name": "a", "request": "R_"}])
    _first(pod).setdefault("resources", {})["claims"] = draw.choice((*uses, *requests))


def _volumes(draw: random.Random, pod: Content) -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {}}}}
    template["spec"]["resources"]["requests"]["storage"] = "1Gi"
    made = {"persistentVolumeClaim": {"claimName": f"{pod['metadata']['name']}-e"}}
    choices: tuple[list[Content], ...] = (
        [{"name": "v", **claim}],
        [{"name": "v", **claim}, {"name": "v", "emptyDir": {}}],
        [{"name": "v", "persistentVolumeClaim": {"claimName": ""}}],
        [{"name": "V_", "emptyDir": {}}],
        [{"name": "e", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "v", **made}],
        [],
    )
    pod["spec"]["volumes"] = draw.choice(choices)
    mount, other = {"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}
    uses = ([mount], [other], [mount, {**mount, "name": "v"}], [{"name": "v"}])
    _first(pod)["volumeMounts"] = draw.choice((*uses, [mount], []))


def _affinities(draw: random.Random, pod: Content) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"

    def nodes(**one: Any) -> Content:
        return {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}}

    def pods(**term: Any) -> Content:
        return {"podAntiAffinity": {required: [{"topologyKey": "zone", **term}]}}

    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    choices: tuple[Content, ...] = (
        nodes(key="a", operator="In", values=["b"]),
        nodes(key="a", operator="In"),
        nodes(key="a", operator="Exists", values=["b"]),
        nodes(key="a", operator="Gt", values=["1", "2"]),
        nodes(key="a", operator="Like", values=["b"]),
        nodes(key="a b", operator="Exists"),
        nodes(key="a", operator="In", values=["b c"]),
        {"nodeAffinity": {required: {"nodeSelectorTerms": []}}},
        {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchFields": [field]}]}}},
        {"nodeAffinity": {preferred: [{"weight": 0, "preference": {}}]}},
        pods(),
        pods(topologyKey=""),
        pods(labelSelector={"matchLabels": {"a": "b"}}, matchLabelKeys=["hash"]),
        pods(labelSelector={"matchLabels": {"hash": "b"}}, matchLabelKeys=["hash"]),
        pods(matchLabelKeys=["hash"]),
        pods(labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt"}]}),
        pods(namespaces=["A_"]),
        {"podAffinity": {preferred: [{"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}]}},
    )
    pod["metadata"]["labels"] = {"hash": "h1"}
    pod["spec"]["affinity"] = draw.choice(choices)


def _spreading(draw: random.Random, pod: Content) -> None:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    choices: tuple[list[Content], ...] = (
        [base],
        [{**base, "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["hash"]}],
        [base, base],
        [{**base, "maxSkew": 0}],
        [{**base, "topologyKey": ""}],
        [{**base, "whenUnsatisfiable": "Never"}],
        [{**base, "minDomains": 0}],
        [{**base, "minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}],
        [{**base, "nodeTaintsPolicy": "Maybe"}],
        [{**base, "matchLabelKeys": ["hash"]}],
    )
    pod["metadata"]["labels"] = {"hash": "h1"}
    pod["spec"]["topologySpreadConstraints"] = draw.choice(choices)


def _gates(draw: random.Random, pod: Content) -> None:
    names = draw.choice((["a.b/c"], ["a", "a"], ["a b"], ["a", "b"]))
    pod["spec"]["schedulingGates"] = [{"name": name} for name in names]


def _ports(draw: random.Random, pod: Content) -> None:
    choices: tuple[list[Content], ...] = (
        [{"containerPort": 80}],
        [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}],
        [{"containerPort": 0}],
        [{"containerPort": 70000}],
        [{"containerPort": 80, "hostPort": 70000}],
        [{"containerPort": 80, "protocol": "TPC"}],
        [{"containerPort": 80, "hostPort": 81}],
    )
    _first(pod)["ports"] = draw.choice(choices)
    if draw.random() < 0.4:
        pod["spec"]["hostNetwork"] = True


def _pod_level(draw: random.Random, pod: Content) -> None:
    choices: tuple[Content, ...] = (
        {"requests": {"cpu": "8", "memory": "8Gi"}},
        {"requests": {"cpu": "10m"}},
        {"limits": {"cpu": "8", "memory": "8Gi"}},
        {"limits": {"cpu": "20m"}},
        {"requests": {GPU: "1"}, "limits": {GPU: "1"}},
        {"requests": {"cpu": "9"}, "limits": {"cpu": "8"}},
    )
    pod["spec"]["resources"] = draw.choice(choices)


def _names(draw: random.Random, pod: Content) -> None:
    spec = pod["spec"]
    field, value = draw.choice(
        (
            ("restartPolicy", "Sometimes"),
            ("activeDeadlineSeconds", 60),
            ("activeDeadlineSeconds", 0),
            ("nodeSelector", {"a": "b c"}),
            ("nodeSelector", {"disk": "ssd"}),
            ("terminationGracePeriodSeconds", 5),
        )
    )
    spec[field] = value


def _sidecars(draw: random.Random, pod: Content) -> None:
    """Init containers, huge pages in several containers, and pods as a whole with both."""
    pages = {"limits": {PAGES: draw.choice(("2Mi", "4Mi")), "memory": "64Mi"}}
    init = {"name": draw.choice(("s", "c")), "image": "i", "resources": pages}
    if draw.random() < 0.5:
        init["restartPolicy"] = draw.choice(("Always", "Sometimes", "Never"))
    pod["spec"]["initContainers"] = [init]
    if draw.random() < 0.5:
        whole = draw.choice(({"limits": {PAGES: "2Mi"}}, {"requests": {"cpu": "9"}}))
        pod["spec"]["resources"] = whole


def _large(draw: random.Random, pod: Content) -> None:
    """Amounts in unusual forms."""
    amounts = ("1e3", "1E", "0.0001", "1.5Gi", "1000001Ki", "5u", "12345678901234567890", "0")
    field = draw.choice(("requests", "limits"))
    name = draw.choice(("cpu", "memory"))
    _first(pod)["resources"] = {field: {name: draw.choice(amounts)}}


def _many_gpus(draw: random.Random, pod: Content) -> None:
    count = draw.choice(("1", "2", "3"))
    limits = {GPU: count, "memory": "1Gi", "cpu": "1"}
    for container in pod["spec"]["containers"]:
        container["resources"] = {"limits": limits}
    pod["metadata"]["namespace"] = LIMITED


def _long_names(draw: random.Random, pod: Content) -> None:
    spec, long = pod["spec"], draw.choice(("a" * 64, "a" * 254, "-a", "a.", "a.b"))
    field = draw.choice(("nodeSelector", "gates", "runtime", "toleration", "container", "claim"))
    if field == "nodeSelector":
        spec["nodeSelector"] = draw.choice(({long: "v"}, {"k": long}, {f"{long}/k": "v"}))
    elif field == "gates":
        spec["schedulingGates"] = [{"name": long}]
    elif field == "runtime":
        spec["runtimeClassName"] = long
    elif field == "toleration":
        spec["tolerations"] = [{"key": long, "operator": "Exists"}, {"key": "k", "value": long}]
    elif field == "claim":
        spec["resourceClaims"] = [{"name": long, "resourceClaimName": long}]
    else:
        _first(pod)["name"] = long


def _twins(draw: random.Random, pod: Content) -> None:
    name = draw.choice(("c", "C_"))
    pod["spec"]["containers"] = [_first(pod), {"name": name, "image": "i"}]


_CHANGES: list[Change] = [
    _resource,
    _resource,
    _negative,
    _runtime_class,
    _runtime_class,
    _overhead,
    _priorities,
    _priorities,
    _tolerations,
    _claims,
    _volumes,
    _affinities,
    _spreading,
    _gates,
    _ports,
    _pod_level,
    _names,
    _twins,
    _sidecars,
    _large,
    _many_gpus,
    _long_names,
]
