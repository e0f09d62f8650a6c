"""The plugins of one profile by extension point, in order, with their weights."""

from collections.abc import Iterable

from msgspec import Struct, field

from bayplan.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PodGroupPostFilterPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
)
from bayplan.framework.tie_break import TieBreakPlugin
from bayplan.state.pods import PodShape

#: Extension point as configured → the bases that implement it.
EXTENSION_POINTS: dict[str, tuple[type[Plugin], ...]] = {
    "preEnqueue": (PreEnqueuePlugin,),
    "queueSort": (QueueSortPlugin,),
    "preFilter": (PreFilterPlugin,),
    "filter": (FilterPlugin, ScalarFilterPlugin),
    "postFilter": (PostFilterPlugin,),
    "preScore": (PreScorePlugin,),
    "score": (ScorePlugin, ScalarScorePlugin),
    "reserve": (ReservePlugin,),
    "permit": (PermitPlugin,),
    "preBind": (PreBindPlugin,),
    "bind": (BindPlugin,),
    "postBind": (PostBindPlugin,),
    "placementGenerate": (PlacementGeneratePlugin,),
    "placementScore": (PlacementScorePlugin,),
    "podGroupPostFilter": (PodGroupPostFilterPlugin,),
    # This point exists only in Bayplan. Score plugins are allowed here, too, but only by name.
    "tieBreak": (TieBreakPlugin,),
}

#: A key of tieBreak.
TieBreaker = TieBreakPlugin | ScorePlugin | ScalarScorePlugin


def may_be_enabled_at(point: str, plugin: type[Plugin]) -> bool:
    """Whether a plugin implements the extension point."""
    bases = EXTENSION_POINTS.get(point, ())
    return issubclass(plugin, bases) or (
        point == "tieBreak" and issubclass(plugin, EXTENSION_POINTS["score"])
    )


def extension_points_of(plugin: type[Plugin]) -> list[str]:
    """The extension points a plugin class implements, in the order they run."""
    return [point for point, bases in EXTENSION_POINTS.items() if issubclass(plugin, bases)]


class ProfilePlugins(Struct):
    """One profile's instances by extension point, each list in the order they run."""

    profile_name: str
    queue_sort: QueueSortPlugin
    #: percentageOfNodesToScore of the profile; 0: all nodes are evaluated.
    percentage_of_nodes_to_score: int = 0
    #: Maximum size of the cache for reuse, in bytes; 0: no reuse.
    reuse_bytes_max: int = 0
    #: Whether running pods with a deferred resize are scheduled.
    tries_resizes: bool = False
    #: Whether neighbours at PreBind that allow it run side by side.
    has_parallel_pre_bind: bool = True
    pre_enqueue: list[PreEnqueuePlugin] = field(default_factory=list[PreEnqueuePlugin])
    pre_filter: list[PreFilterPlugin] = field(default_factory=list[PreFilterPlugin])
    filter: list[FilterPlugin | ScalarFilterPlugin] = field(
        default_factory=list[FilterPlugin | ScalarFilterPlugin]
    )
    post_filter: list[PostFilterPlugin] = field(default_factory=list[PostFilterPlugin])
    pre_score: list[PreScorePlugin] = field(default_factory=list[PreScorePlugin])
    score: list[tuple[ScorePlugin | ScalarScorePlugin, int]] = field(
        default_factory=list[tuple[ScorePlugin | ScalarScorePlugin, int]]
    )
    reserve: list[ReservePlugin] = field(default_factory=list[ReservePlugin])
    permit: list[PermitPlugin] = field(default_factory=list[PermitPlugin])
    pre_bind: list[PreBindPlugin] = field(default_factory=list[PreBindPlugin])
    bind: list[BindPlugin] = field(default_factory=list[BindPlugin])
    post_bind: list[PostBindPlugin] = field(default_factory=list[PostBindPlugin])
    placement_generate: list[PlacementGeneratePlugin] = field(
        default_factory=list[PlacementGeneratePlugin]
    )
    placement_score: list[tuple[PlacementScorePlugin, int]] = field(
        default_factory=list[tuple[PlacementScorePlugin, int]]
    )
    pod_group_post_filter: list[PodGroupPostFilterPlugin] = field(
        default_factory=list[PodGroupPostFilterPlugin]
    )
    #: Sources that do not count in the total.
    sources: list[ScorePlugin | ScalarScorePlugin] = field(
        default_factory=list[ScorePlugin | ScalarScorePlugin]
    )
    #: Tie-break keys, in the order of comparison.
    tie_break: list[TieBreaker] = field(default_factory=list[TieBreaker])

    def scoring(self) -> list[tuple[ScorePlugin | ScalarScorePlugin, int]]:
        """All score instances with their weights, each once. Weight 0: not part of the total."""
        added = {plugin.instance_name for plugin, _ in self.score}
        readers = {
            plugin.instance_name: plugin
            for plugin in (*self.sources, *self.tie_break)
            if not isinstance(plugin, TieBreakPlugin) and plugin.instance_name not in added
        }
        return [*self.score, *((plugin, 0) for plugin in readers.values())]

    def pre_scoring(self) -> list[PreScorePlugin]:
        """The PreScore plugins: those enabled, and those of sources and keys."""
        names = {plugin.instance_name for plugin in self.pre_score}
        read = (*self.sources, *self.tie_break)
        readers = {
            plugin.instance_name: plugin
            for plugin in read
            if isinstance(plugin, PreScorePlugin) and plugin.instance_name not in names
        }
        return [*self.pre_score, *readers.values()]

    def ignoring(self, shape: PodShape) -> set[str]:
        """Instances with `ignores_resizes`, if pods of this shape run and wait for a deferred
        resize; otherwise none."""
        if not (self.tries_resizes and shape.has_deferred_resize):
            return set()
        return {plugin.instance_name for plugin in self.instances() if plugin.ignores_resizes}

    def instances(self) -> list[Plugin]:
        """Every instance once, in order of first appearance."""
        by_name: dict[str, Plugin] = {}
        lists: Iterable[Iterable[Plugin]] = (
            self.pre_enqueue,
            (self.queue_sort,),
            self.pre_filter,
            self.filter,
            self.post_filter,
            self.pre_score,
            (plugin for plugin, _ in self.score),
            self.reserve,
            self.permit,
            self.pre_bind,
            self.bind,
            self.post_bind,
            self.placement_generate,
            (plugin for plugin, _ in self.placement_score),
            self.pod_group_post_filter,
            self.tie_break,
            self.sources,
        )
        for plugins in lists:
            for plugin in plugins:
                by_name.setdefault(plugin.instance_name, plugin)
        return list(by_name.values())
