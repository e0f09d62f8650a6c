"""A dump is never useless because of one object: kube-apiserver of another version accepted it."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.clock import ManualClock
from tests.cli.command_line import bayplan, refusal, write_objects
from tests.kit.manifests import Content, api_object, node, pod

_TERM = {"key": "a", "operator": "Foo", "values": ["b"]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SELECTOR = {"matchExpressions": [_TERM]}
_AWAY = {"topologyKey": "zone", "labelSelector": _SELECTOR}
_TEMPLATE: Content = {
    "spec": {"containers": [{"name": "c", "image": "x"}]},
    "metadata": {"labels": {}},
}
_BUDGET = {"maxUnavailable": 1, "selector": {"matchExpressions": [_TERM]}}
_LIMITS = {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}

#: Objects that a server refuses, and that can be read.
INVALID = {
    "taint": node("odd", taints=[{"key": "a", "effect": "NoScheduleX"}]),
    "labels": node("odd", labels={"a b": "c"}),
    "operator": pod("odd", tolerations=[{"key": "a", "operator": "Equals"}]),
    "affinity": pod(
        "odd",
        affinity={
            "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_TERM]}]}}
        },
    ),
    "pod affinity": pod("odd", affinity={"podAffinity": {_REQUIRED: [_AWAY]}}),
    "anti-affinity": pod(
        "odd",
        affinity={"podAntiAffinity": {_REQUIRED: [{**_AWAY, "namespaceSelector": _SELECTOR}]}},
    ),
    "anti-affinity of a running pod": pod(
        "odd", nodeName="n1", affinity={"podAntiAffinity": {_REQUIRED: [_AWAY]}}
    ),
    "spreading": pod(
        "odd",
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
            }
        ],
    ),
    "a negative request": pod("odd", cpu="-1"),
    "daemons": api_object(
        "apps/v1 DaemonSet",
        "odd",
        "default",
        spec={
            "selector": {"matchLabels": {"a": "c"}},
            "template": {"spec": {**_TEMPLATE["spec"], "nodeSelector": {"a b": "c d"}}},
        },
    ),
    "resource": pod("odd", requests={"foo": "1"}),
    "class": pod("odd", priorityClassName="gone", nodeName="n1"),
    "selector": api_object(
        "apps/v1 ReplicaSet",
        "odd",
        "default",
        spec={"selector": {"matchExpressions": [_TERM]}, "template": _TEMPLATE},
    ),
    "mode": api_object(
        "v1 PersistentVolumeClaim", "odd", "default", spec={"accessModes": ["ReadWriteTwice"]}
    ),
    "budget": api_object("policy/v1 PodDisruptionBudget", "odd", "default", spec=_BUDGET),
    "limits": api_object("v1 LimitRange", "odd", "shop", spec=_LIMITS),
}
#: Objects that cannot be read, and what a note says that follows.
UNREADABLE = {
    "amounts of a node": (node("odd", cpu="four"), "no pod is placed on it"),
    "tolerations": (pod("odd", nodeName="n9", tolerations={}), "of node n9 counts as free"),
    "a request": (pod("odd", cpu="one"), "no answer counts it"),
    "no name": ({**pod("odd"), "metadata": {"namespace": "default"}}, "did not exist"),
    "a template": (
        api_object("apps/v1 Deployment", "odd", "default", spec={"replicas": 2}),
        "pods that it lacks are not created",
    ),
    "a quota": (
        api_object("v1 ResourceQuota", "odd", "default", spec={"hard": {"cpu": "x"}}),
        "it refuses no new pods",
    ),
    "a claim of a pod": (
        pod(
            "odd",
            nodeName="n9",
            volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": "x"}}}],
        ),
        "of node n9 counts as free",
    ),
    "finalizers of a namespace": (
        api_object("v1 Namespace", "odd", spec={"finalizers": [1]}),
        "did not exist",
    ),
}


def stored(content: Content, **fields: Any) -> Content:
    meta = {**content["metadata"], **(fields or {"uid": "odd-uid"})}
    return {**content, "metadata": meta}


def dump_with(folder: Path, content: Content) -> Path:
    objects = [node("n1"), pod("waits", cpu="9"), content]
    return write_objects(folder / "dump.json", {"kind": "List", "items": objects})


def notes_of_all_commands(folder: Path, dump: Path) -> list[set[str]]:
    shape = write_objects(folder / "shape.json", pod("shape"))
    answers: list[set[str]] = []
    for command in (
        ("why", "--all-pending", dump),
        ("why", "default/waits", dump),
        ("simulate", dump, "--until", "60s"),
        ("fit", "-f", shape, dump),
        ("headroom", "-f", shape, dump),
        ("whatif", dump, "--drain-each"),
    ):
        result = bayplan(*command, "-o", "json")
        assert result.exit_code in (0, 1), result.output
        document = json.loads(result.stdout)
        answers.append({*document.get("notes", ()), *document.get("remarks", ())})
    return answers


@pytest.mark.parametrize("odd", INVALID)
def test_what_a_server_has_stored_is_taken_although_a_new_one_is_refused(
    odd: str, tmp_path: Path
) -> None:
    dump = dump_with(tmp_path, stored(INVALID[odd]))
    if INVALID[odd]["kind"] == "Pod":
        assert bayplan("why", "default/odd", dump).exit_code in (0, 1)
    for notes in notes_of_all_commands(tmp_path, dump):
        (note, *_) = [each for each in notes if "odd" in each and "taken as" in each]
        assert "is taken as the server stored it; a new one is refused: " in note


@pytest.mark.parametrize("odd", INVALID)
def test_the_same_manifest_of_a_person_is_refused(odd: str, tmp_path: Path) -> None:
    lines = refusal("why", "--all-pending", dump_with(tmp_path, INVALID[odd]))
    assert "odd): " in lines[0]


@pytest.mark.parametrize("odd", UNREADABLE)
def test_a_stored_object_that_cannot_be_read_is_left_out_with_what_follows(
    odd: str, tmp_path: Path
) -> None:
    content, consequence = UNREADABLE[odd]
    for notes in notes_of_all_commands(tmp_path, dump_with(tmp_path, stored(content))):
        (note,) = [each for each in notes if "left out, for it cannot be read" in each]
        assert consequence in note
    assert refusal("why", "--all-pending", dump_with(tmp_path, content))


@pytest.mark.parametrize(
    "field",
    [
        {"uid": "1"},
        {"resourceVersion": "1"},
        {"creationTimestamp": "2026-01-01T00:00:00Z"},
        {"managedFields": [{"manager": "kubectl"}]},
    ],
    ids=lambda field: next(iter(field)),
)
def test_each_field_that_only_a_server_writes_shows_that_it_stored_the_object(
    field: Content, tmp_path: Path
) -> None:
    file = dump_with(tmp_path, stored(INVALID["resource"], **field))
    assert bayplan("why", "--all-pending", file).exit_code in (0, 1)
    dry_run = dump_with(tmp_path, stored(INVALID["resource"], creationTimestamp=None))
    assert refusal("why", "--all-pending", dry_run)


def test_a_question_about_an_object_that_was_left_out_says_why_it_was(tmp_path: Path) -> None:
    dump = dump_with(tmp_path, stored(UNREADABLE["tolerations"][0]))
    (line,) = refusal("why", "default/odd", dump)
    assert line.endswith(
        "left out, for it cannot be read: spec.tolerations: found a mapping, wanted a list"
    )
    dump = dump_with(tmp_path, stored(UNREADABLE["a template"][0]))
    (line,) = refusal("why", "deploy/odd", dump)
    assert "Deployment default/odd is left out, for it cannot be read: " in line


def test_a_workload_that_the_question_is_about_is_not_left_out(tmp_path: Path) -> None:
    dump = dump_with(tmp_path, node("n2"))
    workload = write_objects(tmp_path / "odd.json", stored(UNREADABLE["a template"][0]))
    for command in (("fit", "-f"), ("headroom", "-f"), ("whatif", "--apply")):
        (line,) = refusal(*command, workload, dump)
        assert "(Deployment default/odd): spec.template.spec: found nothing" in line


def test_an_update_is_refused_only_for_what_it_makes_invalid() -> None:
    cluster = EmbeddedCluster(ManualClock())
    content = stored(INVALID["taint"])
    cluster.create(content)
    cluster.update({**content, "spec": {**content["spec"], "unschedulable": True}})
    wrong = copy.deepcopy(content)
    wrong["spec"]["taints"].append({"key": "b", "effect": "Never"})
    with pytest.raises(Exception, match=r"taints\[1\]") as refused:
        cluster.update(wrong)
    assert "taints[0]" not in str(refused.value)


def test_a_scenario_may_patch_an_odd_object_but_not_make_it_worse(tmp_path: Path) -> None:
    def scenario(spec: Content) -> Content:
        named = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "odd"}, "spec": spec}
        events = [{"at": "1s", "patch": [named]}]
        head = {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Scenario"}
        return {**head, "spec": {"events": events}}

    dump = dump_with(tmp_path, stored(INVALID["taint"]))
    good = write_objects(tmp_path / "good.json", scenario({"unschedulable": True}))
    assert bayplan("simulate", dump, good).exit_code == 0
    bad = write_objects(tmp_path / "bad.json", scenario({"taints": [{"key": "a b"}]}))
    assert all("taints[0]" in line for line in refusal("simulate", dump, bad))


@pytest.mark.parametrize(
    ("content", "command"),
    [
        ({**node("odd"), "status": {"nodeInfo": [1]}}, ("simulate",)),
        ({**node("odd"), "status": {"nodeInfo": {"kubeletVersion": [1]}}}, ("simulate",)),
        ({**pod("odd"), "kind": {}}, ("why", "--all-pending")),
        (
            api_object("autoscaling/v1 HorizontalPodAutoscaler", "odd", "default", spec=[1]),
            ("whatif", "--cordon", "n1"),
        ),
        (pod("odd", cpu="9", volumes=[{"emptyDir": {}}]), ("why", "default/odd")),
    ],
    ids=["node info", "kubelet version", "kind", "autoscaler", "volume without a name"],
)
def test_what_no_scheduler_reads_may_have_any_value(
    content: Content, command: tuple[str, ...], tmp_path: Path
) -> None:
    result = bayplan(*command, dump_with(tmp_path, stored(content)))
    assert result.exit_code in (0, 1), result.output


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"])
@pytest.mark.parametrize("value", ["x", ["x"], {"devices": "x"}, {"devices": {"requests": ["x"]}}])
def test_an_older_version_with_values_of_the_wrong_type_is_no_defect(
    kind: str, value: object, tmp_path: Path
) -> None:
    claim = api_object(f"resource.k8s.io/v1beta1 {kind}", "odd", "default", spec=value)
    result = bayplan("why", "--all-pending", dump_with(tmp_path, stored(claim)))
    assert result.exit_code in (0, 1, 2)
