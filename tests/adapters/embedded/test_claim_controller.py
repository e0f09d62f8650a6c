"""Claims are created for pods and released when they have no user."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from bayplan.adapters.embedded.api_features import NO_FEATURES, ApiFeatures
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.api.device_objects import (
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    ResourceClaim,
)
from bayplan.api.finalizers import CLAIM_PROTECTION, POD_GROUP_PROTECTION
from bayplan.api.objects import POD, Pod
from bayplan.clock import ManualClock
from bayplan.objects.keys import object_key
from tests.plugins.devices_kit import allocated, claim, exactly

Json = dict[str, Any]
P = object_key(POD, "default", "p")
C = object_key(RESOURCE_CLAIM, "default", "c")
BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "t"}
BY_NAME = {"name": "gpu", "resourceClaimName": "c"}


def of(kind: str, content: Json) -> Json:
    api_version, _, name = kind.partition(" ")
    return {"apiVersion": api_version, "kind": name, **content}


def pod_with_claims(name: str, *named: Json, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "app"}]
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    whole = {"containers": containers, "resourceClaims": list(named), **spec}
    return of(POD, {"metadata": meta, "spec": whole})


def template(**meta: Any) -> Json:
    spec = {"devices": {"requests": [exactly()]}}
    content = {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": spec}}
    content["spec"]["metadata"] = meta
    return of(RESOURCE_CLAIM_TEMPLATE, content)


def used(*users: str, **meta: Any) -> Json:
    """The claim c, with a device, for pods of these names."""
    status = allocated(("n1", "x"), users=[(name, f"uid-{name}") for name in users])
    content = claim("c", exactly(), status=status)
    content["metadata"] |= {"finalizers": [CLAIM_PROTECTION], **meta}
    del content["metadata"]["resourceVersion"]
    return of(RESOURCE_CLAIM, content)


def after(
    *steps: Callable[[EmbeddedCluster], object], features: ApiFeatures = NO_FEATURES
) -> EmbeddedCluster:
    """The cluster after these steps and after all that controllers do upon each step."""
    cluster = EmbeddedCluster(ManualClock(), features=features)

    async def main() -> None:
        for step in steps:
            step(cluster)
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(main())
    return cluster


def create(content: Json) -> Callable[[EmbeddedCluster], object]:
    return lambda cluster: cluster.create(content)


def delete(key: Any) -> Callable[[EmbeddedCluster], object]:
    return lambda cluster: cluster.delete(key)


def end(key: Any) -> Callable[[EmbeddedCluster], object]:
    return lambda cluster: cluster.end_pod(key)


def delete_claims(cluster: EmbeddedCluster) -> None:
    for one in cluster.objects(RESOURCE_CLAIM):
        cluster.delete(one.key)


def allocate(cluster: EmbeddedCluster) -> None:
    """Give the claim c its device."""
    cluster.server.patch(C, {"status": {"allocation": used()["status"]["allocation"]}})


def claims(cluster: EmbeddedCluster) -> list[ResourceClaim]:
    return [cast(ResourceClaim, one.object) for one in cluster.objects(RESOURCE_CLAIM)]


def test_a_claim_is_created_from_its_template_and_named_in_the_pod_status() -> None:
    cluster = after(create(template(labels={"a": "b"})), create(pod_with_claims("p", BY_TEMPLATE)))
    (generated,) = claims(cluster)
    assert generated.metadata.name.startswith("p-gpu-")
    assert generated.metadata.labels == {"a": "b"}
    assert generated.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert [owner.uid for owner in generated.metadata.owner_references or ()] == ["uid-p"]
    stored = cast(Pod, cluster.objects(POD)[0].object)
    reports = [
        (each.name, each.resource_claim_name)
        for each in stored.status.resource_claim_statuses or ()
    ]
    assert reports == [("gpu", generated.metadata.name)]


def test_a_template_may_be_created_after_the_pod() -> None:
    assert len(claims(after(create(pod_with_claims("p", BY_TEMPLATE)), create(template())))) == 1


def test_a_pod_that_names_a_claim_gets_no_generated_claim() -> None:
    assert claims(after(create(template()), create(pod_with_claims("p", BY_NAME)))) == []


def test_a_long_name_keeps_parts_of_pod_and_claim() -> None:
    long = "p" * 60
    (generated,) = claims(after(create(template()), create(pod_with_claims(long, BY_TEMPLATE))))
    assert len(generated.metadata.name) <= 63
    assert generated.metadata.name.startswith("ppp")
    assert "-gp" in generated.metadata.name


@pytest.mark.parametrize("ends", [delete(P), end(P)])
def test_a_claim_without_users_loses_its_devices(ends: Any) -> None:
    cluster = after(create(pod_with_claims("p", BY_NAME, nodeName="n1")), create(used("p")), ends)
    (left,) = claims(cluster)
    assert left.allocation is None
    assert not left.status.reserved_for
    assert left.metadata.finalizers is None


def test_a_claim_keeps_its_devices_while_it_has_a_user() -> None:
    both = [create(pod_with_claims(name, BY_NAME, nodeName="n1")) for name in ("p", "q")]
    (left,) = claims(after(*both, create(used("p", "q")), delete(P)))
    assert left.allocation is not None
    assert [user.name for user in left.status.reserved_for or ()] == ["q"]


def test_a_claim_being_deleted_is_removed_with_its_last_user() -> None:
    placed = create(pod_with_claims("p", BY_NAME, nodeName="n1"))
    assert len(claims(after(placed, create(used("p")), delete(C)))) == 1
    assert claims(after(placed, create(used("p")), delete(C), delete(P))) == []
    assert claims(after(placed, create(used("p")), delete(P), delete(C))) == []


def test_a_pod_gets_no_new_claim_for_one_that_was_deleted() -> None:
    steps = (create(template()), create(pod_with_claims("p", BY_TEMPLATE)))
    (made,) = claims(after(*steps))
    cluster = after(*steps, delete_claims)
    assert claims(cluster) == []
    assert made_by(cluster, POD) == [{"gpu": made.metadata.name}]


def test_a_generated_claim_is_deleted_with_its_pod() -> None:
    steps = (create(template()), create(pod_with_claims("p", BY_TEMPLATE)))
    assert claims(after(*steps, delete(P))) == []


def unused(name: str = "c", **meta: Any) -> Json:
    """A claim with a device and without users."""
    content = used(**meta)
    content["metadata"]["name"] = name
    return content


ON_NODE = pod_with_claims("p", BY_NAME, nodeName="n1")


@pytest.mark.parametrize(
    "steps",
    [
        (create(unused()), create(ON_NODE)),
        (create(ON_NODE), create(unused())),
        (create(ON_NODE), create(of(RESOURCE_CLAIM, claim("c", exactly()))), allocate),
    ],
)
def test_a_pod_that_came_with_its_node_becomes_a_user_of_its_claim(steps: Any) -> None:
    cluster = after(*steps)
    assert cluster.objects(RESOURCE_CLAIM)[0].content["status"]["reservedFor"] == [
        {"resource": "pods", "name": "p", "uid": "uid-p"}
    ]
    (left,) = claims(after(*steps, end(P)))
    assert (left.allocation, left.status.reserved_for) == (None, None)


def test_a_pod_without_a_node_does_not_become_a_user_by_itself() -> None:
    (left,) = claims(after(create(unused()), create(pod_with_claims("p", BY_NAME))))
    assert not left.status.reserved_for


def test_the_claim_of_another_pod_is_not_used() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "uid-q", "controller": True}
    other = create(pod_with_claims("q", {"name": "gpu", "resourceClaimName": "c"}))
    wrong = pod_with_claims("p", BY_TEMPLATE, nodeName="n1")
    wrong["status"] = {"resourceClaimStatuses": [BY_NAME]}
    cluster = after(other, create(unused(ownerReferences=[owner])), create(wrong))
    assert not any(each.status.reserved_for for each in claims(cluster))


def test_users_that_are_not_pods_stay() -> None:
    content = used("p")
    content["status"]["reservedFor"].append(
        {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u"}
    )
    placed = create(pod_with_claims("p", BY_NAME, nodeName="n1"))
    (left,) = claims(after(placed, create(content), delete(P)))
    assert [user.name for user in left.status.reserved_for or ()] == ["j"]
    assert left.allocation is not None


# ---- claims of groups -----------------------------------------------------------------------


GROUP = "scheduling.k8s.io/v1beta1 PodGroup"
G = object_key(GROUP, "default", "g")
IN_GROUP = {"schedulingGroup": {"podGroupName": "g"}}
OTHER = {"name": "own", "resourceClaimTemplateName": "t"}


def group(*named: Json) -> Json:
    """A group of a cluster that protects it."""
    meta = {
        "name": "g",
        "namespace": "default",
        "uid": "uid-g",
        "finalizers": [POD_GROUP_PROTECTION],
    }
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(named)}
    return of(GROUP, {"metadata": meta, "spec": spec})


def member(name: str, *named: Json, **spec: Any) -> Json:
    return pod_with_claims(name, *named, **IN_GROUP, **spec)


def made_by(cluster: EmbeddedCluster, kind: str) -> list[dict[str, str]]:
    """Entry → claim, of each object of a kind."""
    return [
        {
            each["name"]: each["resourceClaimName"]
            for each in one.content["status"].get("resourceClaimStatuses", ())
        }
        for one in cluster.objects(kind)
    ]


def with_group(*steps: Callable[[EmbeddedCluster], object]) -> EmbeddedCluster:
    features = ApiFeatures(protects_groups=True, has_group_claims=True)
    return after(create(template()), *steps, features=features)


STEPS = [create(group(BY_TEMPLATE)), *(create(member(n, BY_TEMPLATE, OTHER)) for n in "pq")]


@pytest.mark.parametrize("steps", [STEPS, STEPS[::-1]])
def test_members_share_the_claim_that_is_created_for_their_group(steps: Any) -> None:
    cluster = with_group(*steps)
    names = [one.metadata.name for one in claims(cluster)]
    (shared,) = [name for name in names if name.startswith("g-gpu-")]
    assert made_by(cluster, GROUP) == [{"gpu": shared}]
    of_pods = made_by(cluster, POD)
    assert [each["gpu"] for each in of_pods] == [shared, shared]
    assert sorted(each["own"][:6] for each in of_pods) == ["p-own-", "q-own-"]
    (made,) = [one for one in claims(cluster) if one.metadata.name == shared]
    assert made.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    (owner,) = list(made.metadata.owner_references or ())
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == (
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        "g",
        "uid-g",
        True,
    )


def test_without_the_gate_each_member_has_a_claim_of_its_own() -> None:
    cluster = after(create(template()), *STEPS)
    assert sorted(one.metadata.name[:6] for one in claims(cluster)) == [
        "p-gpu-",
        "p-own-",
        "q-gpu-",
        "q-own-",
    ]


def test_a_member_gets_no_claims_before_its_group_exists() -> None:
    assert claims(with_group(create(member("p", BY_TEMPLATE)))) == []


def test_a_group_gets_a_new_claim_for_one_that_was_deleted() -> None:
    cluster = with_group(create(group(BY_TEMPLATE)), delete_claims)
    (made,) = claims(cluster)
    assert made_by(cluster, GROUP) == [{"gpu": made.metadata.name}]


def used_by_group(**meta: Any) -> Json:
    content = used(**meta)
    content["status"]["reservedFor"] = [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}
    ]
    return content


RUNNING = member("p", BY_NAME, nodeName="n1")


def test_a_deleted_group_and_its_claims_stay_until_its_last_pod_has_ended() -> None:
    present = (create(group(BY_NAME)), create(RUNNING), create(used_by_group()))
    cluster = with_group(*present, delete(G))
    assert cluster.objects(GROUP)[0].object.metadata.deletion_timestamp is not None
    (held,) = claims(cluster)
    assert held.allocation is not None
    late = member("late", BY_NAME, nodeName="n1")
    cluster = with_group(*present, delete(G), create(late), end(P))
    assert len(cluster.objects(GROUP)) == 1
    for ends in (end, delete):
        cluster = with_group(*present, delete(G), ends(P))
        (free,) = claims(cluster)
        assert (free.allocation, free.status.reserved_for) == (None, None)
        assert not cluster.objects(GROUP)


def test_a_group_uses_the_claim_of_a_member_that_came_with_its_node() -> None:
    steps = (create(group(BY_NAME)), create(unused()), create(RUNNING))
    (used_claim,) = with_group(*steps).objects(RESOURCE_CLAIM)
    assert used_claim.content["status"] == used_by_group()["status"]
    (own,) = after(*steps).objects(RESOURCE_CLAIM)
    assert [each["resource"] for each in own.content["status"]["reservedFor"]] == ["pods"]


@pytest.mark.parametrize("features", [NO_FEATURES, ApiFeatures(protects_groups=True)])
def test_a_new_group_is_protected_with_the_gate_of_groups(features: ApiFeatures) -> None:
    new = group()
    del new["metadata"]["uid"], new["metadata"]["finalizers"]
    cluster = after(create(new), create(RUNNING), delete(G), features=features)
    assert len(cluster.objects(GROUP)) == features.protects_groups
    assert not after(create(new), delete(G), features=features).objects(GROUP)


def test_other_finalizers_of_a_group_stay() -> None:
    protected = group()
    protected["metadata"]["finalizers"].append("example.com/wait")
    (left,) = after(create(protected), create(RUNNING), delete(G), end(P)).objects(GROUP)
    assert left.content["metadata"]["finalizers"] == ["example.com/wait"]


def test_a_claim_created_for_a_group_is_deleted_with_it() -> None:
    assert claims(with_group(create(group(BY_TEMPLATE)), delete(G))) == []
    members = (create(group(BY_TEMPLATE)), create(member("p", BY_TEMPLATE, nodeName="n1")))
    assert len(claims(with_group(*members, delete(G)))) == 1
    assert claims(with_group(*members, delete(G), delete(P))) == []


def test_without_the_gate_groups_stay_users() -> None:
    (held,) = claims(after(create(used_by_group())))
    assert held.allocation is not None
