"""What admission plugins change in new objects, and what they refuse, in kube-apiserver's words."""

from typing import Any

import pytest

from bayplan.adapters.embedded import pod_amounts
from bayplan.adapters.embedded.admission.chain import AdmissionChain
from bayplan.adapters.embedded.admission.default_storage_class import DEFAULT_CLASS_ANNOTATION
from bayplan.adapters.embedded.admission.default_toleration_seconds import TOLERATION_SECONDS
from bayplan.adapters.embedded.admission.extended_resource_toleration import (
    ExtendedResourceToleration,
)
from bayplan.adapters.embedded.admission.limit_ranger import ANNOTATION
from bayplan.adapters.embedded.admission.plugin_set import PluginSet, plugin_set
from bayplan.adapters.embedded.admission.pod_topology_labels import topology_labels, with_labels
from bayplan.adapters.embedded.admission.priority import PriorityRefusal, with_priority
from bayplan.adapters.embedded.admission.quota_usage import count_name
from bayplan.adapters.embedded.admission.resource_quota import ResourceQuotaAdmission
from bayplan.adapters.embedded.admission.runtime_class import merged_tolerations
from bayplan.adapters.embedded.api_errors import ForbiddenError
from bayplan.adapters.embedded.api_features import NO_FEATURES
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.admission_objects import LIMIT_RANGE, RUNTIME_CLASS
from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from bayplan.api.objects import ObjectMeta, Pod, PriorityClass
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey
from bayplan.problems import BadInputError
from tests.kit.manifests import Content, container, node, pod

ZONE = "topology.kubernetes.io/zone"
NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": TOLERATION_SECONDS,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}


def cluster(*objects: Content, plugins: PluginSet | None = None) -> EmbeddedCluster:
    made = EmbeddedCluster(ManualClock(), admission=plugins or plugin_set())
    for each in objects:
        made.create(each)
    return made


def admitted(content: Content, *objects: Content, plugins: PluginSet | None = None) -> Content:
    """The spec of a pod as it is stored."""
    spec: Content = cluster(*objects, plugins=plugins).create(content).content["spec"]
    return spec


def refusal(content: Content, *objects: Content) -> str:
    server = cluster(*objects)
    with pytest.raises(ForbiddenError) as problem:
        server.create(content)
    return str(problem.value)


def resources(requests: Content | None = None, limits: Content | None = None) -> Content:
    parts = {"requests": requests, "limits": limits}
    return {"name": "c", "image": "i", "resources": {k: v for k, v in parts.items() if v}}


def bare_pod(name: str = "web", *containers: Content, **spec: Any) -> Content:
    """A pod whose containers have no resources unless they are given."""
    return pod(name, **{"containers": list(containers) or [{"name": "c", "image": "i"}], **spec})


# ---- RuntimeClass ---------------------------------------------------------------------------


def runtime_class(name: str = "kata", **parts: Any) -> Content:
    meta = {"name": name}
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": meta}
    return {**head, "handler": "h", **parts}


KATA = runtime_class(
    overhead={"podFixed": {"cpu": "1"}},
    scheduling={
        "nodeSelector": {"kata": "true"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    },
)


def test_a_runtime_class_adds_overhead_node_selector_and_tolerations() -> None:
    spec = admitted(pod(runtimeClassName="kata", nodeSelector={"disk": "ssd"}), KATA)
    assert spec["overhead"] == {"cpu": "1"}
    assert spec["nodeSelector"] == {"disk": "ssd", "kata": "true"}
    added = KATA["scheduling"]["tolerations"]
    assert spec["tolerations"] == [NOT_READY, UNREACHABLE, *added]


def test_a_missing_runtime_class_is_refused() -> None:
    expected = 'pods "web" is forbidden: pod rejected: RuntimeClass "gvisor" not found'
    assert refusal(pod(runtimeClassName="gvisor"), KATA) == expected


def test_a_node_selector_that_contradicts_the_runtime_class_is_refused() -> None:
    message = refusal(pod(runtimeClassName="kata", nodeSelector={"kata": "no"}), KATA)
    assert message == (
        'pods "web" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[kata] = true; '
        "pod.spec.nodeSelector[kata] = no"
    )


def test_overhead_must_be_that_of_the_runtime_class() -> None:
    mismatch = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    assert mismatch in refusal(pod(runtimeClassName="kata", overhead={"cpu": "2"}), KATA)
    assert admitted(pod(runtimeClassName="kata", overhead={"cpu": "1000m"}), KATA)["overhead"]
    without = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
    assert without in refusal(pod(overhead={"cpu": "1"}))
    assert without in refusal(
        pod(runtimeClassName="plain", overhead={"cpu": "1"}), runtime_class("plain")
    )


def test_tolerations_that_another_one_includes_are_left_out() -> None:
    every = {"operator": "Exists"}
    one = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    assert merged_tolerations([one], [every]) == [every]
    assert merged_tolerations([every], [one]) == [every]
    assert merged_tolerations([one], [one]) == [one]
    short = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    longer = {**short, "tolerationSeconds": 9}
    assert merged_tolerations([short], [longer]) == [longer]


# ---- LimitRanger ----------------------------------------------------------------------------


def limit_range(**item: Any) -> Content:
    item.setdefault("type", "Container")
    meta = {"name": "lr", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": meta,
        "spec": {"limits": [item]},
    }


def test_containers_get_default_requests_and_limits() -> None:
    defaults = limit_range(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    own = resources(requests={"cpu": "500m"})
    init = {"name": "i", "image": "i"}
    stored = cluster(defaults).create(bare_pod("web", own, initContainers=[init])).content
    assert stored["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }
    assert stored["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] == "1"
    assert stored["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: memory request for container c; cpu, memory limit for container "
        "c; cpu, memory request for init container i; cpu, memory limit for init container i"
    )


def test_the_maximum_is_the_default_limit_and_the_default_request() -> None:
    spec = admitted(bare_pod(), limit_range(max={"cpu": "2"}, min={"memory": "1Mi"}))
    found = spec["containers"][0]["resources"]
    assert found == {"requests": {"cpu": "2", "memory": "1Mi"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("item", "own", "message"),
    [
        (
            {"min": {"cpu": "200m"}},
            resources({"cpu": "0.1"}),
            "minimum cpu usage per Container is 200m, but request is 100m",
        ),
        (
            {"max": {"memory": "1024Mi"}},
            resources(limits={"memory": "2Gi"}),
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"max": {"cpu": "1"}, "min": {"cpu": "1"}},
            resources({"cpu": "2"}, {"cpu": "3"}),
            "maximum cpu usage per Container is 1, but limit is 3",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            resources({"cpu": "1"}, {"cpu": "2500m"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            resources({"cpu": "1"}),
            (
                "cpu max limit to request ratio per Container is 2, but no limit is specified or "
                "limit is 0"
            ),
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            resources({"cpu": "1"}),
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        (
            {"type": "Pod", "min": {"cpu": "1"}},
            resources({"memory": "1"}),
            "minimum cpu usage per Pod is 1.  No request is specified",
        ),
    ],
)
def test_bounds_of_containers_and_pods_are_enforced(
    item: Content, own: Content, message: str
) -> None:
    expected = f'pods "web" is forbidden: {message}'
    assert refusal(bare_pod("web", own), limit_range(**item)) == expected


def test_several_violations_are_one_list() -> None:
    item = {"min": {"cpu": "1", "memory": "1Gi"}}
    message = refusal(bare_pod("web", resources({"cpu": "1m", "memory": "1"})), limit_range(**item))
    assert message.endswith(
        ": [minimum cpu usage per Container is 1, but request is 1m, "
        "minimum memory usage per Container is 1Gi, but request is 1]"
    )


def claim(name: str = "data", storage: str = "5Gi", **spec: Any) -> Content:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            **spec,
        },
    }


def test_bounds_of_claims_are_enforced() -> None:
    bounds = {"max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}
    ranges = limit_range(type="PersistentVolumeClaim", **bounds)
    assert refusal(claim(), ranges) == (
        'persistentvolumeclaims "data" is forbidden: maximum storage usage per '
        "PersistentVolumeClaim is 2Gi, but request is 5Gi"
    )
    assert cluster(ranges).create(claim(storage="1.5Gi"))


# ---- ResourceQuota --------------------------------------------------------------------------


def quota(name: str = "q", hard: Content | None = None, **spec: Any) -> Content:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard or {}, **spec},
    }


def test_a_quota_refuses_what_exceeds_it_and_follows_deletions_and_ends() -> None:
    server = cluster(quota(hard={"requests.cpu": "2", "pods": "5"}))
    server.create(pod("a"))
    server.create(pod("b"))
    with pytest.raises(ForbiddenError) as problem:
        server.create(pod("c"))
    assert str(problem.value) == (
        'pods "c" is forbidden: exceeded quota: q, requested: requests.cpu=1, '
        "used: requests.cpu=2, limited: requests.cpu=2"
    )
    server.delete(ObjectKey("v1 Pod", "default", "a"))
    server.create(pod("c"))
    server.end_pod(ObjectKey("v1 Pod", "default", "b"))
    server.create(pod("d"))
    with pytest.raises(ForbiddenError):
        server.create(pod("e"))


def test_pods_of_one_template_are_charged_one_by_one() -> None:
    server = cluster(quota(hard={"pods": "3"}))
    for number in range(3):
        server.create(pod(f"p{number}"))
    for _ in range(2):
        with pytest.raises(ForbiddenError, match="used: pods=3"):
            server.create(pod("p3"))


def test_a_quota_that_appears_later_counts_what_exists() -> None:
    server = cluster(pod("a"), pod("b"))
    server.create(quota(hard={"pods": "2"}))
    with pytest.raises(ForbiddenError, match="requested: pods=1, used: pods=2, limited: pods=2"):
        server.create(pod("c"))
    server.delete(ObjectKey("v1 ResourceQuota", "default", "q"))
    server.create(pod("c"))


def test_a_quota_of_compute_resources_demands_that_containers_specify_them() -> None:
    hard = {"limits.memory": "1Gi", "requests.cpu": "9"}
    two = [{"name": "b", "image": "i"}, {"name": "a", "image": "i"}]
    assert refusal(pod(containers=two), quota(hard=hard)) == (
        'pods "web" is forbidden: failed quota: q: must specify limits.memory for: a,b; '
        "requests.cpu for: a,b"
    )


@pytest.mark.parametrize(
    ("scope", "is_counted"),
    [
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotBestEffort"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["PriorityClass"]}, False),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["x"]}
                    ]
                }
            },
            True,
        ),
        ({"scopes": ["CrossNamespacePodAffinity"]}, False),
    ],
)
def test_a_quota_counts_only_pods_in_its_scopes(scope: Content, is_counted: bool) -> None:
    server = cluster(quota(hard={"pods": "0"}, **scope))
    if not is_counted:
        assert server.create(pod())
        return
    with pytest.raises(ForbiddenError, match="limited: pods=0"):
        server.create(pod())


def test_extended_resources_storage_by_class_and_object_counts_are_limited() -> None:
    hard = {
        "requests.nvidia.com/gpu": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "6Gi",
        count_name("apps/v1 Deployment"): "0",
    }
    server = cluster(quota(hard=hard))
    gpus = resources(limits={"nvidia.com/gpu": 2})
    with pytest.raises(ForbiddenError, match=r"requested: requests.nvidia.com/gpu=2, used:"):
        server.create(bare_pod("g", gpus))
    server.create(claim("a", storageClassName="gold"))
    server.create(claim("b", storageClassName="silver"))
    with pytest.raises(ForbiddenError, match=r"requests\.storage=5Gi, limited: gold"):
        server.create(claim("c", storageClassName="gold"))
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    with pytest.raises(ForbiddenError, match=r'deployments.apps "d" is forbidden: exceeded quota'):
        server.create(deployment)


def test_a_quota_counts_sidecars_overhead_and_the_largest_init_container() -> None:
    content = pod(
        containers=[container("1"), container("500m", name="d")],
        initContainers=[
            container("1", name="s", restartPolicy="Always"),
            container("4", name="i"),
        ],
        overhead={"cpu": "100m"},
        status={"phase": "Pending"},
    )
    stored = cluster().create(content).object
    assert isinstance(stored, Pod)
    assert {n: str(a) for n, a in pod_amounts.charged_requests(stored).items()} == {"cpu": "5100m"}
    limited = pod_amounts.limited_amounts(stored, pod_amounts.requests_part)
    assert str(limited["cpu"]) == "5"


def test_a_claim_without_a_class_gets_the_default_class() -> None:
    default = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {DEFAULT_CLASS_ANNOTATION: "true"}},
        "provisioner": "x",
    }
    server = cluster(default)
    assert server.create(claim("a")).content["spec"]["storageClassName"] == "fast"
    assert server.create(claim("b", storageClassName="")).content["spec"]["storageClassName"] == ""


# ---- Priority -------------------------------------------------------------------------------


HIGH = PriorityClass(metadata=ObjectMeta(name="high"), value=1000, preemption_policy="Never")
LOW = PriorityClass(metadata=ObjectMeta(name="low"), value=-5)


def default_class(name: str, value: int) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=True)


def filled(content: Content, *classes: PriorityClass) -> tuple[int, str, str | None]:
    """(priority, preemptionPolicy, class) of the pod."""
    spec = with_priority(content, classes)["spec"]
    return spec["priority"], spec["preemptionPolicy"], spec.get("priorityClassName")


def test_a_class_determines_priority_and_preemption_policy() -> None:
    assert filled(pod(priorityClassName="high"), LOW, HIGH) == (1000, "Never", "high")
    assert filled(pod(priorityClassName="low"), LOW, HIGH) == (-5, "PreemptLowerPriority", "low")


def test_the_system_classes_always_exist() -> None:
    name = "system-node-critical"
    assert filled(pod(priorityClassName=name)) == (2_000_001_000, "PreemptLowerPriority", name)


def test_the_default_class_applies_to_pods_without_a_class() -> None:
    result = filled(pod(), default_class("b", 7), default_class("a", 3), HIGH)
    assert result == (3, "PreemptLowerPriority", "a")


def group(kind: str, **spec: Any) -> Content:
    """A group of scheduling.k8s.io."""
    api_version, _, bare = kind.partition(" ")
    meta = {"name": "g", "namespace": "default"}
    return {"apiVersion": api_version, "kind": bare, "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("scheduling.k8s.io/v1beta1 PodGroup", "pod group"),
        (COMPOSITE_POD_GROUP, "composite pod group"),
    ],
)
def test_a_group_gets_the_priority_of_its_class(kind: str, words: str) -> None:
    high = priority_class("high", 1000)
    spec = admitted(group(kind, priorityClassName="high"), high)
    assert spec["priority"] == 1000
    assert "priority" not in admitted(group(kind))
    assert refusal(group(kind, priorityClassName="high", priority=7), high).endswith(
        f"priority set in the {words} (7) must match the priority computed (1000) based on the "
        "priority class set in the spec"
    )
    text = refusal(group(kind, priorityClassName="high"))
    assert text.endswith("no PriorityClass with name high was found")


def priority_class(name: str, value: int) -> Content:
    meta = {"name": name}
    api_version = "scheduling.k8s.io/v1"
    return {"apiVersion": api_version, "kind": "PriorityClass", "metadata": meta, "value": value}


def test_a_priority_without_a_class_and_a_stored_priority_stay() -> None:
    assert filled(pod(priority=5), default_class("a", 3)) == (5, "PreemptLowerPriority", None)
    assert filled(pod(priority=5, priorityClassName="gone"))[0] == 5
    stored = pod(priority=5, priorityClassName="high", nodeName="n1")
    assert filled(stored, HIGH) == (5, "Never", "high")


def test_a_new_pod_may_not_contradict_its_class() -> None:
    with pytest.raises(PriorityRefusal, match=r"value of priority \(5\) must not be provided"):
        with_priority(pod(priority=5, priorityClassName="high"), [HIGH])
    with pytest.raises(PriorityRefusal, match=r"PreemptionPolicy \(Never\) must not be provided"):
        with_priority(pod(priorityClassName="low", preemptionPolicy="Never"), [LOW])


def test_a_missing_class_is_refused() -> None:
    with pytest.raises(PriorityRefusal, match="no PriorityClass with name hihg was found"):
        with_priority(pod(priorityClassName="hihg"), [HIGH])


# ---- tolerations and labels -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "added"),
    [
        pytest.param({"key": "a", "operator": "Exists"}, [NOT_READY, UNREACHABLE], id="other"),
        pytest.param({"operator": "Exists"}, [], id="toleration of all taints"),
        pytest.param(
            {**NOT_READY, "tolerationSeconds": 5}, [UNREACHABLE], id="toleration of one taint"
        ),
        pytest.param(
            {"key": NOT_READY["key"], "operator": "Exists"},
            [UNREACHABLE],
            id="toleration of any effect",
        ),
        pytest.param(
            {"key": NOT_READY["key"], "operator": "Exists", "effect": "NoSchedule"},
            [NOT_READY, UNREACHABLE],
            id="toleration of another effect",
        ),
    ],
)
def test_a_new_pod_tolerates_a_lost_node_for_five_minutes_unless_it_says_otherwise(
    own: Content, added: list[Content]
) -> None:
    assert admitted(pod(tolerations=[own]))["tolerations"] == [own, *added]


def test_extended_resources_are_tolerated_where_the_plugin_is_enabled() -> None:
    plugins = plugin_set(enable=[ExtendedResourceToleration.name])
    gpu = bare_pod("g", resources(limits={"nvidia.com/gpu": 1}))
    added = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert admitted(gpu, plugins=plugins)["tolerations"] == [NOT_READY, UNREACHABLE, added]
    assert added not in admitted(gpu)["tolerations"]


def test_a_placed_pod_gets_zone_and_region_of_its_node() -> None:
    there = node(labels={ZONE: "z1", "topology.kubernetes.io/region": "r", "disk": "ssd"})
    result = with_labels(pod(labels={"app": "a", ZONE: "old"}), topology_labels(there))
    assert result["metadata"]["labels"] == {
        "app": "a",
        ZONE: "z1",
        "topology.kubernetes.io/region": "r",
    }
    assert topology_labels(node(labels={"disk": "ssd"})) == {}


# ---- what was admitted before, and sets of plugins -----------------------------------------


@pytest.mark.parametrize(
    "mark",
    [
        {"uid": "u"},
        {"resourceVersion": "7"},
        {"creationTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_an_object_of_a_dump_is_neither_changed_nor_refused(mark: Content) -> None:
    stored = bare_pod(runtimeClassName="gone", overhead={"cpu": "1"}, priority=0)
    stored["metadata"] |= mark
    server = cluster(quota(hard={"pods": "0"}), limit_range(default={"cpu": "1"}))
    spec = server.create(stored).content["spec"]
    assert spec["containers"] == [{"name": "c", "image": "i"}]
    assert spec.get("tolerations") is None
    assert spec["overhead"] == {"cpu": "1"}


def test_plugins_run_in_the_order_of_kube_apiserver() -> None:
    chain = AdmissionChain(plugin_set(), VersionedStore(), ManualClock(), features=NO_FEATURES)
    priority_class = "scheduling.k8s.io/v1 PriorityClass"
    assert chain.read_kinds == ("v1 Namespace", LIMIT_RANGE, priority_class, RUNTIME_CLASS)


def test_pods_on_nodes_and_pods_with_a_status_count_as_admitted_and_are_charged() -> None:
    server = cluster(quota(hard={"pods": "1"}))
    server.create(pod("a", nodeName="n1"))
    server.create(pod("b", status={"phase": "Pending"}))
    with pytest.raises(ForbiddenError, match="used: pods=2"):
        server.create(pod("c"))


def test_further_pods_of_a_template_see_the_limit_ranges_of_their_time() -> None:
    server = cluster()
    one = server.create(bare_pod("one")).content["spec"]["containers"][0]
    server.create(limit_range(default={"cpu": "1"}))
    two = server.create(bare_pod("two")).content
    three = server.create(bare_pod("three")).content
    assert "resources" not in one
    assert two["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert three["spec"] == two["spec"]
    assert three["metadata"]["annotations"] == two["metadata"]["annotations"]
    noted = server.create(bare_pod("four", annotations={"a": "b"})).content["metadata"]
    again = server.create(bare_pod("five", annotations={"a": "c"})).content["metadata"]
    assert {**again["annotations"], "a": "b"} == noted["annotations"]


def test_a_plugin_that_is_disabled_does_nothing() -> None:
    off = plugin_set(
        disable=["LimitRanger", "DefaultTolerationSeconds", ResourceQuotaAdmission.name]
    )
    objects = (limit_range(default={"cpu": "1"}), quota(hard={"pods": "0"}))
    spec = admitted(bare_pod(), *objects, plugins=off)
    assert "resources" not in spec["containers"][0]
    assert "tolerations" not in spec


@pytest.mark.parametrize(
    ("enable", "disable", "message"),
    [
        (["LimitRangr"], [], 'plugin "LimitRangr" is not simulated; did you mean "LimitRanger"'),
        (["Priority"], ["Priority"], r"\[Priority\] in enable-admission-plugins and disable-"),
    ],
)
def test_names_of_plugins_are_checked(enable: list[str], disable: list[str], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        plugin_set(enable, disable)


def test_plugins_without_effect_on_scheduling_can_be_named() -> None:
    assert plugin_set(disable=["ServiceAccount", "PodSecurity"]) == plugin_set()
