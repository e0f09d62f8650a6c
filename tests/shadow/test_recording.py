"""A recording is a valid input of a simulation, and two replays give the same result."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.objects import NAMESPACE, NODE, PERSISTENT_VOLUME_CLAIM, POD, REPLICA_SET
from bayplan.ports import EventType
from bayplan.shadow.recording import OBJECTS, SCENARIO, Recording
from tests.cli.command_line import answer
from tests.kit.manifests import node, pod

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def stored_node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    made = node(name, spec=spec, status=status)
    return {**made, "metadata": {"name": name, "uid": f"u-{name}"}}


def stored_pod(name: str, on: str = "", owner: str = "", **meta: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"nodeName": on} if on else {}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner}
        options["ownerReferences"] = [{**reference, "uid": f"u-{owner}", "controller": True}]
    options |= {"schedulerName": "default-scheduler", "status": {"phase": "Pending"}}
    return pod(name, **{"uid": f"u-{name}", **meta, **options})


def encoded(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


class Writing:
    """Writes a recording; each step is one second after the previous one."""

    def __init__(self, folder: Path, *present: tuple[str, dict[str, Any]]) -> None:
        self.recording = Recording(folder, ("default-scheduler",))
        self.recording.begin((kind, encoded(content)) for kind, content in present)
        self.now = 0.0

    def add(self, change: EventType, kind: str, content: dict[str, Any]) -> None:
        self.now += 1.0
        self.recording.add(change, kind, encoded(content), self.now)

    def steps(self) -> list[dict[str, Any]]:
        """The events of the scenario, without their times."""
        self.recording.close()
        text = (self.recording.path / SCENARIO).read_text()
        events = yaml.safe_load(text)["spec"]["events"]
        return [{name: part for name, part in each.items() if name != "at"} for each in events]

    def result(self) -> dict[str, Any]:
        """The result of a simulation of the recording, which is run twice."""
        runs = [answer("simulate", self.recording.path, "-o", "json") for _ in range(2)]
        first, second = map(json.loads, runs)
        assert first["digest"] == second["digest"]
        return first


def test_pods_are_created_at_their_times_and_placed_by_the_simulation(tmp_path: Path) -> None:
    writing = Writing(tmp_path, (NODE, stored_node("n1")), (POD, stored_pod("running", on="n1")))
    writing.add(ADDED, POD, stored_pod("web"))
    writing.add(MODIFIED, POD, stored_pod("web", on="n1"))
    writing.add(MODIFIED, POD, stored_pod("web", on="n1", labels={"a": "b"}))
    writing.add(DELETED, POD, stored_pod("web"))
    verbs = [next(iter(each)) for each in writing.steps()]
    assert verbs == ["create", "patch", "delete"]
    result = writing.result()
    assert result["counts"]["gone"] == {"deleted": 1}
    assert result["pods"]["default/web"]["node"]
    assert result["counts"]["running"] == 1
    events = yaml.safe_load((writing.recording.path / SCENARIO).read_text())["spec"]["events"]
    assert [each["at"] for each in events] == ["1.000s", "3.000s", "4.000s"]


def test_changes_that_a_binding_causes_are_not_recorded(tmp_path: Path) -> None:
    writing = Writing(tmp_path, (NODE, stored_node("n1")))
    writing.add(ADDED, POD, stored_pod("web"))
    labels = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
    writing.add(MODIFIED, POD, stored_pod("web", on="n1", labels=labels))
    assert [next(iter(each)) for each in writing.steps()] == ["create"]


def test_a_pod_of_another_scheduler_is_recorded_with_its_node(tmp_path: Path) -> None:
    foreign = stored_pod("foreign")
    foreign["spec"]["schedulerName"] = "theirs"
    bound = {**foreign, "spec": {**foreign["spec"], "nodeName": "n1"}}
    writing = Writing(tmp_path, (NODE, stored_node("n1")))
    writing.add(ADDED, POD, foreign)
    writing.add(MODIFIED, POD, bound)
    (step,) = writing.steps()
    assert step["create"][0]["spec"]["nodeName"] == "n1"
    assert writing.result()["counts"]["running"] == 1


def test_the_pods_of_a_controller_are_recorded_one_by_one(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": stored_pod("x")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    meta = {"name": "rs", "namespace": "default", "uid": "u-rs"}
    writing = Writing(tmp_path, (NODE, stored_node("n1")))
    writing.add(ADDED, REPLICA_SET, {"metadata": meta, "spec": spec})
    writing.add(ADDED, POD, stored_pod("rs-1", owner="rs", labels={"a": "b"}))
    # The garbage collector deletes the owner first.
    writing.add(DELETED, REPLICA_SET, {"metadata": meta})
    writing.add(DELETED, POD, stored_pod("rs-1"))
    assert [next(iter(each)) for each in writing.steps()] == ["create", "create", "delete"]
    assert writing.recording.left_out_count == 1
    assert writing.result()["counts"]["pods"] == 1


def test_objects_owned_by_a_deleted_pod_are_deleted_with_it(tmp_path: Path) -> None:
    meta = {"name": "data", "namespace": "default", "uid": "u-data"}
    meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u-web"}]  # type: ignore[assignment]
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    writing = Writing(tmp_path, (NODE, stored_node("n1")))
    writing.add(ADDED, POD, stored_pod("web"))
    writing.add(ADDED, PERSISTENT_VOLUME_CLAIM, {"metadata": meta, "spec": spec})
    writing.add(DELETED, POD, stored_pod("web"))
    writing.add(MODIFIED, PERSISTENT_VOLUME_CLAIM, {"metadata": meta, "spec": spec})
    writing.add(DELETED, PERSISTENT_VOLUME_CLAIM, {"metadata": meta})
    verbs = [next(iter(each)) for each in writing.steps()]
    assert verbs[:3] == ["create", "create", "delete"]
    writing.result()


def test_a_pod_of_the_same_name_replaces_its_predecessor(tmp_path: Path) -> None:
    writing = Writing(tmp_path, (NODE, stored_node("n1")))
    writing.add(ADDED, POD, stored_pod("web"))
    writing.add(MODIFIED, POD, stored_pod("web", uid="u-2"))
    assert [next(iter(each)) for each in writing.steps()] == ["create", "delete", "create"]
    assert list(writing.result()["placements"]) == ["default/web"]


def test_changes_and_deletions_of_nodes_are_recorded_and_namespaces_stay(tmp_path: Path) -> None:
    space = {"metadata": {"name": "shop", "uid": "u-shop"}}
    writing = Writing(tmp_path, (NODE, stored_node("n1")), (NAMESPACE, space))
    writing.add(MODIFIED, NODE, stored_node("n1"))
    writing.add(MODIFIED, NODE, stored_node("n1", cpu="8", unschedulable=True))
    writing.add(MODIFIED, NODE, stored_node("n1", cpu="8"))
    writing.add(DELETED, NODE, stored_node("n1"))
    writing.add(DELETED, NAMESPACE, space)
    first, second, third = writing.steps()
    assert first["patch"][0]["spec"] == {"unschedulable": True}
    assert first["patch"][0]["status"]["allocatable"] == {"cpu": "8"}
    assert second["patch"][0]["spec"] == {"unschedulable": None}
    assert list(third) == ["delete"]
    writing.result()


def test_times_never_decrease(tmp_path: Path) -> None:
    recording = Recording(tmp_path, ("default-scheduler",))
    recording.begin([(NODE, encoded(stored_node("n1")))])
    recording.add(ADDED, POD, encoded(stored_pod("a")), 2.0)
    recording.add(ADDED, POD, encoded(stored_pod("b")), 1.0)
    recording.close()
    events = yaml.safe_load((recording.path / SCENARIO).read_text())["spec"]["events"]
    assert [each["at"] for each in events] == ["2.000s", "2.000s"]


def test_a_recording_without_changes_is_valid_and_never_overwritten(tmp_path: Path) -> None:
    writing = Writing(tmp_path, (NODE, stored_node("n1")), (POD, stored_pod("web")))
    writing.steps()
    assert writing.result()["counts"]["scheduled"] == 1
    assert (writing.recording.path / OBJECTS).stat().st_mode & 0o077 == 0
    with pytest.raises(FileExistsError):
        Recording(tmp_path, ())
