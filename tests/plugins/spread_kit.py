"""Zones, racks and pods to spread over them, also drawn at random.

Drawn clusters contain many rare cases that are easy to get wrong: empty and missing
labels, hostnames that two nodes share, pods being deleted, empty and null selectors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from hypothesis import strategies as st

from bayplan.api.objects import (
    HOSTNAME_LABEL,
    NODE,
    POD,
    ZONE_LABEL,
    Node,
    Pod,
    decode,
)
from bayplan.api.selectors import first_untolerated, map_selector, node_term
from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour
from bayplan.config.feature_gates import FeatureGates, default_gates
from bayplan.framework.handle import Handle
from bayplan.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.constraints import (
    HARD,
    SELECTING_KINDS,
    Constraint,
    SpreadRules,
)
from bayplan.state.cache import Cache, Snapshot
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo, pod_info

RACK = "rack"
NO_DEFAULTS = PodTopologySpreadArgs(defaulting_type="List")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

# ---- nodes and pods --------------------------------------------------------------------------


def labelled_node(
    name: str = "n1",
    *,
    zone: str | None = None,
    labels: Mapping[str, str | None] | None = None,
    taints: Sequence[str] = (),
) -> Node:
    """A node with its hostname. A label of None is left out. Taints are keys with NoSchedule."""
    all_labels = {HOSTNAME_LABEL: name, ZONE_LABEL: zone, **(labels or {})}
    node_labels = {key: value for key, value in all_labels.items() if value is not None}
    tainted = [{"key": key, "effect": "NoSchedule"} for key in taints]
    content = {"metadata": {"name": name, "labels": node_labels}, "spec": {"taints": tainted}}
    return cast(Node, decode(NODE, content))


def app_pod(
    name: str = "p",
    on: str | None = None,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    spread: Sequence[dict[str, Any]] | None = None,
    **fields: Any,
) -> PodInfo:
    """``owner``: (apiVersion, kind, name) of its controller; ``terminating``, ``nominated``; the
    rest stands in its spec. Without ``labels`` it is app=a."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    metadata["labels"] = {"app": "a"} if labels is None else dict(labels)
    if fields.pop("terminating", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner := fields.pop("owner", None):
        named = dict(zip(("apiVersion", "kind", "name"), owner, strict=True))
        metadata["ownerReferences"] = [named | {"controller": True}]
    status = {"nominatedNodeName": fields.pop("nominated", None)}
    spec = {"nodeName": on, "topologySpreadConstraints": spread, **fields}
    return pod_info(cast(Pod, decode(POD, {"metadata": metadata, "spec": spec, "status": status})))


def constraint(key: str = ZONE_LABEL, action: str = HARD, **fields: Any) -> dict[str, Any]:
    """maxSkew 1 over the pods with app=a."""
    selector = {"matchLabels": {"app": "a"}}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action}
    return constraint | {"labelSelector": selector} | fields


@dataclass
class Listed:
    """The objects of one kind in the API."""

    objects: list[Any] = field(default_factory=list[Any])

    def list(self, namespace: str | None = None) -> list[Any]:
        return [o for o in self.objects if namespace in (None, o.metadata.namespace)]

    def get(self, name: str, namespace: str | None = None) -> Any | None:
        return next((o for o in self.list(namespace) if o.metadata.name == name), None)

    def put(self, kind: str, name: str, selector: Any, namespace: str = "default") -> None:
        metadata = {"name": name, "namespace": namespace}
        self.objects = [o for o in self.objects if o.metadata.name != name]
        self.objects.append(decode(kind, {"metadata": metadata, "spec": {"selector": selector}}))


@dataclass
class SpreadCluster:
    """A handle with Services and controllers only."""

    behaviour: ClassVar[Behaviour] = NEWEST_BEHAVIOUR
    gates: ClassVar[FeatureGates] = default_gates()
    kinds: dict[str, Listed] = field(
        default_factory=lambda: {kind: Listed() for kind in SELECTING_KINDS}
    )

    def objects(self, kind: str) -> Listed:
        return self.kinds[kind]

    def put(
        self, kind: str, name: str, selector: Any, namespace: str = "default"
    ) -> "SpreadCluster":
        self.kinds[kind].put(kind, name, selector, namespace)
        return self


def spreading(args: PodTopologySpreadArgs = NO_DEFAULTS, world: SpreadCluster | None = None) -> Any:
    """The plugin, typed as Any so that tests may read private attributes."""
    return PodTopologySpread(args, cast(Handle, world or SpreadCluster()))


def rules(
    args: PodTopologySpreadArgs = NO_DEFAULTS, world: SpreadCluster | None = None
) -> SpreadRules:
    return SpreadRules(args, cast(Handle, world or SpreadCluster()))


def lent(nodes: Iterable[Node], pods: Iterable[PodInfo] = ()) -> Snapshot:
    cache = Cache()
    for each in nodes:
        cache.add_node(each)
    for placed in pods:
        cache.add_pod(placed)
    return cache.lend()


def zoned(**zones: int) -> Snapshot:
    """One node per zone with a number of pods of app=a: ``zoned(a=2, b=0)``."""
    nodes = [labelled_node(f"in-{zone}", zone=zone) for zone in zones]
    placed = [app_pod(f"{z}{i}", f"in-{z}") for z, count in zones.items() for i in range(count)]
    return lent(nodes, placed)


# ---- drawn -----------------------------------------------------------------------------------

_label_sets = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("xy")}
)
_selectors = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"app": "a"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]},
        {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    ]
)
_policies = st.sampled_from([None, "Honor", "Ignore"])
_node_terms = st.sampled_from(
    [
        {"matchExpressions": [{"key": RACK, "operator": "Exists"}]},
        {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["not a value!"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}]},
        {},
    ]
)


@st.composite
def drawn_constraints(draw: st.DrawFn, action: str) -> list[dict[str, Any]]:
    one = st.fixed_dictionaries(
        {
            "maxSkew": st.integers(1, 3),
            "topologyKey": st.sampled_from([HOSTNAME_LABEL, ZONE_LABEL, RACK]),
            "whenUnsatisfiable": st.just(action),
            "labelSelector": _selectors,
            "minDomains": st.none() | st.integers(1, 4),
            "nodeAffinityPolicy": _policies,
            "nodeTaintsPolicy": _policies,
            "matchLabelKeys": st.sampled_from([None, ["tier"], ["tier", "none"]]),
        }
    )
    return draw(st.lists(one, min_size=1, max_size=3))


@st.composite
def drawn_pods(draw: st.DrawFn, action: str) -> PodInfo:
    """Draws a waiting pod with constraints of one kind."""
    terms = draw(st.none() | st.lists(_node_terms, max_size=2))
    affinity = None
    if terms is not None:
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return app_pod(
        labels=draw(_label_sets),
        spread=draw(drawn_constraints(action)),
        nodeSelector=draw(st.sampled_from([None, None, {RACK: "r1"}])),
        affinity=affinity,
        tolerations=draw(st.sampled_from([None, [{"key": "k", "operator": "Exists"}]])),
    )


@st.composite
def drawn_clusters(draw: st.DrawFn) -> Snapshot:
    """Draws up to 6 nodes with up to 10 pods."""
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 6))):
        labels = {
            HOSTNAME_LABEL: draw(st.sampled_from([f"n{index}", f"n{index}", "n0", None])),
            RACK: draw(st.sampled_from(["r1", "r2", "", None])),
        }
        zone = draw(st.sampled_from(["z1", "z2", "z3", "", None]))
        taints = draw(st.sampled_from([(), (), ("k",), ("l",)]))
        nodes.append(labelled_node(f"n{index}", zone=zone, labels=labels, taints=taints))
    return lent(nodes, draw(drawn_placed(len(nodes))))


@st.composite
def drawn_placed(draw: st.DrawFn, node_count: int) -> list[PodInfo]:
    return [
        app_pod(
            f"placed-{index}",
            f"n{draw(st.integers(0, node_count - 1))}",
            namespace=draw(st.sampled_from(["default", "default", "other"])),
            labels=draw(_label_sets),
            terminating=draw(st.sampled_from([False, False, True])),
        )
        for index in range(draw(st.integers(0, 10)))
    ]


# ---- the plain rules -----------------------------------------------------------------


def plainly_has_all(constraints: Iterable[Constraint], info: NodeInfo) -> bool:
    return all(each.topology_key in info.labels for each in constraints)


def plainly_included(constraint: Constraint, info: NodeInfo, waiting: PodInfo) -> bool:
    """Whether the inclusion policies include a node."""
    affinity, selected = waiting.spec.affinity, waiting.spec.node_selector or {}
    if constraint.honors_affinity and not map_selector(selected).matches(info.labels):
        return False
    if constraint.honors_affinity and affinity is not None and affinity.node_affinity is not None:
        required = affinity.node_affinity.required
        stated = (required.node_selector_terms or ()) if required is not None else ()
        terms = [node_term(term) for term in stated]
        if not any(term.matches(info.labels, info.name) for term in terms):
            return False
    forbids = ("NoSchedule", "NoExecute")
    refused = first_untolerated(
        info.taints, waiting.shape.tolerations, lambda taint: taint.effect in forbids
    )
    return not constraint.honors_taints or refused is None


def plainly_counted(constraint: Constraint, info: NodeInfo, waiting: PodInfo) -> int:
    """The number of pods of a node that count for a constraint."""
    return sum(
        each.namespace == waiting.namespace
        and not each.is_terminating
        and not constraint.selector.is_everything
        and constraint.selector.matches(each.labels)
        for each in info.pods
    )
