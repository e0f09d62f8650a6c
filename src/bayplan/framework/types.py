"""What a plugin gets and returns, besides pods, nodes and statuses.

Upstream: k8s.io/kube-scheduler/framework (v1.37).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from bayplan.framework.status import Code
from bayplan.state.pods import PodInfo


class Normalizer(Enum):
    """How raw scores become 0..100, over the feasible nodes."""

    #: Raw scores are in 0..100 already.
    NONE = "none"
    #: 100 x score / highest; all zero stays zero.
    MAX = "max"
    #: 100 - 100 x score / highest; all zero becomes 100: the lowest raw score is the best.
    MAX_REVERSED = "maxReversed"
    #: 100 x (score - lowest) / (highest - lowest).
    MIN_MAX = "minMax"


MIN_NODE_SCORE = 0


MAX_NODE_SCORE = 100


MAX_TOTAL_SCORE = 2**63 - 1


#: The longest time that a pod waits at Permit.
MAX_PERMIT_TIMEOUT_SECONDS = 15 * 60.0


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The nodes that Filter evaluates, by name; None: all nodes.

    Raises TypeError for anything but a set of names.
    """

    node_names: frozenset[str] | None = None

    def __post_init__(self) -> None:
        names: Any = self.node_names
        if isinstance(names, set):
            object.__setattr__(self, "node_names", frozenset(cast("set[str]", names)))
        elif names is not None and not isinstance(names, frozenset):
            raise TypeError(
                f"PreFilterResult: node_names {names!r}; wanted a frozenset of names of nodes"
            )

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
    """A change of a pod's nomination: NOOP leaves it, OVERRIDE sets it, and "" clears it.

    Raises TypeError for values of other types.
    """

    mode: NominatingMode = NominatingMode.NOOP
    node_name: str = ""

    def __post_init__(self) -> None:
        values: Any = self.mode, self.node_name
        if not isinstance(values[0], NominatingMode) or not isinstance(values[1], str):
            raise TypeError(
                f"Nomination{values!r}; wanted Nomination(NominatingMode.OVERRIDE, name of a node)"
            )


@dataclass(slots=True)
class QueuedPodInfo:
    """A pod in the queue, and the results of its attempts. Upstream: QueuedPodInfo."""

    pod: PodInfo
    #: When the pod was added, or returned to the queue; orders pods of equal priority.
    timestamp_seconds: float
    #: Orders entries of one timestamp: first come, first served.
    sequence: int = 0
    attempts: int = 0
    #: When the pod first entered activeQ: the start of the time that users wait.
    initial_attempt_seconds: float | None = None
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    #: The PreEnqueue plugin that keeps the pod out of activeQ, and its message; "": no plugin does.
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


#: The result of Filter for one node: codes, each with its reasons; empty: the node fits.
Verdict = tuple[tuple[Code, tuple[str, ...]], ...]
