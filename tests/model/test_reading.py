"""Objects of files are checked, defaulted and expanded into pods as in a simulation."""

from pathlib import Path

import pytest

from bayplan.adapters.embedded.api_features import NO_FEATURES
from bayplan.api.objects import NODE, POD, Pod
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.reading import objects_of_files
from bayplan.objects.keys import ObjectKey
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.inputs import InputError
from bayplan.state.pods import pod_info

NODE_FILE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: x, resources: {limits: {cpu: 700m}}}]
"""
LATER = """
apiVersion: bayplan.dev/v1alpha1
kind: Scenario
spec:
  events:
    - at: 0s
      create:
        - apiVersion: v1
          kind: Pod
          metadata: {name: now}
          spec: {containers: [{name: c, image: x}]}
    - at: 9s
      delete: [{apiVersion: v1, kind: Pod, name: now}]
"""


def test_controllers_have_pods_with_the_defaults_of_the_api_server(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{NODE_FILE}---{DEPLOYMENT}")
    objects = objects_of_files([str(tmp_path)], features=NO_FEATURES)
    pods = [pod_info(each) for each in objects.of(POD) if isinstance(each, Pod)]
    assert [each.requests["cpu"] for each in pods] == [700, 700]
    assert any("2 pods were created for controllers" in note for note in objects.notes)
    model = ClusterModel(objects, SchedulerConfig(), default_registry(()))
    names = [each.key for each in model.pending()]
    assert [model.place(name).node for name in names] == ["n1", ""]


def test_pods_that_a_quota_forbids_do_not_count_as_created(tmp_path: Path) -> None:
    quota = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: shop}
spec: {hard: {pods: "1"}}
"""
    (tmp_path / "a.yaml").write_text(f"{NODE_FILE}---{DEPLOYMENT}---{quota}")
    first, *_, last = objects_of_files([str(tmp_path)], features=NO_FEATURES).notes
    assert first == "1 pod was created for controllers: 2 for 1 Deployment, 1 of them not yet"
    assert last.startswith("1 pod of ReplicaSet shop/web-")


@pytest.mark.parametrize(
    ("node_name", "policy", "pods"),
    [
        ("", "OrderedReady", ["db-0"]),
        ("n1", "OrderedReady", ["db-0", "db-1", "db-2"]),
        ("", "Parallel", ["db-0", "db-1", "db-2"]),
    ],
)
def test_a_stateful_set_waits_for_the_pod_that_is_there(
    tmp_path: Path, node_name: str, policy: str, pods: list[str]
) -> None:
    spec = "{containers: [{name: c, image: x}]}"
    owner = "{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u, controller: true}"
    content = f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: default, uid: u}}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: {policy}
  selector: {{matchLabels: {{app: db}}}}
  template: {{metadata: {{labels: {{app: db}}}}, spec: {spec}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: db-0, namespace: default, labels: {{app: db}}, ownerReferences: [{owner}]}}
spec: {{nodeName: "{node_name}", containers: [{{name: c, image: x}}]}}
"""
    (tmp_path / "a.yaml").write_text(f"{NODE_FILE}---{content}")
    objects = objects_of_files([str(tmp_path)], features=NO_FEATURES)
    assert sorted(each.metadata.name for each in objects.of(POD)) == pods
    waits = "StatefulSet default/db creates its further pods one by one"
    assert any(waits in note for note in objects.notes) == (len(pods) == 1)
    created = "no pod was created for controllers: 2 for 1 StatefulSet, 2 of them not yet"
    assert (objects.notes[0] == created) == (len(pods) == 1)


def test_the_content_of_an_object_is_a_copy(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(NODE_FILE)
    objects = objects_of_files([str(tmp_path)], features=NO_FEATURES)
    key = ObjectKey(NODE, "", "n1")
    content = objects.content(key)
    assert content is not None
    content["metadata"]["name"] = "changed"
    assert objects.content(key) != content
    assert objects.content(ObjectKey(NODE, "", "n2")) is None


def test_a_scenario_has_its_objects_of_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{NODE_FILE}---{LATER}")
    objects = objects_of_files([str(tmp_path)], features=NO_FEATURES)
    assert [each.metadata.name for each in objects.of(POD)] == ["now"]
    assert "1 later step of the scenario is left out" in objects.notes


def test_bad_input_is_refused_as_in_a_simulation(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Pod")
    with pytest.raises(InputError, match="apiVersion"):
        objects_of_files([str(tmp_path / "a.yaml")], features=NO_FEATURES)
