"""NodeAffinity: nodeSelector and node affinity, the pod's own and the configuration's.

Required terms reject nodes, preferred ones add their weights. A pod's terms are compiled once per
shape; each term is then evaluated for all nodes by a comparison of label columns. A required term
that does not parse matches no node, without an error; a preferred term that does not parse ends the
attempt. Upstream: plugins/nodeaffinity and component-helpers nodeaffinity.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import final

import numpy as np
from msgspec import Struct, field

from bayplan.api.objects import (
    PREFERRED,
    REQUIRED,
    LabelSelectorRequirement,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from bayplan.api.objects import (
    NodeAffinity as NodeAffinityRules,
)
from bayplan.api.selectors import (
    IN,
    NODE_NAME_FIELD,
    NodeTerm,
    PreferredTerm,
    map_selector,
    node_term,
    preferred_terms,
)
from bayplan.framework import plugin
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.status import SKIP, Code, Rejection, Status, unresolvable
from bayplan.framework.types import Normalizer, PreFilterResult, Verdict
from bayplan.state.change_log import Facet
from bayplan.state.columns import Mask, NodeMask, NodeScores
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
NO_ADDED_MATCH = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"


# ---- args ----------------------------------------------------------------------------------

# The API's own types let unknown fields pass; in a configuration they are mistakes.


class AddedRequirement(LabelSelectorRequirement, frozen=True, forbid_unknown_fields=True):
    """One condition on a label or field."""


class AddedTerm(NodeSelectorTerm, frozen=True, forbid_unknown_fields=True):
    """Conditions that must all hold."""

    match_expressions: tuple[AddedRequirement, ...] | None = None
    match_fields: tuple[AddedRequirement, ...] | None = None


class AddedSelector(NodeSelector, frozen=True, forbid_unknown_fields=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[AddedTerm, ...] | None = None


class AddedPreference(PreferredSchedulingTerm, frozen=True, forbid_unknown_fields=True):
    """A term with its weight."""

    preference: AddedTerm = AddedTerm()


class AddedAffinity(NodeAffinityRules, frozen=True, forbid_unknown_fields=True):
    """Node affinity as a pod may have it."""

    required: AddedSelector | None = field(default=None, name=REQUIRED)
    preferred: tuple[AddedPreference, ...] | None = field(default=None, name=PREFERRED)


class NodeAffinityArgs(plugin.PluginArgs, frozen=True):
    """``addedAffinity`` applies to all pods, in addition to their own affinity."""

    added_affinity: AddedAffinity | None = None

    def problems(self) -> Iterable[tuple[str, str]]:
        added = self.added_affinity or AddedAffinity()
        terms = (added.required.node_selector_terms or ()) if added.required else ()
        for index, term in enumerate(terms):
            path = f"addedAffinity.{REQUIRED}.nodeSelectorTerms[{index}]"
            yield from _term_problems(path, term)
        for index, entry in enumerate(added.preferred or ()):
            if entry.weight:  # a term without weight is never read
                yield from _term_problems(f"addedAffinity.{PREFERRED}[{index}]", entry.preference)


def _term_problems(path: str, term: AddedTerm) -> Iterable[tuple[str, str]]:
    error = node_term(term).error
    if error is not None:
        yield path, f"{error}; wanted a node selector term"


# ---- the plugin ----------------------------------------------------------------------------


@final
class NodeAffinity(
    plugin.PreFilterPlugin[NodeAffinityArgs],
    plugin.FilterPlugin,
    plugin.RowFilter,
    plugin.PreScorePlugin,
    plugin.ScorePlugin,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
):
    """Restricts pods to the nodes that they select, and prefers the nodes that they prefer."""

    name = "NodeAffinity"
    caching = plugin.Caching(
        facets=Facet.LABELS, signs_template=True, pre_state_per_template=True, follows_pin=True
    )
    ignores_resizes = True
    normalizer = Normalizer.MAX

    def setup(self) -> None:
        args = self.args or NodeAffinityArgs()
        added = args.added_affinity or AddedAffinity()
        self._added = _terms_of(added.required)
        self._added_preferred = preferred_terms(added.preferred)
        self._prefers = bool(added.preferred)
        self._adds = self._added is not None or self._prefers

    def concerns(self, shape: PodShape) -> bool:
        rules = _rules(shape)
        has_own = rules.required is not None or rules.preferred is not None
        return has_own or shape.spec.node_selector is not None or self._adds

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        demands = _demands(pod)
        return SKIP if demands.is_none and self._added is None else demands.pre_filter

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, feasible: NodeMask
    ) -> Iterable[Rejection]:
        matching = _demands(pod).matching(nodes)
        if self._added is None:
            if matching is not None:
                yield _rejection(~matching, NO_MATCH)
            return
        enforced = _any_of(self._added, nodes)
        yield _rejection(~enforced, NO_ADDED_MATCH)
        if matching is not None:
            yield _rejection(enforced & ~matching, NO_MATCH)

    def filter_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Verdict:
        labels, name = node.labels, node.name
        if self._added is not None and not any(t.matches(labels, name) for t in self._added):
            return ((Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_ADDED_MATCH,)),)
        if not _demands(pod).are_met(labels, name):
            return ((Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_MATCH,)),)
        return ()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status | None:
        preferences = _preferences(pod)
        if preferences is None:
            return None if self._prefers else SKIP
        return preferences.problem

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: the weights of the preferred terms that match, added up."""
        preferences = _preferences(pod)
        own = preferences.terms if preferences is not None else ()
        scores = np.zeros(len(nodes), np.int64)
        for preferred in (*self._added_preferred, *own):
            scores += nodes.labels.matching_term(preferred.term) * np.int64(preferred.weight)
        return scores

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node_changed = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        event = ClusterEvent(EventResource.NODE, node_changed)
        return [ClusterEventWithHint(event, self._after_node)]

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """The signature leaves out the added affinity, which is the same for all pods."""
        return pod.shape.once_per_spec("NodeAffinity.sign", _canonical)

    def _after_node(self, pod: PodInfo, old: Node | None, new: Node) -> QueueingHint:
        """QUEUE if the node matches, and did not match or exist before.

        Upstream does not check whether the old node matched addedAffinity, so there a pod keeps
        waiting for a node that begins to match.
        """
        fits = self._fits(pod, new)
        if fits is False or (fits and old is not None and self._fits(pod, old)):
            return QueueingHint.QUEUE_SKIP
        return QueueingHint.QUEUE

    def _fits(self, pod: PodInfo, node: Node) -> bool | None:
        if self._added is not None and not _any_matches(self._added, node):
            return False
        return _demands(pod).fits(node)


def _rejection(rows: Mask, reason: str) -> Rejection:
    return Rejection(rows, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


# ---- what a pod demands --------------------------------------------------------------------


class _Demands(Struct, frozen=True):
    """A node must have all labels of the pod's nodeSelector, and match one of the required
    terms."""

    selector: NodeTerm | None
    #: None: no required affinity; (): a required affinity that no node satisfies.
    terms: tuple[NodeTerm, ...] | None
    pre_filter: PreFilterResult | Status | None
    is_none: bool

    def matching(self, nodes: NodeView) -> Mask | None:
        """bool[nodes]: nodes that meet the demands; None: the pod has none."""
        selected = None if self.selector is None else nodes.labels.matching_term(self.selector)
        if self.terms is None:
            return selected
        matching = _any_of(self.terms, nodes)
        return matching if selected is None else matching & selected

    def are_met(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether one node meets the demands."""
        if self.selector is not None and not self.selector.matches(labels, name):
            return False
        return self.terms is None or any(term.matches(labels, name) for term in self.terms)

    def fits(self, node: Node) -> bool | None:
        """None: no term matches, and some term does not parse.

        Upstream's hint then fails, which makes the queue try the pod.
        """
        labels, name = node.metadata.labels or {}, node.metadata.name
        if self.selector is not None and not self.selector.matches(labels, name):
            return False
        if self.terms is None or _any_matches(self.terms, node):
            return True
        return None if any(term.error is not None for term in self.terms) else False


def _demands(pod: PodInfo) -> _Demands:
    return pod.shape.once("NodeAffinity.demands", _compiled_demands)


def _compiled_demands(shape: PodShape) -> _Demands:
    labels, rules = shape.spec.node_selector, _rules(shape)
    selector = NodeTerm(map_selector(labels).requirements) if labels else None
    return _Demands(
        selector=selector,
        terms=_terms_of(rules.required),
        pre_filter=_narrowed(rules.required),
        # An empty nodeSelector demands nothing, but counts as a nodeSelector.
        is_none=labels is None and rules.required is None,
    )


def _rules(shape: PodShape) -> NodeAffinityRules:
    affinity = shape.spec.affinity
    return (affinity.node_affinity if affinity is not None else None) or _NO_RULES


_NO_RULES = NodeAffinityRules()


def _terms_of(selector: NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    if selector is None:
        return None
    return tuple(node_term(term) for term in selector.node_selector_terms or ())


def _narrowed(required: NodeSelector | None) -> PreFilterResult | Status | None:
    """The nodes that the terms name, if each term names some. Terms are OR-ed, the fields of a term
    AND-ed."""
    names: set[str] = set()
    terms = (required.node_selector_terms or ()) if required is not None else ()
    for term in terms:
        named = [
            frozenset(expression.values or ())
            for expression in term.match_fields or ()
            if expression.key == NODE_NAME_FIELD and expression.operator == IN
        ]
        if not named:
            return None
        names |= named[0].intersection(*named[1:])
    if not terms:
        return None
    return PreFilterResult(frozenset(names)) if names else unresolvable(CONFLICT)


def _any_of(terms: Sequence[NodeTerm], nodes: NodeView) -> Mask:
    """bool[nodes]: nodes that one of the terms matches."""
    if not terms:
        return np.zeros(len(nodes), np.bool_)
    matching = nodes.labels.matching_term(terms[0])
    for term in terms[1:]:
        matching = matching | nodes.labels.matching_term(term)
    return matching


def _any_matches(terms: Iterable[NodeTerm], node: Node) -> bool:
    labels, name = node.metadata.labels or {}, node.metadata.name
    return any(term.matches(labels, name) for term in terms)


# ---- what a pod prefers --------------------------------------------------------------------


class _Preferences(Struct, frozen=True):
    terms: tuple[PreferredTerm, ...]
    #: Some term does not parse.
    problem: Status | None


def _preferences(pod: PodInfo) -> _Preferences | None:
    return pod.shape.once("NodeAffinity.preferences", _compiled_preferences)


def _compiled_preferences(shape: PodShape) -> _Preferences | None:
    preferred = _rules(shape).preferred
    if preferred is None:
        return None
    terms = preferred_terms(preferred)
    errors = [t.term.error for t in terms if t.term.error is not None]
    problem = Status(Code.ERROR, (f"{PREFERRED}: {', '.join(errors)}",)) if errors else None
    return _Preferences(terms, problem)


# ---- signature -----------------------------------------------------------------------------


def _canonical(shape: PodShape) -> Hashable:
    """Selector, required and preferred terms as written, sorted."""
    labels, rules = shape.spec.node_selector, _rules(shape)
    required: Hashable = None
    if rules.required is not None:
        required = tuple(sorted(map(_term_part, rules.required.node_selector_terms or ())))
    preferred: Hashable = None
    if rules.preferred is not None:
        preferred = tuple(sorted((t.weight, _term_part(t.preference)) for t in rules.preferred))
    return None if labels is None else _sorted_items(labels), required, preferred


def _sorted_items(labels: Mapping[str, str]) -> Hashable:
    return tuple(sorted(labels.items()))


_Part = tuple[tuple[str, str, tuple[str, ...]], ...]


def _term_part(term: NodeSelectorTerm) -> tuple[_Part, _Part]:
    return _conditions_part(term.match_expressions), _conditions_part(term.match_fields)


def _conditions_part(conditions: Iterable[LabelSelectorRequirement] | None) -> _Part:
    parts = [(c.key, c.operator, tuple(sorted(c.values or ()))) for c in conditions or ()]
    return tuple(sorted(parts))
