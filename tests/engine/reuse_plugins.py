"""Plugins of every kind for the machine that compares schedulers with and without reuse.

The pod's label "try" names the plugins that take part. Most pods leave most of them out, so that
rankings live as long as they do in a real profile.
"""

from collections.abc import Hashable, Iterable
from typing import Any, final
from zlib import crc32

import numpy as np

from bayplan.api.objects import SERVICE
from bayplan.framework.plugin import (
    Caching,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    RowFilter,
    RowScore,
    ScalarFilterPlugin,
    ScalarScorePlugin,
    ScorePlugin,
    SignPlugin,
)
from bayplan.framework.status import (
    SKIP,
    Code,
    Rejection,
    Status,
    unresolvable,
    unschedulable,
)
from bayplan.framework.tie_break import TieBreakPlugin
from bayplan.framework.types import Normalizer, PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

COLOR, RANK = "color", "rank"


def tries(pod: PodInfo, what: str) -> bool:
    """Whether the pod has a plugin take part."""
    return what in pod.labels.get("try", "").split(".")


def rank(node: NodeInfo) -> int:
    return int(node.labels.get(RANK, "0"))


def ranks(nodes: NodeView) -> NodeScores:
    numbers = [int(value) for value in nodes.labels.values(RANK)]
    return np.array([*numbers, 0], np.int64)[nodes.labels.ids(RANK)]


# ---- row-wise filters -----------------------------------------------------------------------


@final
class ShunColor(FilterPlugin, RowFilter, SignPlugin):
    """Vectorised with a one-row form: refuses nodes of the color that the pod shuns."""

    name = "ShunColor"
    caching = Caching(facets=Facet.LABELS, signs_template=True)

    def filter(
        self, state: Any, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        values = nodes.labels.values(COLOR)
        shunned = pod.labels.get("shun", "")
        if shunned in values:
            mask = nodes.labels.ids(COLOR) == list(values).index(shunned)
            yield Rejection(mask, Code.UNSCHEDULABLE, (f"is {shunned}",))

    def filter_row(self, state: Any, pod: PodInfo, node: NodeInfo) -> Verdict:
        shunned = pod.labels.get("shun", "")
        if shunned and node.labels.get(COLOR) == shunned:
            return ((Code.UNSCHEDULABLE, (f"is {shunned}",)),)
        return ()

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.labels.get("shun", "")


@final
class FewPods(ScalarFilterPlugin, SignPlugin):
    """Node by node, with several codes and reasons; reads all facets."""

    name = "FewPods"

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        most = int(pod.labels.get("most", "99"))
        count = len(node.pods)
        if count > most + 2:
            return unresolvable("far too many pods", "too many pods")
        if count > most + 1:
            return Status(Code.PENDING, ("many pods",))
        return unschedulable("too many pods") if count > most else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return pod.labels.get("most", "99")


@final
class Fickle(PreFilterPlugin, ScalarFilterPlugin, SignPlugin):
    """Signs some pods only; for unsigned pods its result depends on the pod's name."""

    name = "Fickle"
    caching = Caching(facets=Facet.LABELS, pre_state_per_template=True)

    def pre_filter(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "fickle") or tries(pod, "unsigned") else SKIP

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        who = pod.name if tries(pod, "unsigned") else "anybody"
        dislikes = crc32(f"{who}{node.name}{rank(node)}".encode()) % 4 == 0
        return unschedulable("not in the mood") if dislikes else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return None if tries(pod, "unsigned") else "anybody"


@final
class NeverSigns(PreFilterPlugin, ScalarFilterPlugin):
    """Has no sign_pod method."""

    name = "NeverSigns"
    caching = Caching(pre_state_per_template=True)

    def pre_filter(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "nosign") else SKIP

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        bad = (crc32(pod.name.encode()) + len(node.pods)) % 3 == 0
        return unschedulable("wrong number of pods") if bad else None


@final
class FailsNowAndThen(PreFilterPlugin, ScalarFilterPlugin, ScalarScorePlugin, SignPlugin):
    """Raises for some nodes and scores some nodes out of range. Declares the labels it reads."""

    name = "FailsNowAndThen"
    caching = Caching(pre_state_per_template=True)

    def pre_filter(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "fails") else SKIP

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        if tries(pod, "fails") and node.labels.get("broken") == "filter":
            raise ValueError(f"boom at {node.name}")
        return None

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        if not tries(pod, "fails"):
            return 0
        return 101 if node.labels.get("broken") == "score" else 50

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tries(pod, "fails")


@final
class Looks(ScalarFilterPlugin, SignPlugin):
    """Rejects nodes with the color that is the name of a service."""

    name = "Looks"
    caching = Caching(facets=Facet.LABELS)
    kinds = (SERVICE,)

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not tries(pod, "looks"):
            return None
        banned = self.handle.objects(SERVICE).get(node.labels.get(COLOR, "-"), "default")
        return unschedulable("a service says no") if banned is not None else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return tries(pod, "looks")


@final
class DislikesPins(PreFilterPlugin, ScalarFilterPlugin, SignPlugin):
    """Rejects every node for some pods, by the name of the node that their affinity demands."""

    name = "DislikesPins"
    caching = Caching(facets=Facet.LABELS, signs_template=True, pre_state_per_template=True)

    def pre_filter(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if self._demanded(pod) else SKIP

    def filter_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        is_disliked = crc32(self._demanded(pod).encode()) % 3 == 1
        return unschedulable("a pin in the wrong place") if is_disliked else None

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return self._demanded(pod)

    def _demanded(self, pod: PodInfo) -> str:
        affinity = pod.spec.affinity
        rules = None if affinity is None else affinity.node_affinity
        return "" if rules is None or rules.required is None else repr(rules.required)


# ---- filters of scope cluster ---------------------------------------------------------------


@final
class Balanced(PreFilterPlugin, FilterPlugin):
    """Reads all nodes: rejects nodes with more pods than the average."""

    name = "Balanced"
    caching = Caching(pre_state_per_template=True)
    scope = "cluster"

    def pre_filter(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        if not tries(pod, "across"):
            return SKIP
        state["Balanced"] = int(nodes.pods.counts().sum()) // len(nodes)
        return None

    def filter(
        self, state: Any, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        over = nodes.pods.counts() > state["Balanced"]
        yield Rejection(over, Code.UNSCHEDULABLE, ("above average",))


@final
class Narrows(PreFilterPlugin):
    """Names the nodes of a color."""

    name = "Narrows"

    def concerns(self, shape: PodShape) -> bool:
        return "narrow" in shape.labels.get("try", "").split(".")

    def pre_filter(
        self, state: Any, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        if not tries(pod, "narrow"):
            return None
        names = [node.name for node in nodes.infos() if node.labels.get(COLOR) == "red"]
        return PreFilterResult(frozenset(names))


# ---- scores --------------------------------------------------------------------------------


@final
class Most(ScorePlugin, RowScore, SignPlugin):
    """MAX, vectorised, with a one-row form."""

    name = "Most"
    caching = Caching(facets=Facet.LABELS, signs_template=True)
    normalizer = Normalizer.MAX

    def score(self, state: Any, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return ranks(nodes) * self._factor(pod)

    def score_row(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        return rank(node) * self._factor(pod)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return self._factor(pod)

    def _factor(self, pod: PodInfo) -> int:
        return 170 if tries(pod, "max") else 0


@final
class Fewest(ScalarScorePlugin, PreScorePlugin, SignPlugin):
    """MAX_REVERSED, node by node, over amounts that every placement changes."""

    name = "Fewest"
    caching = Caching(facets=Facet.PODS | Facet.LABELS, pre_state_per_template=True)
    normalizer = Normalizer.MAX_REVERSED

    def pre_score(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "rev") else SKIP

    def score_node(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        return len(node.pods) * 3 + rank(node)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return ""


@final
class Between(ScorePlugin, PreScorePlugin, SignPlugin):
    """MIN_MAX over numbers on both sides of zero, without a one-row form."""

    name = "Between"
    caching = Caching(facets=Facet.LABELS | Facet.PODS, pre_state_per_template=True)
    normalizer = Normalizer.MIN_MAX

    def pre_score(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "between") else SKIP

    def score(self, state: Any, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return ranks(nodes) * 100 - nodes.pods.counts() * 90 - 150

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return 0


@final
class OwnNormal(ScorePlugin, PreScorePlugin, NormalizeScorePlugin, SignPlugin):
    """Row-wise and signed, with a normaliser of its own that ranks the nodes."""

    name = "OwnNormal"
    caching = Caching(facets=Facet.LABELS | Facet.PODS, pre_state_per_template=True)

    def pre_score(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "own") else SKIP

    def score(self, state: Any, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return ranks(nodes) - nodes.pods.counts()

    def normalize(self, state: Any, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return np.searchsorted(np.unique(scores), scores).astype(np.int64)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        return 0


@final
class Emptiest(ScorePlugin, PreScorePlugin):
    """Reads all nodes: scores the distance to the fullest node."""

    name = "Emptiest"
    caching = Caching(pre_state_per_template=True)
    scope = "cluster"

    def pre_score(self, state: Any, pod: PodInfo, nodes: NodeView) -> Status | None:
        return None if tries(pod, "across") else SKIP

    def score(self, state: Any, pod: PodInfo, nodes: NodeView) -> NodeScores:
        counts = nodes.pods.counts().astype(np.int64)
        return np.minimum(counts.max() - counts, 100)


# ---- keys, Reserve, Permit -----------------------------------------------------------------


@final
class LowRank(TieBreakPlugin):
    """A key of any range."""

    name = "LowRank"

    def tie_break(self, state: Any, pod: PodInfo, nodes: NodeView) -> NodeScores:
        return -1000 * ranks(nodes)


@final
class Refuses(ReservePlugin, PermitPlugin):
    """Rejects some first attempts in Reserve or Permit, and lets some pods wait."""

    name = "Refuses"

    def setup(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def reserve(self, state: Any, pod: PodInfo, node_name: str) -> Status | None:
        if tries(pod, "reserve") and self._is_first("reserve", pod):
            return unschedulable("no stock")
        return None

    def unreserve(self, state: Any, pod: PodInfo, node_name: str) -> None: ...

    def permit(self, state: Any, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        if tries(pod, "permit") and self._is_first("permit", pod):
            return unschedulable("not yet"), 0.0
        return (Status(Code.WAIT), 5.0) if tries(pod, "wait") else (None, 0.0)

    def _is_first(self, point: str, pod: PodInfo) -> bool:
        key = (point, pod.uid)
        is_first = key not in self._seen
        self._seen.add(key)
        return is_first


#: Plugins in the order of a profile, with the weights of score plugins.
FILTERING: tuple[type[Plugin], ...] = (
    Narrows,
    ShunColor,
    Fickle,
    NeverSigns,
    FewPods,
    FailsNowAndThen,
    Looks,
    Balanced,
)
SCORING: tuple[tuple[type[Plugin], int], ...] = (
    (Most, 2),
    (Fewest, 1),
    (Between, 3),
    (OwnNormal, 1),
    (Emptiest, 1),
)
KEYS: tuple[type[Plugin], ...] = (LowRank,)
ALL: tuple[type[Plugin], ...] = (
    *FILTERING,
    *(c for c, _ in SCORING),
    *KEYS,
    Refuses,
    DislikesPins,
)
