"""`bayplan upgrade`: what differs between two versions for a cluster, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import bayplan, refusal, write_objects
from tests.kit.manifests import Content, node, pod

BALANCE = "BalancedAllocation's formula (1.36)"
RELEASE = "text of PostFilter without claims to release (1.37.0)"
PREEMPTION = "text of a successful preemption (1.37.0)"


def node_of_1_35(name: str, cpu: str, memory: str) -> Content:
    content = node(name, cpu=cpu, memory=memory, pods="20")
    content["status"]["nodeInfo"] = {"kubeletVersion": "v1.35.4"}
    return content


def requesting_pod(name: str, cpu: str, memory: str, **spec: Any) -> Content:
    fields = {"schedulerName": "default-scheduler", **spec}
    return pod(name, cpu=cpu, requests={"memory": memory}, **fields)


def balanced() -> list[Content]:
    """Before 1.36, w is as welcome on n0 as on n3."""
    return [
        node_of_1_35("n0", "8", "16Gi"),
        node_of_1_35("n3", "4", "32Gi"),
        requesting_pod("r0", "1", "3Gi", nodeName="n0"),
        requesting_pod("r3", "1", "3Gi", nodeName="n3"),
        requesting_pod("w", "1", "5Gi"),
    ]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return write_objects(
        tmp_path / "cluster.yaml",
        *balanced(),
        requesting_pod("big", "99", "1Gi"),
    )


def upgrade(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    result = bayplan("upgrade", *arguments, "-o", "json")
    return result.exit_code, json.loads(result.stdout)


def test_a_pod_that_prefers_other_nodes_is_named_with_the_change(cluster: Path) -> None:
    code, answer = upgrade(cluster, "--to", "1.36")
    assert (code, answer["verdict"], answer["before"]) == (1, "changes", "1.35")
    [moved] = [each for each in answer["pods"] if each["pod"] == "default/w"]
    assert (moved["what"], moved["causes"], moved["how"]) == ("moves", [BALANCE], "alone")
    assert (moved["nodesBefore"], moved["nodesAfter"]) == (["n0", "n3"], ["n3"])
    assert answer["text"] == (
        f"of 4 pods, 1 pod of 1 workload prefers other nodes, by {BALANCE}; no pod that fits would "
        "wait, so nothing has to be done before the upgrade"
    )


def test_other_words_alone_are_no_other_placement(tmp_path: Path) -> None:
    only = write_objects(
        tmp_path / "a.yaml", node_of_1_35("n0", "8", "16Gi"), requesting_pod("big", "99", "1Gi")
    )
    code, answer = upgrade(only, "--from", "1.36", "--to", "1.37")
    assert (code, answer["verdict"]) == (0, "same")
    [waiting] = answer["pods"]
    assert (waiting["what"], waiting["causes"]) == ("message", [RELEASE])
    assert "no new claims to deallocate" in waiting["messageBefore"]
    assert "no new claims to deallocate" not in waiting["messageAfter"]


def test_changes_of_placements_come_before_changes_of_messages(tmp_path: Path) -> None:
    where = write_objects(
        tmp_path / "cluster.yaml",
        *balanced(),
        *(requesting_pod(f"big-{number}", "99", "1Gi") for number in range(3)),
    )
    _, answer = upgrade(where, "--to", "1.37")
    assert [(each["changes"], each["pods"]) for each in answer["changes"]] == [
        ([BALANCE], 1),
        ([RELEASE], 3),
    ]


def test_a_change_has_its_pods_by_workload_and_a_sentence_of_each_version(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u"}
    replicas = [requesting_pod(f"web-1-{number}", "1", "5Gi") for number in range(2)]
    for each in replicas:
        labels = {"pod-template-hash": "1"}
        each["metadata"] |= {"ownerReferences": [owner | {"controller": True}], "labels": labels}
    where = write_objects(
        tmp_path / "cluster.yaml",
        *balanced(),
        *replicas,
    )
    _, answer = upgrade(where, "--to", "1.37")
    [group] = answer["changes"]
    assert (group["changes"], group["how"], group["counts"]) == ([BALANCE], "alone", {"moves": 3})
    assert group["text"] == f"{BALANCE}: 3 pods of 2 workloads prefer other nodes"
    assert group["workloads"] == [
        {"workload": "Deployment default/web", "pods": 2},
        {"workload": "Pod default/w", "pods": 1},
    ]
    assert (group["before"], group["after"]) == ("n0 or n3", "n3")
    text = bayplan("upgrade", where, "--to", "1.37").stdout
    assert f"{group['text']}\nworkload " in text
    assert "  1.35: n0 or n3\n  1.37: n3\n" in text


def test_two_texts_of_one_sentence_are_two_changes_of_it(tmp_path: Path) -> None:
    where = write_objects(
        tmp_path / "a.yaml",
        node_of_1_35("n0", "8", "16Gi"),
        requesting_pod("small", "6", "1Gi", nodeName="n0", priority=0),
        requesting_pod("large", "8", "1Gi", priority=10),
        requesting_pod("huge", "99", "1Gi", nodeName="", tolerations=[]),
    )
    _, answer = upgrade(where, "--from", "1.36", "--to", "1.37")
    [large, huge] = answer["pods"]
    assert huge["pod"] == "default/huge"
    assert (huge["causes"], huge["how"]) == ([RELEASE], "alone")
    assert (large["causes"], large["how"]) == ([PREEMPTION], "alone")
    assert large["victimsAfter"] == ["default/small"]


def test_the_way_back_has_the_same_changes(cluster: Path) -> None:
    _, there = upgrade(cluster, "--from", "1.35", "--to", "1.37")
    _, back = upgrade(cluster, "--from", "1.37", "--to", "1.35")
    [moved] = [each for each in back["pods"] if each["what"] == "moves"]
    assert (moved["nodesBefore"], moved["nodesAfter"]) == (["n3"], ["n0", "n3"])
    assert moved["causes"] == [BALANCE]
    assert {each["pod"] for each in back["pods"]} == {each["pod"] for each in there["pods"]}


def test_pods_that_nobody_decides_again_are_named_with_the_reason(tmp_path: Path) -> None:
    mirror = requesting_pod("static", "1", "1Gi", nodeName="n0")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    ended = requesting_pod("ended", "1", "1Gi", nodeName="n0") | {"status": {"phase": "Succeeded"}}
    other = requesting_pod("other", "1", "1Gi", nodeName="n0", schedulerName="mine")
    where = write_objects(
        tmp_path / "a.yaml", node_of_1_35("n0", "8", "16Gi"), mirror, ended, other
    )
    _, answer = upgrade(where, "--to", "1.37")
    assert answer["podsTried"] == 0
    assert answer["omitted"] == [
        {
            "reason": "a static pod: its kubelet runs it, and no scheduler",
            "pods": ["default/static"],
        },
        {"reason": "the scheduler mine decides about it", "pods": ["default/other"]},
    ]


# ---- the configuration ---------------------------------------------------------------------


CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
featureGates:
  SchedulerQueueingHints: true
  GangScheduling: true
  GenericWorkload: true
  DRAPrioritizedList: true
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}]}
        type: LeastAllocated
"""


def test_each_finding_has_its_place_and_what_to_write(cluster: Path, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIGURATION)
    flag = ("--feature-gates", "SidecarContainers=true,DRAExtendedResource=false,AllBeta=true")
    code, answer = upgrade(cluster, "--to", "1.37", "--config", file, *flag)
    assert (code, answer["verdict"], answer["pods"]) == (1, "refused", [])
    assert answer["text"] == (
        f"kube-scheduler 1.37 does not start: change {file}:4:3 and 3 places more first"
    )
    written = [each for each in answer["configuration"] if each.get("source")]
    rows = [
        (each["what"], each["name"], each.get("line"), each.get("column"), each["write"])
        for each in written
    ]
    rewritten = "write --feature-gates=AllBeta=true"
    assert rows == [
        ("gone", "SchedulerQueueingHints", 4, 3, "delete SchedulerQueueingHints: true"),
        ("gone", "GangScheduling", 5, 3, "delete GangScheduling: true"),
        ("gone", "SidecarContainers", None, None, rewritten),
        ("locked", "DRAExtendedResource", None, None, rewritten),
        (
            "refused",
            "requestedToCapacityRatio",
            18,
            9,
            "delete requestedToCapacityRatio",
        ),
        ("locked", "DRAPrioritizedList", 7, 3, "delete DRAPrioritizedList: true"),
        (
            "default",
            "NodeDeclaredFeatures",
            12,
            18,
            "add {name: NodeDeclaredFeatures} to profiles[0].plugins.multiPoint.enabled to have it",
        ),
    ]
    assert [each["blocks"] for each in written] == [True] * 5 + [False] * 2


def test_a_gate_that_another_one_replaces_is_written_as_that_one(cluster: Path) -> None:
    flag = (
        "--feature-gates",
        "GangScheduling=true,GenericWorkload=true,WorkloadAwarePreemption=true",
    )
    _, answer = upgrade(cluster, "--from", "1.36", "--to", "1.37", *flag)
    assert {each["write"] for each in answer["configuration"] if each["blocks"]} == {
        "write --feature-gates=GenericWorkload=true"
    }


def test_a_default_that_differs_says_what_keeps_it(cluster: Path) -> None:
    _, answer = upgrade(cluster, "--to", "1.37", "--feature-gates", "VolumeLimitScaling=true")
    kept = {each["name"]: each["write"] for each in answer["configuration"]}
    assert "VolumeLimitScaling" not in kept
    assert kept["StorageCapacityScoring"] == "--feature-gates=StorageCapacityScoring=false"
    # A gate that needs another one is switched off with it.
    assert kept["DRADeviceTaints"] == (
        "--feature-gates=DRADeviceTaints=false,DRADeviceTaintRules=false"
    )
    assert kept["DRAExtendedResource"] == "cannot be kept, 1.37 has no other value"


def test_a_default_that_is_kept_on_says_which_gates_it_needs(cluster: Path) -> None:
    _, answer = upgrade(cluster, "--from", "1.37", "--to", "1.35")
    kept = {each["name"]: each["write"] for each in answer["configuration"]}
    # A gate is switched on with the gates that it needs.
    assert kept["DRADeviceTaintRules"] == (
        "--feature-gates=DRADeviceTaintRules=true,DRADeviceTaints=true"
    )
    assert kept["DRADeviceTaints"] == "--feature-gates=DRADeviceTaints=true"


def test_lines_that_keep_defaults_stay_whole_in_a_narrow_terminal(cluster: Path) -> None:
    lines = bayplan("upgrade", cluster, "--from", "1.34", "--to", "1.37").stdout.splitlines()
    assert "12 defaults: off before, on now; to keep what was before:" in lines
    assert "  --feature-gates=InPlacePodLevelResourcesVerticalScaling=false" in lines
    unkept = "  cannot be kept, 1.37 has no other value: DRAExtendedResource, NodeDeclaredFeatures"
    assert unkept in lines


def test_what_keeps_a_default_is_accepted_and_keeps_it(cluster: Path) -> None:
    gates = "DRADeviceTaints=false,DRADeviceTaintRules=false"
    _, answer = upgrade(cluster, "--to", "1.37", "--feature-gates", gates)
    names = {each["name"] for each in answer["configuration"]}
    assert answer["verdict"] == "changes"
    assert not names & {"DRADeviceTaints", "DRADeviceTaintRules"}


def test_flags_stay_whole_and_what_to_write_stands_once_for_several_gates(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    flag = "SidecarContainers=true,InPlacePodVerticalScaling=false,StorageCapacityScoring=true"
    text = bayplan(
        "upgrade", cluster, "--from", "1.34", "--to", "1.37", "--feature-gates", flag
    ).stdout
    assert (
        """
to change first:
  --feature-gates: kube-scheduler 1.37
    has no gate SidecarContainers; it
    stays true
  --feature-gates: the gate
    InPlacePodVerticalScaling is locked
    to true in 1.37
    write --feature-gates=StorageCapacityScoring=true
"""
        in text
    )


def test_a_new_default_plugin_is_named_with_the_line_of_each_profile(
    cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: other
  plugins:
    multiPoint:
      disabled: [{name: ImageLocality}]
"""
    )
    _, answer = upgrade(cluster, "--to", "1.37", "--config", file)
    rows = [(each["line"], each["write"]) for each in answer["configuration"] if each.get("source")]
    name = "{name: NodeDeclaredFeatures}"
    assert rows == [
        (4, f"add {name} to profiles[0].plugins.multiPoint.disabled to do without it"),
        (7, f"add {name} to profiles[1].plugins.multiPoint.disabled to do without it"),
    ]


def test_a_plugin_that_the_new_version_refuses_at_a_point_is_named(
    cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    permit:
      enabled:
      - name: GangScheduling
"""
    )
    options = ("--from", "1.37", "--to", "1.38-preview", "--config", file)
    _, answer = upgrade(cluster, *options)
    [refused] = answer["configuration"]
    assert (refused["subject"], refused["name"]) == ("plugin", "GangScheduling")
    assert (refused["line"], refused["write"]) == (8, "delete the entry GangScheduling")
    assert refused["text"] == (
        "kube-scheduler 1.38-preview refuses this plugin: "
        '"GangScheduling" has no permit, it has preEnqueue'
    )


SHAPE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: VolumeBinding
    args:
      shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
"""


def test_an_argument_of_a_gate_that_is_off_is_refused_with_its_line(
    cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(SHAPE)
    code, answer = upgrade(cluster, "--from", "1.37", "--to", "1.36", "--config", file)
    [refused] = [each for each in answer["configuration"] if each["blocks"]]
    assert (code, refused["line"], refused["write"]) == (1, 8, "delete shape")
    gate = "which belongs to the gate StorageCapacityScoring, which is off"
    assert refused["text"] == f"kube-scheduler 1.36 refuses shape, {gate}"


def test_a_configuration_that_the_old_version_refuses_has_its_lines_too(
    cluster: Path, tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(SHAPE)
    path = "profiles[0].pluginConfig[0].args.shape"
    place, advice = refusal("upgrade", cluster, "--from", "1.36", "--to", "1.37", "--config", file)
    gate = "unwanted; belongs to the gate StorageCapacityScoring, which is off"
    assert place == f"{file}:8:7: {path}: {gate}"
    today = "wanted the configuration that runs today"
    assert advice == f"{file}: {today}: the version before the upgrade refuses this one"


def test_two_versions_are_needed(cluster: Path) -> None:
    assert refusal("upgrade", cluster, "--to", "1.35") == [
        "--to: found 1.35, which is the version before, too"
    ]


def test_a_preview_says_that_it_is_not_released(cluster: Path) -> None:
    code, answer = upgrade(cluster, "--from", "1.37", "--to", "1.38-preview")
    assert (code, answer["verdict"], answer["after"]) == (0, "same", "1.38-preview")
    [note] = answer["notes"]
    assert note.startswith("1.38-preview is not released: it has what merged pull requests say")
