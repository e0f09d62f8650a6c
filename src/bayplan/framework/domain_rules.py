"""DomainRules: what a plugin answers for a node, as a function of the pods in the node's domains.

PodTopologySpread and InterPodAffinity look across nodes: one more pod in a zone changes the result
of every node there. But what they read of a node is little: for each topology key and set of pods,
how many of these pods the node's domain has. Nodes with equal counts get equal results. So the
rules are evaluated once per *cell*, a set of nodes that agree in all counts, and the counts follow
each placed pod. `engine/ranking/node_cells.py` stores the cells.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol

from bayplan.framework.status import Rejection
from bayplan.state.columns import Floats, NodeScores, Rows
from bayplan.state.domain_counts import PodSet
from bayplan.state.nodes import NodeView
from bayplan.state.placed_terms import PlacedTerm
from bayplan.state.pods import PodInfo


class DomainCount(NamedTuple):
    """Placed pods, counted by the value of a node label."""

    topology_key: str
    pods: PodSet | PlacedTerm
    #: The rows of the nodes whose pods count, as long as no label changes. None: all nodes.
    rows: Rows | None = None


class CellCounts(Protocol):
    """The counts that rules read. All nodes have the labels of all topology keys."""

    def of_cells(self, index: int) -> Floats:
        """float64[cells], read-only: the pods of `DomainRules.counts` [index] in the domain of each
        cell; whole numbers."""
        ...

    def of_domains(self, index: int) -> Floats:
        """float64[domains], read-only: the same for each domain that has a node whose pods count,
        in any order."""
        ...

    @property
    def node_count(self) -> int:
        """How many nodes the cells have."""
        ...

    def domain_count(self, topology_key: str) -> int:
        """How many domains the nodes of the cells lie in. ``topology_key``: one that
        `DomainRules.topology_keys` lists."""
        ...


class DomainRules(ABC):
    """The results of one instance for pods of one template, until an object or a distinct affinity
    term of placed pods comes or goes."""

    __slots__ = ("counts", "topology_keys")

    def __init__(self, counts: Sequence[DomainCount], topology_keys: Iterable[str]) -> None:
        """``topology_keys``: those whose number of domains is read."""
        self.counts = counts
        self.topology_keys = tuple(dict.fromkeys(topology_keys))

    @abstractmethod
    def filters(self, totals: Sequence[float]) -> bool:
        """Whether PreFilter does not skip. ``totals``: of each of `counts`, over all domains."""

    @abstractmethod
    def scores(self, totals: Sequence[float]) -> bool:
        """Whether PreScore does not skip."""

    @abstractmethod
    def rejections(self, cells: CellCounts) -> Iterable[Rejection]:
        """As Filter, with cells in place of nodes."""

    @abstractmethod
    def raw_scores(self, cells: CellCounts) -> NodeScores:
        """int64[cells], as Score. ``cells``: those of the feasible nodes."""

    @abstractmethod
    def normalized(self, raw: NodeScores) -> NodeScores:
        """As NormalizeScore. Every value of ``raw`` is the score of a feasible node."""


class DomainPlugin(ABC):
    """A plugin that looks across nodes by counts of topology domains alone."""

    @abstractmethod
    def domain_rules(self, pod: PodInfo, nodes: NodeView) -> DomainRules | None:
        """The rules for pods of this pod's template; None: Filter or Score reads more than counts.
        ``nodes``: all nodes. Called after PreFilter and PreScore."""

    @abstractmethod
    def domain_note_keys(self) -> Iterable[Hashable]:
        """The keys of the notes in CycleState that the rules replace."""
