"""What `kubectl apply` makes of an object that exists."""

import json
from typing import Any

from bayplan.adapters.embedded.kubectl_apply import applied
from bayplan.api.objects import LAST_APPLIED_ANNOTATION

Content = dict[str, Any]


def workload(last: Content | None = None, **spec: Any) -> Content:
    meta: Content = {"name": "web", "namespace": "default"}
    if last is not None:
        meta["annotations"] = {LAST_APPLIED_ANNOTATION: json.dumps(last)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def containers(*parts: Content) -> Content:
    return {"template": {"spec": {"containers": list(parts)}}}


def test_what_the_manifest_lacks_stays_as_it_is() -> None:
    live = workload(replicas=10, paused=False, strategy={"type": "RollingUpdate"})
    changed = applied(live, workload(paused=True))
    assert changed["spec"] == {
        "replicas": 10,
        "paused": True,
        "strategy": {"type": "RollingUpdate"},
    }


def test_what_the_last_manifest_had_and_the_new_one_lacks_is_removed() -> None:
    live = workload(workload(replicas=3, paused=True), replicas=10, paused=True)
    assert applied(live, workload(paused=True))["spec"] == {"paused": True}


def test_defaults_of_containers_stay() -> None:
    stored = {"name": "c", "image": "app:1", "imagePullPolicy": "Always"}
    live = workload(**containers(stored, {"name": "sidecar", "image": "s"}))
    same = applied(live, workload(**containers({"name": "c", "image": "app:1"})))
    assert same["spec"] == live["spec"]
    newer = applied(live, workload(**containers({"name": "c", "image": "app:2"})))
    [first, second] = newer["spec"]["template"]["spec"]["containers"]
    assert first == {**stored, "image": "app:2"}
    assert second["name"] == "sidecar"


def test_a_container_that_the_last_manifest_had_goes() -> None:
    both = containers({"name": "c", "image": "a"}, {"name": "d", "image": "b"})
    live = workload(workload(**both), **both)
    changed = applied(live, workload(**containers({"name": "c", "image": "a"})))
    assert [each["name"] for each in changed["spec"]["template"]["spec"]["containers"]] == ["c"]


def test_amounts_that_are_equal_are_no_change() -> None:
    stored = {"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    written = {"name": "c", "resources": {"requests": {"cpu": 0.5, "memory": "1024Mi"}}}
    live = workload(**containers(stored))
    assert applied(live, workload(**containers(written)))["spec"] == live["spec"]


def test_lists_without_keys_are_replaced() -> None:
    live = {**workload(), "spec": {"taints": [{"key": "a"}, {"key": "b"}]}}
    manifest = {**workload(), "spec": {"taints": [{"key": "c"}]}}
    assert applied(live, manifest)["spec"] == {"taints": [{"key": "c"}]}


def test_an_annotation_that_is_no_manifest_removes_nothing() -> None:
    for text in ("", "{", "[]", "7"):
        live = workload(replicas=2)
        live["metadata"]["annotations"] = {LAST_APPLIED_ANNOTATION: text}
        assert applied(live, workload())["spec"] == {"replicas": 2}
