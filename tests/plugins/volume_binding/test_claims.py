"""A pod's claims: bound ones, delayed ones, and problems that reject the pod.

The volumes of a pod on each node: examples, and a plain rule node by node.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.status import Code, Status
from bayplan.plugins.volume_binding.claims import (
    NO_SUCH_VOLUME,
    NONE,
    NOT_ENOUGH_SPACE,
    NOTHING_TO_BIND,
    OUT_OF_REACH,
    NodeVolumes,
    PodClaims,
    find_volumes,
    pod_claims,
)
from bayplan.testing import node
from bayplan.testing.clusters import SampleCluster
from tests.plugins.volume_kit import (
    capacity,
    claim,
    cluster,
    csi_driver,
    csi_node,
    storage_class,
    volume,
    with_claims,
    zoned,
)

# ---- claims ---------------------------------------------------------------------------------


LATE = storage_class()


def claims_of(*objects: Any, **sources: Any) -> PodClaims | Status:
    over = cluster([node("n1")], *objects)
    claims = () if sources else ("data",)
    return pod_claims(over.volumes, with_claims("p", *claims, **sources))


def names(claims: PodClaims | Status) -> tuple[list[str], list[str]]:
    assert isinstance(claims, PodClaims)
    return [each.name for each in claims.bound], [each.name for each in claims.delayed]


UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(
            [claim("data", phase="Lost", volumeName="gone")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            id="lost",
        ),
        pytest.param(
            [claim("data", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
            id="being deleted",
        ),
        pytest.param([claim("data"), storage_class(mode="Immediate")], UNBOUND, id="immediate"),
        pytest.param([claim("data")], UNBOUND, id="no such class"),
        pytest.param([claim("data", class_name="")], UNBOUND, id="no class"),
        pytest.param([claim("data", volumeName="pv"), LATE], UNBOUND, id="bound on one side only"),
    ],
)
def test_the_reason_for_a_wait_is_reported(objects: list[Any], reason: str) -> None:
    assert claims_of(*objects) == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_a_class_without_a_mode_is_an_error() -> None:
    result = claims_of(claim("data"), storage_class(mode=None))
    assert result == Status(Code.ERROR, ('VolumeBindingMode not set for StorageClass "late"',))


def test_an_ephemeral_claim_must_exist_and_belong_to_the_pod() -> None:
    scratch: Any = {"scratch": {"ephemeral": {}}}
    result = claims_of(**scratch)
    assert isinstance(result, Status)
    assert result.message == (
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    )
    result = claims_of(claim("p-scratch", bound_to="pv"), **scratch)
    assert isinstance(result, Status)
    assert result.message == (
        "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    )
    owner = {"kind": "Pod", "name": "p", "uid": "uid-default/p", "controller": True}
    own = claim("p-scratch", bound_to="pv", meta={"ownerReferences": [owner]})
    assert names(claims_of(own, **scratch)) == (["p-scratch"], [])


# ---- finding --------------------------------------------------------------------------------


NODES = zoned(n1="a", n2="b", n3="c")


def find(over: SampleCluster, *claims: str) -> NodeVolumes:
    result = pod_claims(over.volumes, with_claims("p", *claims))
    assert isinstance(result, PodClaims), result
    return find_volumes(over.volumes, result, over.lend().nodes)


def rejected(over: SampleCluster, *claims: str) -> dict[str, list[str]]:
    """Rejected node → its reasons."""
    names = over.lend().nodes.names()
    reasons: dict[str, list[str]] = {}
    for rejection in find(over, *claims).rejections():
        for name, is_rejected in zip(names, rejection.positions.tolist(), strict=True):
            if is_rejected:
                reasons.setdefault(name, []).extend(rejection.reasons)
    return reasons


def taken(over: SampleCluster, *claims: str) -> dict[str, dict[str, str]]:
    """Node → claim → its volume, "" for a volume to be provisioned."""
    names, volumes = over.lend().nodes.names(), find(over, *claims)
    chosen: dict[str, dict[str, str]] = {name: {} for name in names}
    for matched in volumes.matched:
        for name, index in zip(names, matched.chosen.tolist(), strict=True):
            if index != NONE:
                chosen[name][matched.claim.name] = matched.volumes[index].name
    for made in volumes.provisioned:
        for name, is_needed in zip(names, made.needed.tolist(), strict=True):
            if is_needed:
                chosen[name][made.claim.name] = ""
    return chosen


# ---- bound claims --------------------------------------------------------------------------


def test_a_deleted_volume_rejects_all_nodes() -> None:
    over = cluster(NODES[:1], claim("data", bound_to="pv"))
    assert rejected(over, "data") == {"n1": [NO_SUCH_VOLUME]}


def test_the_first_claim_that_fails_decides() -> None:
    over = cluster(
        NODES[:2], claim("x", bound_to="pv"), volume("pv", zone="a"), claim("y", bound_to="gone")
    )
    assert rejected(over, "x", "y") == {"n1": [NO_SUCH_VOLUME], "n2": [OUT_OF_REACH]}
    assert rejected(over, "y", "x") == {"n1": [NO_SUCH_VOLUME], "n2": [NO_SUCH_VOLUME]}


def test_for_a_migrated_driver_its_own_zone_label_counts() -> None:
    key = "topology.kubernetes.io/zone"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}]}
    disk = volume(
        "pv",
        cinder={"volumeID": "c"},
        nodeAffinity={"required": {"nodeSelectorTerms": [term]}},
    )
    note = {"storage.alpha.kubernetes.io/migrated-plugins": "x,kubernetes.io/cinder"}
    nodes = zoned(n1="a", n2="a")
    over = cluster(nodes, claim("data", bound_to="pv"), disk, csi_node("n2", annotations=note))
    for name, label in (("n1", key), ("n2", "topology.cinder.csi.openstack.org/zone")):
        assert rejected(over, "data")[name] == [OUT_OF_REACH]
        node = over.cache.node(name)
        assert node is not None and node.metadata.labels is not None
        over.take_back()
        changed = zoned(**{name: "a"})[0]
        assert changed.metadata.labels is not None
        changed.metadata.labels[label] = "a"
        over.cache.update_node(changed)
    assert rejected(over, "data") == {}


def test_a_disk_that_the_migrated_driver_cannot_translate_is_an_error() -> None:
    note = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    disk = volume("pv", awsElasticBlockStore={"volumeID": "aws://a/nonsense"})
    over = cluster(NODES[:2], claim("data", bound_to="pv"), disk, csi_node("n2", annotations=note))
    [rejection] = find(over, "data").rejections()
    assert (rejection.code, rejection.positions.tolist()) == (Code.ERROR, [False, True])
    assert rejection.reasons[0].startswith("could not translate pv: ")


# ---- volumes that are there ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "spec"),
    [
        pytest.param(volume("pv", claim="other"), {}, id="reserved for another claim"),
        pytest.param(volume("pv", phase="Released"), {}, id="not available"),
        pytest.param(volume("pv", volumeMode="Block"), {}, id="another mode"),
        pytest.param(volume("pv", class_name="other"), {}, id="another class"),
        pytest.param(volume("pv"), {"accessModes": ["ReadWriteMany"]}, id="another access"),
        pytest.param(volume("pv"), {"volumeAttributesClassName": "gold"}, id="other attributes"),
        pytest.param(volume("pv"), {"selector": {"matchLabels": {"a": "b"}}}, id="not selected"),
        pytest.param(
            volume("pv", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}), {}, id="being deleted"
        ),
    ],
)
def test_a_volume_that_does_not_match_is_not_used(wrong: Any, spec: dict[str, Any]) -> None:
    over = cluster(NODES[:1], storage_class(), claim("data", **spec), wrong)
    assert rejected(over, "data") == {"n1": [NOTHING_TO_BIND]}


def test_a_selector_that_does_not_parse_is_an_error() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}
    over = cluster(NODES[:1], storage_class(), claim("data", selector=wrong))
    [rejection] = find(over, "data").rejections()
    assert rejection.code is Code.ERROR


def test_a_claim_uses_its_reserved_volume_only() -> None:
    over = cluster(
        NODES[:2],
        storage_class(),
        claim("data", "5Gi"),
        volume("own", "9Gi", claim="data", zone="a", phase="Bound"),
        volume("free", "5Gi"),
    )
    assert taken(over, "data")["n1"] == {"data": "own"}
    assert rejected(over, "data") == {"n2": [NOTHING_TO_BIND]}


# ---- volumes to make -----------------------------------------------------------------------

MAKER = storage_class(provisioner="disk.test")


def test_a_class_provisions_volumes_in_its_topologies_only() -> None:
    expression = {"key": "zone", "values": ["b", "c"]}
    terms = [{"matchLabelExpressions": [expression]}, {"matchLabelExpressions": []}]
    limited = storage_class(provisioner="disk.test", allowedTopologies=terms)
    over = cluster(NODES, limited, claim("data"))
    assert rejected(over, "data") == {"n1": [NOTHING_TO_BIND]}


def test_a_claim_with_an_annotated_node_uses_that_node_only() -> None:
    note = {"volume.kubernetes.io/selected-node": "n2"}
    over = cluster(NODES, MAKER, claim("data", annotations=note))
    assert rejected(over, "data") == {"n1": [NOTHING_TO_BIND], "n3": [NOTHING_TO_BIND]}
    assert taken(over, "data")["n2"] == {"data": ""}


def test_capacity_is_required_if_the_driver_reports_it() -> None:
    rooms = [capacity("x", "5Gi", "a"), capacity("y", "50Gi", "b", maximumVolumeSize="10Gi")]
    over = cluster(NODES, MAKER, claim("data"), csi_driver(storageCapacity=True), *rooms)
    assert rejected(over, "data") == {"n1": [NOT_ENOUGH_SPACE], "n3": [NOT_ENOUGH_SPACE]}
    over = cluster(NODES, MAKER, claim("data"), csi_driver(), *rooms)
    assert rejected(over, "data") == {}


def test_an_assumed_claim_is_not_used_for_another_pod() -> None:
    over = cluster(NODES[:1], storage_class(), claim("data"), claim("other"), volume("pv"))
    the_volume = over.volumes.volume("pv")
    assert the_volume is not None
    from_other = cluster(NODES[:1], volume("pv", claim="other")).volumes.volume("pv")
    assert from_other is not None
    over.volumes.assume_volume(from_other.volume)
    assert rejected(over, "data") == {"n1": [NOTHING_TO_BIND]}
    assert rejected(over, "other") == {}


# ---- the plain rule ----------------------------------------------------------------


@dataclass(frozen=True)
class Disk:
    size: int
    zone: str | None
    owner: str | None
    is_available: bool

    def content(self, number: int) -> Any:
        phase = "Available" if self.is_available else "Released"
        name, size = f"pv{number}", f"{self.size}Gi"
        return volume(name, size, zone=self.zone, claim=self.owner, phase=phase)


def choose(zone: str, sizes: dict[str, int], disks: list[Disk]) -> dict[str, str] | None:
    """The volumes of the claims in a zone by upstream's algorithm; None without a fit."""
    chosen: dict[str, str] = {}
    for name, size in sorted(sizes.items(), key=lambda each: each[1]):
        best: tuple[int, str] | None = None
        owned = False
        for number, disk in enumerate(disks):
            pv = f"pv{number}"
            if pv in chosen.values() or disk.owner not in (None, name) or disk.size < size:
                continue
            reached = disk.zone in (None, zone)
            if disk.owner == name:
                best, owned = ((disk.size, pv) if reached else None), True
                break
            if disk.is_available and reached and (best is None or disk.size < best[0]):
                best = (disk.size, pv)
        if best is None:
            return None
        chosen[name] = best[1]
        assert owned or best
    return chosen


DISKS = st.lists(
    st.builds(
        Disk,
        st.integers(1, 4),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, None, None, "c0", "c1", "other"]),
        st.booleans(),
    ),
    max_size=6,
)


@given(DISKS, st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_the_result_equals_the_plain_rule_for_each_node(
    disks: list[Disk], sizes: list[int]
) -> None:
    calls = {f"c{number}": size for number, size in enumerate(sizes)}
    claims = [claim(name, f"{size}Gi") for name, size in calls.items()]
    objects = [disk.content(number) for number, disk in enumerate(disks)]
    over = cluster(zoned(n1="a", n2="b"), storage_class(), *claims, *objects)
    refused = rejected(over, *calls)
    got = taken(over, *calls)
    for name, zone in (("n1", "a"), ("n2", "b")):
        expected = choose(zone, calls, disks)
        assert (name in refused) == (expected is None)
        if expected is not None:
            assert got[name] == expected
