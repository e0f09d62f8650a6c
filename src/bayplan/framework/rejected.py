"""Who rejected how many nodes, and why: all that a pod's message, and its diagnosis, need."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.framework.status import Code, Codes
from bayplan.state.nodes import NodeView


class Rejected(NamedTuple):
    """Some nodes that one instance rejected in the same words."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]
    node_count: int


class RejectedNodes(ABC):
    """What is counted of rejected nodes, however they are known."""

    __slots__ = ()

    @abstractmethod
    def rejected(self) -> Iterable[Rejected]:
        """Each node once, by the instance that came first."""

    @abstractmethod
    def codes(self, nodes: NodeView, absent: Code) -> Codes:
        """uint8[nodes]: the code of each; ``absent`` for those that were not asked about and, as
        in `NodeToStatus`, for those that nobody rejected."""

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
