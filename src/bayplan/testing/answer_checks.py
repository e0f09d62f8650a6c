"""Checks of results: they depend on args, cluster and pod only, and not on the way of
evaluation."""

from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterExtensions,
    PreFilterPlugin,
    SignPlugin,
)
from bayplan.framework.signing import facets_read
from bayplan.framework.status import Code, is_success
from bayplan.state.change_log import Facet
from bayplan.state.pods import PodInfo, PodShape
from bayplan.testing.cases import PluginSubject, Scene, rebuilt
from bayplan.testing.evaluation import NO_NODE, PluginAnswer, alone, ask
from bayplan.testing.factories import NodeOptions, node, pod
from bayplan.testing.fingerprints import columns_of
from bayplan.testing.generators import FACET_DRAWS, draw_placed_pod, merged

_SUBSETS: Final = 3
_CHANGES: Final = 4


def same_question_same_answer(subject: PluginSubject, scene: Scene) -> None:
    """Results depend on args, cluster and pod only: not on earlier calls, and not on the
    instance."""
    nodes = scene.cluster.lend().nodes
    before = columns_of(scene.cluster.cache.table)
    contents = {path: column.values.tobytes() for path, column in before.items()}
    first = [ask(scene.plugin, each, nodes) for _, each in scene.pods]
    again = [ask(scene.plugin, each, nodes) for _, each in scene.pods]
    other = subject.instance(scene.cluster)
    anew = [ask(other, _forgotten(each), nodes) for _, each in scene.pods]
    for path, column in before.items():
        if column.values.tobytes() != contents[path]:
            raise subject.failed(
                f"writes to a column of the nodes ({path.lstrip('.')}): columns are lent, "
                f"make a copy first"
            )
    for answers, words in ((again, "asked again"), (anew, "asked by another instance")):
        for one, two in zip(first, answers, strict=True):
            difference = one.difference(two)
            if difference:
                raise subject.failed(
                    f"says something else when it is {words}: {difference}; an answer may follow "
                    f"from args, pod and nodes alone, and what `shape.once` keeps from its key"
                )


def leaves_its_mask_alone(subject: PluginSubject, scene: Scene) -> None:
    """The mask of nodes that are still feasible is the framework's."""
    plugin, nodes = scene.plugin, scene.cluster.lend().nodes
    if not isinstance(plugin, FilterPlugin):
        return
    for _, each in scene.pods:
        state, feasible = CycleState(), np.ones(len(nodes), np.bool_)
        _, status, _ = alone(plugin).run_pre_filter(state, each, nodes)
        if is_success(status) and not state.skip_filter_plugins:
            list(plugin.filter(state, each, nodes, feasible))
        if not feasible.all():
            raise subject.failed("filter writes to the mask it is handed: make a copy first")


def _forgotten(each: PodInfo) -> PodInfo:
    """The same pod with a new shape: no value is stored in it."""
    shape: PodShape = replace(each.shape, _memo={})
    return msgspec.structs.replace(each, shape=shape)


# ---- through a part of the nodes -----------------------------------------------------------


def same_through_any_selection(subject: PluginSubject, scene: Scene) -> None:
    """A node gets the same result alone and among other nodes, in any order."""
    nodes = scene.cluster.lend().nodes
    count = len(nodes)
    for _, each in scene.pods:
        whole = ask(scene.plugin, each, nodes)
        for _ in range(_SUBSETS):
            chosen = scene.draws.chance.sample(range(count), scene.draws.chance.randint(1, count))
            part = ask(scene.plugin, each, nodes, chosen)
            names = [nodes.name(position) for position in chosen]
            _compare_selection(subject, whole.about(names), part, scene.plugin)


def _compare_selection(
    subject: PluginSubject, whole: PluginAnswer, part: PluginAnswer, plugin: Plugin
) -> None:
    answers = (whole, part)
    if plugin.scope == "cluster":
        # Filter is called for single nodes, too; Score is called once, for all nodes.
        answers = tuple(each.without_scores() for each in answers)
    elif any(each.pre_score == NO_NODE for each in answers):
        answers = tuple(replace(each, pre_score="") for each in answers)
    difference = answers[0].difference(answers[1])
    if difference:
        raise subject.failed(
            f"says something else through nodes.take(rows): {difference}; answer from what the "
            f'view that is handed in holds, or look across nodes and say scope = "cluster"'
        )


# ---- after a change ------------------------------------------------------------------------


def unchanged_but_for_declared_facets(subject: PluginSubject, scene: Scene) -> None:
    """Only rows that changed in a facet the plugin declares may get another answer."""
    for _ in range(_CHANGES):
        for facet in FACET_DRAWS:
            name = scene.draws.one(sorted(scene.nodes))
            changed = merged(scene.nodes[name], FACET_DRAWS[facet](scene.draws))
            _compare_change(subject, scene, name, facet, changed=changed)
            scene.nodes[name] = changed
        name = scene.draws.one(sorted(scene.nodes))
        _compare_change(subject, scene, name, Facet.PODS | Facet.REQUESTED, changed=None)
        _compare_with_fresh(subject, scene)


def _compare_change(
    subject: PluginSubject, scene: Scene, name: str, facet: Facet, *, changed: NodeOptions | None
) -> None:
    """``changed``: the new version of the node; None: a pod is placed on the node."""
    cluster, plugin = scene.cluster, scene.plugin
    pods = [each for _, each in scene.pods[:2]]
    before = [ask(plugin, each, cluster.lend().nodes) for each in pods]
    log = cluster.cache.table.log
    generation = log.generation
    if changed is not None:
        cluster.take_back()
        cluster.cache.update_node(node(name, **changed))
    else:
        cluster.add(pod(f"new-{generation}", **draw_placed_pod(scene.draws)).on_node(name))
    nodes = cluster.lend().nodes
    for each, one in zip(pods, before, strict=True):
        part = plugin.sign_pod(each) if isinstance(plugin, SignPlugin) else None
        touched = set(log.rows_since(generation, int(facets_read(plugin, part))).tolist())
        rows = zip(nodes.names(), nodes.table.rows.tolist(), strict=True)
        untouched = [n for n, row in rows if row not in touched]
        if plugin.scope == "row" or not touched:
            two = ask(plugin, each, nodes)
            _compare_untouched(subject, (one, two), untouched, name, facet=facet)


def _compare_untouched(
    subject: PluginSubject,
    answers: tuple[PluginAnswer, PluginAnswer],
    names: list[str],
    changed: str,
    *,
    facet: Facet,
) -> None:
    """``names``: nodes that did not change in any declared facet."""
    one, two = (
        replace(answer.about(names), pre_filter="", pre_score="", keys={}) for answer in answers
    )
    scored = one.scores.keys() & two.scores.keys()
    one, two = (replace(a, scores={n: a.scores[n] for n in scored}) for a in (one, two))
    difference = one.difference(two)
    if not difference or any(_is_rejection(answer.pre_filter) for answer in answers):
        return
    words = str(facet.name).replace("|", ", ")
    if f"of node {changed}:" in difference:
        raise subject.failed(
            f"breaks the promise facets of its caching: the answer changed when only {words} of "
            f"the node changed: {difference}; write caching = Caching(facets=…) with {words}"
        )
    raise subject.failed(
        f"changed its answer about one node when {words} of another ({changed}) changed: "
        f'{difference}; it looks across nodes, so it must say scope = "cluster" '
        f"and list {words} in the facets of its caching"
    )


def _is_rejection(pre_filter: str) -> bool:
    return pre_filter.startswith((str(Code.UNSCHEDULABLE), str(Code.ERROR)))


def _compare_with_fresh(subject: PluginSubject, scene: Scene) -> None:
    """Values stored between cycles (`nodes.derived`, `shape.once`) must equal newly computed
    ones."""
    fresh, instance = rebuilt(subject, scene)
    for _, each in scene.pods:
        answers = ask(scene.plugin, each, scene.cluster.lend().nodes)
        difference = answers.difference(ask(instance, _forgotten(each), fresh.lend().nodes))
        if difference:
            raise subject.failed(
                f"says something else in a cluster that has changed than in one that was like "
                f"this from the start: {difference}; what it keeps is out of date (nodes.derived: "
                f"list all facets that the column follows from)"
            )


# ---- what-if -------------------------------------------------------------------------------


def notes_follow_a_what_if(subject: PluginSubject, scene: Scene) -> None:
    """After add_pod and remove_pod, Filter returns the same as with the pod placed, or removed."""
    plugin = scene.plugin
    if not isinstance(plugin, PreFilterPlugin) or not isinstance(plugin, FilterPlugin):
        return
    # Upstream's plugins ignore pods that are being deleted, but count them in a what-if.
    placed = [other for other in scene.cluster.cache.pods() if not other.is_terminating]
    for _, each in scene.pods:
        options = draw_placed_pod(scene.draws)
        options.pop("terminating", None)
        newcomer = pod("newcomer", **options).on_node(scene.draws.one(sorted(scene.nodes)))
        _compare_what_if(subject, scene, each, newcomer, is_added=True)
        leaver = scene.draws.one(placed)
        _compare_what_if(subject, scene, each, leaver, is_added=False)


def _compare_what_if(
    subject: PluginSubject, scene: Scene, each: PodInfo, other: PodInfo, *, is_added: bool
) -> None:
    snapshot = scene.cluster.lend()
    framework, state = alone(scene.plugin), CycleState()
    _, status, _ = framework.run_pre_filter(state, each, snapshot.nodes)
    if not is_success(status) or state.skip_filter_plugins:
        return
    what_if = state.clone()
    with snapshot.trial() as trial:
        run = framework.run_add_pod if is_added else framework.run_remove_pod
        if is_added:
            trial.assume(other, other.node_name)
        else:
            trial.remove(other)
        run(what_if, each, other, snapshot.node(other.node_name))
        one = framework.run_filter(what_if, each, snapshot.nodes).statuses()
        fresh = CycleState()
        _, status, _ = framework.run_pre_filter(fresh, each, snapshot.nodes)
        if not is_success(status) or fresh.skip_filter_plugins:
            return
        two = framework.run_filter(fresh, each, snapshot.nodes).statuses()
    if one != two:
        node_name = min(n for n in {*one, *two} if one.get(n) != two.get(n))
        raise subject.failed(_what_if_message(scene.plugin, node_name, is_added=is_added))


def _what_if_message(plugin: Plugin, node_name: str, *, is_added: bool) -> str:
    what = "added to" if is_added else "removed from"
    if isinstance(plugin, PreFilterExtensions):
        method = "add_pod" if is_added else "remove_pod"
        return f"after {method} its Filter says something else about {node_name} than if asked anew"
    return (
        f"its Filter's notes from PreFilter are wrong once a pod is {what} a node ({node_name}): "
        f"implement PreFilterExtensions, or read the pods of nodes in Filter"
    )
