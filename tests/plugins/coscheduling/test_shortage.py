"""What all nodes together lack of a group's minResources."""

from typing import Any, Unpack

import pytest

from bayplan.api.pod_groups import GroupKey
from bayplan.api.quantity import QuantityError
from bayplan.plugins.coscheduling.shortage import missing, told
from bayplan.state.pods import PodInfo
from bayplan.testing import NodeOptions, pod
from tests.plugins.coscheduling_kit import KIND, member, nodes, put_group

FOUR: NodeOptions = {"cpu": 4, "memory": "8Gi"}


def lack(
    min_resources: dict[str, Any] | None,
    *placed: PodInfo,
    min_member: int = 1,
    **options: Unpack[NodeOptions],
) -> dict[str, int]:
    """With n1 and n2; ``placed`` members are given back."""
    given: NodeOptions = {**FOUR, **options}
    cluster = nodes(n1=given, n2=given).add(*placed)
    put_group(cluster, minMember=min_member, minResources=min_resources)
    state = cluster.pod_groups.get(GroupKey(KIND.partition("/")[0], "default", "g"))
    assert state is not None and state.group is not None
    members = [each for each in placed if each.group_key is not None]
    return missing(state.group, members, cluster.lend().nodes)


def test_all_nodes_count_together() -> None:
    assert lack({"cpu": 8, "memory": "16Gi"}) == {}
    assert lack({"cpu": "8500m", "memory": "16Gi"}) == {"cpu": 500}


def test_nothing_is_missing_where_nothing_is_asked_for() -> None:
    assert lack(None, min_member=1000) == {}


def test_what_others_use_is_not_free() -> None:
    assert lack({"cpu": 8}, pod("other", cpu=3, node="n1")) == {"cpu": 3000}


def test_what_members_use_is_given_back() -> None:
    assert lack({"cpu": 8}, member("a", cpu=3, node="n1"), member("b", cpu=2, node="n2")) == {}


def test_an_overcommitted_node_takes_nothing_from_the_others() -> None:
    assert lack({"cpu": 4}, pod("other", cpu=9, node="n1")) == {}


def test_each_member_takes_a_place_among_the_pods() -> None:
    assert lack({"cpu": 1}, min_member=5, pods=2) == {"pods": 1}
    assert lack({"cpu": 1}, member("a", node="n1"), min_member=4, pods=2) == {}


def test_a_resource_that_no_node_has_is_missing() -> None:
    assert lack({"nvidia.com/gpu": 2}) == {"nvidia.com/gpu": 2}


def test_what_is_no_quantity_is_told() -> None:
    with pytest.raises(QuantityError):
        lack({"cpu": "many"})


def test_the_gap_is_told_in_order() -> None:
    assert told({"nvidia.com/gpu": 2, "cpu": 500}) == "resource gap: cpu 500m, nvidia.com/gpu 2"
