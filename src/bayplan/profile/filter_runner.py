"""Filters for plugins that try placements, such as preemption.

`filter_overlay` runs Filters for nodes as they would be without some pods, or with more. The
overlay has amounts of resources only (state/amounts_overlay.py), so it can be used only if no
Filter reads another value that depends on pods.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, final

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.handle import FilterKey, Handle, Verdicts
from bayplan.framework.plugin import FilterPlugin
from bayplan.framework.runtime import Framework
from bayplan.framework.signing import (
    PodSignature,
    facets_read,
    followed_kinds,
    follows_from_objects,
)
from bayplan.framework.status import Status
from bayplan.state.amounts_overlay import OCCUPIED
from bayplan.state.cache import ClusterView
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import all_true
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo

_OCCUPIED_BITS = int(OCCUPIED)


def only_amounts_matter(framework: Framework, state: CycleState) -> bool:
    """Whether placed pods affect the Filters for this pod only through amounts of resources."""
    skipped, cached = frozenset(state.skip_filter_plugins), framework.only_amounts_matter
    answer = cached.get(skipped)
    if answer is None:
        answer = cached[skipped] = _only_amounts_matter(framework, skipped)
    return answer


def _only_amounts_matter(framework: Framework, skipped: frozenset[str]) -> bool:
    for plugin in framework.plugins.filter:
        if plugin.instance_name in skipped:
            continue
        if not isinstance(plugin, FilterPlugin) or plugin.scope != "row":
            return False
        if int(plugin.promises.facets) & _OCCUPIED_BITS:
            return False
    return True


def filter_key(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    objects: Callable[[str], Sequence[Any]],
    *,
    dependencies: "_Dependencies | None" = None,
) -> FilterKey | None:
    """See `FilterRunner.filter_key`. ``objects``: returns all objects of a kind.

    ``dependencies``: a cached form of `_dependencies`.
    """
    if not framework.plugins.reuse_bytes_max:
        return None
    signature, skipped = framework.sign_pod(pod), frozenset(state.skip_filter_plugins)
    depends_on = (dependencies or _dependencies)(framework, signature, skipped)
    if depends_on is None:
        return None
    facet_bits, kinds = depends_on
    return FilterKey((signature, skipped), facet_bits, tuple(map(objects, kinds)))


_Dependencies = Callable[
    [Framework, PodSignature, frozenset[str]], tuple[int, Sequence[str]] | None
]


def _dependencies(
    framework: Framework, signature: PodSignature, skipped: frozenset[str]
) -> tuple[int, Sequence[str]] | None:
    """(facets of a row as bits, kinds of objects) on which the results of the Filters depend for
    pods of this signature. None: a Filter does not sign such pods."""
    facet_bits, kinds = 0, set[str]()
    for plugin in framework.plugins.filter:
        if plugin.instance_name in skipped:
            continue
        part = signature.parts.get(plugin.instance_name)
        if part is None:
            return None
        facet_bits |= int(facets_read(plugin, part))
        if follows_from_objects(plugin, part):
            kinds.update(followed_kinds(plugin))
    return facet_bits, sorted(kinds)


def filter_overlay(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    nodes: NodeView,
    *,
    reading: Facet = ALL_FACETS,
) -> FilterOutcome:
    """Evaluate Filter for each node of an overlay. Nominated pods do not count.

    ``reading``: only plugins that read one of these facets are evaluated.
    """
    outcome = FilterOutcome(nodes, all_true(len(nodes)))
    # Integers, because arithmetic with flags is slow.
    facet_bits, filters = int(reading), framework.plugins.filter
    reads = [p.instance_name for p in filters if int(p.promises.facets) & facet_bits]
    for name, ask in framework.calls(state, pod).filter:
        if name not in reads or name in state.skip_filter_plugins:
            continue
        outcome.evaluate(name, ask, state, pod)
        if outcome.is_settled:
            break
    return outcome


@final
class ProfileFilters:
    """framework.handle.FilterRunner over the framework of a handle's profile and the lent snapshot.

    Both are looked up at each call, because a plugin may store the runner at its start.
    """

    def __init__(
        self, cluster: ClusterView, frameworks: Mapping[str, Framework], handle: Handle
    ) -> None:
        """``frameworks``: by profile; filled when the plugins have started."""
        self._cluster = cluster
        self._frameworks = frameworks
        self._handle = handle
        self._dependencies: _Dependencies = lru_cache(maxsize=64)(_dependencies)

    @property
    def _framework(self) -> Framework:
        return self._frameworks[self._handle.profile_name]

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        snapshot = self._handle.snapshot
        return self._framework.filter_with_nominated(state, pod, snapshot, node_name)

    def nominated_ahead(self, pod: PodInfo) -> Mapping[str, Sequence[PodInfo]]:
        return self._handle.nominator.nominated_ahead(pod)

    def follows_added_pods(self, state: CycleState, pod: PodInfo) -> bool:
        return self._framework.follows_added_pods(state, pod)

    def only_amounts_matter(self, state: CycleState) -> bool:
        return only_amounts_matter(self._framework, state)

    def filter_key(self, state: CycleState, pod: PodInfo) -> FilterKey | None:
        objects = self._cluster.objects.of
        return filter_key(
            self._framework,
            state,
            pod,
            lambda kind: objects(kind).list(),
            dependencies=self._dependencies,
        )

    def filter_overlay(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, reading: Facet = ALL_FACETS
    ) -> Verdicts:
        return filter_overlay(self._framework, state, pod, nodes, reading=reading)

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        return self._framework.run_add_pod(state, pod, added, node)

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        return self._framework.run_remove_pod(state, pod, removed, node)
