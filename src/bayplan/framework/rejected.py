"""Who rejected how many nodes, and why: all that a pod's message, and its diagnosis, need.

The status of each node is found where somebody looks, which most who are handed thousands do not.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.framework.status import Code, Codes, NodeToStatus, Status
from bayplan.state.nodes import NodeView


class Rejected(NamedTuple):
    """Some nodes that one instance rejected in the same words."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    node_count: int


class RejectedNodes(ABC):
    """What is told of rejected nodes, however they are known."""

    __slots__ = ()

    @abstractmethod
    def rejected(self) -> Iterable[Rejected]:
        """Each node once, by the instance that came first."""

    @abstractmethod
    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        """uint8[nodes]: the code of each; ``absent`` for those that were not asked about and, as
        in `NodeToStatus`, for those that nobody rejected."""

    @abstractmethod
    def statuses_among(self, nodes: NodeView) -> dict[str, Status]:
        """Of each that somebody rejected, by name. ``nodes``: all that were asked about, maybe
        more."""

    def node_to_status(self, nodes: NodeView, absent: Status | None = None) -> NodeToStatus:
        """The same, for whoever looks closely; ``absent``: of the others."""
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if absent is None else absent.code
        return NodeToStatus(
            lambda: self.statuses_among(nodes), absent, lambda some: self.codes(some, code)
        )

    def plugins(self) -> set[str]:
        """Instances that rejected some node."""
        return {found.plugin for found in self.rejected()}

    def pending_plugins(self) -> set[str]:
        return {found.plugin for found in self.rejected() if found.code is Code.PENDING}

    def reason_counts(self) -> Counter[str]:
        """How many nodes give each reason."""
        counts: Counter[str] = Counter()
        for found in self.rejected():
            for reason in found.reasons:
                counts[reason] += found.node_count
        return counts

    def reason_counts_by_plugin(self) -> dict[tuple[str, str, str], int]:
        """(plugin, code, reason) → nodes; for the journal."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for found in self.rejected():
            for reason in found.reasons:
                counts[(found.plugin, str(found.code), reason)] += found.node_count
        return dict(sorted(counts.items()))
