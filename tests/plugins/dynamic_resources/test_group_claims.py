"""Claims of groups: whose they are, what they are reserved for, and their release."""

import asyncio
from typing import Any

import pytest

from bayplan.api.device_objects import ConsumerReference, ResourceClaim
from bayplan.api.objects import decode
from bayplan.api.pod_groups import KINDS
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.handle import ResourceClaimTracker
from bayplan.framework.status import Code, Status
from bayplan.plugins.dynamic_resources import DynamicResources
from bayplan.plugins.dynamic_resources.filtering import claims_of
from bayplan.plugins.dynamic_resources.group_claims import is_reserved, users_of_claims
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, plugin, pod
from bayplan.testing.state_checks import SamplePort
from tests.plugins.devices_kit import (
    DRIVER,
    allocated,
    as_claim,
    claim,
    exactly,
    put,
    sample,
    slice_of,
)

KIND = "scheduling.k8s.io/v1beta1 PodGroup"
NAMED = {"name": "shared", "resourceClaimName": "c"}
OTHER = {"name": "other", "resourceClaimName": "d"}
FROM_TEMPLATE = {"name": "shared", "resourceClaimTemplateName": "t"}
MADE = {"resourceClaimStatuses": [{"name": "shared", "resourceClaimName": "c"}]}
OF_GROUP = ConsumerReference(
    api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="uid-g"
)


def member(*entries: Any, group: str = "g", **options: Any) -> PodInfo:
    spec = {"resourceClaims": list(entries), "schedulingGroup": {"podGroupName": group}}
    return pod("p", spec=spec, **options)


def cluster_with(*entries: Any) -> SampleCluster:
    """A cluster with the group g, which lists these claims."""
    cluster = sample()
    meta = {"name": "g", "namespace": "default", "uid": "uid-g"}
    content = {"metadata": meta, "spec": {"resourceClaims": list(entries)}}
    cluster.cluster.pod_groups.put(KINDS[KIND].compile(KIND, decode(KIND, content)))
    return cluster


def users(asking: PodInfo, *of_group: Any) -> list[str] | str:
    """The kinds of users by entry; or why they are not known."""
    result = users_of_claims(asking, cluster_with(*of_group).cluster.pod_groups)
    if isinstance(result, Status):
        assert result.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return result.message
    return [each.resource for each in result]


@pytest.mark.parametrize(
    "entry", [OTHER, {**NAMED, "name": "x"}, FROM_TEMPLATE, {**NAMED, "resourceClaimName": "e"}]
)
def test_an_entry_that_differs_from_those_of_the_group_is_the_pods(entry: Any) -> None:
    assert users(member(NAMED, entry), NAMED) == ["podgroups", "pods"]


def test_a_claim_of_the_group_is_reserved_for_the_group() -> None:
    assert users_of_claims(member(NAMED), cluster_with(NAMED).cluster.pod_groups) == [OF_GROUP]


def test_a_pod_without_a_group_uses_its_claims_itself() -> None:
    assert users(pod("p", spec={"resourceClaims": [NAMED]}), NAMED) == ["pods"]


def test_the_reason_of_a_member_that_waits_is_upstreams() -> None:
    missing = "pod group object not found for pod group podgroup/default/h"
    assert users(member(NAMED, group="h"), NAMED) == missing
    unset = "PodGroup default/g claim x: none of the supported fields are set"
    assert users(member(NAMED), {"name": "x"}) == unset


@pytest.mark.parametrize(
    ("owner", "is_own"),
    [
        ({}, True),
        ({"apiVersion": "scheduling.k8s.io/v1"}, True),
        ({"apiVersion": "scheduling.x-k8s.io/v1alpha1"}, False),
        ({"kind": "CompositePodGroup"}, False),
        ({"name": "h"}, False),
        ({"controller": False}, False),
    ],
)
def test_a_claim_from_a_template_may_be_the_groups(owner: Any, is_own: bool) -> None:
    of_group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "g"}
    made = claim("c", exactly())
    made["metadata"]["ownerReferences"] = [{"controller": True, "uid": "x", **of_group, **owner}]
    claims = sample(made).devices.resource_claims
    answer = claims_of(member(FROM_TEMPLATE, status=MADE), claims, has_group_claims=True)
    if is_own:
        assert not isinstance(answer, Status)
        return
    assert isinstance(answer, Status)
    whose = "Pod default/p (neither Pod nor PodGroup g is the owner)"
    assert answer.message == f"ResourceClaim default/c was not created for {whose}"


def test_a_reservation_of_the_group_counts_with_the_gate() -> None:
    status = allocated(("n1", "x"))
    status["reservedFor"] = [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}
    ]
    reserved = as_claim(claim("c", exactly(), status=status))
    assert is_reserved(reserved, member(NAMED), has_group_claims=True)
    assert not is_reserved(reserved, member(NAMED), has_group_claims=False)
    assert not is_reserved(reserved, member(NAMED, group="h"), has_group_claims=True)
    assert not is_reserved(reserved, pod("p"), has_group_claims=True)


# ---- one pass -------------------------------------------------------------------------------


class Pass:
    """Members that share the claim c and are placed in one pass."""

    def __init__(self, *names: str) -> None:
        self.cluster = sample(slice_of("n1", "x"), slice_of("n2", "y"), claim("c", exactly()))
        self.plugin = plugin(DynamicResources, cluster=self.cluster)
        self.notes: dict[Any, Any] = {}
        spec = {"resourceClaims": [NAMED]}
        self.members = {name: pod(name, spec=spec) for name in names}
        self.states = {name: CycleState() for name in names}

    def filtered(self, name: str, *, in_pass: bool = True) -> list[str] | str:
        """The nodes where the member can be; or why it waits."""
        member, state = self.members[name], CycleState()
        self.states[name] = state
        state.group_notes = self.notes if in_pass else None
        nodes = self.cluster.lend().nodes
        answer = self.plugin.pre_filter(state, member, nodes)
        if isinstance(answer, Status):
            return answer.message
        infos = nodes.infos()
        return [i.name for i in infos if self.plugin.filter_node(state, member, i) is None]

    def reserve(self, name: str) -> None:
        assert self.plugin.reserve(self.states[name], self.members[name], "n1") is None

    def bound(self, name: str) -> str:
        """The problem of the binding, or ""."""
        port = SamplePort(self.cluster.store)
        member = self.members[name]
        status = asyncio.run(self.plugin.pre_bind(self.states[name], member, "n1", port))
        return "" if status is None else status.message

    def unreserve(self, name: str) -> None:
        self.plugin.unreserve(self.states[name], self.members[name], "n1")

    @property
    def claims(self) -> ResourceClaimTracker:
        return self.cluster.devices.resource_claims

    def shared(self) -> ResourceClaim:
        found = self.claims.get("default", "c")
        assert found is not None
        return found


def reserved_pass(*names: str) -> Pass:
    """A pass whose members all have the node n1."""
    one = Pass(*names)
    for name in names:
        one.filtered(name)
        one.reserve(name)
    return one


def test_later_members_go_where_the_devices_of_the_first_can_be_used() -> None:
    one = Pass("a", "b", "stranger")
    assert one.filtered("a") == ["n1", "n2"]
    one.reserve("a")
    assert one.filtered("b") == ["n1"]
    waits = "resource claim default/c is in the process of being allocated"
    assert one.filtered("stranger", in_pass=False) == waits


def test_devices_are_free_when_the_last_member_gives_them_back() -> None:
    one = reserved_pass("a", "b")
    one.unreserve("a")
    assert one.claims.pending_allocation("uid-c") is not None
    one.unreserve("b")
    assert one.claims.pending_allocation("uid-c") is None
    assert not list(one.claims.allocated.devices())


def test_the_allocation_is_written_once_and_each_member_is_a_user() -> None:
    one = reserved_pass("a", "b")
    assert [one.bound(name) for name in "ab"] == ["", ""]
    assert [user.name for user in one.shared().status.reserved_for or ()] == ["a", "b"]
    assert [str(each) for each in one.claims.allocated.devices()] == [f"{DRIVER}/n1/x"]


def test_a_member_does_not_write_an_allocation_that_was_taken_away_since() -> None:
    one = reserved_pass("a", "b")
    assert one.bound("a") == ""
    put(one.cluster.store, {**claim("c", exactly()), "metadata": newer("c")})
    assert one.bound("b") == "claim default/c got deallocated elsewhere in the meantime"


def newer(name: str) -> dict[str, Any]:
    """The metadata of a version that is newer than all others."""
    return {**claim(name)["metadata"], "resourceVersion": "1000"}


def test_the_claim_of_a_group_without_a_place_is_deallocated_once() -> None:
    one = Pass("a", "b")
    held = claim("c", exactly(), status=allocated(("n3", "z"), node_name="n3"))
    put(one.cluster.store, {**held, "metadata": newer("c")})
    for name in "ab":
        assert one.filtered(name) == []
    one.plugin.release_for_group(one.notes)
    [(_, write)] = one.cluster.writes

    async def perform() -> None:
        await write(SamplePort(one.cluster.store))

    asyncio.run(perform())
    assert one.shared().allocation is None
