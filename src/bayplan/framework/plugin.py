"""What a plugin is: one class that implements the extension points that it lists as bases.

A plugin answers for many nodes at once (`FilterPlugin`, `ScorePlugin`: arrays with one value per
node of the view) or node by node as in Go (`ScalarFilterPlugin`, `ScalarScorePlugin`). A profile
may mix both. Expected outcomes are values (`Status`, `Rejection`). A plugin that raises fails the
attempt of that pod with Code.ERROR; the scheduler names the plugin and goes on. Methods and classes
have the names of upstream (k8s.io/kube-scheduler/framework, v1.37) in snake_case.

A plugin is final: to change a plugin, wrap it (`handle.make`). Read next: handle.py (what a plugin
may use) and types.py (what a plugin is handed).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar, dataclass_transform

import msgspec
from msgspec import Struct

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.handle import Handle
from bayplan.framework.status import NodeToStatus, Rejection, Status
from bayplan.framework.types import Nomination, Normalizer, PreFilterResult, QueuedPodInfo, Verdict
from bayplan.ports import BindPort
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape


class Plugin(ABC):
    """A policy. Subclass the extension points it implements."""

    #: Upstream's or yours; instances of one class are told apart as "Name/label".
    name: ClassVar[str]
    #: A frozen struct (`PluginArgs`) decoded strictly from pluginConfig; None: takes no args.
    args_type: ClassVar[type["PluginArgs"] | None] = None
    #: "row": the answer for a node follows from the signed part of the pod and that node's row.
    #: "cluster": the plugin looks across nodes and is asked about all of them together.
    scope: ClassVar[str] = "row"
    facets: ClassVar[Facet] = ALL_FACETS  #: The parts of a row that its answers depend on.
    #: Whether, of a node, its answers follow from what it offers and what pods take of it alone.
    follows_amounts: bool = False
    #: Further kinds it reads through `handle.objects`, e.g. ("v1 Service",).
    kinds: ClassVar[tuple[str, ...]] = ()
    #: Those of `kinds` that it can do without, where an API server does not offer them.
    optional_kinds: ClassVar[tuple[str, ...]] = ()
    #: Those of `kinds` whose changes are changes of rows: no answer is void besides.
    row_kinds: ClassVar[tuple[str, ...]] = ()
    #: Feature gates that `setup` reads.
    gates: ClassVar[tuple[str, ...]] = ()
    #: Whether it is left out where a pod that runs is tried for a resize, as upstream's like it.
    ignores_resizes: ClassVar[bool] = False
    #: Further fields it reads, e.g. ("Node.status.nodeInfo.kubeletVersion",): found under
    #: `node.declared["Node.status.nodeInfo.kubeletVersion"]` and `pod.declared[…]`; where an object
    #: may lack the field, `.get(…)`.
    fields: ClassVar[tuple[str, ...]] = ()
    #: PreFilter and PreScore say and note the same (or, looking across nodes, Skip) about pods of
    #: one shape and owner until an object, or a pod with affinity terms, comes, changes or goes.
    prepares_alike: ClassVar[bool] = False

    def __init__(self, args: Any, handle: Handle, instance_name: str | None = None) -> None:
        self.args = args
        self.handle = handle
        self.instance_name = instance_name or self.name
        self.setup()

    def setup(self) -> None:  # noqa: B027 - optional on purpose
        """Called once, after args and handle are set: compile what the args say."""

    def close(self) -> None:  # noqa: B027 - optional on purpose
        """Called once, at shutdown."""

    def concerns(self, shape: PodShape) -> bool:
        """Whether it has anything to do with pods of this shape; asked once, and to follow from
        the shape and the args. Where not, it is only asked to score, and scores all nodes alike;
        with a PostFilter also there and in PreFilter."""
        return True


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class PluginArgs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments of a plugin, strict. Defaults are upstream's."""

    api_version: str | None = None
    kind: str | None = None

    def problems(self) -> Iterable[tuple[str, str]]:
        """(path, what was found and what is wanted) of each value out of range."""
        return ()

    def remarks(self, written: Collection[str]) -> Iterable[tuple[str, str]]:
        """(path, why it has no effect) of each value that is accepted and not used. ``written``:
        the fields that the configuration names."""
        return ()


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """May the pod enter activeQ? Asked on each move there, so it must be quick.

        A pod that is refused is gated: only events of the refusing plugin are looked at for it.
        """


class QueueSortPlugin(Plugin):
    @abstractmethod
    def key(self, queued: QueuedPodInfo) -> Any:
        """Sorts activeQ, smallest first. Exactly one per scheduler: there is one queue."""


class PreFilterPlugin(Plugin):
    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        """Once per attempt, before any node is asked; ``nodes`` are all nodes.

        May reject the pod, narrow the nodes (the others count as unresolvable), or SKIP: its own
        Filter, add_pod and remove_pod are then left out.
        """


class PreFilterExtensions(ABC):
    """For a PreFilter whose notes depend on the pods of nodes: keeps them right in a what-if.

    Called after pre_filter only, on a clone of the state (see `Cloneable`).
    """

    @abstractmethod
    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None: ...

    @abstractmethod
    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None: ...


class FilterPlugin(Plugin):
    @abstractmethod
    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        """Which of ``nodes`` cannot take the pod, and why.

        ``feasible``: bool[nodes], those that no earlier plugin rejected; answers for the others
        are ignored. Judge the view that is handed in: it may be a what-if.
        """


class ScalarFilterPlugin(Plugin):
    @abstractmethod
    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Whether one node can take the pod: None, UNSCHEDULABLE or …_AND_UNRESOLVABLE."""


class PostFilterPlugin(Plugin):
    #: What it says of a group that does not fit, where it makes no room for it; "": nothing.
    group_reason: str = ""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        """After no node was found. SUCCESS: room is being made, take the nomination."""


class GroupPlacement(ABC):
    """For a plugin that says whether members of pod groups are placed in one pass or one by one.

    Without such a plugin a profile places them in one pass.
    """

    @property
    @abstractmethod
    def places_pod_by_pod(self) -> bool:
        """True: the engine treats members like any pods, and the plugin keeps them together."""


class PreScorePlugin(Plugin):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Once per attempt; ``nodes`` are the feasible ones. SKIP leaves the Score out."""


class ScorePlugin(Plugin):
    normalizer: ClassVar[Normalizer] = Normalizer.NONE

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: how good each node is; 0..100 after normalisation."""


class ScalarScorePlugin(Plugin):
    normalizer: ClassVar[Normalizer] = Normalizer.NONE

    @abstractmethod
    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How good one node is; 0..100 after normalisation."""


class NormalizeScorePlugin(ABC):
    """For a score plugin whose normaliser is none of the named ones."""

    @abstractmethod
    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        """int64[nodes] → int64[nodes] in 0..100; ``scores`` are all feasible nodes' at once."""


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Claim in memory what the pod will use; the first failure ends the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo reserve. Idempotent, and may come without a reserve before it."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """(SUCCESS, a rejection, or WAIT; how many seconds to wait, at most 15 minutes)."""


class PreBindPlugin(Plugin):
    #: Whether it may run beside its neighbours in the profile that allow it, too: it neither reads
    #: what they write nor relies on their order. Upstream: PreBindPreFlightResult.AllowParallel.
    allows_parallel_pre_bind: ClassVar[bool] = False

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """SKIP: there is nothing to prepare for this pod."""
        return None

    @abstractmethod
    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        """Prepare what the pod needs outside the scheduler.

        It is cancelled where it waits for the port, when a plugin beside it fails or a preemption
        takes the pod back. Unreserve follows.
        """


class BindPlugin(Plugin):
    @abstractmethod
    async def bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        """Write the binding; SKIP hands the pod to the next binder."""


class PostBindPlugin(Plugin):
    @abstractmethod
    async def post_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> None:
        """Told after the pod was bound; a failure here changes nothing."""


class RowFilter(ABC):
    """For a FilterPlugin: the same answer about one node, cheaper than through arrays.

    Asked in place of `filter` where single rows changed since the answers were kept.
    """

    @abstractmethod
    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        """All that `filter` would say of this node, in its order."""


class RowScore(ABC):
    """For a ScorePlugin: the same raw score of one node, cheaper than through arrays."""

    @abstractmethod
    def score_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """What `score` would give this node."""


class EnqueueExtensions(ABC):
    """What makes pods that this plugin rejected worth another attempt."""

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Asked once, at start."""


class SignPlugin(ABC):
    """What of a pod this plugin's answers depend on."""

    #: True: what is signed follows from `pod.shape` and `pod.node_name` alone, and is asked for
    #: once for all pods alike. False: it is asked for in every attempt.
    signs_shape: ClassVar[bool] = False
    #: The parts of a row, and no object of `kinds`, that answers follow from about pods of whom an
    #: empty tuple is signed; None: what is signed makes no difference.
    facets_unless_signed: ClassVar[Facet | None] = None

    @abstractmethod
    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """Equal values ⇒ equal answers for any node. None: this pod's answer is not kept.

        Depends on namespace, labels and spec only. KEP-5598; ours must not sign too little.
        """
