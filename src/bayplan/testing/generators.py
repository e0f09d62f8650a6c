"""Generators of clusters and pods. Few distinct values, so that drawn objects match and conflict.

All draws come from one generator, so a seed determines everything. `Vocabulary` holds the names;
`Vocabulary.with_keys` adds the keys that a plugin reads, so that labels of its own are drawn, too.

Nodes are drawn facet by facet: a redrawn facet changes that facet of a row and no other. Pods are
drawn field by field: a variant of a pod differs from it in one named field.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, cast

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.api.selectors import DOES_NOT_EXIST, EXISTS, GREATER_THAN, IN, LESS_THAN, NOT_IN
from bayplan.rng import Stream
from bayplan.state.change_log import Facet
from bayplan.testing.factories import NodeOptions, PodOptions

# ---- draws ----------------------------------------------------------------------------------


T = TypeVar("T")

NAMESPACES = ("default", "other")

#: Values of keys that a plugin reads: numbers within and beyond the range of scores, words, "".
READ_KEY_VALUES = ("0", "7", "40", "100", "2.5", "-3", "high", "")


def _node_labels() -> Mapping[str, Sequence[str]]:
    return {
        ZONE_LABEL: ("za", "zb", "zc"),
        "disktype": ("ssd", "hdd"),
        "rack": ("r1", "r2", "r3"),
        "cores": ("4", "16"),
    }


def _pod_labels() -> Mapping[str, Sequence[str]]:
    return {"app": ("web", "db", "cache"), "tier": ("front", "back")}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The values to draw from: keys with their values, and names."""

    node_labels: Mapping[str, Sequence[str]] = field(default_factory=_node_labels)
    node_annotations: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    pod_labels: Mapping[str, Sequence[str]] = field(default_factory=_pod_labels)
    pod_annotations: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    #: Paths of fields that a plugin declares, as in `Plugin.fields`, within a node.
    node_fields: Sequence[str] = ()
    #: Beside cpu, memory and pods.
    resources: Sequence[str] = ("nvidia.com/gpu", "ephemeral-storage", "hugepages-2Mi")
    images: Sequence[str] = ("registry.test/web:1", "registry.test/db", "registry.test/tool:2")

    def with_keys(self, **keys_by_field: frozenset[str]) -> "Vocabulary":
        """``with_keys(node_labels={"price"})``: new keys get `READ_KEY_VALUES`.

        A node's hostname is always its name.
        """
        more: dict[str, Any] = {}
        for name, keys in keys_by_field.items():
            values: Mapping[str, Sequence[str]] = getattr(self, name)
            more[name] = {
                **dict.fromkeys(sorted(keys - {HOSTNAME_LABEL}), READ_KEY_VALUES),
                **values,
            }
        return replace(self, **more)


@dataclass(frozen=True, slots=True)
class Draws:
    """One generator with its vocabulary."""

    chance: Stream
    vocabulary: Vocabulary = Vocabulary()

    def one(self, choices: Sequence[T]) -> T:
        return self.chance.choice(choices)

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def some(self, choices: Sequence[T], count_max: int) -> list[T]:
        """Up to ``count_max`` different ones."""
        return self.chance.sample(choices, self.chance.randint(0, min(count_max, len(choices))))

    def several(self, draw: Callable[[], T], count_max: int) -> list[T]:
        """A list of 1 to ``count_max`` drawn values."""
        return [draw() for _ in range(self.chance.randint(1, count_max))]

    def pairs(self, keys: Mapping[str, Sequence[str]], probability: float = 0.6) -> dict[str, str]:
        """Each key with a chance of its own, with one of its values."""
        return {key: self.one(values) for key, values in keys.items() if self.happens(probability)}

    # ---- selectors ------------------------------------------------------------------------

    def node_term(self) -> dict[str, Any]:
        """A node selector term over the nodes' labels."""
        labels = self.vocabulary.node_labels
        draw = self.several(lambda: self._expression(labels, (GREATER_THAN, LESS_THAN)), 2)
        return {"matchExpressions": draw}

    def label_selector(self) -> dict[str, Any]:
        """A selector of pods."""
        labels = self.vocabulary.pod_labels
        if self.happens(0.6):
            key = self.one(sorted(labels))
            return {"matchLabels": {key: self.one(labels[key])}}
        return {"matchExpressions": [self._expression(labels, ())]}

    def _expression(
        self, labels: Mapping[str, Sequence[str]], comparisons: Sequence[str]
    ) -> dict[str, Any]:
        key = self.one(sorted(labels))
        operator = self.one((IN, IN, NOT_IN, EXISTS, DOES_NOT_EXIST, *comparisons))
        if operator in (EXISTS, DOES_NOT_EXIST):
            return {"key": key, "operator": operator}
        if operator in comparisons:
            return {"key": key, "operator": operator, "values": [str(self.chance.randint(0, 20))]}
        count = self.chance.randint(1, min(2, len(labels[key])))
        values = self.chance.sample(list(labels[key]), count)
        return {"key": key, "operator": operator, "values": values}


# ---- nodes ----------------------------------------------------------------------------------


_TAINTS: Final = (
    "dedicated=a:NoSchedule",
    "dedicated=b:NoExecute",
    "spot:PreferNoSchedule",
    "old=x:PreferNoSchedule",
    "node.kubernetes.io/unschedulable:NoSchedule",
)
_MEBI: Final = 1 << 20
_SIZES: Final = (900 * _MEBI, 100 * _MEBI, 5 * _MEBI)


def draw_node(draws: Draws) -> NodeOptions:
    """All facets of a node, without a name."""
    options: NodeOptions = {}
    for draw in FACET_DRAWS.values():
        options = merged(options, draw(draws))
    return options


def merged(options: NodeOptions, more: NodeOptions) -> NodeOptions:
    return cast(NodeOptions, {**options, **more})


def _allocatable(draws: Draws) -> NodeOptions:
    resources = draws.vocabulary.resources
    return {
        "cpu": draws.one(("500m", 2, 4, 8)),
        "memory": draws.one(("512Mi", "4Gi", "16Gi")),
        "pods": draws.one((1, 4, 110, 110)),
        "allocatable": {name: draws.one((0, 2, 8)) for name in draws.some(resources, 2)},
    }


def _labels_of_node(draws: Draws) -> NodeOptions:
    return {"labels": draws.pairs(draws.vocabulary.node_labels)}


def _taints(draws: Draws) -> NodeOptions:
    taints = draws.some(_TAINTS, 2) if draws.happens(0.6) else []
    return {"taints": taints, "unschedulable": draws.happens(0.2)}


def _images(draws: Draws) -> NodeOptions:
    """An image has one size, wherever it is."""
    sizes = {
        name: _SIZES[index % len(_SIZES)] for index, name in enumerate(draws.vocabulary.images)
    }
    return {"images": {name: sizes[name] for name in draws.some(draws.vocabulary.images, 3)}}


def _annotations_of_node(draws: Draws) -> NodeOptions:
    vocabulary = {"example.com/note": ("a", "b", "c"), **draws.vocabulary.node_annotations}
    return {"annotations": draws.pairs(vocabulary, 0.7)}


def _conditions(draws: Draws) -> NodeOptions:
    kinds = ("Ready", "MemoryPressure", "DiskPressure")
    conditions = {kind: draws.one(("True", "False", "Unknown")) for kind in draws.some(kinds, 3)}
    return {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]}


def _declared(draws: Draws) -> NodeOptions:
    features = ("GuaranteedQoSPodCPUResize", "UserNamespaces", "Other")
    paths = [path for path in draws.vocabulary.node_fields if draws.happens(0.7)]
    return {
        "features": draws.some(features, 2),
        "declared": {path: draws.one(READ_KEY_VALUES) for path in paths},
    }


#: Facets that the node object decides; the other facets follow from placed pods.
FACET_DRAWS: Final[Mapping[Facet, Callable[[Draws], NodeOptions]]] = {
    Facet.ALLOCATABLE: _allocatable,
    Facet.LABELS: _labels_of_node,
    Facet.TAINTS: _taints,
    Facet.IMAGES: _images,
    Facet.ANNOTATIONS: _annotations_of_node,
    Facet.CONDITIONS: _conditions,
    Facet.DECLARED: _declared,
}


# ---- pods -----------------------------------------------------------------------------------


#: Draws one field again: (draws, options of the pod so far) → the options with the field.
FieldDraw = Callable[[Draws, PodOptions], Mapping[str, Any]]

_TOPOLOGY_KEYS: Final = (ZONE_LABEL, HOSTNAME_LABEL, "rack")


def draw_pod(draws: Draws, probability: float = 0.3) -> PodOptions:
    """A pod of which each field is drawn with this chance, else left out."""
    options: PodOptions = {}
    for draw in FIELD_DRAWS.values():
        if draws.happens(probability):
            options = _with(options, draw(draws, options))
    return options


def draw_placed_pod(draws: Draws) -> PodOptions:
    """The options of a placed pod, without its node."""
    options = draw_pod(draws)
    options.pop("gates", None)
    if draws.happens(0.1):
        options["terminating"] = True
    return options


def draw_variant(draws: Draws, options: PodOptions) -> PodOptions:
    """The same pod with one field redrawn or removed."""
    return draw_field(draws, draws.one(list(FIELD_DRAWS)), options)


def draw_field(draws: Draws, path: str, options: PodOptions) -> PodOptions:
    """The same pod with this field redrawn or, sometimes, removed."""
    drawn = FIELD_DRAWS[path](draws, options)
    return _without(options, path, drawn) if draws.happens(0.2) else _with(options, drawn)


def _with(options: PodOptions, more: Mapping[str, Any]) -> PodOptions:
    return cast(PodOptions, {**options, **more})


def _without(options: PodOptions, path: str, drawn: Mapping[str, Any]) -> PodOptions:
    """The options without the field at ``path``. An option that contains several fields loses only
    this one."""
    remaining: dict[str, Any] = {
        name: value for name, value in options.items() if name not in drawn
    }
    field = path.rpartition(".")[2]
    for name in drawn.keys() & {"spec", "affinity"}:
        fields = {**options.get(name, {})}
        fields.pop(field, None)
        if fields:
            remaining[name] = fields
    return cast(PodOptions, remaining)


# ---- metadata ------------------------------------------------------------------------------


def _namespace(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"namespace": draws.one(NAMESPACES)}


def _labels(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"labels": draws.pairs(draws.vocabulary.pod_labels)}


def _annotations(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    vocabulary = {"example.com/note": ("a", "b"), **draws.vocabulary.pod_annotations}
    return {"annotations": draws.pairs(vocabulary, 0.7)}


# ---- containers ----------------------------------------------------------------------------


def _cpu(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"cpu": draws.one(("0", "100m", "0.5", "500m", 2, 6))}


def _memory(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"memory": draws.one(("0", "200Mi", "1Gi", "8Gi"))}


def _requests(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    resources = draws.vocabulary.resources
    return {"requests": {name: draws.one((0, 1, 4)) for name in draws.some(resources, 2)}}


def _image(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"image": draws.one((*draws.vocabulary.images, "registry.test/none"))}


def _host_ports(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"host_ports": draws.several(lambda: _host_port(draws), 2)}


def _host_port(draws: Draws) -> Mapping[str, Any]:
    number = draws.one((80, 8080, 53))
    port: dict[str, Any] = {"containerPort": number, "hostPort": number}
    if draws.happens(0.5):
        port["protocol"] = draws.one(("TCP", "UDP"))
    if draws.happens(0.4):
        port["hostIP"] = draws.one(("10.0.0.1", "10.0.0.2", "0.0.0.0"))
    return port


def _init_containers(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    def container() -> dict[str, Any]:
        requests = {"cpu": draws.one(("200m", "3")), "memory": draws.one(("64Mi", "2Gi"))}
        fields: dict[str, Any] = {"name": "init", "resources": {"requests": requests}}
        fields["image"] = draws.one(draws.vocabulary.images)
        if draws.happens(0.5):
            fields |= {"restartPolicy": "Always", "ports": [_host_port(draws)]}
        return fields

    return {"init_containers": draws.several(container, 2)}


def _overhead(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"overhead": {"cpu": draws.one(("50m", "1")), "memory": "64Mi"}}


# ---- constraints on nodes ------------------------------------------------------------------


def _node_selector(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"node_selector": draws.pairs(draws.vocabulary.node_labels, 0.3)}


def _tolerations(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"tolerations": draws.several(lambda: _toleration(draws), 3)}


def _toleration(draws: Draws) -> Mapping[str, Any]:
    keys = ("dedicated", "spot", "old", "node.kubernetes.io/unschedulable")
    fields: dict[str, Any] = {}
    if draws.happens(0.9):
        fields["key"] = draws.one(keys)
    fields["operator"] = operator = (
        "Exists" if "key" not in fields else draws.one(("Exists", "Equal"))
    )
    if operator == "Equal":
        fields["value"] = draws.one(("a", "b", "x", ""))
    if draws.happens(0.5):
        fields["effect"] = draws.one(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return fields


def _node_name(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"node": draws.one(("node-0", "node-1", "elsewhere"))}


def _node_affinity(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    fields: dict[str, Any] = {}
    if draws.happens(0.6):
        terms = draws.several(draws.node_term, 2)
        fields["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draws.happens(0.6):
        fields["preferredDuringSchedulingIgnoredDuringExecution"] = draws.several(
            lambda: {"weight": draws.one((1, 30, 100)), "preference": draws.node_term()}, 2
        )
    return _affinity(pod, nodeAffinity=fields)


def _pod_affinity(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return _affinity(pod, podAffinity=_pod_terms(draws))


def _pod_anti_affinity(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return _affinity(pod, podAntiAffinity=_pod_terms(draws))


def _affinity(pod: PodOptions, **part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"affinity": {**pod.get("affinity", {}), **part}}


def _pod_terms(draws: Draws) -> dict[str, Any]:
    def term() -> dict[str, Any]:
        fields = {"topologyKey": draws.one(_TOPOLOGY_KEYS), "labelSelector": draws.label_selector()}
        if draws.happens(0.3):
            fields["namespaceSelector"] = draws.one(({}, {"matchLabels": {"team": "a"}}))
        return fields

    fields: dict[str, Any] = {}
    if draws.happens(0.6):
        fields["requiredDuringSchedulingIgnoredDuringExecution"] = draws.several(term, 2)
    if draws.happens(0.6):
        fields["preferredDuringSchedulingIgnoredDuringExecution"] = draws.several(
            lambda: {"weight": draws.one((1, 50)), "podAffinityTerm": term()}, 2
        )
    return fields


def _spread(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    def constraint() -> dict[str, Any]:
        fields: dict[str, Any] = {
            "maxSkew": draws.one((1, 2)),
            "topologyKey": draws.one(_TOPOLOGY_KEYS),
            "whenUnsatisfiable": draws.one(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": draws.label_selector(),
        }
        if draws.happens(0.3):
            fields["nodeTaintsPolicy"] = draws.one(("Honor", "Ignore"))
        return fields

    return {"spread": draws.several(constraint, 2)}


# ---- the remaining fields -------------------------------------------------------------------


def _priority(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"priority": draws.one((-5, 0, 10, 1000))}


def _gates(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
    return {"gates": draws.several(lambda: draws.one(("example.com/a", "example.com/b")), 1)}


def _in_spec(name: str, values: Sequence[Any]) -> FieldDraw:
    def draw(draws: Draws, pod: PodOptions) -> Mapping[str, Any]:
        return {"spec": {**pod.get("spec", {}), name: draws.one(values)}}

    return draw


_CONFIG_MAP: Final = {"name": "settings", "configMap": {"name": "settings"}}
_CLAIM: Final = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
_IMAGE_VOLUME: Final = {"name": "tool", "image": {"reference": "registry.test/tool:2"}}

#: The fields in which two pods may differ, by path; includes all that a signature may depend on.
FIELD_DRAWS: Final[Mapping[str, FieldDraw]] = {
    "metadata.namespace": _namespace,
    "metadata.labels": _labels,
    "metadata.annotations": _annotations,
    "spec.containers.resources.requests.cpu": _cpu,
    "spec.containers.resources.requests.memory": _memory,
    "spec.containers.resources.requests": _requests,
    "spec.containers.image": _image,
    "spec.containers.ports": _host_ports,
    "spec.initContainers": _init_containers,
    "spec.overhead": _overhead,
    "spec.resources": _in_spec(
        "resources", ({"requests": {"cpu": "1500m"}}, {"requests": {"memory": "3Gi"}})
    ),
    "spec.nodeSelector": _node_selector,
    "spec.tolerations": _tolerations,
    "spec.affinity.nodeAffinity": _node_affinity,
    "spec.affinity.podAffinity": _pod_affinity,
    "spec.affinity.podAntiAffinity": _pod_anti_affinity,
    "spec.topologySpreadConstraints": _spread,
    "spec.priority": _priority,
    "spec.schedulingGates": _gates,
    "spec.volumes": _in_spec(
        "volumes", ([_CONFIG_MAP], [_CLAIM], [_IMAGE_VOLUME], [_CONFIG_MAP, _CLAIM])
    ),
    "spec.preemptionPolicy": _in_spec("preemptionPolicy", ("Never", "PreemptLowerPriority")),
    "spec.hostNetwork": _in_spec("hostNetwork", (True, False)),
    "spec.terminationGracePeriodSeconds": _in_spec("terminationGracePeriodSeconds", (0, 30)),
    "spec.nodeName": _node_name,
}
