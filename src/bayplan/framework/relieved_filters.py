"""Filters asked about nodes as they would be without some of their pods.

See state.relieved_nodes: the overlay knows amounts of resources only, so it will do where nothing
else that Filters read of a node follows from its pods.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayplan.framework.answers import failure_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filter_runner import Likeness
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.interface import FilterPlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.signing import facets_read, followed_kinds, follows_from_objects
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo

#: What of a row follows from the pods on it, besides amounts.
_OCCUPIED = Facet.PODS | Facet.PORTS | Facet.VOLUMES | Facet.STORAGE


def only_amounts_matter(framework: Framework, state: CycleState) -> bool:
    """Whether all that placed pods change in what Filters say of this pod is how much of each
    resource is left."""
    return all(
        isinstance(plugin, FilterPlugin) and plugin.scope == "row" and not plugin.facets & _OCCUPIED
        for plugin in framework.plugins.filter
        if plugin.instance_name not in state.skip_filter_plugins
    )


def likeness(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    objects: Callable[[str], Sequence[Any]],
) -> Likeness | None:
    """See framework.filter_runner; ``objects``: all of a kind."""
    if not framework.plugins.reuse_bytes_max:
        return None
    signature, skipped = framework.sign_pod(pod), state.skip_filter_plugins
    facets, kinds = Facet(0), set[str]()
    for plugin in framework.plugins.filter:
        if plugin.instance_name in skipped:
            continue
        part = signature.parts.get(plugin.instance_name)
        if part is None:
            return None
        facets |= facets_read(plugin, part)
        if follows_from_objects(plugin, part):
            kinds.update(followed_kinds(plugin))
    lists = tuple(objects(kind) for kind in sorted(kinds))
    return Likeness((signature, frozenset(skipped)), facets, lists)


def filter_relieved(
    framework: Framework,
    question: tuple[CycleState, PodInfo, NodeView],
    reading: Facet = ALL_FACETS,
) -> FilterOutcome:
    """Ask Filters about each node as it would be; ``reading``: only those that read any of these
    facets. Nominated pods do not count."""
    state, pod, nodes = question
    outcome = FilterOutcome(nodes, np.ones(len(nodes), np.bool_))
    reads = {p.instance_name for p in framework.plugins.filter if p.facets & reading}
    for name, ask in framework.calls(state, pod).filter:
        if name not in reads or name in state.skip_filter_plugins:
            continue
        try:
            outcome.add(name, ask(state, pod, nodes, outcome.feasible))
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
            outcome.error = failure_of(name, "Filter", problem)
        if outcome.is_settled:
            break
    return outcome
