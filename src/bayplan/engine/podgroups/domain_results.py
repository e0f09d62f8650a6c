"""DomainResults: results of trials of domains, shared by domains of equal content.

How many members fit in a domain, and how high their nodes score, follows from what the members are
and from what the nodes of the domain offer, if every draw of the trial is among equivalent nodes.
So a domain is tried once. It is tried again after one of its rows changed, unless a domain of equal
content was tried before. The domain in which a group is placed is tried in any case.
"""

from collections.abc import Hashable
from typing import Final, NamedTuple, final
from weakref import ref

from bayplan.engine.ranked_domain import Content, DomainRows, RankedDomain
from bayplan.engine.reuse.ranked_nodes import RankedNodes
from bayplan.state.change_log import ALL_FACETS

#: Results that are remembered.
_RESULTS_MAX: Final = 1 << 14


class Worth(NamedTuple):
    """What domains are compared by."""

    #: Members that fit; -1: one of them failed with an error.
    placed_count: int
    total_score: int


@final
class DomainResults:
    """Results by kind of members and content of the domain."""

    def __init__(self) -> None:
        self._worths: dict[tuple[Hashable, Content], Worth] = {}
        #: By the nodes of a domain, for one ranking, as of a generation; and the domain of a row.
        self._contents: dict[frozenset[str], Content] = {}
        self._domain_of_row: dict[int, frozenset[str]] = {}
        self._ranking: ref[RankedNodes] | None = None
        self._generation = -1

    def content(self, ranking: RankedNodes, names: frozenset[str], rows: DomainRows) -> Content:
        """Of the domain of these nodes. ``ranking``: up to date; feasible rows have totals."""
        self._forget_changed(ranking)
        content = self._contents.get(names)
        if content is None:
            of_domain = rows.of(names, ranking.table)
            content = self._contents[names] = RankedDomain(ranking, of_domain).content()
            self._domain_of_row |= dict.fromkeys(of_domain.tolist(), names)
        return content

    def find(self, kind: Hashable, content: Content) -> Worth | None:
        return self._worths.get((kind, content))

    def learn(self, kind: Hashable, content: Content, worth: Worth) -> None:
        if len(self._worths) >= _RESULTS_MAX:
            self._worths.clear()
        self._worths[kind, content] = worth

    def _forget_changed(self, ranking: RankedNodes) -> None:
        log = ranking.table.log
        if self._ranking is None or self._ranking() is not ranking:
            self._ranking = ref(ranking)
            self._contents.clear()
            self._domain_of_row.clear()
        elif self._generation != log.generation:
            for row in log.rows_since(self._generation, int(ALL_FACETS)).tolist():
                names = self._domain_of_row.get(row)
                if names is not None:
                    self._contents.pop(names, None)
        self._generation = log.generation
