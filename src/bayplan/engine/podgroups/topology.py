"""The domains of topology keys (the nodes by their value of a label), and the results of their
trials.

How many members fit in a domain, and how high their nodes score, follows from what the members are
and from what the nodes of the domain offer, if every draw of the trial is among equivalent nodes.
So a domain is tried once. It is tried again after one of its rows changed, unless a domain of equal
content was tried before. The domain in which a group is placed is tried in any case.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, final
from weakref import ref

from bayplan.engine.ranked_domain import Content, CountedContent, DomainRows
from bayplan.engine.ranking.ranked_nodes import RankedNodes
from bayplan.framework.placements import LabelPlacements, Placement
from bayplan.state.cache import Snapshot
from bayplan.state.change_log import ALL_FACETS
from bayplan.state.columns import Rows
from bayplan.state.pod_groups import GroupState, node_of


class SliceGaps(NamedTuple):
    """Where slices of a group lack members."""

    #: The nodes of the domains in which a slice lacks members. If no slice lacks members, all nodes
    #: that may be used.
    nodes: frozenset[str] | None
    #: For each incomplete slice of the innermost layer that has some: the nodes of its domain, and
    #: how many members it lacks.
    parts: Sequence[tuple[frozenset[str], int]]
    #: The number of that layer, the outermost is 0.
    layer: int = 0


@final
class Domains:
    """The domains of each topology key, until a node or a label changes."""

    def __init__(self) -> None:
        self._placements = LabelPlacements()

    def of(self, snapshot: Snapshot, key: str, state: GroupState) -> list[Placement]:
        """The domains of a key in the order of the values of the label. If members already have
        nodes, only the domain that contains all these nodes."""
        domains = self._placements.of(snapshot.nodes, key)
        names = {node_of(pod) for pod in state.assigned()}
        if not names:
            return domains
        return [one for one in domains if one.nodes is not None and names <= one.nodes]

    def lacking(
        self, snapshot: Snapshot, state: GroupState, within: frozenset[str] | None = None
    ) -> "SliceGaps":
        """Where slices of a group lack members. ``within``: the nodes that may be used; None:
        all."""
        group = state.group
        gaps: list[tuple[frozenset[str], int]] = []
        gap_layer = 0
        counts = Counter(node_of(pod) for pod in state.assigned())
        for layer, part in enumerate(() if group is None or not counts else group.slices):
            parts: list[tuple[frozenset[str], int]] = []
            nodes: frozenset[str] = frozenset()
            for domain in self._placements.of(snapshot.nodes, part.key):
                assert domain.nodes is not None, "all nodes are no domain"
                usable = domain.nodes if within is None else domain.nodes & within
                over_count = sum(counts[name] for name in usable & counts.keys()) % part.size
                if over_count:
                    nodes |= usable
                    parts.append((usable, part.size - over_count))
            within = nodes or within
            if parts:
                gaps, gap_layer = parts, layer
        return SliceGaps(within, gaps, gap_layer)


# ---- results shared by domains of equal content ---------------------------------------------


#: How many results are remembered, and how many contents of domains.
_RESULTS_MAX: Final = 1 << 14


class Worth(NamedTuple):
    """The values that domains are compared by."""

    #: Members that fit; -1: one of them failed with an error.
    placed_count: int
    total_score: int


#: The results of one content, by kind of members; see `DomainResults.kind`.
Worths = dict[object, Worth]


@final
class DomainResults:
    """The results of trials, by content of the domain and kind of members."""

    def __init__(self) -> None:
        self._by_content: dict[Content, Worths] = {}
        self._result_count = 0
        #: The object that stands for each kind. A kind itself takes long to hash.
        self._kinds: dict[Hashable, object] = {}
        #: The same objects by what the kind depends on besides the ranking.
        self._kinds_of_ranking: dict[Hashable, object] = {}
        #: By the nodes of a domain, the results of its content, for one ranking and as of a
        #: generation; and by row, its domains, of which it has one for each topology key.
        self._by_domain: dict[frozenset[str], Worths] = {}
        self._domains_of_row: dict[int, tuple[frozenset[str], ...]] = {}
        #: The content of each domain, and the rows that have changed since it was counted.
        self._contents: dict[frozenset[str], CountedContent] = {}
        self._changed_rows: dict[frozenset[str], set[int]] = {}
        #: The domains of the last call, with their places in it and their results; and those whose
        #: content changed since. None: no call is remembered.
        self._domains: Sequence[Placement] | None = None
        self._places: dict[frozenset[str], int] = {}
        self._latest: list[Worths] = []
        self._outdated: set[frozenset[str]] = set()
        self._ranking: ref[RankedNodes] | None = None
        self._generation = -1

    def kind(self, of_members: Hashable, describe: Callable[[], Hashable]) -> object:
        """The object that stands for a kind of members. ``of_members``: what the kind depends on,
        besides the ranking of the last `of`; ``describe``: the whole description."""
        kind = self._kinds_of_ranking.get(of_members)
        if kind is None:
            kind = self._kinds.setdefault(describe(), object())
            self._kinds_of_ranking[of_members] = kind
        return kind

    def of(
        self, ranking: RankedNodes, domains: Sequence[Placement], rows: DomainRows
    ) -> list[Worths]:
        """The results of the content of each domain. ``ranking``: a ranking that is up to date and
        whose feasible rows have totals."""
        self._forget_changed(ranking)
        if domains is self._domains:
            places, latest = self._places, self._latest
            for names in self._outdated:
                if names in places:
                    latest[places[names]] = self._of_content(ranking, names, rows)
            self._outdated.clear()
            return latest
        by_domain, all_worths, places = self._by_domain, list[Worths](), dict[frozenset[str], int]()
        for domain in domains:
            assert domain.nodes is not None, "all nodes are no domain"
            worths = by_domain.get(domain.nodes)
            if worths is None:
                worths = self._of_content(ranking, domain.nodes, rows)
            places[domain.nodes] = len(all_worths)
            all_worths.append(worths)
        self._domains, self._places, self._latest = domains, places, all_worths
        self._outdated.clear()
        return all_worths

    def _of_content(self, ranking: RankedNodes, names: frozenset[str], rows: DomainRows) -> Worths:
        of_domain = rows.of(names, ranking.table)
        if len(self._by_content) >= _RESULTS_MAX:
            self._forget_all()
        counted, changed_rows = self._contents.get(names), self._changed_rows.pop(names, ())
        if counted is not None and counted.rows is of_domain:
            counted.renew(ranking, changed_rows)
        else:
            counted = self._contents[names] = CountedContent(ranking, of_domain)
            self._note_rows(names, of_domain)
        worths = self._by_domain[names] = self._by_content.setdefault(counted.content(), {})
        return worths

    def _note_rows(self, names: frozenset[str], rows: Rows) -> None:
        known = self._domains_of_row
        new: dict[int, tuple[frozenset[str], ...]] = dict.fromkeys(rows.tolist(), (names,))
        for row in known.keys() & new.keys():
            new[row] = (*(other for other in known[row] if other != names), names)
        known |= new

    def learn(self, worths: Worths, kind: object, worth: Worth) -> None:
        """Add a result to those of a content."""
        if self._result_count >= _RESULTS_MAX:
            self._forget_all()
        worths[kind] = worth
        self._result_count += 1

    def _forget_all(self) -> None:
        self._by_content.clear()
        self._forget_domains()
        self._kinds.clear()
        self._result_count = 0

    def _forget_domains(self) -> None:
        self._by_domain.clear()
        self._domains_of_row.clear()
        self._contents.clear()
        self._changed_rows.clear()
        self._kinds_of_ranking.clear()
        self._domains = None

    def _forget_changed(self, ranking: RankedNodes) -> None:
        log = ranking.table.log
        if self._ranking is None or self._ranking() is not ranking:
            self._ranking = ref(ranking)
            self._forget_domains()
        elif self._generation != log.generation:
            for row in log.rows_since(self._generation, int(ALL_FACETS)).tolist():
                for names in self._domains_of_row.get(row, ()):
                    self._by_domain.pop(names, None)
                    self._outdated.add(names)
                    self._changed_rows.setdefault(names, set()).add(row)
        self._generation = log.generation
