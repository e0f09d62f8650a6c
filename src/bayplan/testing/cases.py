"""Generated clusters with an instance of the plugin under check, and the pods for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import msgspec

from bayplan.api.objects import Node, ObjectMeta
from bayplan.framework.plugin import Plugin
from bayplan.framework.recorded_pod import NotedKeys, Reads, recorded_pod
from bayplan.rng import stream
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import PROFILE, SampleCluster, cluster, plugin
from bayplan.testing.evaluation import CheckFailed, alone, ask
from bayplan.testing.factories import NodeOptions, PodOptions, node, pod
from bayplan.testing.generators import Draws, Vocabulary, draw_node, draw_pod

_NODE_COUNT = 9
_PLACED_COUNT = 14
_POD_COUNT = 5
#: Clusters in which the labels and annotations that a plugin reads are recorded.
_LISTENING_COUNT = 4

Prepare = Callable[[SampleCluster], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """One drawn cluster. Changes are made through ``cluster``."""

    cluster: SampleCluster
    plugin: Plugin
    draws: Draws
    #: The options of each node.
    nodes: dict[str, NodeOptions]
    #: The options of each pod to evaluate.
    pods: list[tuple[PodOptions, PodInfo]]


@final
class PluginSubject:
    """A plugin class with its args, and everything that is drawn for it."""

    def __init__(
        self,
        plugin_class: type[Plugin],
        args: Any,
        pods: Sequence[PodOptions],
        prepare: Prepare | None,
        *,
        seed: int,
    ) -> None:
        self.plugin_class = plugin_class
        self.name = plugin_class.name
        self._args = args
        self._pods = pods
        self._prepare = prepare
        self._seed = seed
        paths = [path.partition(".") for path in plugin_class.fields]
        fields = [path for kind, _, path in paths if kind == "Node"]
        self._vocabulary = Vocabulary(node_fields=fields)

    def instance(self, over: SampleCluster) -> Plugin:
        return plugin(self.plugin_class, self._args, cluster=over)

    def failed(self, message: str) -> CheckFailed:
        return CheckFailed(f"{self.name}: {message}")

    def scene(self, index: int) -> Scene:
        """A new scene. Equal indexes give equal scenes, whatever happened to earlier scenes."""
        draws = Draws(stream(self._seed, f"scene {index}"), self._vocabulary)
        options = {f"node-{n}": draw_node(draws) for n in range(_NODE_COUNT)}
        nodes = [node(name, **each) for name, each in options.items()]
        seed = draws.chance.randrange(1 << 30)
        sample = cluster(nodes, _PLACED_COUNT, seed=seed, vocabulary=self._vocabulary)
        if self._prepare is not None:
            self._prepare(sample)
        drawn = [*self._pods, *(draw_pod(draws) for _ in range(_POD_COUNT))]
        pods = [(each, pod(f"pod-{n}", **each)) for n, each in enumerate(drawn)]
        instance = self.instance(sample)
        sample.frameworks[PROFILE] = alone(instance)
        return Scene(sample, instance, draws, options, pods)

    # ---- keys that the plugin reads -------------------------------------------------------

    def listen(self) -> None:
        """Record which labels and annotations the plugin reads; they are drawn from now on."""
        read_keys: dict[str, set[str]] = {
            name: set()
            for name in ("node_labels", "node_annotations", "pod_labels", "pod_annotations")
        }
        for index in range(_LISTENING_COUNT):
            self._listen_in(self.scene(index), read_keys)
        self._vocabulary = self._vocabulary.with_keys(
            **{name: frozenset(keys) for name, keys in read_keys.items()}
        )

    def _listen_in(self, scene: Scene, read_keys: dict[str, set[str]]) -> None:
        heard = SampleCluster()
        self._copy_objects(scene.cluster, heard)
        for info in list(scene.cluster.lend().nodes.infos()):
            heard.add(_noted(info.node, read_keys["node_labels"], read_keys["node_annotations"]))
        heard.add(
            *(_noted_pod(p, read_keys["pod_annotations"]) for p in scene.cluster.cache.pods())
        )
        instance = self.instance(heard)
        for _, each in scene.pods:
            reads = Reads()
            ask(instance, recorded_pod(each, reads), heard.lend().nodes)
            read_keys["pod_labels"] |= reads.keys.get("metadata.labels", set())
            read_keys["pod_annotations"] |= reads.keys.get("metadata.annotations", set())

    def _copy_objects(self, one: SampleCluster, other: SampleCluster) -> None:
        for kind in self.plugin_class.kinds:
            for each in one.objects(kind).list():
                other.objects(kind).put(each)


def rebuilt(subject: PluginSubject, scene: Scene) -> tuple[SampleCluster, Plugin]:
    """A new copy of the scene's cluster, with a new instance of the plugin."""
    fresh = SampleCluster(seed=scene.cluster.seed)
    for kind in subject.plugin_class.kinds:
        for each in scene.cluster.objects(kind).list():
            fresh.objects(kind).put(each)
    nodes = [info.node for info in scene.cluster.lend().nodes.infos()]
    fresh.add(*nodes)
    fresh.add(*scene.cluster.cache.pods())
    return fresh, subject.instance(fresh)


def _noted(node: Node, labels: set[str], annotations: set[str]) -> Node:
    return msgspec.structs.replace(
        node,
        metadata=msgspec.structs.replace(
            node.metadata,
            labels=NotedKeys(node.metadata.labels or {}, labels),
            annotations=NotedKeys(node.metadata.annotations or {}, annotations),
        ),
    )


def _noted_pod(pod: PodInfo, annotations: set[str]) -> PodInfo:
    noted = NotedKeys(pod.annotations, annotations)
    metadata: ObjectMeta = msgspec.structs.replace(pod.metadata, annotations=noted)
    return msgspec.structs.replace(pod, metadata=metadata)
