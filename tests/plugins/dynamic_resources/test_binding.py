"""Writes to the API: their order, their content, and the handling of conflicts."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.device_objects import (
    RESOURCE_CLAIM,
    AllocationResult,
    ResourceClaim,
)
from bayplan.api.finalizers import CLAIM_PROTECTION
from bayplan.api.objects import POD, ContainerExtendedResourceRequest, Pod
from bayplan.clock import ManualClock
from bayplan.objects.keys import object_key
from bayplan.plugins.dynamic_resources import binding
from bayplan.plugins.dynamic_resources.binding import BindingError
from bayplan.plugins.dynamic_resources.extended import special_claim
from bayplan.plugins.dynamic_resources.group_claims import pod_as_user
from bayplan.ports import ApiError, BindPort, ConflictError, OutcomeUnknownError
from bayplan.testing import pod
from tests.kit.ports import ReplacedCalls
from tests.plugins.devices_kit import allocated, as_claim, claim, exactly

T = TypeVar("T")
PLACED = pod("p")
USER = pod_as_user(PLACED)
KEY = object_key(RESOURCE_CLAIM, "default", "c")
ALLOCATION = as_claim(claim("c", exactly(), status=allocated(("n1", "x")))).allocation or (
    AllocationResult()
)


class FailingPort(ReplacedCalls):
    """Calls an embedded cluster. It fails once before or once after a call, as configured."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        super().__init__(cluster)
        self.cluster = cluster
        self.fail_before: list[Exception | None] = []
        self.fail_after: list[Exception | None] = []
        self.slept_seconds: list[float] = []

    async def patch(
        self, kind: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = ""
    ) -> Any:
        for failures in (self.fail_before, self.fail_after):
            problem = failures.pop(0) if failures else None
            if failures is self.fail_after:
                written = await self.cluster.patch(kind, namespace, name, patch, subresource)
                if problem is None:
                    return written
            if problem is not None:
                raise problem
        raise AssertionError("one of the two returns")

    async def sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)


def world(status: Any = None, **metadata: Any) -> FailingPort:
    cluster = EmbeddedCluster(ManualClock())
    content = claim("c", exactly(), status=status)
    content["metadata"] |= metadata
    del content["metadata"]["resourceVersion"]
    api_version, _, kind = RESOURCE_CLAIM.partition(" ")
    for name, uid in (("p", PLACED.uid), ("q", "uid-q")):
        # Users that do not exist would be removed by the claim controller.
        meta = {"name": name, "namespace": "default", "uid": uid}
        spec = {"containers": [{"name": "main", "image": "app"}]}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    cluster.create({"apiVersion": api_version, "kind": kind, **content})
    return FailingPort(cluster)


def done(port: FailingPort, ask: Callable[[BindPort], Awaitable[T]]) -> T:
    async def main() -> T:
        return await ask(port)  # pyright: ignore[reportArgumentType]

    return asyncio.run(main())


def now(port: FailingPort) -> ResourceClaim:
    stored = port.cluster.get(KEY)
    assert stored is not None
    assert isinstance(stored.object, ResourceClaim)
    return stored.object


def bind(
    port: FailingPort,
    seen: ResourceClaim | None = None,
    allocation: AllocationResult | None = ALLOCATION,
) -> ResourceClaim:
    current = seen or now(port)
    return done(
        port, lambda p: binding.bind_claim(p, current, USER, allocation, stamp=lambda: "stamp")
    )


def test_a_claim_gets_finalizer_allocation_and_user() -> None:
    port = world()
    bound = bind(port)
    assert bound == now(port)
    assert bound.metadata.finalizers == (CLAIM_PROTECTION,)
    assert bound.allocation == msgspec.structs.replace(ALLOCATION, allocation_timestamp="stamp")
    assert bound.is_reserved_for(PLACED.uid)


def test_a_claim_that_is_allocated_already_gets_one_more_user() -> None:
    port = world(status=allocated(("n1", "x"), users=[("q", "uid-q")]))
    bound = bind(port, allocation=None)
    assert [user.name for user in bound.status.reserved_for or ()] == ["q", "p"]
    assert bound.metadata.finalizers is None


def test_a_claim_that_changed_meanwhile_is_read_again() -> None:
    port = world()
    seen = now(port)
    asyncio.run(port.cluster.patch(*KEY, {"metadata": {"labels": {"a": "b"}}}))
    bound = bind(port, seen)
    assert bound.metadata.labels == {"a": "b"}
    assert bound.allocation is not None
    assert port.slept_seconds == [binding.CONFLICT_DELAY_SECONDS]


@pytest.mark.parametrize(
    ("change", "allocation", "message"),
    [
        (
            {"status": allocated(("n1", "y"))},
            ALLOCATION,
            "claim default/c got allocated elsewhere in the meantime",
        ),
        (
            {"status": {"allocation": None}},
            None,
            "claim default/c got deallocated elsewhere in the meantime",
        ),
    ],
)
def test_a_changed_allocation_or_reservation_is_an_error(
    change: Any, allocation: AllocationResult | None, message: str
) -> None:
    port = world(status=None if allocation is not None else allocated(("n1", "x")))
    seen = now(port)
    asyncio.run(port.cluster.patch(*KEY, change))
    with pytest.raises(BindingError, match=message):
        bind(port, seen, allocation)


def test_a_claim_that_is_being_deleted_is_not_bound() -> None:
    port = world(finalizers=["keep"])
    port.cluster.delete(KEY)
    with pytest.raises(BindingError, match="got deleted in the meantime"):
        bind(port)


def test_another_claim_of_the_same_name_is_not_bound() -> None:
    port = world()
    meta = msgspec.structs.replace(now(port).metadata, uid="another")
    seen = msgspec.structs.replace(now(port), metadata=meta)
    with pytest.raises(BindingError, match="got deleted in the meantime"):
        bind(port, seen)


def test_binding_ends_with_an_error_after_many_conflicts() -> None:
    port = world()
    port.fail_before = [ConflictError("modified")] * binding.CONFLICT_TRIES
    with pytest.raises(
        BindingError, match=r"^add allocation and reservation to claim default/c: modified$"
    ):
        bind(port)


def test_a_write_without_an_answer_that_was_carried_out_is_not_repeated() -> None:
    port = world()
    port.fail_after = [None, OutcomeUnknownError("no answer")]
    version = port.cluster.version
    assert bind(port).is_reserved_for(PLACED.uid)
    assert port.cluster.version == version + 2


def test_a_write_without_an_answer_that_was_not_carried_out_is_repeated() -> None:
    port = world()
    port.fail_before = [None, OutcomeUnknownError("no answer")]
    assert bind(port).is_reserved_for(PLACED.uid)


def test_a_claim_with_another_allocation_than_at_the_choice_of_the_node_is_not_bound():
    """The claim was deallocated and allocated again on another node."""
    port = world(status=allocated(("n1", "x")))
    seen = now(port)
    other = {"status": allocated(("n2", "y"), users=[("q", "uid-q")])}
    asyncio.run(port.cluster.patch(*KEY, other, "status"))
    with pytest.raises(BindingError, match="claim default/c got allocated elsewhere"):
        bind(port, seen, allocation=None)
    assert not now(port).is_reserved_for(PLACED.uid)


# ---- taking back ---------------------------------------------------------------------------


def test_removing_a_user_does_not_remove_other_users() -> None:
    port = world(status=allocated(("n1", "x"), users=[("p", PLACED.uid), ("q", "uid-q")]))
    for _ in range(2):
        assert done(port, lambda p: binding.unreserve(p, now(port), PLACED.uid)) == now(port)
    assert [user.name for user in now(port).status.reserved_for or ()] == ["q"]
    assert now(port).allocation is not None


@pytest.mark.parametrize(
    "uid", [pytest.param("another", id="replaced by another claim"), pytest.param("", id="deleted")]
)
def test_rolling_back_a_deleted_claim_changes_nothing(uid: str) -> None:
    """Another claim of the same name is not changed, and there is no error."""
    port = world(status=allocated(("n1", "x"), users=[("p", PLACED.uid)]))
    seen, version = now(port), port.cluster.version
    if uid:
        meta = msgspec.structs.replace(seen.metadata, uid=uid)
        seen = msgspec.structs.replace(seen, metadata=meta)
        done(port, lambda p: binding.unreserve(p, seen, PLACED.uid))
        done(port, lambda p: binding.delete_claim(p, seen))
        assert (port.cluster.version, now(port).is_reserved_for(PLACED.uid)) == (version, True)
    else:
        port.cluster.delete(KEY)
        done(port, lambda p: binding.unreserve(p, seen, PLACED.uid))


def test_a_claim_is_deallocated_only_in_the_version_that_was_read() -> None:
    port = world(status=allocated(("n1", "x")))
    seen = now(port)
    done(port, lambda p: binding.deallocate(p, seen))
    assert now(port).allocation is None
    with pytest.raises(ConflictError):
        done(port, lambda p: binding.deallocate(p, seen))


def test_a_claim_that_the_scheduler_made_is_deleted_with_its_finalizer() -> None:
    port = world(finalizers=[CLAIM_PROTECTION])
    seen = now(port)
    done(port, lambda p: binding.delete_claim(p, seen))
    assert port.cluster.get(KEY) is None
    done(port, lambda p: binding.delete_claim(p, seen))


# ---- claims for extended resources ---------------------------------------------------------


def test_a_claim_in_memory_is_created_for_its_pod() -> None:
    port = world()
    created = done(port, lambda p: binding.create_special_claim(p, special_claim(PLACED, ())))
    assert created.metadata.name.startswith("p-extended-resources-")
    assert created.uid not in ("", special_claim(PLACED, ()).uid)
    owners = created.metadata.owner_references or ()
    assert [owner.uid for owner in owners] == [PLACED.uid]


def test_the_pods_status_maps_containers_to_requests() -> None:
    port = world()
    mapping = ContainerExtendedResourceRequest(container_name="main", request_name="r")
    done(port, lambda p: binding.tell_containers(p, PLACED, "c", (mapping,)))
    stored = port.cluster.get(object_key(POD, "default", "p"))
    assert stored is not None
    assert isinstance(stored.object, Pod)
    extended_resource_claim_status = stored.object.status.extended_resource_claim_status
    assert extended_resource_claim_status is not None
    assert (
        extended_resource_claim_status.resource_claim_name,
        extended_resource_claim_status.request_mappings,
    ) == ("c", (mapping,))


def test_a_deleted_claim_cannot_be_bound() -> None:
    port = world()
    seen = now(port)
    port.cluster.delete(KEY)
    with pytest.raises(BindingError, match=r"^add finalizer to claim default/c: .* not found$"):
        bind(port, seen)


def test_a_claim_deleted_between_two_tries_cannot_be_bound() -> None:
    port = world()
    seen = now(port)
    port.fail_before = [ConflictError("modified")]
    port.cluster.delete(KEY)
    gone = r"^get updated claim default/c after conflict: .* not found$"
    with pytest.raises(BindingError, match=gone):
        bind(port, seen)


def test_a_status_that_is_refused_is_an_error_that_names_the_write() -> None:
    port = world(finalizers=[CLAIM_PROTECTION])
    port.fail_before = [ApiError(403, "Forbidden", "not allowed")]
    text = r"^add allocation and reservation to claim default/c: not allowed$"
    with pytest.raises(BindingError, match=text):
        bind(port)
