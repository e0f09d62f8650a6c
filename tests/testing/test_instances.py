"""One plugin instance, created as the engine creates it."""

import pytest

from bayplan.config import ConfigError
from bayplan.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.testing import cluster, handle, plugin


def test_args_are_decoded_strictly() -> None:
    with pytest.raises(ConfigError, match="scoringStrateg"):
        plugin(NodeResourcesFit, {"scoringStrategie": {}})


def test_args_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="hardPodAffinityWeight"):
        plugin(InterPodAffinity, {"hardPodAffinityWeight": 101})


def test_an_instance_has_a_handle_over_its_cluster() -> None:
    sample = cluster(2, 0)
    made = plugin(InterPodAffinity, cluster=sample)
    snapshot = sample.lend()
    assert made.handle.snapshot is snapshot
    assert made.handle.objects("v1 Namespace").get("default") is not None


def test_a_passed_handle_is_used() -> None:
    own_handle = handle(name="mine")
    made = plugin(NodeResourcesFit, handle=own_handle, instance_name="NodeResourcesFit/mine")
    assert made.handle is own_handle
    assert made.instance_name == "NodeResourcesFit/mine"
