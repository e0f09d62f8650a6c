"""Assumed versions of storage objects, which hide the versions of the API."""

from typing import Any, cast

import msgspec
import pytest

from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, decode
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.state.change_log import Facet
from tests.plugins.volume_kit import (
    claim,
    cluster,
    csi_node,
    volume,
    with_claims,
    zoned,
)


def a_claim(*args: Any, version: str = "1", **fields: Any) -> PersistentVolumeClaim:
    content = claim(*args, **fields)
    content["metadata"]["resourceVersion"] = version
    return cast(PersistentVolumeClaim, decode(PERSISTENT_VOLUME_CLAIM, content))


def a_volume(*args: Any, version: str = "1", **fields: Any) -> PersistentVolume:
    content = volume(*args, **fields)
    content["metadata"]["resourceVersion"] = version
    return cast(PersistentVolume, decode(PERSISTENT_VOLUME, content))


# ---- assuming ------------------------------------------------------------------------------


def test_an_assumed_volume_is_used_until_the_api_has_a_newer_one() -> None:
    over = cluster(zoned(n1="a"), volume("pv"))
    volumes = over.volumes
    volumes.assume_volume(a_volume("pv", claim="data"))
    assumed = volumes.volume("pv")
    assert assumed is not None and assumed.volume.spec.claim_ref is not None
    [listed] = volumes.volumes_of_class("late")
    assert listed is assumed
    api = volumes.api.volume("pv")
    assert api is not None and api.volume.spec.claim_ref is None
    over.objects(PERSISTENT_VOLUME).put(a_volume("pv", version="2"))
    now = volumes.volume("pv")
    assert now is not None and now.volume.spec.claim_ref is None
    assert volumes.assumed_count == 0


def test_storing_the_same_version_again_does_not_end_the_assumption() -> None:
    over = cluster(zoned(n1="a"), claim("data"))
    over.volumes.assume_claim(a_claim("data", annotations={"a": "b"}))
    over.objects(PERSISTENT_VOLUME_CLAIM).put(a_claim("data"))
    the_claim = over.volumes.claim("default/data")
    assert the_claim is not None and the_claim.annotations == {"a": "b"}


def test_a_deleted_object_is_no_longer_assumed() -> None:
    over = cluster(zoned(n1="a"), claim("data"), volume("pv"))
    over.volumes.assume_claim(a_claim("data", annotations={"a": "b"}))
    over.volumes.assume_volume(a_volume("pv", claim="data"))
    over.objects(PERSISTENT_VOLUME_CLAIM).remove(a_claim("data"))
    over.objects(PERSISTENT_VOLUME).remove(a_volume("pv"))
    assert over.volumes.claim("default/data") is None
    assert over.volumes.volume("pv") is None
    assert over.volumes.volumes_of_class("late") == []


def test_restoring_forgets_only_the_caller_s_assumption() -> None:
    over = cluster(zoned(n1="a"), volume("pv"))
    mine, foreign = a_volume("pv", claim="mine"), a_volume("pv", claim="foreign")
    over.volumes.assume_volume(foreign)
    over.volumes.restore_volume(mine)
    assert over.volumes.assumed_count == 1
    over.volumes.restore_volume(foreign)
    over.volumes.restore_volume(foreign)
    assert over.volumes.assumed_count == 0


def test_only_the_newest_version_can_be_assumed() -> None:
    over = cluster(zoned(n1="a"), claim("data"))
    with pytest.raises(AssertionError, match="default/data"):
        over.volumes.assume_claim(a_claim("data", version="0"))


def test_assuming_concerns_all_nodes() -> None:
    over = cluster(zoned(n1="a"), volume("pv"))
    before = over.cache.table.log.generation
    over.volumes.assume_volume(a_volume("pv", claim="data"))
    assert len(over.cache.table.log.rows_since(before, Facet.STORAGE)) == 1


def test_objects_stored_earlier_are_read() -> None:
    over = cluster(zoned(n1="a"), claim("data", bound_to="pv"), csi_node("n1"))
    fresh = type(over.volumes)(over.cache.table, over.store)
    the_claim = fresh.claim("default/data")
    assert the_claim is not None and the_claim.volume_name == "pv"
    assert fresh.api.csi_node("n1") is not None
    assert msgspec.to_builtins(the_claim.claim) == msgspec.to_builtins(
        a_claim("data", bound_to="pv")
    )


def test_a_node_and_a_pod_are_read_in_their_current_state() -> None:
    placed = with_claims("p", "data", node="n1")
    over = cluster(zoned(n1="a"), pods=[placed])
    node = over.volumes.node("n1")
    assert node is not None and node.metadata.name == "n1"
    assert over.volumes.is_placed(placed)
    over.cache.remove_pod(placed.uid)
    over.cache.remove_node("n1")
    assert over.volumes.node("n1") is None
    assert not over.volumes.is_placed(placed)
