"""The pods that use a claim, by node."""

from bayplan.state.cache import Cache
from bayplan.state.change_log import Facet
from bayplan.state.node_table import ClaimUsers
from bayplan.testing import node, pod
from tests.plugins.volume_kit import with_claims


def test_a_removed_pod_is_not_counted_any_more() -> None:
    users = ClaimUsers()
    one = with_claims("a", "data", "data")
    users.add(0, one)
    assert users.named_count("default/data") == 2  # two volumes name the claim
    users.remove(0, one)
    assert users.named_count("default/data") == 0
    assert users.rows("default/data") == []


def test_a_snapshot_shows_whether_a_claim_is_used() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    user = with_claims("a", "data", node="n1")
    cache.add_pod(user)
    snapshot = cache.lend()
    assert snapshot.is_pvc_used("default/data")
    assert dict(snapshot.node("n1").pvc_ref_counts) == {"default/data": 1}
    with snapshot.trial() as trial:
        trial.remove(user)
        assert not snapshot.is_pvc_used("default/data")
    assert snapshot.is_pvc_used("default/data")
    snapshot.end()
    cache.remove_pod(user.uid)
    after = cache.lend()
    assert not after.is_pvc_used("default/data")
    assert dict(after.node("n1").pvc_ref_counts) == {}


def test_a_pod_without_such_volumes_does_not_touch_the_facet() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    before = cache.table.log.generation
    cache.add_pod(pod("a", node="n1", spec={"volumes": [{"name": "c", "emptyDir": {}}]}))
    assert not len(cache.table.log.rows_since(before, Facet.VOLUMES))
    cache.add_pod(with_claims("b", "data", node="n1"))
    assert len(cache.table.log.rows_since(before, Facet.VOLUMES)) == 1
