"""A cluster as plain dictionaries: the values that columns must have, counted pod by pod.

`values_of_nodes` reads every value of a view; `expected` counts the same from the model. Values
are listed by node name, so row numbers, holes and orders do not matter.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL, Node
from bayplan.api.pod_requests import amounts
from bayplan.api.selectors import EVERYTHING, map_selector
from bayplan.rng import stable_hash
from bayplan.state.change_log import Facet
from bayplan.state.domain_counts import PodSet
from bayplan.state.host_ports import HostPort, conflicts
from bayplan.state.nodes import NodeView
from bayplan.state.placed_terms import TermKind
from bayplan.state.pods import PodInfo

LABEL_KEYS = (HOSTNAME_LABEL, ZONE_LABEL, "disk")
RESOURCES = ("cpu", "memory", "pods", "example.com/gpu", "example.com/never")
PORTS = (HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "TCP", 80))
IMAGES = ("i", "j")
POD_SETS = (
    PodSet(None, EVERYTHING),
    PodSet(frozenset(("default",)), map_selector({"app": "web"})),
    PodSet(None, map_selector({"app": "db"}), with_terminating=False),
)

Values = dict[str, Any]


@dataclass
class Model:
    """Nodes and placed pods by name and uid; pods in the order of their arrival on their node."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    pods: dict[str, PodInfo] = field(default_factory=dict[str, PodInfo])
    assumed: set[str] = field(default_factory=set[str])

    def on(self, name: str) -> list[PodInfo]:
        return [pod for pod in self.pods.values() if pod.node_name == name]

    def place(self, pod: PodInfo) -> None:
        """Add or replace a pod. The newest pod of a node is its last."""
        self.pods.pop(pod.uid, None)
        self.pods[pod.uid] = pod

    def copy(self) -> "Model":
        return Model(dict(self.nodes), dict(self.pods), set(self.assumed))


# ---- the values of a view --------------------------------------------------------------------


def values_of_nodes(nodes: NodeView) -> dict[str, Values]:
    """Node name → column → value."""
    columns: dict[str, Any] = {f"allocatable {r}": nodes.allocatable(r) for r in RESOURCES}
    columns |= {f"requested {r}": nodes.requested(r) for r in RESOURCES}
    columns["non-zero cpu"] = nodes.resources.non_zero_requested("cpu")
    columns["non-zero memory"] = nodes.resources.non_zero_requested("memory")
    columns["pods"] = nodes.pods.counts()
    columns["unschedulable"] = nodes.taints.unschedulable()
    columns["with affinity"] = nodes.pods.with_affinity()
    columns["with anti-affinity"] = nodes.pods.with_required_anti_affinity()
    columns |= {f"label {key}": _values(nodes, key) for key in LABEL_KEYS}
    columns["taints"] = [nodes.taints.sets()[i] for i in nodes.taints.set_ids()]
    columns |= {f"matching {i}": nodes.pods.matching(s) for i, s in enumerate(POD_SETS)}
    columns |= {f"port {port}": nodes.pods.conflicting_ports([port]) for port in PORTS}
    columns |= {f"image {name}": _holders(nodes, name) for name in IMAGES}
    columns["free cpu"] = nodes.derived(
        "free cpu", Facet.REQUESTED | Facet.ALLOCATABLE, np.int64, _free_cpu
    )
    columns["infos"] = [[pod.uid for pod in info.pods] for info in nodes.infos()]
    columns["terms"] = _terms(nodes)
    columns_by_node = {name: dict[str, Any]() for name in nodes.names()}
    for column, values in columns.items():
        for name, value in zip(columns_by_node, values, strict=True):
            columns_by_node[name][column] = value.item() if isinstance(value, np.generic) else value
    return columns_by_node


def _values(nodes: NodeView, key: str) -> list[str | None]:
    values = nodes.labels.values(key)
    return [values[int(i)] if i >= 0 else None for i in nodes.labels.ids(key)]


def _holders(nodes: NodeView, name: str) -> Any:
    image = nodes.image(name)
    return nodes.table.mask(image.rows_array() if image is not None else [])


def _free_cpu(nodes: NodeView) -> Any:
    return nodes.allocatable("cpu") - nodes.requested("cpu")


def _terms(nodes: NodeView) -> list[Counter[Any]]:
    """Per node: (kind, term, weight) → number of pods with the term."""
    counters: list[Counter[Any]] = [Counter() for _ in range(len(nodes))]
    for kind in TermKind:
        for placed in nodes.pods.affinity_terms(kind):
            for counter, row in zip(counters, nodes.table.rows.tolist(), strict=True):
                counter[kind, placed.term, placed.weight] += placed.rows.get(row, 0)
    return [+counter for counter in counters]


# ---- the expected values ---------------------------------------------------------------------


def expected(model: Model) -> dict[str, Values]:
    return {name: _expected(node, model.on(name)) for name, node in model.nodes.items()}


def _expected(node: Node, pods: list[PodInfo]) -> Values:
    offered = amounts(node.status.allocatable)
    labels: Mapping[str, str] = node.metadata.labels or {}
    image_names = {name for image in node.status.images or () for name in image.names or ()}
    requests = {r: sum(pod.requests.get(r, 0) for pod in pods) for r in RESOURCES}
    shapes = [pod.shape for pod in pods]
    values: Values = {f"allocatable {r}": offered.get(r, 0) for r in RESOURCES}
    values |= {f"requested {r}": requests[r] for r in RESOURCES}
    values["non-zero cpu"] = sum(shape.non_zero_milli_cpu for shape in shapes)
    values["non-zero memory"] = sum(shape.non_zero_memory_bytes for shape in shapes)
    values["pods"] = len(pods)
    values["unschedulable"] = bool(node.spec.unschedulable)
    values["with affinity"] = sum(shape.has_affinity for shape in shapes)
    values["with anti-affinity"] = sum(bool(shape.anti_affinity.required) for shape in shapes)
    values |= {f"label {key}": labels.get(key) for key in LABEL_KEYS}
    values["taints"] = node.spec.taints or ()
    for i, expected in enumerate(POD_SETS):
        matches = (expected.matches(p.namespace, p.labels, p.is_terminating) for p in pods)
        values[f"matching {i}"] = sum(matches)
    for port in PORTS:
        taken = (p for shape in shapes for p in shape.host_ports)
        values[f"port {port}"] = any(conflicts(port, p) for p in taken)
    values |= {f"image {name}": name in image_names for name in IMAGES}
    values["free cpu"] = offered.get("cpu", 0) - requests["cpu"]
    values["infos"] = [pod.uid for pod in pods]
    values["terms"] = Counter(stated for pod in pods for stated in _stated(pod))
    return values


def _stated(pod: PodInfo) -> list[Any]:
    near, away = pod.shape.affinity, pod.shape.anti_affinity
    return [
        *((TermKind.REQUIRED_AFFINITY, term, 1) for term in near.required),
        *((TermKind.REQUIRED_ANTI_AFFINITY, term, 1) for term in away.required),
        *((TermKind.PREFERRED_AFFINITY, w.term, w.weight) for w in near.preferred),
        *((TermKind.PREFERRED_ANTI_AFFINITY, w.term, w.weight) for w in away.preferred),
    ]


def expected_draw_order(model: Model) -> list[str]:
    return sorted(model.nodes, key=lambda name: (stable_hash(name), name))


#: Facet → prefixes of its columns. The log must name every row where one of them changed.
FACET_COLUMNS: dict[Facet, tuple[str, ...]] = {
    Facet.REQUESTED: ("requested", "non-zero", "pods"),
    Facet.ALLOCATABLE: ("allocatable",),
    Facet.LABELS: ("label",),
    Facet.TAINTS: ("taints", "unschedulable"),
    Facet.PORTS: ("port",),
    Facet.IMAGES: ("image",),
    Facet.PODS: ("pods", "matching", "with", "terms"),
}


def by_facet(values_by_node: dict[str, Values]) -> dict[Facet, dict[str, Values]]:
    """Facet → node name → column → value, with the columns of the facet."""
    return {
        facet: {
            name: {column: value for column, value in each.items() if column.startswith(prefixes)}
            for name, each in values_by_node.items()
        }
        for facet, prefixes in FACET_COLUMNS.items()
    }
