"""Clusters for the tests of InterPodAffinity, and the expected results, computed pod by pod.

The scalar answers are the specification: each is written as upstream's documentation words it,
over plain lists, without a column.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import strategies as st

from bayplan.api.affinity import AffinityTerm
from bayplan.api.objects import NAMESPACE, Namespace, Node, ObjectMeta
from bayplan.config.behaviour import NEWEST_BEHAVIOUR
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import FilterOutcome
from bayplan.framework.handle import Handle
from bayplan.framework.status import Code, Status
from bayplan.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from bayplan.state.cache import Cache, Snapshot
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo
from bayplan.testing import node, pod
from tests.state.affinity_terms import PREFERRED, REQUIRED, weighted

Answer = tuple[Code, str] | None


class Namespaces:
    """The lister of namespaces."""

    def __init__(self, labels: dict[str, dict[str, str]]) -> None:
        self.labels = labels

    def list(self, namespace: str | None = None) -> list[Namespace]:
        return [status for name in self.labels if (status := self.get(name)) is not None]

    def get(self, name: str, namespace: str | None = None) -> Namespace | None:
        if name not in self.labels:
            return None
        return Namespace(metadata=ObjectMeta(name=name, labels=self.labels[name]))


class NamespaceHandle:
    """The part of a handle that the plugin uses."""

    behaviour = NEWEST_BEHAVIOUR

    def __init__(self, labels: dict[str, dict[str, str]]) -> None:
        self._namespaces = Namespaces(labels)

    def objects(self, kind: str) -> Namespaces:
        assert kind == NAMESPACE
        return self._namespaces


@dataclass
class AffinityCluster:
    """A cluster as plain lists."""

    nodes: list[Node]
    placed: list[PodInfo] = field(default_factory=list[PodInfo])
    #: Namespace → labels, for the namespaces that exist.
    namespaces: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"default": dict[str, str]()}
    )
    args: InterPodAffinityArgs = field(default_factory=InterPodAffinityArgs)

    def plugin(self) -> InterPodAffinity:
        return InterPodAffinity(self.args, cast(Handle, NamespaceHandle(self.namespaces)))

    def lend(self) -> Snapshot:
        cache = Cache()
        for each in self.nodes:
            cache.add_node(each)
        for each in self.placed:
            cache.add_pod(each)
        return cache.lend()


# ---- results of the plugin ---------------------------------------------------------------------


def filter_answers(
    plugin: InterPodAffinity, state: CycleState, pod: PodInfo, nodes: NodeView
) -> dict[str, Answer]:
    """Node → reason of its rejection, or None if the pod fits."""
    outcome = FilterOutcome(nodes, nodes.allocatable("cpu") >= 0)
    outcome.add(plugin.instance_name, plugin.filter(state, pod, nodes, outcome.feasible))
    statuses = {nodes.name(position): outcome.status_of(position) for position in range(len(nodes))}
    return {name: _answer(status) for name, status in statuses.items()}


def _answer(status: Status | None) -> Answer:
    if status is None:
        return None
    (reason,) = status.reasons
    return status.code, reason


def filtered(world: AffinityCluster, pod: PodInfo) -> dict[str, Answer] | Code:
    """The result of Filter on all nodes, or PreFilter's SKIP or rejection."""
    plugin, state, nodes = world.plugin(), CycleState(), world.lend().nodes
    answer = plugin.pre_filter(state, pod, nodes)
    if isinstance(answer, Status):
        return answer.code
    return filter_answers(plugin, state, pod, nodes)


def scored(world: AffinityCluster, pod: PodInfo) -> dict[str, tuple[int, int]] | Code:
    """(raw, normalised) score of every node, or SKIP."""
    plugin, state, nodes = world.plugin(), CycleState(), world.lend().nodes
    status = plugin.pre_score(state, pod, nodes)
    if status is not None:
        return status.code
    raw = plugin.score(state, pod, nodes)
    final = plugin.normalize(state, pod, raw)
    pairs = zip(raw.tolist(), final.tolist(), strict=True)
    return dict(zip(nodes.names(), pairs, strict=True))


# ---- what it must say --------------------------------------------------------------------------


def labels_of(node: Node) -> dict[str, str]:
    return node.metadata.labels or {}


def own_means(world: AffinityCluster, term: AffinityTerm, other: PodInfo) -> bool:
    """Whether the incoming pod's term selects the pod; unknown namespaces are not selected."""
    namespaces = set(term.namespaces)
    if term.namespace_selector.is_everything:
        namespaces.add(other.namespace)
    for name, labels in world.namespaces.items():
        if term.namespace_selector.matches(labels):
            namespaces.add(name)
    return other.namespace in namespaces and term.selector.matches(other.labels)


def their_term_means(world: AffinityCluster, term: AffinityTerm, pod: PodInfo) -> bool:
    """Whether a placed pod's term selects the pod; an unknown namespace has no labels."""
    return term.matches(pod.namespace, pod.labels, world.namespaces.get(pod.namespace, {}))


def pods_with_nodes(world: AffinityCluster) -> list[tuple[PodInfo, dict[str, str]]]:
    """Placed pods with the labels of their nodes, without pods on deleted nodes."""
    labels = {node.metadata.name: labels_of(node) for node in world.nodes}
    return [(each, labels[each.node_name]) for each in world.placed if each.node_name in labels]


def shares(key: str, labels: dict[str, str], other_labels: dict[str, str]) -> bool:
    return key in labels and labels[key] == other_labels.get(key)


def why_not(world: AffinityCluster, pod: PodInfo, node: Node) -> Answer:
    labels, placed = labels_of(node), pods_with_nodes(world)
    near, away = pod.shape.affinity.required, pod.shape.anti_affinity.required
    expected = [on for each, on in placed if all(own_means(world, term, each) for term in near)]
    is_first = all(own_means(world, term, pod) for term in near) and not any(
        term.topology_key in on for term in near for on in expected
    )
    for term in near:
        reached = any(shares(term.topology_key, labels, on) for on in expected)
        if not reached and not (is_first and term.topology_key in labels):
            return Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "node(s) didn't match pod affinity rules"
    for term in away:
        if any(
            own_means(world, term, p) and shares(term.topology_key, labels, on) for p, on in placed
        ):
            return Code.UNSCHEDULABLE, "node(s) didn't match pod anti-affinity rules"
    if any(shares(term.topology_key, labels, on) for term, on in refusals(world, pod)):
        return Code.UNSCHEDULABLE, "node(s) didn't satisfy existing pods anti-affinity rules"
    return None


def refusals(world: AffinityCluster, pod: PodInfo) -> list[tuple[AffinityTerm, dict[str, str]]]:
    """(term, labels of its node) of required anti-affinity terms that select the pod."""
    return [
        (term, on)
        for each, on in pods_with_nodes(world)
        for term in each.shape.anti_affinity.required
        if their_term_means(world, term, pod) and term.topology_key in on
    ]


def must_filter(world: AffinityCluster, pod: PodInfo) -> dict[str, Answer] | Code:
    has_terms = pod.shape.affinity.required or pod.shape.anti_affinity.required
    if not has_terms and not refusals(world, pod):
        return Code.SKIP
    return {node.metadata.name: why_not(world, pod, node) for node in world.nodes}


def contributions(world: AffinityCluster, pod: PodInfo) -> list[tuple[str, str, int]]:
    """(topology key, value, weight), one for each term that matches."""
    terms: list[tuple[AffinityTerm, int, dict[str, str]]] = []
    near, away = pod.shape.affinity.preferred, pod.shape.anti_affinity.preferred
    for other, on in pods_with_nodes(world):
        terms += [(w.term, w.weight, on) for w in near if own_means(world, w.term, other)]
        terms += [(w.term, -w.weight, on) for w in away if own_means(world, w.term, other)]
        theirs = [(w.term, w.weight) for w in other.shape.affinity.preferred]
        theirs += [(w.term, -w.weight) for w in other.shape.anti_affinity.preferred]
        hard = world.args.hard_pod_affinity_weight
        theirs += [(term, hard) for term in other.shape.affinity.required if hard > 0]
        terms += [(t, weight, on) for t, weight in theirs if their_term_means(world, t, pod)]
    return [
        (term.topology_key, on[term.topology_key], weight)
        for term, weight, on in terms
        if term.topology_key in on
    ]


def must_score(world: AffinityCluster, pod: PodInfo) -> dict[str, tuple[int, int]] | Code:
    prefers = pod.shape.affinity.preferred or pod.shape.anti_affinity.preferred
    if world.args.ignore_preferred_terms_of_existing_pods and not prefers:
        return Code.SKIP
    worth = contributions(world, pod)
    if not worth:
        return Code.SKIP
    raw = {
        node.metadata.name: sum(w for key, value, w in worth if labels_of(node).get(key) == value)
        for node in world.nodes
    }
    lowest, highest = min(raw.values()), max(raw.values())
    spread = highest - lowest
    return {n: (s, int(100.0 * ((s - lowest) / spread)) if spread else 0) for n, s in raw.items()}


# ---- drawing -----------------------------------------------------------------------------------

NAMESPACES = ("default", "other", "unknown")
KEYS = ("zone", "kubernetes.io/hostname")

POD_LABELS: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(["web", "db"]), "tier": st.just("x")}
)
SELECTORS: st.SearchStrategy[dict[str, Any] | None] = st.one_of(
    st.sampled_from(["web", "db"]).map(lambda app: {"matchLabels": {"app": app}}),
    st.just({}),
    st.none(),
    st.just({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}),
    st.just({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
)
NAMESPACE_SELECTORS: list[dict[str, Any] | None] = [
    None,
    None,
    {},
    {"matchLabels": {"team": "a"}},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
]


@st.composite
def drawn_terms(draw: st.DrawFn) -> dict[str, Any]:
    answers = {
        "topologyKey": draw(st.sampled_from(KEYS)),
        "labelSelector": draw(SELECTORS),
        "namespaces": draw(st.sampled_from([None, None, ["other"], ["default", "other"]])),
        "namespaceSelector": draw(st.sampled_from(NAMESPACE_SELECTORS)),
    }
    return {name: value for name, value in answers.items() if value is not None}


@st.composite
def drawn_pods(draw: st.DrawFn, name: str, places: Sequence[str] = ()) -> PodInfo:
    required = st.lists(drawn_terms(), max_size=2)
    preferred = st.lists(st.builds(weighted, st.sampled_from([1, 3, 5]), drawn_terms()), max_size=2)
    affinity = st.fixed_dictionaries({}, optional={REQUIRED: required, PREFERRED: preferred})
    both = {"podAffinity": affinity, "podAntiAffinity": affinity}
    return pod(
        name,
        node=draw(st.sampled_from(places)) if places else "",
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(POD_LABELS),
        affinity=draw(st.fixed_dictionaries({}, optional=both)),
        terminating=draw(st.booleans()),
    )


@st.composite
def drawn_worlds(draw: st.DrawFn) -> AffinityCluster:
    zones = draw(st.lists(st.sampled_from([None, "z1", "z2"]), min_size=1, max_size=5))
    nodes = [
        node(f"n{index}", labels={"zone": zone} if zone else {}) for index, zone in enumerate(zones)
    ]
    places = [*(each.metadata.name for each in nodes), "gone"]
    count = draw(st.integers(0, 6))
    teams = st.sampled_from([{}, {"team": "a"}, {"team": "b"}])
    return AffinityCluster(
        nodes=nodes,
        placed=[draw(drawn_pods(f"placed-{index}", places)) for index in range(count)],
        namespaces={"default": draw(teams), "other": draw(teams)},
        args=InterPodAffinityArgs(
            hard_pod_affinity_weight=draw(st.sampled_from([0, 1, 10])),
            ignore_preferred_terms_of_existing_pods=draw(st.booleans()),
        ),
    )
