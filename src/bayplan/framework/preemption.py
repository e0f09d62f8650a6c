"""Preemption's candidates, and their review before any pod is evicted.

A preemption plugin finds candidates: nodes, each with the victims that would have to leave the
node. If an extender has the verb preempt, the CycleState holds a `CandidateReview` under `REVIEW`
before PostFilter runs. The plugin calls the review with all candidates, and chooses among those
that it returns. A review that needs the answer of an extender returns a Status with Code.WAIT. Then
PostFilter ends with this status and evicts no pod; the engine calls the extender, and runs the
attempt again with the answer, as for an extender's filter.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol

from bayplan.framework.plugin import ArgsT, PodGroupPostFilterPlugin
from bayplan.framework.status import Status
from bayplan.ports import ObjectReference, Victims
from bayplan.state.disruption_units import Unit
from bayplan.state.pods import PodInfo

__all__ = [
    "EVICTING",
    "REVIEW",
    "CandidateReview",
    "Candidates",
    "GroupPreemption",
    "PendingEvictions",
    "Victims",
]

#: Node name → its victims, in the order in which the nodes were tried.
Candidates = Mapping[str, Victims]


class CandidateReview(Protocol):
    """Shrinks the candidates, or changes their victims."""

    def __call__(self, candidates: Candidates) -> Candidates | Status:
        """The remaining candidates. WAIT: an extender has to answer first. An Error ends
        PostFilter."""
        ...


#: The key of the CandidateReview in a CycleState, if there is one.
REVIEW: Final = "bayplan.preemption.review"


class PendingEvictions(Protocol):
    """Evictions that must be requested before the attempt ends."""

    def start(self, ended: Callable[[str], None]) -> None:
        """Start the evictions. ``ended`` is called once, with the text of PostFilter's error; "" if
        there is none."""
        ...


#: The key of the PendingEvictions that a successful PostFilter leaves if the attempt has to wait.
EVICTING: Final = "bayplan.preemption.evicting"


class GroupPreemption(PodGroupPostFilterPlugin[ArgsT]):
    """Makes room for pod groups by preemption.

    The engine finds the nodes of the members without pods of lower priority. The plugin decides
    whether preemption is allowed, and which pods return first; it evicts the victims.
    """

    def release_for_group(self, notes: Mapping[Hashable, Any]) -> None:
        """Release nothing: room is made by evictions."""

    @abstractmethod
    def why_not_for_group(self, pods: Sequence[PodInfo]) -> str | None:
        """Why no pod may be evicted for these members; None: preemption is allowed."""

    def is_making_room(self, pods: Sequence[PodInfo]) -> bool:
        """Whether victims of an earlier attempt at these members are still terminating."""
        return False

    @abstractmethod
    def in_order_of_return(self, units: Sequence[Unit]) -> list[Unit]:
        """The removed units in the order in which they return."""

    @abstractmethod
    def evict_for_group(
        self,
        group: ObjectReference,
        pods: Sequence[PodInfo],
        node_names: Sequence[str],
        victims: Sequence[PodInfo],
    ) -> PendingEvictions | None:
        """Evict the victims for members that are nominated to these nodes. Returns the evictions if
        the attempt has to start them and wait for them; None: the attempt does not wait."""
