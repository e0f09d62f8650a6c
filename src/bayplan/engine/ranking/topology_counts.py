"""Pods by topology domain: what the cells of a ranking know of the nodes, and follow.

A topology label either has few domains, such as zones, or each node is a domain of its own, such as
a host. A `TopologyCount` has the pods of one set by row, and by domain where there are few.
"""

from collections.abc import Iterable
from typing import final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.engine.ranking.evaluation_plan import OTHER_PLUGINS, RankingInvalid
from bayplan.framework.domain_rules import DomainCount, DomainRules
from bayplan.state.columns import Floats, Mask, Rows
from bayplan.state.node_table import NodeTable

#: The number of domains up to which a label divides the nodes by domain.
FEW_DOMAINS = 64


@final
class LabelTopology(Struct):
    """A topology label that all nodes have."""

    key: str
    #: intp[rows]: the number of the row's domain; undefined for rows without a node.
    domains: Rows
    domain_count: int
    #: Whether the topology has few domains. Otherwise each domain is one node.
    has_few: bool


@final
class TopologyCount(Struct):
    """One `DomainCount`, as of `NodeCells.generation`."""

    count: DomainCount
    topology: LabelTopology
    #: The column in the keys of cells that this count belongs to: the column of the domain, or a
    #: column of its own.
    column: int
    #: int32[rows]: pods of the set that count.
    by_row: npt.NDArray[np.int32]
    #: float64[domains] if the topology has few domains; otherwise empty.
    by_domain: Floats
    #: bool[rows] and bool[domains]: the rows whose pods count, and the domains that have such a
    #: row. None: all of them. Only few domains have a mask.
    included: Mask | None
    counted_domains: Mask | None
    #: The sum over all nodes.
    total: int

    def includes(self, row: int) -> bool:
        """Whether the pods of a row count."""
        return self.included is None or self.included.item(row)

    def change_of(self, table: NodeTable, row: int) -> int:
        """How many more pods a row that is included has than it was counted with."""
        now: int = table.pod_column(self.count.pods).values.item(row)
        return now - self.by_row.item(row)

    def of_domains(self) -> Floats:
        """float64[domains]: pods by domain that has a node whose pods count."""
        if self.topology.has_few:
            counted = self.counted_domains
            return self.by_domain if counted is None else self.by_domain[counted]
        # Each node is a domain.
        rows = self.topology.domains if self.count.rows is None else self.count.rows
        return self.by_row[rows].astype(np.float64)

    def add(self, row: int, change: int) -> None:
        self.by_row[row] += change
        self.total += change
        if self.topology.has_few:
            self.by_domain[self.topology.domains.item(row)] += change


def topologies_of(
    table: NodeTable, each_rules: Iterable[DomainRules], rows: Rows
) -> dict[str, LabelTopology]:
    """The topologies that the rules name, by key. Raises RankingInvalid if a node lacks a label, or
    if the domains of a label are neither few nor single nodes."""
    keys: dict[str, None] = {}
    for rules in each_rules:
        keys |= dict.fromkeys(count.topology_key for count in rules.counts)
        keys |= dict.fromkeys(rules.topology_keys)
    topologies: dict[str, LabelTopology] = {}
    for key in keys:
        ids = table.label_column(key).ids.values[rows]
        distinct, numbers = np.unique(ids, return_inverse=True)
        has_few = len(distinct) <= FEW_DOMAINS
        if (ids < 0).any() or not (has_few or len(distinct) == len(rows)):
            raise RankingInvalid(OTHER_PLUGINS)
        domains = rows
        if has_few:
            domains = np.zeros(table.capacity, np.intp)
            domains[rows] = numbers.reshape(-1)
        topologies[key] = LabelTopology(key, domains, len(distinct), has_few)
    return topologies


def topology_count(
    table: NodeTable, count: DomainCount, topology: LabelTopology, rows: Rows
) -> TopologyCount:
    """The pods of one count, now. The column in the keys of cells is still missing."""
    included: Mask | None = None
    counted_domains: Mask | None = None
    if count.rows is not None:
        included = np.zeros(table.capacity, np.bool_)
        included[count.rows] = True
    by_row = pods_by_row(table, count, included)
    by_domain: Floats = np.zeros(0)
    if topology.has_few:
        domains, domain_count = topology.domains, topology.domain_count
        by_domain = np.bincount(domains[rows], by_row[rows], domain_count).astype(np.float64)
        if count.rows is not None:
            counted_domains = np.bincount(domains[count.rows], minlength=domain_count) > 0
    total = int(by_row[rows].sum())
    return TopologyCount(
        count,
        topology,
        column=-1,
        by_row=by_row,
        by_domain=by_domain,
        included=included,
        counted_domains=counted_domains,
        total=total,
    )


def pods_by_row(
    table: NodeTable, count: DomainCount, included: Mask | None
) -> npt.NDArray[np.int32]:
    """int32[rows]: a copy of the counts, 0 for the rows whose pods do not count."""
    by_row = table.pod_column(count.pods).values
    return by_row.copy() if included is None else by_row * included
