"""The rules of the API server: create, update, bind, status, delete."""

from collections.abc import Callable
from typing import Any

import pytest

from bayplan.adapters.embedded.api_errors import AlreadyExistsError, InvalidError
from bayplan.adapters.embedded.api_server import (
    ApiServer,
    patched,
)
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.objects import PRIORITY_CLASS, Condition, Pod, decode
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, key_of, object_key
from bayplan.ports import ApiError, ConflictError, EventType, NotFoundError, PatchPodStatus
from tests.kit.manifests import Content, node, pod, pod_group

# ---- api server -----------------------------------------------------------------------------


POD = "v1 Pod"
WEB = object_key(POD, "default", "web")
START = "2026-01-01T00:00:00Z"


class TimedServer:
    """A server whose time the test moves."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = VersionedStore()
        self.server = ApiServer(self.clock, self.store, self._later)
        self._waiting: list[tuple[float, Callable[[], None]]] = []

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._waiting.append((self.clock.now() + seconds, call))

    def pass_time(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now() + seconds)
        due = [call for when, call in self._waiting if when <= self.clock.now()]
        self._waiting = [entry for entry in self._waiting if entry[0] > self.clock.now()]
        for call in due:
            call()

    def content(self, key: ObjectKey = WEB) -> Content:
        return self.server.get(key).content

    def uid(self, key: ObjectKey = WEB) -> str:
        uid: str = self.content(key)["metadata"]["uid"]
        return uid

    def bound(self, **spec: Any) -> str:
        """Create pod web and bind it to node n1; returns its uid."""
        self.server.create(pod(**spec))
        self.server.bind(WEB, self.uid(), "n1")
        return self.uid()


# ---- create ---------------------------------------------------------------------------------


def test_a_new_object_gets_uid_time_version_and_generation() -> None:
    world = TimedServer()
    world.clock.advance_to(90)
    meta = world.server.create(pod()).content["metadata"]
    assert meta["creationTimestamp"] == "2026-01-01T00:01:30Z"
    assert (meta["resourceVersion"], meta["generation"]) == ("1", 1)
    assert len(meta["uid"]) == 36


def pod_of_template(name: str, **meta: Any) -> Content:
    """One of the pods of a template."""
    resources = {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}}
    content = pod(containers=[{"name": "c", "resources": resources}])
    labels = {"app": "web"}
    return {**content, "metadata": {"name": name, "namespace": "default", "labels": labels, **meta}}


def test_a_pod_of_a_template_is_refused_only_for_its_own_name() -> None:
    world = TimedServer()
    world.server.create(pod_of_template("a"))
    with pytest.raises(AlreadyExistsError):
        world.server.create(pod_of_template("a"))
    with pytest.raises(InvalidError, match=r"metadata\.name"):
        world.server.create(pod_of_template("A"))
    with pytest.raises(InvalidError, match=r"metadata\.labels"):
        world.server.create(pod_of_template("b", labels={"app": "-"}))


def test_a_new_priority_class_applies_to_the_next_pod_of_a_template() -> None:
    world = TimedServer()
    world.server.create(pod_of_template("a"))
    default = {"metadata": {"name": "high"}, "value": 7, "globalDefault": True}
    api_version, kind = PRIORITY_CLASS.split()
    world.server.create({"apiVersion": api_version, "kind": kind, **default})
    world.server.create(pod_of_template("b"))
    keys = [object_key(POD, "default", name) for name in "ab"]
    assert [world.content(key)["spec"]["priority"] for key in keys] == [0, 7]


def test_two_clusters_give_the_same_uids() -> None:
    assert TimedServer().server.create(pod()).content == TimedServer().server.create(pod()).content


def test_an_object_from_a_cluster_keeps_its_identity() -> None:
    meta = {"name": "web", "uid": "abc", "creationTimestamp": "2020-02-02T00:00:00Z"}
    metadata = TimedServer().server.create({**pod(), "metadata": meta}).content["metadata"]
    assert (metadata["uid"], metadata["creationTimestamp"]) == ("abc", "2020-02-02T00:00:00Z")
    assert metadata["namespace"] == "default"


def test_a_name_is_generated_from_generate_name() -> None:
    world = TimedServer()
    content = {**pod(), "metadata": {"generateName": "web-"}}
    names = [world.server.create(content).key.name for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_a_pod_created_on_a_node_runs_and_has_its_zone() -> None:
    world = TimedServer()
    world.server.create(node("n1", labels={"topology.kubernetes.io/zone": "z1"}))
    content = world.server.create(pod(nodeName="n1")).content
    assert content["status"] == {"phase": "Running", "startTime": START}
    assert content["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z1"}


def test_an_existing_name_is_refused() -> None:
    world = TimedServer()
    world.server.create(pod())
    with pytest.raises(ApiError, match='pods "web" already exists') as error:
        world.server.create(pod())
    assert (error.value.code, error.value.reason) == (409, "AlreadyExists")


def test_an_invalid_object_is_refused_with_all_problems() -> None:
    world = TimedServer()
    with pytest.raises(ApiError) as error:
        world.server.create(pod(cpu="-1", restartPolicy="No"))
    assert error.value.code == 422
    text = str(error.value)
    assert text == (
        'Pod "web" is invalid: [spec.containers[0].resources.requests[cpu]: Invalid value: "-1": '
        'must be greater than or equal to 0, spec.restartPolicy: Unsupported value: "No": '
        'supported values: "Always", "OnFailure", "Never"]'
    )
    assert world.store.version == 0


@pytest.mark.parametrize("content", [{}, {"apiVersion": "v1"}, {**pod(), "metadata": []}])
def test_a_value_that_is_not_an_object_is_refused(content: Any) -> None:
    with pytest.raises(ApiError) as error:
        TimedServer().server.create(content)
    assert error.value.code == 400


# ---- update and patch -----------------------------------------------------------------------


def test_a_patch_merges_and_creates_a_version() -> None:
    world = TimedServer()
    world.server.create(node("n1", labels={"a": "1"}))
    key = object_key("v1 Node", "", "n1")
    patch = {"spec": {"unschedulable": True}, "metadata": {"labels": {"b": "2"}}}
    content = world.server.patch(key, patch).content
    assert content["spec"] == {"unschedulable": True}
    assert content["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert (content["metadata"]["resourceVersion"], content["metadata"]["generation"]) == ("2", 2)


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"annotations": {"devices": "0,3"}}},
        {"metadata": {"labels": {"app": "b"}, "finalizers": ["x/y"]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"metadata": {"annotations": None}, "status": {"phase": "Failed"}},
    ],
)
def test_a_patch_of_something_else_shares_the_spec(patch: Content) -> None:
    timed = TimedServer()
    timed.bound(labels={"app": "a"}, annotations={"a": "b"}, cpu="500m")
    before = timed.server.get(WEB)
    after = timed.server.patch(WEB, patch)
    assert isinstance(before.object, Pod)
    assert isinstance(after.object, Pod)
    assert after.content["spec"] is before.content["spec"]
    assert after.object.spec is before.object.spec
    assert after.object == decode(POD, after.content)
    assert after.content["metadata"]["generation"] == before.content["metadata"]["generation"]


def test_a_condition_of_the_scheduler_shares_the_spec() -> None:
    timed = TimedServer()
    before = timed.server.create(pod(cpu="500m"))
    condition = Condition(type="PodScheduled", status="False", message="no room")
    patch = PatchPodStatus("default", "web", timed.uid(), condition, "n1")
    after = timed.server.patch_pod_status(patch)
    assert isinstance(before.object, Pod)
    assert isinstance(after.object, Pod)
    assert after.object.spec is before.object.spec
    assert after.object == decode(POD, after.content)
    assert after.object.status.nominated_node_name == "n1"


def test_a_patch_without_changes_creates_no_version() -> None:
    world = TimedServer()
    world.server.create(node("n1", labels={"a": "1"}))
    world.server.patch(object_key("v1 Node", "", "n1"), {"metadata": {"labels": {"a": "1"}}})
    assert world.store.version == 1


def test_an_update_of_an_old_version_is_refused() -> None:
    world = TimedServer()
    old = world.server.create(pod_group(minimum=3)).content
    world.server.patch(key_of(old), {"spec": {"minMember": 2}})
    with pytest.raises(ConflictError, match="the object has been modified"):
        world.server.update({**old, "spec": {"minMember": 5}})
    with pytest.raises(ConflictError):
        world.server.patch(key_of(old), {"metadata": {"resourceVersion": "1"}, "spec": {}})
    assert world.content(key_of(old))["spec"] == {"minMember": 2}


@pytest.mark.parametrize(
    "call",
    [
        lambda server: server.patch(WEB, {"metadata": {"uid": "other"}}),
        lambda server: server.bind(WEB, "other", "n1"),
        lambda server: server.patch_pod_status(
            PatchPodStatus("default", "web", "other", None, "n1")
        ),
        lambda server: server.delete(WEB, uid="other"),
    ],
    ids=["patch", "binding", "status", "deletion"],
)
def test_a_change_for_another_object_of_that_name_is_refused(
    call: Callable[[ApiServer], object],
) -> None:
    server = TimedServer().server
    server.create(pod())
    with pytest.raises(ConflictError, match="UID in precondition: other"):
        call(server)


def test_identity_cannot_be_patched() -> None:
    world = TimedServer()
    before = world.server.create(pod()).content["metadata"]
    patch = {"metadata": {"name": "x", "creationTimestamp": None, "labels": {"a": "b"}}}
    after = world.server.patch(WEB, patch).content["metadata"]
    assert (after["name"], after["creationTimestamp"]) == ("web", before["creationTimestamp"])


def test_a_patched_object_is_validated_and_defaulted() -> None:
    world = TimedServer()
    world.server.create(node("n1"))
    key = object_key("v1 Node", "", "n1")
    with pytest.raises(ApiError, match=r"status\.allocatable\.cpu"):
        world.server.patch(key, {"status": {"allocatable": {"cpu": "1x"}}})
    with pytest.raises(ApiError, match="spec"):
        world.server.patch(key, {"spec": ["not", "a", "mapping"]})
    assert world.store.version == 1


def test_only_a_binding_moves_a_pod() -> None:
    world = TimedServer()
    world.server.create(pod())
    with pytest.raises(ApiError, match=r"spec\.nodeName") as error:
        world.server.patch(WEB, {"spec": {"nodeName": "n1"}})
    assert error.value.code == 422


def test_a_missing_object_cannot_be_changed() -> None:
    server = TimedServer().server
    for call in (
        lambda: server.patch(WEB, {}),
        lambda: server.update(pod()),
        lambda: server.delete(WEB),
        lambda: server.bind(WEB, "", "n1"),
    ):
        with pytest.raises(NotFoundError, match='pods "web" not found'):
            call()


# ---- binding --------------------------------------------------------------------------------


def test_a_bound_pod_runs_at_once_even_on_a_missing_node() -> None:
    world = TimedServer()
    world.clock.advance_to(60)
    world.bound()
    content = world.content()
    assert content["spec"]["nodeName"] == "n1"
    assert content["status"] == {
        "phase": "Running",
        "startTime": "2026-01-01T00:01:00Z",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": "2026-01-01T00:01:00Z",
            }
        ],
    }


def test_a_binding_copies_the_zone_and_clears_the_nomination() -> None:
    world = TimedServer()
    world.server.create(node("n1", labels={"topology.kubernetes.io/zone": "z1"}))
    world.server.create(pod())
    world.server.patch_pod_status(PatchPodStatus("default", "web", "", None, "n1"))
    assert world.content()["status"]["nominatedNodeName"] == "n1"
    world.server.bind(WEB, world.uid(), "n1")
    assert "nominatedNodeName" not in world.content()["status"]
    assert world.content()["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z1"}


def test_a_pod_is_bound_only_once() -> None:
    world = TimedServer()
    uid = world.bound()
    with pytest.raises(ConflictError, match='pod web is already assigned to node "n1"'):
        world.server.bind(WEB, uid, "n2")


def test_a_pod_that_is_being_deleted_is_not_bound() -> None:
    world = TimedServer()
    world.server.create(pod(finalizers=["example.com/keep"]))
    world.server.delete(WEB)
    with pytest.raises(ConflictError, match="is being deleted"):
        world.server.bind(WEB, world.uid(), "n1")


def test_a_gated_pod_is_not_bound() -> None:
    world = TimedServer()
    world.server.create(pod(schedulingGates=[{"name": "a"}]))
    with pytest.raises(ConflictError, match="schedulingGates"):
        world.server.bind(WEB, world.uid(), "n1")


# ---- status ---------------------------------------------------------------------------------


def test_a_nomination_is_set_preserved_and_cleared() -> None:
    world = TimedServer()
    world.server.create(pod())
    uid = world.uid()
    nominations: list[str | None] = []
    for nomination in ("n1", None, ""):
        world.server.patch_pod_status(PatchPodStatus("default", "web", uid, None, nomination))
        nominations.append(world.content()["status"].get("nominatedNodeName"))
    assert nominations == ["n1", "n1", None]


# ---- delete ---------------------------------------------------------------------------------


def test_a_pending_pod_is_deleted_at_once_despite_its_grace_period() -> None:
    world = TimedServer()
    world.server.create(pod(terminationGracePeriodSeconds=30))
    world.server.delete(WEB)
    assert world.store.get(WEB) is None


def test_a_running_pod_is_deleted_after_its_grace_period() -> None:
    world = TimedServer()
    world.bound(terminationGracePeriodSeconds=20)
    world.server.delete(WEB)
    meta = world.content()["metadata"]
    assert meta["deletionTimestamp"] == "2026-01-01T00:00:20Z"
    assert meta["deletionGracePeriodSeconds"] == 20
    assert len(world.server.terminating) == 1
    world.pass_time(19)
    world.server.delete(WEB)  # a second deletion does not restart the grace period
    world.pass_time(1)
    assert world.store.get(WEB) is None
    assert not world.server.terminating


def test_a_finished_pod_is_deleted_at_once() -> None:
    world = TimedServer()
    world.bound(terminationGracePeriodSeconds=20)
    world.server.set_phase(WEB, "Succeeded")
    assert world.content()["status"]["phase"] == "Succeeded"
    world.server.delete(WEB)
    assert world.store.get(WEB) is None


def test_a_finalizer_keeps_an_object_until_its_removal() -> None:
    world = TimedServer()
    world.bound(finalizers=["example.com/keep"], terminationGracePeriodSeconds=5)
    world.server.delete(WEB)
    world.pass_time(5)
    assert world.content()["metadata"]["deletionTimestamp"]
    world.server.patch(WEB, {"metadata": {"finalizers": None}})
    assert world.store.get(WEB) is None


def test_removing_a_finalizer_does_not_shorten_the_grace_period() -> None:
    world = TimedServer()
    world.bound(finalizers=["example.com/keep"], terminationGracePeriodSeconds=5)
    world.server.delete(WEB)
    world.server.patch(WEB, {"metadata": {"finalizers": None}})
    assert world.store.get(WEB) is not None
    world.pass_time(5)
    assert world.store.get(WEB) is None


def test_an_object_created_while_being_deleted_stays_so() -> None:
    world = TimedServer()
    world.server.create(
        pod(nodeName="n1", terminationGracePeriodSeconds=7, deletionTimestamp=START)
    )
    world.server.create({**pod("pending", deletionTimestamp=START)})
    finalized = {**pod("kept", deletionTimestamp=START, finalizers=["example.com/keep"])}
    world.server.create(finalized)
    assert [stored.key.name for stored in world.store.all(POD)] == ["web", "kept"]
    world.pass_time(7)
    assert [stored.key.name for stored in world.store.all(POD)] == ["kept"]


def test_the_grace_period_of_one_pod_does_not_delete_the_next_of_its_name() -> None:
    world = TimedServer()
    world.bound(terminationGracePeriodSeconds=5)
    world.server.delete(WEB)
    world.server.set_phase(WEB, "Failed")
    world.store.remove(WEB)
    world.server.create(pod())
    world.pass_time(5)
    assert world.store.get(WEB) is not None


def test_the_life_of_a_pod_is_a_sequence_of_events() -> None:
    world = TimedServer()
    watch = world.store.watch(POD, "0")
    world.bound(terminationGracePeriodSeconds=5)
    world.server.delete(WEB)
    world.pass_time(5)
    events: list[tuple[EventType, str | None, bool]] = []
    while (event := watch.take()) is not None:
        pod = event.object
        assert isinstance(pod, Pod)
        is_terminating = pod.metadata.deletion_timestamp is not None
        events.append((event.type, pod.spec.node_name, is_terminating))
    assert events == [
        (EventType.ADDED, None, False),
        (EventType.MODIFIED, "n1", False),
        (EventType.MODIFIED, "n1", True),
        (EventType.DELETED, "n1", True),
    ]


def test_the_oldest_objects_of_a_kind_can_be_removed() -> None:
    world = TimedServer()
    for name in ("a", "b"):
        world.server.create(pod_group(name))
    world.server.forget_oldest("scheduling.x-k8s.io/v1alpha1 PodGroup")
    stored_groups = world.store.all("scheduling.x-k8s.io/v1alpha1 PodGroup")
    assert [stored.key.name for stored in stored_groups] == ["b"]


# ---- pod status -----------------------------------------------------------------------------


NOW = "2026-01-01T00:00:05Z"


def condition(status: str, message: str | None = None) -> PatchPodStatus:
    condition = Condition(type="PodScheduled", status=status, message=message)
    return PatchPodStatus("default", "web", "", condition)


def test_a_condition_whose_status_stays_keeps_its_time_and_gets_new_text() -> None:
    old = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "old",
        "lastTransitionTime": "before",
    }
    (new,) = patched({"conditions": [old]}, condition("False", message="new"), NOW)["conditions"]
    assert new == {
        "type": "PodScheduled",
        "status": "False",
        "message": "new",
        "lastTransitionTime": "before",
    }


def test_a_generated_name_that_is_taken_is_tried_again_up_to_eight_times() -> None:
    content = {**pod(), "metadata": {"generateName": "web-"}}
    names = [TimedServer().server.create(content).key.name]
    other = TimedServer()
    names += [other.server.create(content).key.name for _ in range(12)][1:]
    world = TimedServer()
    for name in names[:7]:
        world.server.create(pod(name))
    assert world.server.create(content).key.name == names[7]
    world = TimedServer()
    for name in names[:8]:
        world.server.create(pod(name))
    with pytest.raises(AlreadyExistsError, match=f'"{names[7]}" already exists'):
        world.server.create(content)
