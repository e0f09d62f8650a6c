"""From files to a workload."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.sim.input.inputs import (
    TRACE,
    InputError,
    load_inputs,
    moved_back,
    seconds_in_the_future,
)
from bayplan.sim.input.workload import Verb, Workload
from tests.kit.manifests import Content, api_object, node, pod, pod_group, priority_class
from tests.sim.manifests import controller, owned, scenario

# ---- inputs ---------------------------------------------------------------------------------


POD_COLUMNS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
PODS = f"""{POD_COLUMNS},creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,1000,,LS,Running,100,400,150
p-1,6000,12288,2,500,,BE,Failed,90,190,
"""
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n"


def load(tmp_path: Path, *values: Any, **options: Any) -> Workload:
    return load_inputs([str(written(tmp_path, *values))], **options)


def written(tmp_path: Path, *values: Any, name: str = "input.yaml") -> Path:
    path = tmp_path / name
    path.write_text("\n---\n".join(json.dumps(value) for value in values))
    return path


def refusal(tmp_path: Path, *values: Any) -> list[str]:
    with pytest.raises(InputError) as error:
        load(tmp_path, *values)
    return [line.removeprefix(f"{tmp_path}/") for line in str(error.value).splitlines()]


def names(contents: Any) -> list[str]:
    """Kinds and names, without the namespaces that are added."""
    return [
        f"{one['kind']} {one['metadata']['name']}" for one in contents if one["kind"] != "Namespace"
    ]


# ---- order ----------------------------------------------------------------------------------


def test_objects_other_than_pods_come_first_then_running_then_pending_pods(tmp_path: Path) -> None:
    running = pod("r", nodeName="n1")
    workload = load(
        tmp_path, pod("b"), running, node("n2"), pod("a"), priority_class("high", 1), node("n1")
    )
    assert names(workload.initial) == [
        "Node n2",
        "PriorityClass high",
        "Node n1",
        "Pod r",
        "Pod b",
        "Pod a",
    ]
    assert workload.steps == ()
    assert workload.until_seconds is None


def test_several_files_form_one_input_in_their_order(tmp_path: Path) -> None:
    first = written(tmp_path, pod("b"), name="1.yaml")
    second = written(tmp_path, node("n1"), pod("a"), name="2.yaml")
    assert names(load_inputs([str(first), str(second)]).initial) == ["Node n1", "Pod b", "Pod a"]


def test_namespaces_of_the_objects_exist(tmp_path: Path) -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {}}}
    event = {"at": 1, "create": [pod("b", namespace="late")]}
    workload = load(tmp_path, pod("a", namespace="shop"), shop, pod_group(), scenario(event))
    results = [one["metadata"]["name"] for one in workload.initial if one["kind"] == "Namespace"]
    assert sorted(results) == ["default", "late", "shop"]
    assert results.count("shop") == 1


def test_a_namespace_that_a_scenario_creates_appears_at_its_time(tmp_path: Path) -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    event = {"at": 1, "create": [shop, pod("a", namespace="shop")]}
    assert load(tmp_path, scenario(event)).initial == ()


def test_an_object_read_twice_from_a_cluster_is_one_object(tmp_path: Path) -> None:
    content = pod("a")
    content["metadata"]["uid"] = "u1"
    deployment = controller("Deployment", uid="u2")
    again = written(tmp_path, content, deployment, name="again.yaml")
    workload = load_inputs([str(written(tmp_path, content, deployment)), str(again)])
    assert names(workload.initial).count("Pod a") == 1
    assert workload.pod_count == 2


# ---- finished pods and ages -----------------------------------------------------------------


def test_finished_pods_are_left_out_and_counted(tmp_path: Path) -> None:
    ended = [
        pod(name, status={"phase": phase}) for name, phase in (("a", "Succeeded"), ("b", "Failed"))
    ]
    workload = load(tmp_path, *ended, pod("c"))
    assert names(workload.initial) == ["Pod c"]
    assert workload.ended_pods == ("default/a", "default/b")


def test_a_scenario_may_not_change_an_object_that_was_left_out(tmp_path: Path) -> None:
    ended = pod("a", status={"phase": "Succeeded"})
    event = {"at": 1, "delete": [{"kind": "Pod", "name": "a"}]}
    (line,) = refusal(tmp_path, ended, scenario(event))
    assert line.endswith("Pod default/a is not there at that time")


def test_objects_from_the_future_are_moved_into_the_past(tmp_path: Path) -> None:
    content = pod("a", nodeName="n1", status={"startTime": "2031-05-05T00:00:00Z"})
    (result,) = [one for one in load(tmp_path, content).initial if one["kind"] == "Pod"]
    assert result["status"]["startTime"] == "2026-01-01T00:00:00Z"


# ---- controllers ----------------------------------------------------------------------------


def test_missing_pods_of_controllers_come_after_their_controller(tmp_path: Path) -> None:
    replica_set = controller("ReplicaSet", "rs", replicas=3, uid="u1")
    here = owned(pod("rs-here", nodeName="n1"), replica_set)
    ended = owned(pod("rs-ended", status={"phase": "Failed"}), replica_set)
    workload = load(tmp_path, pod("first"), replica_set, here, ended, pod("last"), node("n1"))
    result = names(workload.initial)
    assert result[:3] == ["ReplicaSet rs", "Node n1", "Pod rs-here"]
    assert [name.split("-")[0] for name in result[3:]] == [
        "Pod first",
        "Pod rs",
        "Pod rs",
        "Pod last",
    ]
    assert workload.all_notes() == ("2 pods were created for controllers: 2 for 1 ReplicaSet",)


def test_daemon_sets_see_nodes_of_all_files(tmp_path: Path) -> None:
    csv = tmp_path / "nodes.csv"
    csv.write_text(NODES)
    path = written(tmp_path, controller("DaemonSet", "d"), node("n1"))
    workload = load_inputs([str(path), str(csv)])
    assert workload.pod_count == 2
    assert workload.all_notes() == ("2 pods were created for controllers: 2 for 1 DaemonSet",)


def test_nodes_that_the_input_lacks_are_reported_with_what_to_do(tmp_path: Path) -> None:
    running = pod("a", nodeName="n1"), pod("b", nodeName="n1"), pod("c", nodeName="n2")
    (none,) = load(tmp_path, *running).missing_notes
    assert none.startswith("no node was read: ")
    assert "kubectl get nodes -o yaml" in none
    assert load(tmp_path, *running, node("n2")).missing_notes == (
        "2 pods are on 1 node that the input lacks, as if deleted: n1",
    )
    later = scenario({"at": 1, "create": [node("n1")]})
    claim = "v1 PersistentVolumeClaim"
    stored = [
        api_object(claim, f"c{n}", "default", spec={"volumeName": f"pv-{n}"}) for n in range(2)
    ]
    stored.append(api_object("v1 PersistentVolume", "pv-0"))
    for one in stored:
        one["metadata"]["uid"] = f"uid of {one['metadata']['name']}"
    (note,) = load(tmp_path, node(), *stored).missing_notes
    assert note.startswith("claims name 1 PersistentVolume that the input lacks")
    assert note.endswith("cannot be placed: pv-1; kubectl get pv -o yaml")
    assert load(tmp_path, *running, node("n2"), later).missing_notes == ()
    missing = load(tmp_path, node("n0"), *(pod(f"p{n}", nodeName=f"n{n}") for n in range(1, 12)))
    (note,) = missing.missing_notes
    assert note.startswith("11 pods are on 11 nodes that the input lacks, as if deleted: n1, n2, ")
    assert note.endswith(" and 6 more")


def test_an_object_that_was_read_in_another_version_before_is_reported(tmp_path: Path) -> None:
    def versions(*numbers: str) -> list[Content]:
        meta = {"name": "n1", "uid": "u"}
        return [node("n1", metadata={**meta, "resourceVersion": number}) for number in numbers]

    assert load(tmp_path, *versions("1", "1")).notes == ()
    (note,) = load(tmp_path, *versions("1", "2")).notes
    assert note.startswith("Node n1 of ")
    assert note.endswith(" is ignored: another version was read before, and the first one counts")


def test_created_pods_are_reported_by_kind(tmp_path: Path) -> None:
    workload = load(
        tmp_path,
        controller("Deployment", "a", replicas=2),
        controller("Deployment", "b"),
        controller("Job", "j", completions=3),
        controller("StatefulSet", "s", replicas=0),
        node(),
    )
    assert workload.all_notes() == (
        "6 pods were created for controllers: 3 for 2 Deployments, 3 for 1 Job",
    )
    assert [len(pods) for pods in workload.followers.values()] == [2]
    assert workload.pod_count == 6


def test_a_patched_controller_is_reported_with_a_note_that_its_pods_stay(tmp_path: Path) -> None:
    change = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
    event = {"at": 1, "patch": [change, change]}
    once = scenario(event, expansion="once")
    assert load(tmp_path, controller("Deployment"), once).notes == (
        "Deployment default/web is patched, but the pods created for it stay unchanged",
    )


def test_another_template_is_reported_unless_its_rollout_is_simulated(tmp_path: Path) -> None:
    same = {"kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
    workload = load(tmp_path, controller("ReplicaSet"), scenario({"at": 1, "patch": [same]}))
    assert workload.notes == ()
    labels = {"metadata": {"labels": {"app": "web", "version": "2"}}}
    other = {**same, "spec": {"template": labels}}
    workload = load(tmp_path, controller("ReplicaSet"), scenario({"at": 1, "patch": [other]}))
    (note,) = workload.notes
    what = "has another template now, but its pods stay unchanged"
    why = "only rollouts of Deployments and StatefulSets are simulated"
    assert note == f"ReplicaSet default/web {what}: {why}"


# ---- scenarios ------------------------------------------------------------------------------


def test_scenarios_become_steps_ordered_by_time(tmp_path: Path) -> None:
    one = scenario(
        {"at": "5s", "create": [pod("a")]}, {"at": 0, "create": [node("n1")]}, until="9s"
    )
    other = scenario({"at": 5, "delete": [{"kind": "Node", "name": "n1"}]}, until="1m")
    workload = load(tmp_path, one, other)
    assert [(step.at_seconds, step.verb, step.key.name) for step in workload.steps] == [
        (0.0, Verb.CREATE, "n1"),
        (5.0, Verb.CREATE, "a"),
        (5.0, Verb.DELETE, "n1"),
    ]
    assert workload.until_seconds == 60.0


def test_events_may_be_written_in_any_order(tmp_path: Path) -> None:
    late = {"at": 5, "delete": [{"kind": "Node", "name": "n1"}]}
    workload = load(tmp_path, scenario(late, {"at": 0, "create": [node("n1")]}))
    assert [step.verb for step in workload.steps] == [Verb.CREATE, Verb.DELETE]


def test_a_scenario_changes_objects_of_the_initial_state(tmp_path: Path) -> None:
    change = {"kind": "Node", "metadata": {"name": "n1"}, "spec": {"unschedulable": True}}
    workload = load(tmp_path, scenario({"at": 1, "patch": [change]}), node("n1"))
    (step,) = workload.steps
    assert (step.verb, step.content) == (Verb.PATCH, {"spec": {"unschedulable": True}})


def test_a_patch_may_remove_a_field(tmp_path: Path) -> None:
    change = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"schedulingGates": None}}
    gated = pod("a", schedulingGates=[{"name": "x"}])
    workload = load(tmp_path, gated, scenario({"at": 1, "patch": [change]}))
    assert workload.steps[0].content == {"spec": {"schedulingGates": None}}


def test_a_class_created_by_a_scenario_exists_for_all_objects(tmp_path: Path) -> None:
    event = {"at": 0, "create": [priority_class("high", 10), pod("a", priorityClassName="high")]}
    assert len(load(tmp_path, scenario(event)).steps) == 2


# ---- traces ---------------------------------------------------------------------------------


def trace(tmp_path: Path, pods: str = PODS) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(pods)
    return [str(tmp_path)]


def test_a_trace_arrives_at_once_and_in_order_by_default(tmp_path: Path) -> None:
    workload = load_inputs(trace(tmp_path))
    assert names(workload.initial) == ["Node n-0", "Pod p-0", "Pod p-1"]
    assert workload.steps == ()


def test_a_trace_is_replayed_from_its_first_arrival(tmp_path: Path) -> None:
    workload = load_inputs(trace(tmp_path), time_mode=TRACE)
    assert names(workload.initial) == ["Node n-0"]
    assert [(step.at_seconds, step.key.name) for step in workload.steps] == [
        (0.0, "p-1"),
        (10.0, "p-0"),
    ]
    assert workload.pod_count == 2


def test_a_replay_needs_arrival_times(tmp_path: Path) -> None:
    without = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-0,1,1,1,1\n"
    with pytest.raises(InputError, match="has no creation_time and deletion_time"):
        load_inputs(trace(tmp_path, without), time_mode=TRACE)
    with pytest.raises(InputError, match="--time trace"):
        load(tmp_path, pod(), time_mode=TRACE)


def test_a_repeated_pod_in_a_trace_is_an_error(tmp_path: Path) -> None:
    twice = PODS + "p-1,1,1,1,1,,,,5,6,5\n"
    for mode in ("arrivals", TRACE):
        with pytest.raises(InputError, match=r"Pod default/p-1 is there already, from .*pods\.csv"):
            load_inputs(trace(tmp_path, twice), time_mode=mode)


# ---- refusals -------------------------------------------------------------------------------


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    one = written(tmp_path, pod("Bad"), pod("a"), pod("a"), name="1.yaml")
    two = written(tmp_path, {"kind": "Pod"}, name="2.yaml")
    (tmp_path / "3.csv").write_text("x\n")
    with pytest.raises(InputError) as error:
        load_inputs([str(one), str(two), str(tmp_path / "3.csv"), "nowhere"])
    text = str(error.value).replace(f"{tmp_path}/", "")
    assert [line.partition(" ")[0].strip(":,") for line in text.splitlines()] == [
        "nowhere",
        "1.yaml",
        "2.yaml",
        "2.yaml",
        "3.csv",
        "1.yaml",
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        pytest.param(
            [pod(cpu="1x")],
            ["document 1 (Pod default/web)", "spec.containers[0].resources.requests.cpu", "1x"],
            id="quantity",
        ),
        pytest.param(
            [scenario({"at": "soon"})], ["spec.events[0].at", '"soon"', "duration"], id="time"
        ),
        pytest.param(
            [scenario({"at": 0, "crate": []})], ['"crate"', 'did you mean "create"?'], id="verb"
        ),
        pytest.param(
            [scenario({"at": 0, "create": [pod(nodeSelector={"a": "b c"})]})],
            ["spec.events[0].create[0] (Pod default/web): spec.nodeSelector: Invalid value"],
            id="an object in a scenario",
        ),
        pytest.param([{"a": 1}], ["apiVersion", "kind", "metadata"], id="no object"),
        pytest.param([5], ["found 5, wanted an object"], id="a number"),
        pytest.param(
            [{"apiVersion": "x/v1", "kind": "KubeSchedulerConfiguration"}],
            ["--config"],
            id="config",
        ),
    ],
)
def test_each_kind_of_invalid_input_has_its_message(
    tmp_path: Path, values: list[Any], words: list[str]
) -> None:
    text = "\n".join(refusal(tmp_path, *values))
    assert text.startswith("input.yaml, document 1")
    for word in words:
        assert word in text


def test_a_configuration_in_a_folder_is_skipped_with_a_note(tmp_path: Path) -> None:
    written(tmp_path, {"apiVersion": "x/v1", "kind": "KubeSchedulerConfiguration"}, name="c.yaml")
    written(tmp_path, pod(), name="p.yaml")
    workload = load_inputs([str(tmp_path)])
    assert names(workload.initial) == ["Pod web"]
    assert workload.notes == (
        f"{tmp_path}/c.yaml, document 1 was ignored: it configures a scheduler",
    )


TOP = ("metadata", "spec", "name", "namespace", "items", "labels", "ownerReferences")
INSIDE = ("at", "create", "patch", "delete", "events", "template", "replicas", "containers")
READ = "from bayplan.sim.input.inputs import load_inputs; import msgspec, sys; "
PRINT = "sys.stdout.buffer.write(msgspec.json.encode(load_inputs(sys.argv[1:])))"


def test_nothing_depends_on_the_order_of_hashes(tmp_path: Path) -> None:
    kinds = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]
    controllers = [controller(kind, kind.lower(), replicas=3, completions=3) for kind in kinds]
    nodes = [node(f"n{number}") for number in range(5)]
    spaces = [pod("a", namespace=f"space-{number}") for number in range(5)]
    path = written(tmp_path, *controllers, *nodes, *spaces)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", READ + PRINT, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 5000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(TOP + INSIDE), inner, max_size=4)
    ),
    max_leaves=12,
)
CONTROLLERS = ("apps/v1 Deployment", "apps/v1 DaemonSet", "apps/v1 StatefulSet", "batch/v1 Job")
FURTHER_KINDS = (
    "v1 Pod",
    "v1 Node",
    "v1 List",
    "v1 Namespace",
    "scheduling.k8s.io/v1 PriorityClass",
)
KINDS = st.sampled_from((*CONTROLLERS, *FURTHER_KINDS, "bayplan.dev/v1alpha1 Scenario"))


@st.composite
def documents(draw: st.DrawFn) -> Content:
    api_version, kind = draw(KINDS).split()
    fields = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "items"]), VALUES)
    meta = draw(st.sampled_from([{}, {"metadata": {"name": "a"}}]))
    return {"apiVersion": api_version, "kind": kind, **draw(fields), **meta}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(documents() | VALUES, max_size=4))
def test_no_document_raises_another_exception(tmp_path: Path, values: list[Any]) -> None:
    with suppress(InputError):
        assert load(tmp_path, *values).pod_count >= 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), st.sampled_from("yc"))
def test_no_bytes_raise_another_exception(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / ("input.yaml" if kind == "y" else "input.csv")
    path.write_bytes(content)
    with pytest.raises(InputError):
        load_inputs([str(path)])


# ---- time stamps of a captured cluster ------------------------------------------------------


def stamped(created: Any, started: Any = None) -> Content:
    content = pod(status={"phase": "Running", "startTime": started})
    return {**content, "metadata": {**content["metadata"], "creationTimestamp": created}}


def times(*contents: Content) -> list[tuple[Any, Any]]:
    return [
        (one["metadata"]["creationTimestamp"], one["status"]["startTime"])
        for one in in_the_past(*contents)
    ]


def in_the_past(*contents: Content) -> list[Content]:
    return [moved_back(one, seconds_in_the_future(contents)) for one in contents]


def test_the_newest_object_is_moved_to_the_start_and_older_objects_keep_their_distance() -> None:
    old = stamped("2026-11-01T10:00:00Z", "2026-11-01T10:00:05Z")
    new = stamped("2026-11-03T10:00:00+00:00", "2026-11-03T10:01:00Z")
    assert times(old, new) == [
        ("2025-12-29T23:59:00Z", "2025-12-29T23:59:05Z"),
        ("2025-12-31T23:59:00Z", "2026-01-01T00:00:00Z"),
    ]


def test_objects_of_the_past_stay_unchanged() -> None:
    old = stamped("2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z")
    assert in_the_past(old, pod()) == [old, pod()]


def test_objects_that_were_moved_back_get_their_time_stamps_again() -> None:
    new = stamped("2026-11-03T10:00:00Z", "2026-11-03T10:01:00Z")
    shift = seconds_in_the_future([new])
    assert shift > 0
    assert moved_back(moved_back(new, shift), -shift) == new


@pytest.mark.parametrize("stamp", ["yesterday", 5, None, "", "2027-01-01"])
def test_an_invalid_time_stamp_stays_unchanged(stamp: Any) -> None:
    (created, started) = times(stamped(stamp, "2020-01-01T00:00:00Z"))[0]
    assert created == ("2026-01-01T00:00:00Z" if stamp == "2027-01-01" else stamp)
    assert started is not None


def test_no_time_stamp_is_moved_before_1970() -> None:
    assert times(stamped("0001-01-01T00:00:00Z", "2027-01-01T00:00:00Z"))[0][0] == (
        "1970-01-01T00:00:00Z"
    )
