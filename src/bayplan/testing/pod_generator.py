"""Drawing pods, field by field: a variant of a pod differs from it in one named field."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.testing.factories import PodOptions
from bayplan.testing.generators import NAMESPACES, Draws

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
