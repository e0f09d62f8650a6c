"""The domains of a topology key follow the labels of the nodes."""

from bayplan.api.pod_groups import GroupKey
from bayplan.engine.podgroups.topology import Domains
from bayplan.framework.placements import Placement
from bayplan.state.pod_groups import GroupState
from bayplan.testing import SampleCluster, node

GROUP = GroupState(GroupKey("", "default", "g"))


def _cluster() -> SampleCluster:
    cluster = SampleCluster()
    for name, rack in (("a", "r2"), ("b", "r1"), ("c", "r2")):
        cluster.add(node(name, labels={"rack": rack}))
    return cluster


def _of(cluster: SampleCluster, domains: Domains) -> list[Placement]:
    result = domains.of(cluster.lend(), "rack", GROUP)
    cluster.take_back()
    return result


def test_a_new_node_and_a_changed_label_change_the_domains() -> None:
    cluster = _cluster()
    domains = Domains()
    assert len(_of(cluster, domains)) == 2
    cluster.add(node("d", labels={"rack": "r3"}))
    assert [one.name for one in _of(cluster, domains)] == ["r1", "r2", "r3"]
    cluster.cache.update_node(node("d", labels={"rack": "r1"}))
    assert [one.nodes for one in _of(cluster, domains)] == [{"b", "d"}, {"a", "c"}]


def test_a_domain_within_another_has_the_nodes_of_both() -> None:
    one = Placement("z", frozenset("abc"))
    assert one.within(Placement("r", frozenset("bcd"))) == Placement("z", frozenset("bc"))
    assert one.within(Placement()) is one
