"""What preemption finds, and how others may have a say in it before anything is evicted.

A preemption plugin finds candidates: nodes, each with the pods that would have to leave it. Whoever
stands between it and the choice (an extender with a preempt verb) puts a `CandidateReview` into the
CycleState under `REVIEW` before PostFilter runs. The plugin then calls it with all candidates and
chooses among those that come back. A review that has to ask something outside answers with a Status
of Code.WAIT: PostFilter ends with that status and nothing is evicted; the engine asks, and runs the
attempt anew with the answer, as it does for an extender's filter.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from bayplan.framework.status import Status
from bayplan.ports import ObjectReference, Victims
from bayplan.state.disruption_units import Unit
from bayplan.state.pods import PodInfo

__all__ = [
    "EVICTING",
    "REVIEW",
    "CandidateReview",
    "Candidates",
    "Evicting",
    "GroupPreemption",
    "Victims",
]

#: Node name → who has to leave it, in the order in which the nodes were tried.
Candidates = Mapping[str, Victims]


class CandidateReview(Protocol):
    """Shrinks the candidates, or changes their victims."""

    def __call__(self, candidates: Candidates) -> Candidates | Status:
        """What is left of them. WAIT: an answer is awaited. An Error ends PostFilter."""
        ...


#: Under this key a CycleState holds a CandidateReview, where there is one.
REVIEW: Final = "bayplan.preemption.review"


class Evicting(Protocol):
    """Victims that are to be told to go before the attempt ends."""

    def start(self, ended: Callable[[str], None]) -> None:
        """Begin. ``ended`` is called once, with what PostFilter's error would have been; ""
        for none."""
        ...


#: Under this key a PostFilter that succeeds leaves an Evicting, where the attempt waits for it.
EVICTING: Final = "bayplan.preemption.evicting"


class GroupPreemption(ABC):
    """For a PostFilter plugin that makes room for groups of pods, too.

    The engine finds out where the members of a group would go if less important pods were not
    there; the plugin says whether it may, who may stay rather than others, and evicts.
    """

    @abstractmethod
    def why_not_for_group(self, pods: Sequence[PodInfo]) -> str | None:
        """Why nobody is to be evicted for these members; None: somebody may be."""

    def is_making_room(self, pods: Sequence[PodInfo]) -> bool:
        """Whether victims of an earlier attempt at these members are leaving still."""
        return False

    @abstractmethod
    def in_order_of_return(self, units: Sequence[Unit]) -> list[Unit]:
        """Units that were thought away, those first that should come back before others."""

    @abstractmethod
    def evict_for_group(
        self,
        group: ObjectReference,
        pods: Sequence[PodInfo],
        node_names: Sequence[str],
        victims: Sequence[PodInfo],
    ) -> Evicting | None:
        """Tell the victims to go, for members that are nominated to these nodes. Evicting: the
        attempt is to begin it, and to wait for it; None: it goes on meanwhile."""
