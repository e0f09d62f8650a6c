"""What plugins that try placements themselves, such as preemption, may ask of the Filters."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import Status
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.state.columns import NodeMask
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo


class Verdicts(Protocol):
    """What Filters said of the nodes of a view. Is a framework.filtering.FilterOutcome."""

    nodes: NodeView
    feasible: NodeMask
    #: An answer that ends the attempt.
    error: Status | None

    def reason_counts(self) -> Counter[str]: ...
    def statuses(self) -> dict[str, Status]: ...


@dataclass(frozen=True, slots=True)
class FilterKey:
    """Of pods of equal likenesses all Filters that are asked say the same, row by row."""

    key: Hashable
    #: What of a row that follows from.
    facets: Facet = field(compare=False)
    #: And which objects: per kind the list of all, another one after a change.
    objects: Sequence[Sequence[Any]] = field(compare=False)


class FilterRunner(Protocol):
    """For plugins that try placements themselves, such as preemption."""

    def nominated_ahead(self, pod: PodInfo, node_name: str) -> list[PodInfo]:
        """Pods nominated to a node that this pod must leave room for."""
        ...

    def only_amounts_matter(self, state: CycleState) -> bool:
        """Whether the pods on a node change what Filters say of it by amounts of resources alone:
        `filter_relieved` then knows what they would say without some of them."""
        ...

    def filter_key(self, state: CycleState, pod: PodInfo) -> FilterKey | None:
        """None: not all of them say what their answers follow from, or nothing is to be kept."""
        ...

    def filter_relieved(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, reading: Facet = ALL_FACETS
    ) -> Verdicts:
        """Ask about a `VictimOverlay`: those Filters that read any of these facets."""
        ...

    def filter_with_nominated(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> Status | None:
        """The verdict on one node, with and without the pods nominated to it."""
        ...

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None: ...
