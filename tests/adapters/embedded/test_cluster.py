"""The embedded cluster behind its ports: any object, lists and watches."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bayplan import ports
from bayplan.adapters.embedded.cluster import EVENT, EVENTS_MAX, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import Watch
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import Condition, Pod
from bayplan.clock import ManualClock
from bayplan.objects.keys import ObjectKey, object_key
from bayplan.sim.loop import VirtualLoop, run
from bayplan.state.pods import pod_info
from tests.kit.manifests import pod

KEY = object_key(RESOURCE_CLAIM, "default", "c")

# ---- the port for any object ----------------------------------------------------------------


T = TypeVar("T")


def cluster() -> EmbeddedCluster:
    embedded = EmbeddedCluster(ManualClock())
    meta = {"name": "c", "namespace": "default"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    api_version, _, kind = RESOURCE_CLAIM.partition(" ")
    embedded.create(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": meta,
            "spec": {"devices": {"requests": [request]}},
        }
    )
    return embedded


def result_of(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


# ---- the port of the scheduler --------------------------------------------------------------


POD = "v1 Pod"
NAMES = [f"p{number}" for number in range(4)]


def key(name: str = "web") -> ObjectKey:
    return object_key(POD, "default", name)


def emitted(note: str = "Successfully assigned") -> ports.EmitEvent:
    regarding = ports.ObjectReference("v1 Pod", "default", "web", "uid", "7")
    return ports.EmitEvent(regarding, "Normal", "Scheduled", "Binding", note, "bayplan")


def test_a_write_for_a_pod_that_was_replaced_by_another_finds_no_pod() -> None:
    """As with a real API server, an eviction of the old pod fails with NotFound."""
    cluster = EmbeddedCluster(ManualClock())
    cluster.create(pod())
    with pytest.raises(ports.NotFoundError, match="UID in precondition: old"):
        result_of(cluster.delete_pod("default", "web", "old"))
    with pytest.raises(ports.NotFoundError, match="UID in precondition: old"):
        result_of(
            cluster.patch_pod_status(ports.PatchPodStatus("default", "web", "old", None, "n1"))
        )


def test_the_embedded_cluster_implements_the_port() -> None:
    async def main() -> list[str | None]:
        cluster = EmbeddedCluster(ManualClock())
        stored = cluster.create(pod())
        assert isinstance(stored.object, Pod)
        await cluster.bind(pod_info(stored.object), "n1")
        condition = Condition(type="PodScheduled", status="True")
        uid = stored.content["metadata"]["uid"]
        await cluster.patch_pod_status(ports.PatchPodStatus("default", "web", uid, condition))
        await cluster.patch(POD, "default", "web", {"metadata": {"labels": {"a": "b"}}})
        written = await cluster.get_pod("default", "web")
        await cluster.delete_pod("default", "web", uid)
        assert (await cluster.list(POD)).objects == []
        return [written.spec.node_name, written.status.phase, (written.metadata.labels or {})["a"]]

    assert run(main(), ManualClock()) == ["n1", "Running", "b"]


def test_sleep_and_grace_periods_take_virtual_time() -> None:
    clock = ManualClock()

    async def main() -> list[int]:
        cluster = EmbeddedCluster(clock)
        cluster.create(pod(nodeName="n1", terminationGracePeriodSeconds=30))
        cluster.delete(key())
        counts = [cluster.terminating_count]
        await cluster.sleep(29.5)
        counts.append(cluster.terminating_count)
        await cluster.sleep(0.5)
        return [*counts, cluster.terminating_count, len(cluster.objects(POD))]

    assert run(main(), clock) == [1, 1, 0, 0]
    assert clock.now() == 30.0


def test_events_are_stored_as_objects() -> None:
    async def main() -> EmbeddedCluster:
        cluster = EmbeddedCluster(ManualClock(start_seconds=5))
        await cluster.create_event(emitted())
        await cluster.create_event(emitted())
        return cluster

    first, second = run(main(), ManualClock()).objects(EVENT)
    assert first.key.name != second.key.name
    assert first.content["note"] == "Successfully assigned"
    assert first.content["regarding"]["name"] == "web"
    assert first.content["regarding"]["resourceVersion"] == "7"
    assert first.content["eventTime"] == "2026-01-01T00:00:05Z"
    assert first.content["reportingController"] == "bayplan"


def test_the_oldest_events_are_removed() -> None:
    async def main() -> EmbeddedCluster:
        cluster = EmbeddedCluster(ManualClock())
        for number in range(EVENTS_MAX + 10):
            await cluster.create_event(emitted(str(number)))
        return cluster

    events = run(main(), ManualClock()).objects(EVENT)
    assert len(events) == EVENTS_MAX
    assert events[0].content["note"] == "10"


def test_an_expired_version_requires_a_new_list() -> None:
    async def main() -> None:
        cluster = EmbeddedCluster(ManualClock())
        cluster.create(pod())
        cluster.forget_history()
        with pytest.raises(ports.GoneError):
            await anext(cluster.watch(POD, "0"))

    run(main(), ManualClock())


# ---- list and watch as a state machine ------------------------------------------------------


@dataclass
class Follower:
    """What an informer does: list once, follow, resume, and list again after 410 Gone."""

    cluster: EmbeddedCluster
    versions: dict[str, str] = field(default_factory=dict)
    version: str = "0"
    watch: Watch | None = None
    relisted: int = 0

    def resume(self) -> None:
        self.watch = self.cluster.watch(POD, self.version)

    def catch_up(self) -> None:
        while True:
            if self.watch is None:
                self.resume()
            assert self.watch is not None
            try:
                event = self.watch.take()
            except ports.GoneError:
                self.list_again()
                continue
            if event is None:
                return
            self.take(event)

    def list_again(self) -> None:
        listing = self.cluster._store.list(POD)
        self.versions = {one.metadata.name: _version(one) for one in listing.objects}
        self.version, self.watch = listing.resource_version, None
        self.relisted += 1

    def take(self, event: ports.WatchEvent) -> None:
        name = event.object.metadata.name
        assert int(event.resource_version) > int(self.version), "versions grow"
        self.version = event.resource_version
        assert (name in self.versions) is (event.type is not ports.EventType.ADDED), event
        if event.type is ports.EventType.DELETED:
            del self.versions[name]
        else:
            self.versions[name] = _version(event.object)


def _version(content: object) -> str:
    assert isinstance(content, Pod)
    return content.metadata.resource_version or ""


class ListAndWatch(RuleBasedStateMachine):
    """Pods live and die in every order; followers lag, break off and resume."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.loop = VirtualLoop(self.clock)
        self.cluster = EmbeddedCluster(self.clock, history_length=5)
        self.followers: list[Follower] = []

    def do(self, call: str, name: str) -> None:
        """Perform the call inside the loop; a refused call changes nothing."""
        before = self.cluster.version

        async def main() -> None:
            try:
                await getattr(self, f"_{call}")(name)
            except ports.ApiError:
                assert self.cluster.version == before

        self.loop.run(main())

    async def _create(self, name: str) -> None:
        self.cluster.create(pod(name, terminationGracePeriodSeconds=int(name[1]) % 3))

    async def _hold(self, name: str) -> None:
        self.cluster.create(pod(name, finalizers=["example.com/keep"]))

    async def _let_go(self, name: str) -> None:
        await self.cluster.patch(POD, "default", name, {"metadata": {"finalizers": None}})

    async def _bind(self, name: str) -> None:
        stored = await self.cluster.get_pod("default", name)
        was_bound = stored.spec.node_name
        try:
            await self.cluster.bind(pod_info(stored), "n1")
        except ports.ConflictError:
            assert was_bound or stored.metadata.deletion_timestamp
            raise
        assert not was_bound

    async def _label(self, name: str) -> None:
        labels = {"version": str(self.cluster.version)}
        await self.cluster.patch(POD, "default", name, {"metadata": {"labels": labels}})

    async def _end(self, name: str) -> None:
        self.cluster.end_pod(key(name))

    async def _delete(self, name: str) -> None:
        self.cluster.delete(key(name))

    @rule(
        call=st.sampled_from(["create", "create", "bind", "label", "end", "delete"]),
        name=st.sampled_from(NAMES),
    )
    def live(self, call: str, name: str) -> None:
        self.do(call, name)

    @rule(call=st.sampled_from(["hold", "delete", "let_go"]), name=st.sampled_from(NAMES))
    def hold(self, call: str, name: str) -> None:
        self.do(call, name)

    @rule()
    def pass_time(self) -> None:
        self.loop.run(asyncio.sleep(1))

    @rule()
    def forget(self) -> None:
        self.cluster.forget_history()

    @rule()
    def follow(self) -> None:
        self.followers.append(Follower(self.cluster))

    @precondition(lambda self: self.followers)
    @rule(data=st.data(), resumes=st.booleans())
    def catch_up(self, data: st.DataObject, resumes: bool) -> None:
        follower = data.draw(st.sampled_from(self.followers))
        if resumes:
            follower.resume()
        follower.catch_up()
        self.agree(follower)

    def agree(self, follower: Follower) -> None:
        listing = self.cluster._store.list(POD)
        assert follower.versions == {one.metadata.name: _version(one) for one in listing.objects}

    @invariant()
    def versions_grow(self) -> None:
        versions = [stored.version for stored in self.cluster.objects(POD)]
        assert len(set(versions)) == len(versions)
        assert max(versions, default=0) <= self.cluster.version

    def teardown(self) -> None:
        for follower in self.followers:
            follower.catch_up()
            self.agree(follower)


TestListAndWatch = ListAndWatch.TestCase
TestListAndWatch.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_patch_in_an_older_version_is_refused() -> None:
    embedded = cluster()
    version = result_of(embedded.read(*KEY)).metadata.resource_version
    meant = {"metadata": {"resourceVersion": version}}
    result_of(embedded.patch(*KEY, {**meant, "status": {"reservedFor": [{"uid": "u"}]}}, "status"))
    with pytest.raises(ports.ConflictError):
        result_of(embedded.patch(*KEY, {**meant, "status": {"reservedFor": []}}, "status"))


def test_an_object_is_created_with_a_generated_name() -> None:
    embedded = cluster()
    content = {"metadata": {"generateName": "p-", "namespace": "default"}, "spec": {"devices": {}}}
    created = result_of(embedded.create_object(RESOURCE_CLAIM, content))
    assert created.metadata.name.startswith("p-")
    assert result_of(embedded.read(RESOURCE_CLAIM, "default", created.metadata.name)) == created


def test_a_deletion_with_a_uid_deletes_only_that_object() -> None:
    embedded = cluster()
    with pytest.raises(ports.ConflictError):
        result_of(embedded.delete_object(*KEY, "another"))
    result_of(embedded.delete_object(*KEY, result_of(embedded.read(*KEY)).metadata.uid or ""))
    with pytest.raises(ports.NotFoundError):
        result_of(embedded.read(*KEY))
