"""What a plugin is: one class that implements the extension points that it lists as bases.

A plugin answers for many nodes at once (`FilterPlugin`, `ScorePlugin`: arrays with one value per
node of the view) or node by node as in Go (`ScalarFilterPlugin`, `ScalarScorePlugin`). A profile
may mix both. Expected outcomes are values (`Status`, `Rejection`). A plugin that raises fails the
attempt of that pod with Code.ERROR; the scheduler names the plugin and goes on. Methods and classes
have the names of upstream (k8s.io/kube-scheduler/framework, v1.37) in snake_case.

A plugin is final: to change a plugin, wrap it (`handle.make`). Read next: handle.py (what a plugin
may use) and types.py (what a plugin is handed).

`Caching` says what a plugin promises about its results, so that the scheduler may cache them. A
promise that does not hold makes the node of a pod depend on what was scheduled before the pod.
`bayplan.testing.check_plugin` tries to break each promise and names the one that is broken. The
attributes that `Caching` replaces are accepted for one release, with a DeprecationWarning.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    TypeVar,
    dataclass_transform,
    final,
    get_args,
)

import msgspec
from msgspec import Struct

from bayplan.config.feature_gates import FeatureGates
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ClusterEventWithHint
from bayplan.framework.handle import Handle
from bayplan.framework.placements import Placement
from bayplan.framework.status import NodeToStatus, Rejection, Status
from bayplan.framework.types import Nomination, Normalizer, PreFilterResult, QueuedPodInfo, Verdict
from bayplan.ports import BindPort
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import NodeMask, NodeScores, Rows
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pod_group_trees import GroupTree
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo, PodShape

# ---- what a plugin promises about its results -----------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Caching:
    """The promises of one plugin about its results for pods that `sign_pod` signs."""

    #: The result for a node depends on these parts of the node and on no other part.
    facets: Facet = ALL_FACETS
    #: The same for pods that `sign_pod` signs as (): the result depends on these parts of the node
    #: and on no object of `kinds`. None: no further promise about such pods.
    facets_if_unconcerned: Facet | None = None
    #: Of a node, the result depends on allocatable amounts and on what pods use (amounts, host
    #: ports), and on nothing else: nodes that are equal in these get equal results.
    amounts_only: bool = False
    #: `sign_pod` reads `pod.shape` and `pod.node_name` only: it is called once for all pods of one
    #: template.
    signs_template: bool = False
    #: PreFilter and PreScore return and store the same (a plugin with scope "cluster": skip the
    #: same) for all pods of one template and owner, until an object, or a pod with affinity terms,
    #: is added, changed or removed: they are called for one of these pods.
    pre_state_per_template: bool = False
    #: Of the objects of these `kinds`, the result depends only on what changes `facets` of a node:
    #: a change of such an object does not drop all results.
    kinds_in_facets: tuple[str, ...] = ()
    #: Of a pod that names its node (`PodShape.pin`), PreFilter leaves this node, and Filter answers
    #: for it as for the same pod without the pin.
    follows_pin: bool = False


#: What holds for a plugin without any promise.
_NO_PROMISES: Final = Caching()

#: Old attribute of a plugin → field of Caching.
_REPLACED: Final[Mapping[str, str]] = {
    "facets": "facets",
    "facets_unless_signed": "facets_if_unconcerned",
    "follows_amounts": "amounts_only",
    "signs_shape": "signs_template",
    "prepares_alike": "pre_state_per_template",
    "row_kinds": "kinds_in_facets",
}


def _with_replaced(
    owner: str, caching: Caching | None, old: Mapping[str, Any], stacklevel: int
) -> Caching | None:
    """``caching`` with the values of old attributes; warns with what to write instead.

    ``old``: attribute → value. ``stacklevel``: the frame that the warning names, counted from the
    caller.
    """
    if not old:
        return caching
    fields = {_REPLACED[name]: value for name, value in old.items()}
    written = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    warnings.warn(
        f"{owner}: {', '.join(old)} will not be read in the next release; "
        f"write caching = Caching({written})",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )
    return replace(caching or _NO_PROMISES, **fields)


# ---- arguments and extension points ---------------------------------------------------------


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class PluginArgs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments of a plugin, strict. Defaults are upstream's."""

    api_version: str | None = None
    kind: str | None = None

    def problems(self) -> Iterable[tuple[str, str]]:
        """(path, the value and what to write instead) of each value out of range."""
        return ()

    def problems_in_version(self, gates: FeatureGates) -> Iterable[tuple[str, str]]:
        """The same for values that a version of kube-scheduler, or its gates, refuse."""
        return ()

    def remarks(self, written: Collection[str]) -> Iterable[tuple[str, str]]:
        """(path, why the value has no effect) of each value that is accepted and not used.

        ``written``: the fields that the configuration names.
        """
        return ()


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ArgsT = TypeVar("ArgsT", default=Any)
else:
    ArgsT = TypeVar("ArgsT")


class Plugin(ABC, Generic[ArgsT]):
    """A policy. Subclass the extension points that it implements.

    ``class Mine(ScorePlugin[MineArgs])`` declares the type of ``self.args``, which the scheduler
    decodes strictly from pluginConfig. Where a plugin has several bases, the first one names it.
    """

    #: The name of the plugin; a profile may have several instances, called "Name/label".
    name: ClassVar[str]
    #: The type of ``self.args``, a `PluginArgs`; None: the plugin takes no arguments. Set from the
    #: base class in brackets.
    args_type: ClassVar[type[PluginArgs] | None] = None
    #: "row": the result for a node depends on the pod and on that node. "cluster": the result
    #: depends on other nodes, too; the plugin is always called for all nodes together.
    scope: ClassVar[str] = "row"
    #: What the scheduler may rely on when it caches results; None: it caches none. A plugin with
    #: `sign_pod` that does not set it has `Caching()`.
    caching: Caching | None = None
    #: `caching`, or the value of a plugin that promises nothing. Set by this class.
    promises: Caching = _NO_PROMISES
    #: The kinds that the plugin reads through `handle.objects`, e.g. ("v1 Service",).
    kinds: ClassVar[tuple[str, ...]] = ()
    #: Those of `kinds` on whose objects the result of `concerns` depends, too.
    concern_kinds: ClassVar[tuple[str, ...]] = ()
    #: Those of `kinds` that the plugin can do without where the API server does not offer them.
    optional_kinds: ClassVar[tuple[str, ...]] = ()
    #: Whether the plugin is left out when the resize of a running pod is tried, as upstream leaves
    #: out plugins that decide how pods get to a node.
    ignores_resizes: ClassVar[bool] = False
    #: Further fields that the plugin reads, e.g. ("Node.status.nodeInfo.kubeletVersion",), as
    #: `node.declared["Node.status.nodeInfo.kubeletVersion"]` and `pod.declared[…]`; where an object
    #: may lack the field, `.get(…)`.
    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "args_type" not in cls.__dict__:
            args_type = _args_type(cls)
            if args_type is not None:
                cls.args_type = args_type
        own = [each for each in reversed(cls.__mro__) if each is cls or not _is_plugin(each)]
        old = {
            name: each.__dict__[name] for each in own for name in _REPLACED if name in vars(each)
        }
        if old:
            # Between this method and the class statement stands ABCMeta.__new__.
            cls.caching = _with_replaced(cls.__qualname__, cls.caching, old, stacklevel=3)
        elif hasattr(cls, "sign_pod") and not any(
            "caching" in vars(each) for each in cls.__mro__ if each is not Plugin
        ):
            cls.caching = _NO_PROMISES
        cls.promises = cls.caching or _NO_PROMISES

    def __init__(self, args: Any, handle: Handle, instance_name: str | None = None) -> None:
        self.args: ArgsT = args
        self.handle = handle
        self.instance_name = instance_name or self.name
        self.setup()
        old = {name: vars(self).pop(name) for name in _REPLACED if name in vars(self)}
        if old:
            self.caching = _with_replaced(self.name, self.caching, old, stacklevel=2)
        self.promises = self.caching or _NO_PROMISES

    def setup(self) -> None:
        """Called once, when args and handle are set: prepare what depends on the args."""

    def close(self) -> None:
        """Called once, at shutdown."""

    def concerns(self, shape: PodShape) -> bool:
        """Whether the plugin has anything to do with pods of this shape.

        The result may depend on the shape, on the args, and on objects of `concern_kinds` only. The
        scheduler calls this about once for a shape, and again when such an object changes. A plugin
        that is not concerned is left out, at PreEnqueue, too. Only its Score is called, which must
        give all nodes the same score. A plugin with PostFilter is called there and in PreFilter.
        """
        return True


def _is_plugin(each: type) -> bool:
    return issubclass(each, Plugin)


def _args_type(plugin_class: type) -> type[PluginArgs] | None:
    """The type in brackets behind the first base class that has one."""
    for base in plugin_class.__dict__.get("__orig_bases__", ()):
        for each in get_args(base):
            if isinstance(each, type) and issubclass(each, PluginArgs):
                return each
    return None


class PreEnqueuePlugin(Plugin[ArgsT]):
    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Whether the pod may enter activeQ. Called on each move there, so it must be fast.

        A pod that is rejected is gated: only the events of the rejecting plugin move it.
        """


class QueueSortPlugin(Plugin[ArgsT]):
    @abstractmethod
    def key(self, queued: QueuedPodInfo) -> Any:
        """The sort key in activeQ, smallest first. A scheduler has exactly one such plugin."""


class PreFilterPlugin(Plugin[ArgsT]):
    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        """Called once per attempt, before Filter; ``nodes``: all nodes.

        May reject the pod, narrow the nodes (other nodes count as unresolvable), or return SKIP:
        then Filter, add_pod and remove_pod of this plugin are left out.
        """


class PreFilterExtensions(ABC):
    """For a PreFilter whose notes depend on the pods of nodes: corrects the notes in a what-if.

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


class FilterPlugin(Plugin[ArgsT]):
    @abstractmethod
    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        """The nodes of the view that do not fit the pod, and why.

        ``feasible``: bool[nodes], the nodes that no earlier plugin rejected; results for other
        nodes are ignored. Read ``nodes`` only: the view may be a what-if.
        """


class ScalarFilterPlugin(Plugin[ArgsT]):
    @abstractmethod
    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Whether one node fits the pod: None, UNSCHEDULABLE or UNSCHEDULABLE_AND_UNRESOLVABLE."""


class Repetition(IntEnum):
    """How long the last answer of PostFilter is the one for pods of the same template that have no
    nomination, while no other pod has one."""

    NONE = 0
    #: While nothing changes.
    UNTIL_CHANGE = 1
    #: While each node has the same status.
    UNTIL_OTHER_STATUSES = 2


class PostFilterPlugin(Plugin[ArgsT]):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        """Called if no node fits. SUCCESS: the plugin makes room; the pod gets the nomination."""

    def repetition(self) -> Repetition:
        """How long the last answer, if it had no effect, is the one for each equal pod. Equal pods
        may then get it without a call."""
        return Repetition.NONE

    def count_repeats(self, count: int) -> None:
        """So many equal pods got the last answer without a call: count them as calls."""


class PodGroupPostFilterPlugin(Plugin[ArgsT]):
    """Helps a group of which too few members found nodes. The plugins are called in order, until
    one makes room.

    A plugin that makes room by preemption is a `GroupPreemption`. Any other releases what keeps the
    members from nodes, for the next attempt.
    """

    #: What the message of the group says when the plugin was called; "": nothing.
    group_reason: str = ""

    @abstractmethod
    def release_for_group(self, notes: Mapping[Hashable, Any]) -> None:
        """Called after a pass in which too few members found nodes. ``notes``: the notes that the
        members shared; see `CycleState.group_notes`."""


class GroupPlacement(ABC):
    """For a plugin that decides whether members of pod groups are placed in one pass or one by one.

    Without such a plugin a profile places them in one pass.
    """

    @property
    @abstractmethod
    def places_pod_by_pod(self) -> bool:
        """True: the engine places members as single pods, and the plugin keeps them together."""


class PreScorePlugin(Plugin[ArgsT]):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        """Called once per attempt; ``nodes``: the feasible ones. SKIP leaves Score out."""


class ScorePlugin(Plugin[ArgsT]):
    normalizer: ClassVar[Normalizer] = Normalizer.NONE

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: how good each node is; 0..100 after normalisation."""


class ScalarScorePlugin(Plugin[ArgsT]):
    normalizer: ClassVar[Normalizer] = Normalizer.NONE

    @abstractmethod
    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How good one node is; 0..100 after normalisation."""


class NormalizeScorePlugin(ABC):
    """For a score plugin with a normalization of its own, in place of a named normalizer."""

    @abstractmethod
    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        """int64[nodes] → int64[nodes] in 0..100; ``scores`` are all feasible nodes' at once."""


class ReservePlugin(Plugin[ArgsT]):
    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Reserve in memory what the pod will use. The first failure ends the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo reserve. Idempotent; may be called without a reserve before."""


class PermitPlugin(Plugin[ArgsT]):
    @abstractmethod
    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        """(SUCCESS, a rejection, or WAIT; how many seconds to wait, at most 15 minutes)."""


class PreBindPlugin(Plugin[ArgsT]):
    #: Whether the plugin may run at the same time as its neighbours in the profile that allow it,
    #: too: it neither reads what they write nor depends on their order. Upstream:
    #: PreBindPreFlightResult.AllowParallel.
    allows_parallel_pre_bind: ClassVar[bool] = False

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """SKIP: the plugin has nothing to prepare for this pod."""
        return None

    @abstractmethod
    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        """Prepare what the pod needs outside of the scheduler.

        If a plugin at its side fails, or a preemption takes the pod back, the coroutine is
        cancelled while it waits for the port. Unreserve follows.
        """


class BindPlugin(Plugin[ArgsT]):
    #: Whether `bind` does nothing but `port.bind(pod, node_name)` when that request succeeds. The
    #: simulation then writes the binding itself, and calls `bind` only if the API server refuses.
    binds_with_one_request: ClassVar[bool] = False

    @abstractmethod
    async def bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        """Write the binding; SKIP: the next Bind plugin is called."""


class PostBindPlugin(Plugin[ArgsT]):
    @abstractmethod
    async def post_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> None:
        """Called after the pod was bound; a failure changes nothing."""


class PlacementGeneratePlugin(Plugin[ArgsT]):
    """Called for groups of scheduling.k8s.io, under the gate TopologyAwareWorkloadScheduling.

    The first such plugin of a profile is called, as in kube-scheduler. Without one, a group may use
    all nodes.
    """

    @abstractmethod
    def generate_placements(
        self, group: GroupState | GroupTree, nodes: NodeView
    ) -> Sequence[Placement] | Status:
        """The placements to try, in this order; UNSCHEDULABLE or ERROR: the group is not tried.

        ``nodes``: those that the group may use. Without a placement, the group is unschedulable.
        """


class PlacementAssignments(Struct, frozen=True, eq=False):
    """The members of a group that fit in one placement."""

    #: The name of the placement.
    name: str
    #: The nodes of all placements, without these members.
    all_nodes: NodeView
    #: Placements of equal content share one trial, so the pods have no node that can be relied on.
    #: Placements in which the same members fit may share the sequence.
    pods: Sequence[PodInfo]
    #: intp [nodes of the placement], in ``all_nodes``; None: all of them.
    positions: Rows | None = None

    @property
    def nodes(self) -> NodeView:
        """The nodes of the placement, without these members."""
        return self.all_nodes if self.positions is None else self.all_nodes.take(self.positions)


class PlacementScorePlugin(Plugin[ArgsT]):
    """Called for groups of scheduling.k8s.io, under the gate TopologyAwareWorkloadScheduling."""

    @abstractmethod
    def score_placement(
        self, group: GroupState | GroupTree, placement: PlacementAssignments
    ) -> int:
        """How good it is to place the group there; 0..100 after normalization."""

    def normalize_placements(
        self, group: GroupState | GroupTree, scores: Sequence[int]
    ) -> Sequence[int]:
        """The scores of all placements in which the group fits, in 0..100."""
        return scores


class RowFilter(ABC):
    """For a FilterPlugin: the same result for one node, faster than with arrays.

    Called in place of `filter` if single nodes changed since their results were cached.
    """

    @abstractmethod
    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        """Everything that `filter` would return for this node, in the same order."""


class RowScore(ABC):
    """For a ScorePlugin: the same raw score of one node, faster than with arrays."""

    @abstractmethod
    def score_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The score that `score` would return for this node."""


class JointPlacementScore(ABC):
    """For a PlacementScorePlugin: the same scores, faster for many placements together."""

    @abstractmethod
    def score_placements(
        self, group: GroupState | GroupTree, placements: Sequence[PlacementAssignments]
    ) -> Sequence[int]:
        """What `score_placement` would return for each of them, in order. All have the same
        ``all_nodes``."""


class EnqueueExtensions(ABC):
    """The events after which pods that this plugin rejected are tried again."""

    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Called once, at start."""


class SignPlugin(ABC):
    """For a plugin whose results may be cached: returns the parts of a pod that the results depend
    on.

    See `Plugin.caching` for the parts of a node.
    """

    @abstractmethod
    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """Pods with equal values get equal results on any node; None: no result is cached.

        May read namespace, labels and spec only. A value that leaves out what the results depend
        on is a bug, which `check_plugin` finds. Source: KEP-5598.
        """
