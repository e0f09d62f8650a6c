"""Checks of what a plugin says holds for all that is alike: nodes, and pods.

Where a plugin says so (`follows_amounts`, `prepares_alike`) it is not asked again: were it not so,
a pod's node would depend on what was placed before it.
"""

from typing import Final

from bayplan.framework.interface import PreFilterPlugin, PreScorePlugin
from bayplan.state.change_log import Facet
from bayplan.state.pods import PodInfo
from bayplan.testing.asking import ask, ask_prepared, prepared
from bayplan.testing.drawn_nodes import FACET_DRAWS, merged
from bayplan.testing.drawn_pods import draw_placed_pod
from bayplan.testing.factories import node, pod
from bayplan.testing.scenes import Scene, Subject

_TWINS: Final = ("twin-a", "twin-b")


def alike_nodes_alike_answers(subject: Subject, scene: Scene) -> None:
    """Two nodes that offer the same, and hold the same pods, differ in all else."""
    plugin, draws = scene.plugin, scene.draws
    if not plugin.follows_amounts:
        return
    options = scene.nodes[draws.one(sorted(scene.nodes))]
    placed = draw_placed_pod(draws)
    for name in _TWINS:
        for facet, draw in FACET_DRAWS.items():
            if facet is not Facet.ALLOCATABLE:
                options = merged(options, draw(draws))
        scene.cluster.add(node(name, **options))
        scene.nodes[name] = options
        scene.cluster.add(pod(f"on-{name}", **placed).on_node(name))
    for _, each in scene.pods:
        told = ask(plugin, each, scene.cluster.lend().nodes)
        one, other = ({"a node": told.about([name]).of(name)} for name in _TWINS)
        if one != other:
            raise subject.failed(
                f"says {one['a node']} of one node and {other['a node']} of another that has the "
                f"same amounts; follow from nothing else of a node, or do not say follows_amounts"
            )


def prepared_once_for_all_alike(subject: Subject, scene: Scene) -> None:
    """What PreFilter and PreScore said about a pod is good for the next, although nodes changed and
    pods without affinity terms were placed meanwhile."""
    plugin = scene.plugin
    if not plugin.prepares_alike or not isinstance(plugin, PreFilterPlugin | PreScorePlugin):
        return
    for _, each in scene.pods:
        before = prepared(plugin, each, scene.cluster.lend().nodes)
        _change_something(scene)
        if before is None or (plugin.scope == "cluster" and not before.is_skipped):
            continue
        nodes, other = scene.cluster.lend().nodes, _twin(each)
        difference = ask_prepared(plugin, other, nodes, before).difference(
            ask(plugin, other, nodes)
        )
        if difference:
            raise subject.failed(
                f"says something else with what PreFilter and PreScore noted about another pod of "
                f"the same template: {difference}; they must note what follows from the pod's "
                f"shape, its owner and objects alone, or not say prepares_alike"
            )


def _twin(each: PodInfo) -> PodInfo:
    """Another pod of its template."""
    made = pod("the-other")
    return PodInfo(made.metadata, made.status, each.shape, "")


def _change_something(scene: Scene) -> None:
    draws, cluster = scene.draws, scene.cluster
    name = draws.one(sorted(scene.nodes))
    cluster.take_back()
    for draw in FACET_DRAWS.values():
        scene.nodes[name] = merged(scene.nodes[name], draw(draws))
    cluster.cache.update_node(node(name, **scene.nodes[name]))
    options = draw_placed_pod(draws)
    options.pop("affinity", None)
    number = len(cluster.cache.pods())
    cluster.add(pod(f"meanwhile-{number}", **options).on_node(draws.one(sorted(scene.nodes))))
