"""Storage objects of the API, and the nodes that a change of them concerns."""

from typing import Any

from bayplan.state.change_log import Facet
from bayplan.testing.clusters import SampleCluster
from tests.plugins.volume_kit import (
    add,
    attachment,
    capacity,
    claim,
    cluster,
    csi,
    csi_driver,
    csi_node,
    storage_class,
    volume,
    with_claims,
    zoned,
)


def changed(over: SampleCluster, *objects: Any) -> tuple[list[str], list[str]]:
    """(nodes whose volumes, nodes whose storage may have changed) because of ``objects``."""
    log, names = over.cache.table.log, over.cache.table.names
    before = log.generation
    add(over, *objects)
    facets = (Facet.VOLUMES, Facet.STORAGE)
    one, other = ([names[r] for r in log.rows_since(before, facet)] for facet in facets)
    return one, other


# ---- the nodes of a change -------------------------------------------------------------------


def test_any_change_of_storage_concerns_all_nodes() -> None:
    over = cluster(zoned(n1="a", n2="b"))
    for content in (claim("data"), volume("pv"), csi_driver(), capacity("c", "1Gi")):
        assert changed(over, content) == ([], ["n1", "n2"])
    assert changed(over, storage_class()) == (["n1", "n2"], ["n1", "n2"])


def test_a_claim_concerns_the_volumes_of_nodes_that_use_it() -> None:
    over = cluster(zoned(n1="a", n2="b"), pods=[with_claims("p", "data", node="n2")])
    assert changed(over, claim("data", bound_to="pv"))[0] == ["n2"]
    assert changed(over, claim("other"))[0] == []


def test_a_volume_concerns_the_nodes_that_use_its_claim_or_have_it_attached() -> None:
    over = cluster(
        zoned(n1="a", n2="b", n3="c"),
        claim("data", bound_to="pv"),
        attachment("a", "n3", "pv"),
        pods=[with_claims("p", "data", node="n2")],
    )
    assert changed(over, volume("pv", **csi("h")))[0] == ["n2", "n3"]


def test_a_csi_node_and_an_attachment_concern_their_node() -> None:
    over = cluster(zoned(n1="a", n2="b"))
    assert changed(over, csi_node("n2")) == (["n2"], ["n2"])
    assert changed(over, attachment("a", "n1", "pv")) == (["n1"], [])
    assert changed(over, csi_node("elsewhere")) == ([], [])


# ---- looking up ----------------------------------------------------------------------------


def test_a_volume_that_changes_its_class_is_listed_under_the_new_one() -> None:
    over = cluster(zoned(n1="a"), volume("b"), volume("a"))
    assert [each.name for each in over.volumes.volumes_of_class("late")] == ["a", "b"]
    add(over, volume("a", class_name="other"))
    assert [each.name for each in over.volumes.volumes_of_class("late")] == ["b"]
    assert [each.name for each in over.volumes.volumes_of_class("other")] == ["a"]


def test_attachments_are_looked_up_by_node() -> None:
    over = cluster(zoned(n1="a"), attachment("x", "n1", "pv"), attachment("y", "n2", "pv"))
    assert [each.metadata.name for each in over.volumes.api.attachments("n1")] == ["x"]
    add(over, attachment("x", "n2", "pv"))
    assert over.volumes.api.attachments("n1") == []
    assert len(over.volumes.api.attachments("n2")) == 2


def test_capacities_are_looked_up_by_class() -> None:
    over = cluster(zoned(n1="a"), capacity("b", "2Gi"), capacity("a", "1Gi"))
    assert [each.key for each in over.volumes.api.capacities("late")] == [
        "kube-system/a",
        "kube-system/b",
    ]
    assert over.volumes.api.capacities("other") == []
