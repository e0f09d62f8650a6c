"""CycleState: the data that the plugins of one attempt share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from bayplan.api.objects import NodeAllocatableResourceClaimStatus
from bayplan.framework.score_sources import NO_SOURCES, SourceScores, Stage
from bayplan.framework.status import Rejection
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo


class StateNotFound(KeyError):
    """Nothing was written to the CycleState under this key."""


class CachedResults(Protocol):
    """Results for pods of one signature. Calls a plugin only for nodes without a cached result."""

    def filter(
        self,
        name: str,
        call: "CallFilter",
        state: "CycleState",
        pod: PodInfo,
        *,
        nodes: NodeView,
        feasible: NodeMask,
    ) -> Iterable[Rejection]:
        """The rejections that ``call``, the instance's Filter, would return."""
        ...

    def score(
        self, name: str, call: "CallScore", state: "CycleState", pod: PodInfo, *, nodes: NodeView
    ) -> NodeScores:
        """The raw scores that ``call``, the instance's Score, would return."""
        ...


class CycleState:
    """Notes of one attempt, shared by its plugins; the next attempt starts with an empty one."""

    __slots__ = (
        "_notes",
        "cached_results",
        "claim_amounts",
        "group_notes",
        "pods_to_activate",
        "record_plugin_metrics",
        "skip_filter_plugins",
        "skip_pre_bind_plugins",
        "skip_score_plugins",
        "sources",
    )

    def __init__(self) -> None:
        #: The cached results of the pod; None in a what-if.
        self.cached_results: CachedResults | None = None
        #: Notes that all members share which a pass over a group tries; None: no such pass.
        #: Upstream: PodGroupCycleState.
        self.group_notes: dict[Hashable, Any] | None = None
        #: By node: what the devices of the pod would take of it. Upstream:
        #: ExtractPodNodeAllocatableResourceClaimStatus.
        self.claim_amounts: Mapping[str, tuple[NodeAllocatableResourceClaimStatus, ...]] = {}
        self._notes: dict[Hashable, Any] = {}
        #: Instance names whose Filter (and AddPod, RemovePod) or Score is left out this cycle.
        self.skip_filter_plugins: set[str] = set()
        self.skip_score_plugins: set[str] = set()
        self.skip_pre_bind_plugins: set[str] = set()
        #: Whether this attempt records durations per plugin. One attempt in ten does.
        self.record_plugin_metrics = False
        #: "namespace/name" → a pod that is activated when this cycle succeeds. Shared by clones.
        self.pods_to_activate: dict[str, PodInfo] = {}
        #: The source scores that the called plugin may read.
        self.sources: SourceScores = NO_SOURCES

    def scores(self, source: str, stage: Stage = "normalized") -> NodeScores:
        """int64[nodes], read-only: the scores of these nodes by a source that the args name."""
        return self.sources.of(source, stage)

    def score_of(self, source: str, node: NodeInfo, stage: Stage = "normalized") -> int:
        """The score of one node by a source that the args name."""
        return self.sources.at(source, stage, node)

    def __getitem__(self, key: Hashable) -> Any:
        try:
            return self._notes[key]
        except KeyError:
            raise StateNotFound(key) from None

    def __setitem__(self, key: Hashable, value: Any) -> None:
        self._notes[key] = value

    def __delitem__(self, key: Hashable) -> None:
        if key not in self._notes:
            raise StateNotFound(key)
        del self._notes[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._notes

    def get(self, key: Hashable) -> Any:
        """The note, or None."""
        return self._notes.get(key)

    def clone(self) -> "CycleState":
        """An independent state for a what-if. Notes with a `clone` method are cloned, other notes
        are shared."""
        # Called for most attempts: `__init__` would make what is replaced here.
        other = object.__new__(CycleState)
        other.cached_results = None
        other.group_notes = self.group_notes
        other.claim_amounts = self.claim_amounts
        other._notes = notes = self._notes.copy()
        for key, value in self._notes.items():
            if _is_cloneable(value.__class__):
                notes[key] = value.clone()
        other.skip_filter_plugins = self.skip_filter_plugins.copy()
        other.skip_score_plugins = self.skip_score_plugins.copy()
        other.skip_pre_bind_plugins = self.skip_pre_bind_plugins.copy()
        other.record_plugin_metrics = self.record_plugin_metrics
        other.pods_to_activate = self.pods_to_activate
        other.sources = NO_SOURCES
        return other


class Cloneable(ABC):
    """A CycleState note that add_pod and remove_pod change."""

    @abstractmethod
    def clone(self) -> "Cloneable": ...


@lru_cache(maxsize=256)
def _is_cloneable(kind: type[Any]) -> bool:
    """A test of an instance takes four times as long."""
    return issubclass(kind, Cloneable)


#: Filter and Score for many nodes at once, however the plugin is written.
CallFilter = Callable[[CycleState, PodInfo, NodeView, NodeMask], Iterable[Rejection]]
CallScore = Callable[[CycleState, PodInfo, NodeView], NodeScores]
