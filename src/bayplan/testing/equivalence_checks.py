"""Checks of promises about equivalent nodes, equivalent pods, and single rows.

A plugin that promises `Caching.amounts_only` or `Caching.pre_state_per_template` is not called
again for equivalent nodes or pods. `filter_row` and `score_row` replace `filter` and `score` where
single rows changed. If a promise does not hold, the node of a pod depends on what was placed before
it.
"""

from typing import Final

import numpy as np
from msgspec.structs import replace

from bayplan.api import objects
from bayplan.api.selectors import IN, NODE_NAME_FIELD
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome, verdicts_of
from bayplan.framework.plugin import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    RowFilter,
    RowScore,
    ScorePlugin,
)
from bayplan.framework.status import is_success
from bayplan.state.change_log import Facet
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, pod_info
from bayplan.testing.cases import PluginSubject, Scene
from bayplan.testing.evaluation import alone, ask, ask_prepared, prepared
from bayplan.testing.factories import node, pod
from bayplan.testing.generators import FACET_DRAWS, draw_placed_pod, merged

# ---- equivalent nodes and pods --------------------------------------------------------------


_TWINS: Final = ("twin-a", "twin-b")


def equivalent_nodes_get_equal_results(subject: PluginSubject, scene: Scene) -> None:
    """Two nodes that offer the same, and hold the same pods, differ in all else."""
    plugin, draws = scene.plugin, scene.draws
    if not plugin.promises.amounts_only:
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
        answers = ask(plugin, each, scene.cluster.lend().nodes)
        one, other = ({"a node": answers.about([name]).of(name)} for name in _TWINS)
        if one != other:
            raise subject.failed(
                f"breaks the promise amounts_only of its caching: answers {one['a node']} for one "
                f"node and {other['a node']} for another with the same amounts; read nothing else "
                f"of a node, or do not promise it"
            )


def pre_state_serves_pods_of_one_template(subject: PluginSubject, scene: Scene) -> None:
    """Results of PreFilter and PreScore for a pod hold for the next pod of the template, although
    nodes changed and pods without affinity terms were placed meanwhile."""
    plugin = scene.plugin
    promised = plugin.promises.pre_state_per_template
    if not promised or not isinstance(plugin, PreFilterPlugin | PreScorePlugin):
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
                f"breaks the promise pre_state_per_template of its caching: with what PreFilter "
                f"and PreScore stored for another pod of the template, the answer differs: "
                f"{difference}; store only what depends on the shape of the pod, its owner and "
                f"objects, or do not promise it"
            )


def pods_with_pins_are_answered_as_without(subject: PluginSubject, scene: Scene) -> None:
    """A pod that names its node keeps this node at PreFilter, and at Filter it gets the answer of
    the same pod without the name."""
    plugin = scene.plugin
    if not plugin.promises.follows_pin:
        return
    name = scene.draws.one(sorted(scene.nodes))
    for _, each in scene.pods:
        pinned = pod_info(_pinned(each, name))
        assert pinned.shape.pin is not None, "the pod names its node"
        free = replace(each, shape=pinned.shape.pin.unpinned, node_name="")
        nodes = scene.cluster.lend().nodes
        one, other = (ask(plugin, either, nodes) for either in (pinned, free))
        if one.pre_filter != f"only {[name]}" or one.of(name)[0] != other.of(name)[0]:
            raise subject.failed(
                f"breaks the promise follows_pin of its caching: PreFilter answers "
                f"{one.pre_filter!r} for a pod that names node {name}, Filter answers "
                f"{one.of(name)[0]!r}, and {other.of(name)[0]!r} for the same pod without the name"
            )


def _pinned(each: PodInfo, name: str) -> objects.Pod:
    """The pod with this node as all that its required node affinity demands."""
    field = objects.LabelSelectorRequirement(key=NODE_NAME_FIELD, operator=IN, values=(name,))
    required = objects.NodeSelector(
        node_selector_terms=(objects.NodeSelectorTerm(match_fields=(field,)),)
    )
    affinity = each.spec.affinity or objects.Affinity()
    rules = replace(affinity.node_affinity or objects.NodeAffinity(), required=required)
    return replace(
        each.pod, spec=replace(each.spec, affinity=replace(affinity, node_affinity=rules))
    )


def _twin(each: PodInfo) -> PodInfo:
    """Another pod of its template."""
    return replace(pod("the-other", namespace=each.namespace), shape=each.shape)


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


# ---- single rows ----------------------------------------------------------------------------


def same_row_by_row(subject: PluginSubject, scene: Scene) -> None:
    """Every row of the cluster, for every pod."""
    if not isinstance(scene.plugin, RowFilter | RowScore):
        return
    nodes = scene.cluster.lend().nodes
    for _, each in scene.pods:
        state = CycleState()
        _, status, _ = alone(scene.plugin).run_pre_filter(state, each, nodes)
        if is_success(status):
            feasible = _compare_verdicts(subject, scene, state, each, nodes=nodes)
            if len(feasible):
                _compare_scores(subject, scene, state, each, nodes=feasible)


def _compare_verdicts(
    subject: PluginSubject, scene: Scene, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> NodeView:
    """Returns the nodes that are feasible."""
    plugin = scene.plugin
    if not isinstance(plugin, FilterPlugin) or plugin.instance_name in state.skip_filter_plugins:
        return nodes
    outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    outcome.add(plugin.name, plugin.filter(state, pod, nodes, outcome.feasible.copy()))
    if isinstance(plugin, RowFilter) and outcome.error is None:
        verdicts = verdicts_of(outcome)
        for position, info in enumerate(nodes.infos()):
            whole, one = verdicts.get(position, ()), plugin.filter_row(state, pod, info)
            if whole != one:
                raise subject.failed(
                    f"filter_row says of node {info.name} what filter does not: {one!r} or "
                    f"{whole!r}; it must give the same codes and reasons, in the same order"
                )
    return nodes.take(outcome.feasible)


def _compare_scores(
    subject: PluginSubject, scene: Scene, state: CycleState, pod: PodInfo, *, nodes: NodeView
) -> None:
    plugin = scene.plugin
    if not isinstance(plugin, ScorePlugin) or not isinstance(plugin, RowScore):
        return
    status = alone(plugin).run_pre_score(state, pod, nodes)
    if not is_success(status) or plugin.instance_name in state.skip_score_plugins:
        return
    for info, score in zip(nodes.infos(), plugin.score(state, pod, nodes).tolist(), strict=True):
        one = plugin.score_row(state, pod, info)
        if type(one) is not int or one != score:
            raise subject.failed(
                f"score_row gives node {info.name} what score does not: {one!r} or {score!r}; it "
                f"must be the same number, and a plain int"
            )
