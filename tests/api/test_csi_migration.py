"""In-tree volumes as the CSI drivers that replace them describe them."""

from typing import Any

import pytest

from bayplan.api.csi_migration import (
    BY_NAME,
    CSIVolume,
    NotTranslated,
    inline_volume,
    node_selector,
    persistent_volume,
    plugin_of,
)
from bayplan.api.objects import PERSISTENT_VOLUME, POD, Pod, decode
from bayplan.api.storage_objects import PersistentVolume, Volume


def volume(
    labels: dict[str, str] | None = None, terms: Any = None, **source: Any
) -> PersistentVolume:
    affinity = {"required": {"nodeSelectorTerms": terms}} if terms is not None else None
    spec = {**source, "nodeAffinity": affinity}
    persistent_volume = decode(
        PERSISTENT_VOLUME, {"metadata": {"name": "pv", "labels": labels}, "spec": spec}
    )
    assert isinstance(persistent_volume, PersistentVolume)
    return persistent_volume


def inline(**source: Any) -> Volume:
    pod = decode(POD, {"spec": {"volumes": [{"name": "v", **source}]}})
    assert isinstance(pod, Pod) and pod.spec.volumes is not None
    return pod.spec.volumes[0]


def translated(volume: PersistentVolume) -> CSIVolume:
    plugin = plugin_of(volume.spec)
    assert plugin is not None
    return persistent_volume(plugin, volume)


GCE = {"gcePersistentDisk": {"pdName": "d"}}


@pytest.mark.parametrize(
    ("the_volume", "handle"),
    [
        pytest.param(
            volume(awsElasticBlockStore={"volumeID": "vol-1"}), "vol-1", id="a bare ebs id"
        ),
        pytest.param(
            volume(awsElasticBlockStore={"volumeID": "aws://us-east-1a/vol-1"}),
            "vol-1",
            id="an ebs id with its zone",
        ),
        pytest.param(
            volume(awsElasticBlockStore={"volumeID": "aws:///vol-1"}), "vol-1", id="an empty zone"
        ),
        pytest.param(
            volume(**GCE),
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="a gce disk without a zone",
        ),
        pytest.param(
            volume({"topology.kubernetes.io/zone": "us-a1-b"}, **GCE),
            "projects/UNSPECIFIED/zones/us-a1-b/disks/d",
            id="a gce disk of a zone",
        ),
        pytest.param(
            volume({"topology.kubernetes.io/zone": "us-a1-b__us-a1-c"}, **GCE),
            "projects/UNSPECIFIED/regions/us-a1/disks/d",
            id="a gce disk of a region",
        ),
        pytest.param(volume(azureDisk={"diskURI": "uri"}), "uri", id="an azure disk"),
        pytest.param(volume(cinder={"volumeID": "c"}), "c", id="cinder"),
        pytest.param(volume(portworxVolume={"volumeID": "p"}), "p", id="portworx"),
    ],
)
def test_a_disk_has_the_handle_of_its_driver(the_volume: PersistentVolume, handle: str) -> None:
    assert translated(the_volume).handle == handle


@pytest.mark.parametrize(
    "the_volume",
    [
        pytest.param(volume(awsElasticBlockStore={"volumeID": "aws://a/b/c"}), id="no ebs id"),
        pytest.param(
            volume({"topology.kubernetes.io/zone": "us-a1-b__eu-a1-c"}, **GCE), id="two regions"
        ),
        pytest.param(volume(azureDisk={"diskURI": "u", "kind": "Shared"}), id="not managed"),
    ],
)
def test_a_disk_without_a_translation_is_reported(the_volume: PersistentVolume) -> None:
    with pytest.raises(NotTranslated):
        translated(the_volume)


def test_an_inline_disk_belongs_to_the_driver() -> None:
    migrated = inline(gcePersistentDisk={"pdName": "d"})
    plugin = plugin_of(migrated)
    assert plugin is not None
    assert inline_volume(plugin, migrated).driver == "pd.csi.storage.gke.io"


def test_files_and_vsphere_are_not_counted() -> None:
    names = {plugin.name for plugin in BY_NAME.values() if not plugin.is_counted}
    assert names == {"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"}


# ---- which nodes reach it ------------------------------------------------------------------


def expressions(volume: PersistentVolume) -> list[tuple[str, tuple[str, ...]]]:
    plugin = plugin_of(volume.spec)
    assert plugin is not None
    selector = node_selector(plugin, volume)
    terms = (selector.node_selector_terms or ()) if selector is not None else ()
    return [(e.key, e.values or ()) for term in terms for e in term.match_expressions or ()]


def zone(key: str, *values: str) -> Any:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def test_a_zone_label_in_the_affinity_is_renamed_as_the_driver_names_it() -> None:
    the_volume = volume(terms=[zone("topology.kubernetes.io/zone", "a")], **GCE)
    assert expressions(the_volume) == [("topology.gke.io/zone", ("a",))]


def test_a_zone_in_the_labels_becomes_a_required_term() -> None:
    the_volume = volume({"topology.kubernetes.io/zone": "b__a"}, cinder={"volumeID": "c"})
    assert expressions(the_volume) == [("topology.cinder.csi.openstack.org/zone", ("a", "b"))]


def test_the_affinity_overrides_the_labels() -> None:
    key = "failure-domain.beta.kubernetes.io/zone"
    the_volume = volume({"topology.kubernetes.io/zone": "b"}, terms=[zone(key, "a")], **GCE)
    assert expressions(the_volume) == [("topology.gke.io/zone", ("a",))]


def test_an_old_region_label_is_renamed() -> None:
    keys = [zone(f"failure-domain.beta.kubernetes.io/{each}", "x") for each in ("zone", "region")]
    the_volume = volume(terms=keys, **GCE)
    assert expressions(the_volume) == [
        ("topology.gke.io/zone", ("x",)),
        ("topology.kubernetes.io/region", ("x",)),
    ]


def test_azure_disks_keep_their_affinity() -> None:
    the_volume = volume(
        terms=[zone("topology.kubernetes.io/zone", "a")], azureDisk={"diskURI": "u"}
    )
    assert expressions(the_volume) == [("topology.kubernetes.io/zone", ("a",))]


def test_a_volume_without_a_migrated_plugin_has_no_driver() -> None:
    assert plugin_of(volume(csi={"driver": "d", "volumeHandle": "h"}).spec) is None
    assert plugin_of(inline(emptyDir={})) is None
