"""The clusters and pods that a plugin is checked with."""

from typing import final

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import ScalarScorePlugin
from bayplan.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import node
from bayplan.testing.cases import PluginSubject, rebuilt


def names_and_labels(subject: PluginSubject, index: int) -> list[str]:
    scene = subject.scene(index)
    return [repr(info.labels) for info in scene.cluster.lend().nodes.infos()]


def test_a_scene_is_determined_by_its_number() -> None:
    subject = PluginSubject(InterPodAffinity, None, (), None, seed=1)
    assert names_and_labels(subject, 3) == names_and_labels(subject, 3)
    assert names_and_labels(subject, 3) != names_and_labels(subject, 4)


def test_passed_pods_come_first() -> None:
    subject = PluginSubject(InterPodAffinity, None, [{"priority": 77}], None, seed=1)
    assert subject.scene(0).pods[0][1].priority == 77


@final
class ReadsKeys(ScalarScorePlugin):
    """Reads a label and an annotation of the node, of the pod and of placed pods."""

    name = "ReadsKeys"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        of_placed_pods = [other.annotations.get("test.org/other") for other in node.pods]
        of_node = ("test.org/node" in node.labels, "test.org/note" in node.annotations)
        of_pod = (pod.labels.get("test.org/pod"), pod.annotations.get("test.org/own"))
        return len([each for each in (*of_placed_pods, *of_node, *of_pod) if each])


def test_the_events_of_a_plugin_are_recorded() -> None:
    subject = PluginSubject(ReadsKeys, None, (), None, seed=1)
    subject.listen()
    vocabulary = subject.scene(0).draws.vocabulary
    assert "test.org/node" in vocabulary.node_labels
    assert "test.org/note" in vocabulary.node_annotations
    assert "test.org/pod" in vocabulary.pod_labels
    assert {"test.org/own", "test.org/other"} <= set(vocabulary.pod_annotations)


def test_a_rebuilt_cluster_equals_the_changed_one() -> None:
    subject = PluginSubject(InterPodAffinity, None, (), None, seed=1)
    scene = subject.scene(0)
    scene.cluster.cache.update_node(node("node-0", cpu=77))
    fresh, instance = rebuilt(subject, scene)
    one, other = scene.cluster.lend().nodes, fresh.lend().nodes
    for info, anew in zip(one.infos(), other.infos(), strict=True):
        assert (anew.node, anew.pods) == (info.node, info.pods)
        assert (anew.requested, anew.used_ports) == (info.requested, info.used_ports)
    assert instance.handle.objects("v1 Namespace").get("default") is not None
