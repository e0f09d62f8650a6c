"""The fields that the API server fills in: stored versions, defaults of types, and what a new pod
gets after admission.

The engine fills in nothing; it reads the stored objects. The defaults of a type are set at each
write. Admission (the package `admission`) sees a new object with these defaults, and the fields of
`prepared` follow from what admission has made of it. Only fields that a scheduler or a plugin reads
are set, and no default makes an invalid object valid.

A real API server serves some kinds in several versions and stores them in one. Kinds that the
scheduler reads in one version are converted when they are created or updated.

One difference from upstream is intentional. A pod without terminationGracePeriodSeconds gets 0
(upstream: 30), so that time passes in a simulation only where the input says so.

Sources (v1.37): pkg/apis/core/v1/defaults.go, pkg/apis/resource/v1/defaults.go,
pkg/registry/core/pod/strategy.go (PrepareForCreate).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bayplan.adapters.embedded.pod_amounts import aggregated_limits, aggregated_requests
from bayplan.api.admission_objects import LIMIT_RANGE
from bayplan.api.amounts import amount_of
from bayplan.api.device_objects import EXACT_COUNT, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from bayplan.api.objects import NAMESPACE, NODE, POD, STORAGE_CLASS, TERMINAL_PHASES, Pod, decode
from bayplan.api.pod_requests import HUGEPAGES_PREFIX, all_containers, is_pod_level
from bayplan.api.quantity import NANOS_PER_MILLI, nanos, thousandths
from bayplan.objects.keys import Content

# ---- api versions ---------------------------------------------------------------------------


_DEVICES = "resource.k8s.io"
_STORAGE = "storage.k8s.io"


def in_stored_version(content: Content) -> Content:
    """The object in the version in which it is stored."""
    convert = _CONVERSIONS.get(content.get("apiVersion", ""))
    return content if convert is None else convert(content)


def _renamed(version: str) -> Callable[[Content], Content]:
    return lambda content: {**content, "apiVersion": version}


def _from_first_beta(content: Content) -> Content:
    """In v1beta1 a request has the fields of ``exactly``, and a device has its content in
    ``basic``."""
    spec: Any = content.get("spec") or {}
    kind = content.get("kind") if isinstance(spec, dict) else None
    if kind == "ResourceClaim":
        spec = _claim_spec(spec)
    elif kind == "ResourceClaimTemplate":
        spec = {**spec, "spec": _claim_spec(spec.get("spec") or {})}
    elif kind == "ResourceSlice":
        devices = spec.get("devices") or []
        if isinstance(devices, list):
            spec = {**spec, "devices": [_device(device) for device in devices]}
    return {**content, "apiVersion": f"{_DEVICES}/v1", "spec": spec}


def _claim_spec(spec: Any) -> Any:
    """Values of the wrong type stay: the decoder reports them."""
    devices = (spec.get("devices") or {}) if isinstance(spec, dict) else None
    if not isinstance(devices, dict) or not isinstance(devices.get("requests") or [], list):
        return spec
    requests = [_versioned_request(request) for request in devices.get("requests") or ()]
    return {**spec, "devices": {**devices, "requests": requests}}


def _versioned_request(request: Any) -> Any:
    if not isinstance(request, dict) or "exactly" in request or "firstAvailable" in request:
        return request
    exactly = {key: value for key, value in request.items() if key != "name"}
    return {"name": request.get("name"), "exactly": exactly}


def _device(device: Any) -> Any:
    if not isinstance(device, dict) or not isinstance(device.get("basic") or {}, dict):
        return device
    members = {key: value for key, value in device.items() if key != "basic"}
    return {**members, **(device.get("basic") or {})}


_CONVERSIONS: Mapping[str, Callable[[Content], Content]] = {
    f"{_DEVICES}/v1beta1": _from_first_beta,
    f"{_DEVICES}/v1beta2": _renamed(f"{_DEVICES}/v1"),
    f"{_STORAGE}/v1beta1": _renamed(f"{_STORAGE}/v1"),
}


# ---- device defaults ------------------------------------------------------------------------


def claim_with_defaults(content: Content) -> Content:
    """A ResourceClaim with its defaults."""
    return {**content, "spec": _spec(content.get("spec") or {})}


def template_with_defaults(content: Content) -> Content:
    """A ResourceClaimTemplate with the defaults of the claims it makes."""
    spec: Content = content.get("spec") or {}
    return {**content, "spec": {**spec, "spec": _spec(spec.get("spec") or {})}}


def _spec(spec: Content) -> Content:
    devices: Content = spec.get("devices") or {}
    requests = devices.get("requests")
    if not requests:
        return spec
    return {**spec, "devices": {**devices, "requests": [_request(each) for each in requests]}}


def _request(request: Content) -> Content:
    filled = dict(request)
    if request.get("exactly"):
        filled["exactly"] = _device_request(request["exactly"])
    if request.get("firstAvailable"):
        filled["firstAvailable"] = [_device_request(each) for each in request["firstAvailable"]]
    return filled


def _device_request(request: Content) -> Content:
    """A request for one device, unless the request says otherwise."""
    filled: dict[str, Any] = {**request}
    filled["allocationMode"] = request.get("allocationMode") or EXACT_COUNT
    if filled["allocationMode"] == EXACT_COUNT and not request.get("count"):
        filled["count"] = 1
    tolerations = request.get("tolerations")
    if tolerations:
        filled["tolerations"] = [{"operator": "Equal", **each} for each in tolerations]
    return filled


# ---- api defaults ---------------------------------------------------------------------------


#: Upstream has 30; see above.
GRACE_PERIOD_SECONDS = 0
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

_GATED: Content = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def defaulted(kind: str, content: Content) -> Content:
    """The defaults of the type, for each write. The content is valid; it is not changed."""
    fill_in = _DEFAULTS.get(kind)
    return content if fill_in is None else fill_in(content)


# ---- pods: defaults of the type -------------------------------------------------------------


def _pod(pod: Content) -> Content:
    spec: Content = {
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        **_without_empty(pod.get("spec") or {}),
    }
    if spec.get("overhead"):
        spec["overhead"] = _rounded(spec["overhead"])
    if spec.get("resources"):
        spec["resources"] = _rounded_resources(spec["resources"])
    grace = spec.get("terminationGracePeriodSeconds", GRACE_PERIOD_SECONDS)
    spec["terminationGracePeriodSeconds"] = 1 if grace < 0 else grace
    on_host = bool(spec.get("hostNetwork"))
    for name in ("containers", "initContainers"):
        if spec.get(name):
            spec[name] = [_container(one, on_host) for one in spec[name]]
    return {**pod, "spec": spec}


def _without_empty(members: Content) -> Content:
    """The members that are neither null nor "": both mean absent where a default exists."""
    return {name: value for name, value in members.items() if value is not None and value != ""}


def _container(container: Content, on_host: bool) -> Content:
    filled = dict(container)
    if container.get("resources"):
        resources = _rounded_resources(container["resources"])
        if resources.get("limits"):
            requests = {**resources["limits"], **(resources.get("requests") or {})}
            resources = {**resources, "requests": requests}
        filled["resources"] = resources
    if container.get("ports"):
        filled["ports"] = [_port(one, on_host) for one in container["ports"]]
    return filled


def _port(port: Content, on_host: bool) -> Content:
    filled: Content = {"protocol": "TCP", **_without_empty(port)}
    if on_host and not filled.get("hostPort") and "containerPort" in filled:
        filled["hostPort"] = filled["containerPort"]
    return filled


def _rounded_resources(resources: Content) -> Content:
    return {
        **resources,
        **{
            name: _rounded(resources[name])
            for name in ("limits", "requests")
            if resources.get(name)
        },
    }


def _rounded(quantities: Content) -> Content:
    """Quantities in thousandths at the finest, rounded up."""
    return {
        name: quantity if nanos(quantity) % NANOS_PER_MILLI == 0 else f"{thousandths(quantity)}m"
        for name, quantity in quantities.items()
    }


# ---- other kinds ----------------------------------------------------------------------------


def _node(node: Content) -> Content:
    status = node.get("status") or {}
    has = {name: _rounded(status[name]) for name in ("allocatable", "capacity") if status.get(name)}
    if "capacity" in has and status.get("allocatable") is None:
        has["allocatable"] = has["capacity"]
    return {**node, "status": {**status, **has}} if has else node


def _namespace(namespace: Content) -> Content:
    meta = namespace["metadata"]
    labels = {**(meta.get("labels") or {}), NAMESPACE_NAME_LABEL: meta["name"]}
    return {**namespace, "metadata": {**meta, "labels": labels}}


def _limit_range(content: Content) -> Content:
    spec = content.get("spec") or {}
    items = [_limit_range_item(each) for each in spec.get("limits") or ()]
    return {**content, "spec": {**spec, "limits": items}}


def _limit_range_item(item: Content) -> Content:
    """Of containers, the maximum is the default limit, and the default limit, or else the minimum,
    is the default request."""
    if item.get("type") != "Container":
        return item
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    return {**item, "default": limits, "defaultRequest": requests}


def _storage_class(content: Content) -> Content:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **_without_empty(content)}


_DEFAULTS: Mapping[str, Callable[[Content], Content]] = {
    POD: _pod,
    NODE: _node,
    NAMESPACE: _namespace,
    LIMIT_RANGE: _limit_range,
    RESOURCE_CLAIM: claim_with_defaults,
    RESOURCE_CLAIM_TEMPLATE: template_with_defaults,
    STORAGE_CLASS: _storage_class,
}


# ---- creation -------------------------------------------------------------------------------


def prepared(kind: str, content: Content) -> Content:
    """A new object after admission: a pod gets its merged label keys, its resources as a whole and
    its first status.

    ``content`` has the defaults of its type.
    """
    if kind != POD:
        return content
    pod = prepared_pod(content)
    return {**pod, "status": created_status(pod)}


def prepared_pod(pod: Content) -> Content:
    """`prepared` without the status."""
    spec = dict(pod["spec"])
    labels = (pod.get("metadata") or {}).get("labels") or {}
    if spec.get("affinity"):
        spec["affinity"] = _affinity(spec["affinity"], labels)
    if spec.get("topologySpreadConstraints"):
        spec["topologySpreadConstraints"] = [
            _with_label_keys(one, labels) for one in spec["topologySpreadConstraints"]
        ]
    if spec.get("resources"):
        spec["resources"] = _pod_level_resources(pod)
    return {**pod, "spec": spec}


def _affinity(affinity: Content, labels: Mapping[str, str]) -> Content:
    filled = dict(affinity)
    for name in ("podAffinity", "podAntiAffinity"):
        if affinity.get(name):
            filled[name] = _pod_affinity(affinity[name], labels)
    return filled


def _pod_affinity(terms: Content, labels: Mapping[str, str]) -> Content:
    filled = dict(terms)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    if terms.get(required):
        filled[required] = [_with_label_keys(one, labels) for one in terms[required]]
    if terms.get(preferred):
        filled[preferred] = [
            {**one, "podAffinityTerm": _with_label_keys(one.get("podAffinityTerm") or {}, labels)}
            for one in terms[preferred]
        ]
    return filled


def _with_label_keys(term: Content, labels: Mapping[str, str]) -> Content:
    """Merge matchLabelKeys and mismatchLabelKeys into the selector. A null selector stays null.

    A pod that was read from a cluster has the merged keys already; they are not merged again.
    """
    selector = term.get("labelSelector")
    if selector is None:
        return term
    present = list(selector.get("matchExpressions") or [])
    added = [
        *_label_requirements(term.get("matchLabelKeys") or (), "In", labels),
        *_label_requirements(term.get("mismatchLabelKeys") or (), "NotIn", labels),
    ]
    new = [one for one in added if one not in present]
    if not new:
        return term
    return {**term, "labelSelector": {**selector, "matchExpressions": present + new}}


def _label_requirements(
    keys: Iterable[str], operator: str, labels: Mapping[str, str]
) -> list[Content]:
    return [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels
    ]


def _pod_level_resources(pod: Content) -> Content:
    """Requests and limits of the whole pod follow from those of its containers.

    Upstream: DefaultPodLevelResources in pkg/api/pod/util.go.
    """
    resources = pod["spec"]["resources"]
    limits = dict(resources.get("limits") or {})
    requests = dict(resources.get("requests") or {})
    if not limits and not requests:
        return resources
    containers = {name: pod["spec"].get(name) for name in ("containers", "initContainers")}
    typed = decode(POD, {"spec": containers})
    assert isinstance(typed, Pod)
    together = aggregated_limits(typed)
    # Huge pages cannot be overcommitted: their limit is the request.
    for name, amount in together.items():
        if name.startswith(HUGEPAGES_PREFIX) and name not in requests:
            limits.setdefault(name, str(amount))
    for name, amount in aggregated_requests(typed).items():
        if is_pod_level(name) and not name.startswith(HUGEPAGES_PREFIX):
            requests.setdefault(name, str(amount))
    for name, limit in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)
    for name, request in requests.items():
        if is_pod_level(name) and name not in limits and _all_limit(typed, name):
            limits[name] = str(max(amount_of(request), together[name], key=lambda a: a.nanos))
    parts = {"limits": limits, "requests": requests}
    return {**resources, **{name: part for name, part in parts.items() if part}}


def _all_limit(pod: Pod, name: str) -> bool:
    """Whether all containers have a limit of a resource."""
    return all(
        each.resources is not None and name in (each.resources.limits or {})
        for each in all_containers(pod.spec)
    )


def created_status(pod: Content) -> Content:
    """The first status of a pod: Pending, or Running if the pod is on a node."""
    status = {"phase": "Pending", **_without_empty(pod.get("status") or {})}
    if status["phase"] in TERMINAL_PHASES:
        return status
    if pod["spec"].get("nodeName"):
        return {**status, "phase": "Running"}
    conditions = status.get("conditions") or []
    if pod["spec"].get("schedulingGates") and not any(
        one.get("type") == "PodScheduled" for one in conditions
    ):
        status["conditions"] = [*conditions, dict(_GATED)]
    return status
