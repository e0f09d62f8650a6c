"""Pods and nodes for tests: keyword arguments with working defaults.

Complex parts (tolerations, affinity, containers …) are written as in a manifest, as plain values or
as the API's structs; the two may be mixed. The uid follows from the name, so that two pods of one
name are two versions of one pod.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

import msgspec

from bayplan.api.objects import HOSTNAME_LABEL, NODE, POD, ZONE_LABEL, Node, Pod, Taint, decode
from bayplan.api.pod_requests import is_extended
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.state.pods import PodInfo, pod_info

#: A quantity as in a manifest: "500m", 2, "1Gi".
Amount = str | int | float
#: A part of a manifest, or its struct of bayplan.api.objects.
Manifest = Any

#: When pods of tests are deleted: any time stamp, always the same.
_DELETED_AT = "2026-01-01T00:00:00Z"


class PodOptions(TypedDict, total=False):
    """The options of a pod; all are optional."""

    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    #: The node of the pod; left out: the pod waits.
    node: str
    #: Requests of the pod's only container; ``requests``: further resources.
    cpu: Amount
    memory: Amount
    requests: Mapping[str, Amount]
    image: str
    #: Ports of the host: numbers, or entries of `ports`.
    host_ports: Sequence[Manifest]
    #: Replaces the only container, which the five options above describe.
    containers: Sequence[Manifest]
    init_containers: Sequence[Manifest]
    overhead: Mapping[str, Amount]
    priority: int
    scheduler_name: str
    node_selector: Mapping[str, str]
    affinity: Manifest
    tolerations: Sequence[Manifest]
    #: topologySpreadConstraints
    spread: Sequence[Manifest]
    #: Names of scheduling gates.
    gates: Sequence[str]
    #: Further fields of spec and status.
    spec: Mapping[str, Manifest]
    status: Mapping[str, Manifest]
    nominated_node: str
    #: Whether it is being deleted.
    terminating: bool


def pod(name: str = "pod", **options: Unpack[PodOptions]) -> PodInfo:
    """A pod as plugins see it: ``pod("web", cpu="500m", labels={"app": "web"})``."""
    return pod_info(api_pod(name, **options))


def api_pod(name: str = "pod", **options: Unpack[PodOptions]) -> Pod:
    """The API object of a pod. Raises DecodeError for an object that no API server would store."""
    namespace = options.get("namespace", DEFAULT_NAMESPACE)
    metadata = _set_fields(
        name=name,
        namespace=namespace,
        uid=options.get("uid", f"uid-{namespace}/{name}"),
        labels=options.get("labels"),
        annotations=options.get("annotations"),
        deletionTimestamp=_DELETED_AT if options.get("terminating") else None,
    )
    status = _set_fields(
        nominatedNodeName=options.get("nominated_node"), **options.get("status", {})
    )
    content = {"metadata": metadata, "spec": _pod_spec(options), "status": status}
    return cast(Pod, decode(POD, msgspec.to_builtins(content)))


def _pod_spec(options: PodOptions) -> dict[str, Manifest]:
    for name in _OF_THE_ONLY_CONTAINER if "containers" in options else ():
        assert name not in options, f"{name} belongs to the containers that are given"
    return _set_fields(
        nodeName=options.get("node"),
        schedulerName=options.get("scheduler_name"),
        containers=options.get("containers", (_container(options),)),
        initContainers=options.get("init_containers"),
        overhead=options.get("overhead"),
        priority=options.get("priority"),
        nodeSelector=options.get("node_selector"),
        affinity=options.get("affinity"),
        tolerations=options.get("tolerations"),
        topologySpreadConstraints=options.get("spread"),
        schedulingGates=[{"name": gate} for gate in options.get("gates", ())] or None,
        **options.get("spec", {}),
    )


_OF_THE_ONLY_CONTAINER = ("cpu", "memory", "requests", "image", "host_ports")


def _container(options: PodOptions) -> dict[str, Manifest]:
    requests = _set_fields(cpu=options.get("cpu"), memory=options.get("memory"))
    requests |= options.get("requests", {})
    # An API server demands a limit of what cannot be overcommitted.
    limits = {name: amount for name, amount in requests.items() if is_extended(name)}
    resources = _set_fields(requests=requests or None, limits=limits or None)
    ports = [_host_port(port) for port in options.get("host_ports", ())]
    return _set_fields(
        name="main",
        image=options.get("image"),
        resources=resources or None,
        ports=ports or None,
    )


def _host_port(port: Manifest) -> Manifest:
    return {"containerPort": port, "hostPort": port} if isinstance(port, int) else port


class NodeOptions(TypedDict, total=False):
    """The options of a node; all are optional."""

    cpu: Amount
    memory: Amount
    pods: Amount
    #: Further resources that the node offers.
    allocatable: Mapping[str, Amount]
    #: Labels besides kubernetes.io/hostname, which is the name of the node.
    labels: Mapping[str, str]
    zone: str
    annotations: Mapping[str, str]
    #: As kubectl writes them ("gpu=a100:NoSchedule"), or as in a manifest.
    taints: Sequence[Manifest]
    unschedulable: bool
    #: Name → bytes.
    images: Mapping[str, int]
    conditions: Sequence[Manifest]
    #: declaredFeatures
    features: Sequence[str]
    #: Further fields of status.
    status: Mapping[str, Manifest]
    #: Fields that plugins declare (`Plugin.fields`), by their path.
    declared: Mapping[str, Any]


def node(name: str = "node", **options: Unpack[NodeOptions]) -> Node:
    """A node: ``node("a", cpu=8, memory="32Gi", taints=["gpu=a100:NoSchedule"])``."""
    labels = {HOSTNAME_LABEL: name, **options.get("labels", {})}
    if "zone" in options:
        labels[ZONE_LABEL] = options["zone"]
    spec = _set_fields(
        unschedulable=options.get("unschedulable"),
        taints=[_taint(taint) for taint in options.get("taints", ())] or None,
    )
    metadata = _set_fields(name=name, uid=f"uid-{name}", labels=labels)
    metadata |= _set_fields(annotations=options.get("annotations"))
    content = {"metadata": metadata, "spec": spec, "status": _node_status(options)}
    decoded = cast(Node, decode(NODE, msgspec.to_builtins(content)))
    return msgspec.structs.replace(decoded, declared=dict(options.get("declared", {})))


def _node_status(options: NodeOptions) -> dict[str, Manifest]:
    allocatable = {
        "cpu": options.get("cpu", 4),
        "memory": options.get("memory", "16Gi"),
        "pods": options.get("pods", 110),
        **options.get("allocatable", {}),
    }
    images = [{"names": [image], "sizeBytes": size} for image, size in _images(options)]
    return _set_fields(
        allocatable=allocatable,
        conditions=options.get("conditions", [{"type": "Ready", "status": "True"}]),
        images=images or None,
        declaredFeatures=options.get("features"),
        **options.get("status", {}),
    )


def _images(options: NodeOptions) -> list[tuple[str, int]]:
    return list(options.get("images", {}).items())


def _taint(taint: Manifest) -> Manifest:
    """ "key=value:Effect" or "key:Effect"."""
    if not isinstance(taint, str):
        return taint
    name, colon, effect = taint.rpartition(":")
    assert colon, f"found {taint!r}, wanted a taint such as gpu=a100:NoSchedule"
    key, _, value = name.partition("=")
    return Taint(key=key, value=value or None, effect=effect)


def _set_fields(**fields: Manifest) -> dict[str, Manifest]:
    """The fields that are set; Python refuses a field that is set twice."""
    return {name: value for name, value in fields.items() if value is not None}
