"""What a plugin is handed, and what it answers with, besides pods, nodes and statuses.

Upstream: k8s.io/kube-scheduler/framework (v1.37).
"""

from dataclasses import dataclass
from enum import Enum

from bayplan.framework.status import Code
from bayplan.state.pods import PodInfo


class Normalizer(Enum):
    """How raw scores become 0..100, over the feasible nodes."""

    #: They are already.
    NONE = "none"
    #: 100 x score / highest; all zero stays zero.
    MAX = "max"
    #: 100 - that; all zero becomes 100: the fewest is the best.
    MAX_REVERSED = "maxReversed"
    #: 100 x (score - lowest) / (highest - lowest).
    MIN_MAX = "minMax"


MIN_NODE_SCORE = 0


MAX_NODE_SCORE = 100


MAX_TOTAL_SCORE = 2**63 - 1


MAX_PERMIT_TIMEOUT_SECONDS = 15 * 60.0  #: A Permit plugin may hold a pod this long at most.


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """Which nodes are worth asking; None = all."""

    node_names: frozenset[str] | None = None

    def merge(self, other: "PreFilterResult") -> "PreFilterResult":
        if self.node_names is None:
            return other
        if other.node_names is None:
            return self
        return PreFilterResult(self.node_names & other.node_names)


class NominatingMode(Enum):
    NOOP = "Noop"
    OVERRIDE = "Override"


@dataclass(frozen=True, slots=True)
class Nomination:
    """What becomes of a pod's nomination: NOOP keeps it, OVERRIDE sets it, "" clears it."""

    mode: NominatingMode = NominatingMode.NOOP
    node_name: str = ""


@dataclass(slots=True)
class QueuedPodInfo:
    """A pod in the queue and what its attempts left behind. Upstream: QueuedPodInfo."""

    pod: PodInfo
    #: When it was added, or came back; decides among equal priorities.
    timestamp_seconds: float
    #: Orders entries of one timestamp: first come, first served.
    sequence: int = 0
    attempts: int = 0
    #: When it first entered activeQ: from here the user's waiting time counts.
    initial_attempt_seconds: float | None = None
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    #: The PreEnqueue plugin that keeps it out of activeQ, and what it said; "": none does.
    gating_plugin: str = ""
    gating_message: str = ""
    was_flushed: bool = False
    flushed_at_seconds: float | None = None

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)

    @property
    def priority(self) -> int:
        return self.pod.priority


#: Why one node cannot take a pod: its codes, each with its reasons; empty where it can.
Verdict = tuple[tuple[Code, tuple[str, ...]], ...]
