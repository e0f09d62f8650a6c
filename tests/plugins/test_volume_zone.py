"""VolumeZone: pods run in the zones of their volumes."""

from typing import Any

import pytest

from bayplan.api.objects import PERSISTENT_VOLUME, STORAGE_CLASS, decode
from bayplan.framework.events import UPDATE, ActionType, EventResource, QueueingHint
from bayplan.plugins.volume_zone import VolumeZone
from bayplan.testing import check_plugin, node
from bayplan.testing.clusters import SampleCluster
from tests.plugins.row_kit import hint
from tests.plugins.volume_kit import (
    add,
    claim,
    cluster,
    instance,
    rejected,
    results_of,
    storage_class,
    volume,
    with_claims,
)
from tests.seeded import depth

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REASON = "UnschedulableAndUnresolvable: node(s) had no available volume zone"

ADD = ActionType.ADD


def over(labels: dict[str, str], **zones: dict[str, str]) -> SampleCluster:
    """Nodes with these labels, and the claim data bound to a volume with ``labels``."""
    nodes = [node(name, labels=each) for name, each in zones.items()]
    return cluster(nodes, claim("data", bound_to="pv"), volume("pv", meta={"labels": labels}))


def reasons(cluster: SampleCluster) -> list[str]:
    answer = rejected(VolumeZone, cluster, with_claims("p", "data"))
    assert set(answer.values()) <= {REASON}
    return sorted(answer)


def test_nodes_of_other_zones_are_rejected() -> None:
    statuses = over({ZONE: "a"}, n1={ZONE: "a"}, n2={ZONE: "b"}, n3={REGION: "r"})
    assert reasons(statuses) == ["n2", "n3"]


def test_a_label_with_an_empty_part_is_ignored() -> None:
    statuses = over({ZONE: "a__"}, n1={ZONE: "c"})
    assert results_of(VolumeZone, statuses, with_claims("p", "data")).pre_filter == "Skip"


def test_an_old_label_is_compared_with_the_newer_label_if_a_node_has_only_the_newer_one() -> None:
    statuses = over({OLD_ZONE: "a"}, n1={ZONE: "a"}, n2={ZONE: "b"}, n3={OLD_ZONE: "b", ZONE: "a"})
    assert reasons(statuses) == ["n2", "n3"]


def test_zone_and_region_must_both_match() -> None:
    labels = {ZONE: "a", REGION: "r"}
    statuses = over(labels, n1=labels, n2={ZONE: "a"}, n3={ZONE: "a", REGION: "s"})
    assert reasons(statuses) == ["n2", "n3"]


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(
            [claim("data", bound_to="pv")], 'persistentvolume "pv" not found', id="no volume"
        ),
        pytest.param(
            [claim("data", class_name=None)],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="no class",
        ),
        pytest.param(
            [claim("data")], 'storageclass.storage.k8s.io "late" not found', id="no such class"
        ),
        pytest.param(
            [claim("data"), storage_class(mode=None)],
            'VolumeBindingMode not set for StorageClass "late"',
            id="a class without a mode",
        ),
        pytest.param(
            [claim("data"), storage_class(mode="Immediate")],
            "PersistentVolume had no name",
            id="an unbound claim of an immediate class",
        ),
    ],
)
def test_a_missing_object_is_reported(objects: list[Any], reason: str) -> None:
    sample = cluster([node("n1")], *objects)
    assert rejected(VolumeZone, sample, with_claims("p", "data")) == {
        "": f"UnschedulableAndUnresolvable: {reason}"
    }


def test_a_claim_that_waits_for_its_pod_has_no_zones() -> None:
    sample = cluster([node("n1")], claim("data"), storage_class())
    assert results_of(VolumeZone, sample, with_claims("p", "data")).pre_filter == "Skip"


def test_a_label_that_is_added_to_a_volume_counts() -> None:
    statuses = over({}, n1={ZONE: "b"})
    assert reasons(statuses) == []
    add(statuses, volume("pv", meta={"labels": {ZONE: "a"}}))
    assert reasons(statuses) == ["n1"]


# ---- hints, contract -----------------------------------------------------------------------


def answer(resource: EventResource, action: ActionType, old: Any, new: Any) -> QueueingHint | None:
    plugin = instance(VolumeZone, SampleCluster())
    return hint(plugin, (resource, action), with_claims("p", "data"), old, new)


def a_volume(**labels: str) -> Any:
    return decode(PERSISTENT_VOLUME, volume("pv", meta={"labels": labels}))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, a_volume(), QueueingHint.QUEUE, id="a new volume"),
        pytest.param(
            a_volume(), a_volume(**{ZONE: "a"}), QueueingHint.QUEUE, id="an additional zone"
        ),
        pytest.param(a_volume(), a_volume(x="y"), QueueingHint.QUEUE_SKIP, id="another label"),
    ],
)
def test_a_new_volume_or_another_zone_helps(old: Any, new: Any, expected: QueueingHint) -> None:
    action = ADD if old is None else UPDATE
    assert answer(EventResource.PERSISTENT_VOLUME, action, old, new) is expected


def test_only_a_class_with_delayed_binding_helps() -> None:
    late = decode(STORAGE_CLASS, storage_class())
    early = decode(STORAGE_CLASS, storage_class(mode="Immediate"))
    assert answer(EventResource.STORAGE_CLASS, ADD, None, late) is QueueingHint.QUEUE
    assert answer(EventResource.STORAGE_CLASS, ADD, None, early) is QueueingHint.QUEUE_SKIP


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("data", "default", QueueingHint.QUEUE),
        ("other", "default", QueueingHint.QUEUE_SKIP),
        ("data", "elsewhere", QueueingHint.QUEUE_SKIP),
    ],
)
def test_only_its_own_claims_help(name: str, namespace: str, expected: QueueingHint) -> None:
    decoded = decode("v1 PersistentVolumeClaim", claim(name, meta={"namespace": namespace}))
    assert answer(EventResource.PERSISTENT_VOLUME_CLAIM, UPDATE, decoded, decoded) is expected


def test_it_satisfies_the_plugin_contract() -> None:
    def prepare(cluster: SampleCluster) -> None:
        labels = {ZONE: "za__zb"}
        add(cluster, claim("data", bound_to="pv"), volume("pv", meta={"labels": labels}))

    check_plugin(
        VolumeZone, pods=[{"spec": {"volumes": VOLUMES}}], prepare=prepare, clusters=depth(3, 8)
    )


VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
