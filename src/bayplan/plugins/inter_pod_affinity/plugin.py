"""The extension points and hints of InterPodAffinity. The package's docstring has the theory.

Pods are counted by topology domain. A domain is the value of a label: a table by label id, which
the cluster keeps current, gives the count for each node. The last element of a table is for nodes
without the label, whose id is -1; it stays 0.

Hints are those of upstream (isSchedulableAfterAssignedPodChange, isSchedulableAfterNodeChange),
with one exception: upstream evaluates a term's namespace selector without the namespace's labels
and misses pods that match. Here a change also counts if it matches with the labels.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from bayplan.api.affinity import AffinityTerm
from bayplan.api.objects import NAMESPACE, Node
from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour
from bayplan.framework import plugin
from bayplan.framework.arithmetic import normalized
from bayplan.framework.cycle_state import Cloneable, CycleState
from bayplan.framework.domain_rules import DomainCount, DomainPlugin, DomainRules
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status, unresolvable
from bayplan.framework.types import Normalizer, PreFilterResult
from bayplan.plugins.inter_pod_affinity.domain_rules import (
    NO_ANTI_AFFINITY,
    REFUSED_BY_PLACED,
    AffinityDomainRules,
    TermCounts,
    rejections_of,
)
from bayplan.plugins.inter_pod_affinity.terms import OwnTerms, own_terms, own_terms_before_1_37
from bayplan.state.change_log import Facet
from bayplan.state.columns import Floats, Mask, NodeMask, NodeScores
from bayplan.state.domain_counts import PodSet
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.placed_terms import PlacedTerm, TermKind
from bayplan.state.pods import PodInfo, PodShape

# ---- hints ----------------------------------------------------------------------------------


Labels = Mapping[str, str]
#: Namespace → its labels.
LabelsOf = Callable[[str], Labels]

_NO_LABELS: Labels = {}


def after_assigned_pod(
    pod: PodInfo,
    old: PodInfo | None,
    new: PodInfo | None,
    labels_of: LabelsOf,
    *,
    behaviour: Behaviour = NEWEST_BEHAVIOUR,
) -> QueueingHint:
    """Another pod was placed (``old`` None), changed, or was deleted (``new`` None)."""
    counts_nominated = behaviour.nominated_pods_are_assigned
    if any(other is not None and not _has_place(other, counts_nominated) for other in (old, new)):
        return QueueingHint.QUEUE_SKIP
    if own_terms(pod).is_unclear or (new is None and old is not None and own_terms(old).is_unclear):
        return QueueingHint.QUEUE
    for labels in (_labels_of_none, labels_of):
        if _helps(pod, old, new, labels, behaviour=behaviour):
            return QueueingHint.QUEUE
    return QueueingHint.QUEUE_SKIP


def _labels_of_none(namespace: str) -> Labels:
    return _NO_LABELS


def after_node(pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
    """A node was added (``old`` None), or its labels changed: whether the node joins a domain that
    matters."""
    if own_terms(pod).is_unclear:
        return QueueingHint.QUEUE
    before, after = _labels(old), _labels(new)
    for term in pod.shape.affinity.required:
        key = term.topology_key
        if key in after and (old is None or before.get(key) != after[key]):
            return QueueingHint.QUEUE
    for term in pod.shape.anti_affinity.required:
        key = term.topology_key
        # A node without the label may always take the pod.
        if old is None or (key in before and before[key] != after.get(key)):
            return QueueingHint.QUEUE
    return QueueingHint.QUEUE_SKIP


def _labels(node: Node | None) -> Labels:
    return (node.metadata.labels or _NO_LABELS) if node is not None else _NO_LABELS


def _has_place(pod: PodInfo, counts_nominated: bool) -> bool:
    return bool(pod.node_name or (counts_nominated and pod.nominated_node_name))


def _helps(
    pod: PodInfo,
    old: PodInfo | None,
    new: PodInfo | None,
    labels_of: LabelsOf,
    *,
    behaviour: Behaviour,
) -> bool:
    required, required_anti = pod.shape.affinity.required, pod.shape.anti_affinity.required
    refuses = _any_means if behaviour.any_anti_affinity_term_counts else _all_mean
    if new is not None:
        comes_near = _all_mean(required, new, labels_of)
        if old is None:
            return comes_near
        if comes_near and not _all_mean(required, old, labels_of):
            return True
        return refuses(required_anti, old, labels_of) and not refuses(required_anti, new, labels_of)
    assert old is not None
    if refuses(required_anti, old, labels_of):
        return True
    refusing = old.shape.anti_affinity.required
    return behaviour.deleted_anti_affinity_counts and refuses(refusing, pod, labels_of)


def _all_mean(terms: tuple[AffinityTerm, ...], pod: PodInfo, labels_of: LabelsOf) -> bool:
    """Whether there are terms and each of them selects the pod."""
    return bool(terms) and all(_means(term, pod, labels_of) for term in terms)


def _any_means(terms: Iterable[AffinityTerm], pod: PodInfo, labels_of: LabelsOf) -> bool:
    return any(_means(term, pod, labels_of) for term in terms)


def _means(term: AffinityTerm, pod: PodInfo, labels_of: LabelsOf) -> bool:
    return term.matches(pod.namespace, pod.labels, labels_of(pod.namespace))


# ---- counts ---------------------------------------------------------------------------------


class DomainCounts:
    """Topology key → table of amounts: float64[values + 1], whole numbers, by label id.

    A key whose domains all count nothing may be missing. Tables are shared by clones until one
    of them changes.
    """

    __slots__ = ("_owned", "_tables")

    def __init__(self, tables: dict[str, Floats] | None = None) -> None:
        self._tables: dict[str, Floats] = tables if tables is not None else {}
        #: Keys whose table is not shared.
        self._owned: set[str] = set()

    @property
    def keys(self) -> list[str]:
        return list(self._tables)

    @property
    def is_empty(self) -> bool:
        """Whether no domain counts anything."""
        return not any(table.any() for table in self._tables.values())

    def count(self, nodes: NodeView, key: str, pods: PodSet | PlacedTerm, weight: int = 1) -> None:
        """Add ``weight`` for each of these pods in the domains of all nodes."""
        table = nodes.pods.by_domain(pods, key)
        if table is None:
            return
        if weight != 1:
            table *= weight
        counts = self._tables.get(key)
        self._tables[key] = table if counts is None else counts + table
        self._owned.add(key)

    def add(self, key: str, label_id: int, amount: int) -> None:
        """Add to one domain; to none where the label is absent."""
        if label_id < 0:
            return
        table = self._tables.get(key)
        if table is None or label_id + 1 >= len(table):
            table = _resized(table if table is not None else _NOTHING, label_id + 2)
        elif key not in self._owned:
            table = table.copy()
        self._tables[key] = table
        self._owned.add(key)
        table[label_id] += amount

    def clone(self) -> "DomainCounts":
        self._owned.clear()
        return DomainCounts(dict(self._tables))

    def of(self, nodes: NodeView, key: str) -> Floats:
        """float64[nodes]: the count of each node's domain; 0 for nodes without a domain."""
        return self._table(nodes, key).take(nodes.labels.ids(key))

    def present(self, nodes: NodeView, key: str) -> Mask:
        """bool[nodes]: nodes whose domain has a positive count."""
        return (self._table(nodes, key) > 0).take(nodes.labels.ids(key))

    def _table(self, nodes: NodeView, key: str) -> Floats:
        """A table with a place for every value the label has by now."""
        length = len(nodes.labels.values(key)) + 1
        table = self._tables.get(key, _NOTHING)
        return table if len(table) == length else _resized(table, length)


def _resized(table: Floats, length: int) -> Floats:
    resized = np.zeros(length)
    resized[: len(table) - 1] = table[:-1]
    return resized


_NOTHING: Floats = np.zeros(1)


# ---- plugin ---------------------------------------------------------------------------------


_WEIGHT_MAX = 100


class InterPodAffinityArgs(plugin.PluginArgs, frozen=True):
    """``hardPodAffinityWeight``: the weight of a placed pod's required affinity to the pod."""

    hard_pod_affinity_weight: int = 1
    #: Applies to pods without preferred terms of their own only, as upstream's does.
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> Iterable[tuple[str, str]]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= _WEIGHT_MAX:
            yield "hardPodAffinityWeight", f"{weight}; wanted a number in 0..{_WEIGHT_MAX}"


#: Terms of placed pods that reject other pods.
_REFUSING = (TermKind.REQUIRED_ANTI_AFFINITY,)


@dataclass(slots=True, eq=False)
class _Notes(Cloneable):
    """The result of PreFilter; add_pod and remove_pod update it."""

    own: OwnTerms
    #: The pods that match all required affinity terms, if there are any.
    attracting: PodSet | None
    #: (topology key, the pods to keep away from) of each required anti-affinity term.
    repelling: tuple[tuple[str, PodSet], ...]
    namespace_labels: Labels
    #: Whether the pod is one of those it wants: then it may be the first of them.
    wants_itself: bool
    near: DomainCounts
    away: DomainCounts
    #: Placed pods whose required anti-affinity means this pod.
    refusing: DomainCounts

    def clone(self) -> "_Notes":
        near, away, refusing = self.near.clone(), self.away.clone(), self.refusing.clone()
        return replace(self, near=near, away=away, refusing=refusing)

    def lacking(self, nodes: NodeView) -> Mask | None:
        """bool[nodes]: where required affinity is not satisfied; None for nowhere."""
        lacking: Mask | None = None
        is_first = self.wants_itself and bool(self.own.keys) and self.near.is_empty
        for key in self.own.keys:
            without_key = nodes.labels.ids(key) < 0 if is_first else ~self.near.present(nodes, key)
            lacking = without_key if lacking is None else lacking | without_key
        return lacking


@final
class InterPodAffinity(
    plugin.PreFilterPlugin[InterPodAffinityArgs],
    plugin.PreFilterExtensions,
    plugin.FilterPlugin,
    plugin.PreScorePlugin,
    plugin.ScorePlugin,
    plugin.NormalizeScorePlugin,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
    DomainPlugin,
):
    """Places pods by the pods that are already there."""

    name = "InterPodAffinity"
    scope = "cluster"
    caching = plugin.Caching(
        facets=Facet.LABELS | Facet.PODS | Facet.NODE,
        signs_template=True,
        pre_state_per_template=True,
    )
    ignores_resizes = True
    kinds = (NAMESPACE,)

    def setup(self) -> None:
        args = self.args or InterPodAffinityArgs()
        limits = self.handle.behaviour.selector_limits_namespaces
        self._own_terms = own_terms if limits else own_terms_before_1_37
        self._ignores_preferred = args.ignore_preferred_terms_of_existing_pods
        self._filter_key = f"PreFilter{self.instance_name}"
        self._score_key = f"PreScore{self.instance_name}"
        #: Kinds of placed terms that score, with the factor of their weights.
        self._scoring_kinds = [
            (TermKind.PREFERRED_AFFINITY, 1),
            (TermKind.PREFERRED_ANTI_AFFINITY, -1),
        ]
        if args.hard_pod_affinity_weight > 0:
            hard = (TermKind.REQUIRED_AFFINITY, args.hard_pod_affinity_weight)
            self._scoring_kinds.append(hard)
        self._kinds_that_score = [kind for kind, _ in self._scoring_kinds]

    # ---- filter ---------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        own = self._own_terms(pod)
        if own.error:
            return unresolvable(f"parsing pod: {own.error}")
        has_own = bool(own.together or own.apart)
        if not has_own and not nodes.pods.any_affinity_terms(_REFUSING):
            return SKIP
        refusing = DomainCounts()
        for placed in self._terms_about(pod, TermKind.REQUIRED_ANTI_AFFINITY, nodes):
            refusing.count(nodes, placed.term.topology_key, placed)
        if not has_own and not refusing.keys:
            return SKIP
        state[self._filter_key] = self._notes(pod, own, nodes, refusing)
        return None

    def _notes(
        self, pod: PodInfo, own: OwnTerms, nodes: NodeView, refusing: DomainCounts
    ) -> _Notes:
        namespaces = self.handle.objects(NAMESPACE)
        attracting = own.matching_all(namespaces) if own.together else None
        repelling = tuple((want.key, want.pods(namespaces)) for want in own.apart)
        near, away = DomainCounts(), DomainCounts()
        if attracting is not None:
            for key in own.keys:
                near.count(nodes, key, attracting)
        for key, pods in repelling:
            away.count(nodes, key, pods)
        return _Notes(
            own=own,
            attracting=attracting,
            repelling=repelling,
            namespace_labels=self._labels_of(pod.namespace),
            wants_itself=attracting is not None and _belongs(pod, attracting),
            near=near,
            away=away,
            refusing=refusing,
        )

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        _count(state[self._filter_key], pod, added, node, step=1)
        return None

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        _count(state[self._filter_key], pod, removed, node, step=-1)
        return None

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        """A node's first reason is its only one, in this order."""
        notes: _Notes = state[self._filter_key]
        away, refusing = notes.away, notes.refusing
        occupied = [(away.present(nodes, key), NO_ANTI_AFFINITY) for key in away.keys]
        occupied += [(refusing.present(nodes, key), REFUSED_BY_PLACED) for key in refusing.keys]
        return rejections_of(notes.lacking(nodes), occupied)

    # ---- score ----------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        own = self._own_terms(pod)
        if own.error:
            return Status(Code.ERROR, (f"failed to parse pod: {own.error}",))
        if self._ignores_preferred and not own.preferred:
            return SKIP
        if not own.preferred and not nodes.pods.any_affinity_terms(self._kinds_that_score):
            return SKIP
        worth = DomainCounts()
        for kind, factor in self._scoring_kinds:
            for placed in self._terms_about(pod, kind, nodes):
                worth.count(nodes, placed.term.topology_key, placed, factor * placed.weight)
        if own.preferred:
            namespaces = self.handle.objects(NAMESPACE)
            for want in own.preferred:
                worth.count(nodes, want.key, want.pods(namespaces), want.weight)
        if not worth.keys:
            return SKIP
        state[self._score_key] = worth
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: what the node's domains are worth, added up; negative for aversion."""
        worth: DomainCounts = state[self._score_key]
        total = sum(worth.of(nodes, key) for key in worth.keys)
        return np.asarray(total).astype(np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NodeScores) -> NodeScores:
        return normalized(Normalizer.MIN_MAX, scores)

    # ---- domains --------------------------------------------------------------------------

    def domain_rules(self, pod: PodInfo, nodes: NodeView) -> DomainRules | None:
        own = self._own_terms(pod)
        if own.error:
            return None
        namespaces = self.handle.objects(NAMESPACE)
        attracting = own.matching_all(namespaces) if own.together else None
        refusing = [
            DomainCount(placed.term.topology_key, placed)
            for placed in self._terms_about(pod, TermKind.REQUIRED_ANTI_AFFINITY, nodes)
        ]
        worth = [
            (DomainCount(placed.term.topology_key, placed), factor * placed.weight)
            for kind, factor in self._scoring_kinds
            for placed in self._terms_about(pod, kind, nodes)
        ]
        worth += [
            (DomainCount(want.key, want.pods(namespaces)), want.weight) for want in own.preferred
        ]
        return AffinityDomainRules(
            TermCounts(
                near=[DomainCount(key, attracting) for key in own.keys]
                if attracting is not None
                else (),
                wants_itself=attracting is not None and _belongs(pod, attracting),
                away=[DomainCount(want.key, want.pods(namespaces)) for want in own.apart],
                refusing=refusing,
                worth=worth,
                never_scores=self._ignores_preferred and not own.preferred,
            )
        )

    def domain_note_keys(self) -> Iterable[Hashable]:
        return self._filter_key, self._score_key

    # ---- sign and events ------------------------------------------------------------------

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """What placed pods' terms look at; a pod with terms of its own is asked anew each time."""
        return pod.shape.once("InterPodAffinity.sign", _signed)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        pod_changed = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        assigned = ClusterEvent(EventResource.ASSIGNED_POD, pod_changed)
        relabelled = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL)
        node_changed = ClusterEvent(
            EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        )
        own = ClusterEventWithHint(relabelled, _after_own_labels)
        return (
            ClusterEventWithHint(assigned, self._after_assigned_pod),
            *((own,) if self.handle.behaviour.own_labels_are_events else ()),
            ClusterEventWithHint(node_changed, after_node),
        )

    def _after_assigned_pod(
        self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None
    ) -> QueueingHint:
        return after_assigned_pod(pod, old, new, self._labels_of, behaviour=self.handle.behaviour)

    # ---- inside ---------------------------------------------------------------------------

    def _terms_about(self, pod: PodInfo, kind: TermKind, nodes: NodeView) -> Sequence[PlacedTerm]:
        """Distinct terms of placed pods that mean this pod."""
        about = nodes.pods.affinity_terms_selecting(kind, pod.shape)
        if not about.conditional:
            return about.certain
        labels = self._labels_of(pod.namespace)
        conditional = [p for p in about.conditional if p.term.namespace_selector.matches(labels)]
        return (*about.certain, *conditional)

    def _labels_of(self, namespace: str) -> Labels:
        """A namespace that is not known has no labels."""
        namespace_object = self.handle.objects(NAMESPACE).get(namespace)
        return (namespace_object.metadata.labels or {}) if namespace_object is not None else {}


def _belongs(pod: PodInfo, pods: PodSet) -> bool:
    return pods.matches(pod.namespace, pod.labels, pod.is_terminating)


def _count(notes: _Notes, pod: PodInfo, other: PodInfo, node: NodeInfo, *, step: int) -> None:
    """Let the notes say that another pod came to a node, or left it."""
    if notes.attracting is not None and _belongs(other, notes.attracting):
        for key in notes.own.keys:
            notes.near.add(key, node.label_id(key), step)
    for key, pods in notes.repelling:
        if _belongs(other, pods):
            notes.away.add(key, node.label_id(key), step)
    for term in other.shape.anti_affinity.required:
        if term.matches(pod.namespace, pod.labels, notes.namespace_labels):
            notes.refusing.add(term.topology_key, node.label_id(term.topology_key), step)


def _signed(shape: PodShape) -> Hashable | None:
    if shape.has_affinity or shape.errors:
        return None
    return (shape.namespace, tuple(sorted(shape.labels.items())))


def _after_own_labels(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    """Placed pods may have had something against the old labels."""
    return QueueingHint.QUEUE
