"""What another configuration would do with the pods that wait."""

from bayplan.api.pod_groups import BUILT_IN_KINDS
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.registry import default_registry
from bayplan.whatif.configuration import what_if_configured
from tests.kit.manifests import node, pod
from tests.whatif.clusters import cluster_of


def test_equal_configurations_place_every_pod_on_the_same_node() -> None:
    pods = [pod(f"a{number}", cpu="1") for number in range(6)]
    cluster = cluster_of(node("n1"), node("n2"), *pods, pod("huge", cpu="9"))
    first, second = (
        ClusterModel(cluster, SchedulerConfig(), default_registry(())) for _ in range(2)
    )
    answer = what_if_configured(first, second, "same.yaml", BUILT_IN_KINDS)
    assert (answer.moves, answer.left_over) == ((), ())
    assert len(answer.placed_before) == 6
    assert [one.pod for one in answer.waited_before] == ["default/huge"]
    assert answer.before == answer.after
    assert str(answer).splitlines()[1] == "no pod would get another node"
    assert len(first.pending()) == 7
