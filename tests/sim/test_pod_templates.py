"""Pods from templates."""

from bayplan.sim.pod_templates import is_active, labelled, pod_from, reference, template_hash
from tests.adapters.manifests import pod
from tests.sim.manifests import controller, template


def test_a_pod_has_its_templates_labels_and_spec_and_its_owner() -> None:
    owner = controller("ReplicaSet", uid="u1", template=template(annotations={"a": "1"}))
    made = pod_from(owner, "web-x", labels={"more": "yes"}, annotations={"b": "2"})
    assert made["metadata"] == {
        "name": "web-x",
        "namespace": "default",
        "labels": {"app": "web", "more": "yes"},
        "annotations": {"a": "1", "b": "2"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "u1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert made["spec"] is owner["spec"]["template"]["spec"]
    assert reference(owner) == made["metadata"]["ownerReferences"][0]


def test_finalizers_of_a_template_are_kept() -> None:
    whole = template()
    whole["metadata"]["finalizers"] = ["example.com/keep"]
    made = pod_from(controller("ReplicaSet", uid="u1", template=whole), "web-x")
    assert made["metadata"]["finalizers"] == ["example.com/keep"]


def test_pods_that_have_ended_or_are_on_their_way_out_do_not_count() -> None:
    leaving = pod(deletionTimestamp="2026-01-01T00:00:00Z")
    ended = pod(status={"phase": "Failed"})
    running = pod(nodeName="n", status={"phase": "Running"})
    found = [is_active(one) for one in (pod(), running, ended, leaving, controller("ReplicaSet"))]
    assert found == [True, True, False, False, False]


def test_a_hash_follows_from_the_template_whatever_the_order_of_its_fields() -> None:
    one = template(nodeName="n", priority=1)
    other = {"spec": dict(reversed(one["spec"].items())), "metadata": one["metadata"]}
    assert template_hash(one) == template_hash(other) != template_hash(template())
    assert len(template_hash(one)) == 10


def test_labels_are_added_to_a_template_not_into_it() -> None:
    bare = template()
    assert labelled(bare, {"h": "1"})["metadata"]["labels"] == {"app": "web", "h": "1"}
    assert bare["metadata"]["labels"] == {"app": "web"}
