"""Storage objects with defaults in wire form, and clusters with storage objects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from bayplan.api.objects import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
    Node,
)
from bayplan.api.storage_objects import BIND_COMPLETED
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import is_success
from bayplan.plugins.volume_binding.binding import VolumeDecision, decide
from bayplan.plugins.volume_binding.claims import PodClaims, find_volumes, pod_claims
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster, handle_for
from bayplan.testing.evaluation import PluginAnswer, alone, ask
from bayplan.testing.factories import node, pod

Content = dict[str, Any]
P = TypeVar("P", bound=Plugin)

LATE = "late"
DRIVER = "disk.test"


# ---- objects -------------------------------------------------------------------------------


def _object(kind: str, name: str, **fields: Any) -> Content:
    version, _, word = kind.partition(" ")
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **fields.pop("meta", {})}
    return {"apiVersion": version, "kind": word, "metadata": meta, **fields}


def volume(
    name: str,
    size: str = "10Gi",
    *,
    zone: str | None = None,
    claim: str | None = None,
    class_name: str = LATE,
    phase: str = "Available",
    meta: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Content:
    """A PersistentVolume. ``zone``: only nodes with this label reach it. ``claim``: its claim."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    content: Content = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        **spec,
    }
    if zone is not None:
        content["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if claim is not None:
        content["claimRef"] = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    status = {"phase": phase}
    return _object(PERSISTENT_VOLUME, name, spec=content, status=status, meta=dict(meta or {}))


def csi(handle: str) -> Content:
    """The source of a CSI volume."""
    return {"csi": {"driver": DRIVER, "volumeHandle": handle}}


def claim(
    name: str,
    size: str | None = "10Gi",
    *,
    bound_to: str | None = None,
    class_name: str | None = LATE,
    annotations: Mapping[str, str] | None = None,
    meta: Mapping[str, Any] | None = None,
    phase: str = "Pending",
    **spec: Any,
) -> Content:
    """A PersistentVolumeClaim in the namespace default."""
    content: Content = {"accessModes": ["ReadWriteOnce"], "storageClassName": class_name, **spec}
    if size is not None:
        content["resources"] = {"requests": {"storage": size}}
    notes = dict(annotations or {})
    if bound_to is not None:
        content["volumeName"], phase = bound_to, "Bound"
        notes[BIND_COMPLETED] = "yes"
    metadata = {"namespace": "default", "annotations": notes, **(meta or {})}
    status = {"phase": phase}
    return _object(PERSISTENT_VOLUME_CLAIM, name, spec=content, status=status, meta=metadata)


def storage_class(
    name: str = LATE, mode: str | None = "WaitForFirstConsumer", **fields: Any
) -> Content:
    fields.setdefault("provisioner", "kubernetes.io/no-provisioner")
    return _object(STORAGE_CLASS, name, volumeBindingMode=mode, **fields)


def csi_node(name: str, limits: Mapping[str, int | None] | None = None, **meta: Any) -> Content:
    """``limits``: driver → the number of volumes that it may attach; None means no limit."""
    drivers = [
        {"name": driver, "allocatable": None if count is None else {"count": count}}
        for driver, count in (limits or {}).items()
    ]
    return _object(CSI_NODE, name, spec={"drivers": drivers}, meta=meta)


def csi_driver(name: str = DRIVER, **spec: Any) -> Content:
    return _object(CSI_DRIVER, name, spec=spec)


def capacity(
    name: str, size: str, zone: str | None = None, class_name: str = LATE, **fields: Any
) -> Content:
    """The free capacity in a zone, or everywhere."""
    topology = {"matchLabels": {"zone": zone}} if zone is not None else {}
    fields = {"capacity": size, "nodeTopology": topology, "storageClassName": class_name, **fields}
    return _object(CSI_STORAGE_CAPACITY, name, **fields, meta={"namespace": "kube-system"})


def attachment(name: str, node_name: str, volume_name: str, attacher: str = DRIVER) -> Content:
    source = {"persistentVolumeName": volume_name}
    spec = {"attacher": attacher, "nodeName": node_name, "source": source}
    return _object(VOLUME_ATTACHMENT, name, spec=spec)


# ---- pods and clusters ---------------------------------------------------------------------


def with_claims(name: str, *claims: str, node: str = "", **sources: Any) -> PodInfo:
    """A pod that uses claims by name; ``sources``: further volumes by name."""
    volumes: list[Content] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims)
    ]
    volumes += [{"name": each, **source} for each, source in sources.items()]
    options: Any = {"node": node} if node else {}
    return pod(name, spec={"volumes": volumes}, **options)


def zoned(**zones: str) -> list[Node]:
    """Nodes by name with their zones: ``zoned(n1="a", n2="b")``."""
    return [node(name, labels={"zone": zone}) for name, zone in zones.items()]


def cluster(
    nodes: Iterable[Node], *objects: Content, pods: Sequence[PodInfo] = ()
) -> SampleCluster:
    sample = SampleCluster()
    sample.add(*nodes)
    add(sample, *objects)
    return sample.add(*pods)


def add(cluster: SampleCluster, *objects: Content) -> None:
    """Store objects as the watch of the API reports them."""
    for content in objects:
        cluster.put(f"{content['apiVersion']} {content['kind']}", content)


def instance(plugin: type[P], over: SampleCluster, args: Any = None) -> P:
    return plugin(args, handle_for(over, plugin, plugin.name))


def results_of(plugin: type[Plugin], over: SampleCluster, asking: PodInfo) -> PluginAnswer:
    """The results of a plugin in a cluster."""
    return ask(instance(plugin, over), asking, over.lend().nodes)


def rejected(plugin: type[Plugin], over: SampleCluster, asking: PodInfo) -> Mapping[str, str]:
    """Node → reason; {"": …} if the whole pod is rejected."""
    answer = results_of(plugin, over, asking)
    if answer.pre_filter not in ("", "Skip"):
        return {"": answer.pre_filter}
    return answer.rejections


def attempt(plugin: Plugin, over: SampleCluster, asking: PodInfo) -> CycleState:
    """The notes of an attempt with a successful PreFilter."""
    state = CycleState()
    _, status, _ = alone(plugin).run_pre_filter(state, asking, over.lend().nodes)
    assert is_success(status), status
    return state


def decided(over: SampleCluster, *claims: str) -> VolumeDecision:
    result = pod_claims(over.volumes, with_claims("p", *claims))
    assert isinstance(result, PodClaims)
    return decide(find_volumes(over.volumes, result, over.lend().nodes), "n1")


def at(content: Any, version: str) -> Any:
    """The object in another version."""
    return {**content, "metadata": {**content["metadata"], "resourceVersion": version}}
