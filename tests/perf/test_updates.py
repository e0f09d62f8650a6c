"""An update replaces what a user may change, and keeps what is the server's own."""

from typing import Any

from bayplan.perf.updates import updated


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def test_a_pod_keeps_what_admission_gave_it() -> None:
    old = pod(priority=5, tolerations=[{"key": "a"}], schedulingGates=[{"name": "g"}])
    found = updated(old, pod(containers=[]), ())
    assert found["spec"] == {"priority": 5, "tolerations": [{"key": "a"}], "containers": []}


def test_another_kind_is_replaced() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}}
    old = {**node, "spec": {"taints": [{"key": "a"}]}}
    assert updated(old, node, ()) == node


def test_a_resize_changes_resources_only() -> None:
    old = pod(containers=[{"name": "a", "image": "i", "resources": 1}, {"name": "b"}])
    old["metadata"]["labels"] = {"x": "y"}
    found = updated(old, pod(containers=[{"name": "a", "image": "j", "resources": 2}]), ("resize",))
    assert found["spec"]["containers"] == [
        {"name": "a", "image": "i", "resources": 2},
        {"name": "b"},
    ]
    assert found["metadata"] == old["metadata"]


def test_a_status_changes_nothing_else() -> None:
    old = {**pod(nodeName="n"), "status": {"phase": "Running"}}
    found = updated(old, {**pod(), "status": {"phase": "Failed"}}, ("status",))
    assert found == {**old, "status": {"phase": "Failed"}}
