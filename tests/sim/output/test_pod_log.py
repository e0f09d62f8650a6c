"""The log of each pod."""

import asyncio

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.objects import POD, Condition, Pod
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, object_key
from bayplan.ports import PatchPodStatus
from bayplan.sim.output.lost_pods import PodLog, message_of
from bayplan.sim.output.result import PodResult
from bayplan.state.pods import pod_info
from tests.kit.manifests import Content, node, pod

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
WEB = "default/web"


class Logged:
    """A cluster whose pods are logged; one second passes before each change."""

    def __init__(self, *contents: Content) -> None:
        self.clock = ManualClock()
        self.cluster = EmbeddedCluster(self.clock)
        self.log = PodLog(self.clock)
        self.cluster.observe(self.log.observe)
        self.cluster.create(NAMESPACE)
        for content in (node("n1"), *contents):
            self.cluster.create(content)

    def create(self, content: Content) -> None:
        self._later()
        self.cluster.create(content)

    def delete(self, name: str = "web") -> None:
        self._later()
        self.cluster.delete(key(name))

    def end(self, phase: str) -> None:
        self._later()
        self.cluster.end_pod(key(), phase)

    def bind(self) -> None:
        self._later()
        asyncio.run(self.cluster.bind(pod_info(self.pod()), "n1"))

    def report_condition(self, message: str, nominated: str = "") -> None:
        self._later()
        condition = Condition(type="PodScheduled", status="False", message=message)
        uid = self.pod().metadata.uid or ""
        patch = PatchPodStatus("default", "web", uid, condition, nominated)
        asyncio.run(self.cluster.patch_pod_status(patch))

    def pod(self) -> Pod:
        stored = self.cluster.get(key())
        assert stored is not None
        assert isinstance(stored.object, Pod)
        return stored.object

    def result(self, attempts: int = 0) -> PodResult:
        uid = self.log.last_results({})[WEB][0].metadata.uid or ""
        return self.log.last_results({uid: attempts})[WEB][1]

    def _later(self) -> None:
        self.clock.advance_to(self.clock.now() + 1)


def key(name: str = "web") -> ObjectKey:
    return object_key(POD, "default", name)


def test_a_pending_pod_has_no_node_and_only_a_creation_time() -> None:
    logged = Logged()
    logged.create(pod())
    assert logged.result(attempts=3) == PodResult(created_at=1.0, attempts=3)


def test_a_bound_pod_has_node_and_time() -> None:
    logged = Logged(pod())
    logged.bind()
    result = logged.result()
    assert (result.node, result.created_at, result.bound_at) == ("n1", 0.0, 1.0)


def test_a_pod_that_starts_on_a_node_was_never_bound() -> None:
    logged = Logged(pod(nodeName="n1"))
    assert logged.result() == PodResult(node="n1", created_at=0.0)


def test_an_update_after_the_binding_is_not_a_second_binding() -> None:
    logged = Logged(pod())
    logged.bind()
    logged.end("Succeeded")
    assert logged.result().bound_at == 1.0


def test_a_deleted_pod_stays_listed_with_its_deletion_time() -> None:
    logged = Logged(pod())
    logged.delete()
    assert logged.result().deleted_at == 1.0
    assert list(logged.log.last_results({})) == [WEB]


def test_the_last_message_and_the_last_nomination_are_reported() -> None:
    logged = Logged(pod())
    logged.report_condition("no room", nominated="n1")
    assert (logged.result().message, logged.result().nominated_node) == ("no room", "n1")
    logged.report_condition("still no room")
    assert (logged.result().message, logged.result().nominated_node) == ("still no room", None)


def test_of_two_pods_with_one_name_the_newer_is_reported_and_the_earlier_is_remembered() -> None:
    logged = Logged(pod())
    logged.bind()
    logged.delete()
    logged.create(pod())
    assert logged.result() == PodResult(created_at=3.0)
    [(_, earlier)] = logged.log.earlier_results({})[WEB]
    assert (earlier.node, earlier.bound_at, earlier.deleted_at) == ("n1", 1.0, 2.0)


def test_names_are_sorted_and_include_pods_only() -> None:
    logged = Logged(pod("b"), pod("a"))
    assert list(logged.log.last_results({})) == ["default/a", "default/b"]


def test_a_pod_without_conditions_has_no_message() -> None:
    assert message_of(Logged(pod()).pod()) is None
