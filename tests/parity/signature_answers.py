"""Signatures: which pods of a case have equal signatures.

kube-scheduler joins the parts of its plugins into one text, so the record groups the pods whose
parts are all equal. Pods of one group must have equal parts here, in every row-wise plugin, and a
plugin that leaves a pod unsigned there must leave it unsigned here. Pods of different groups may
have equal parts here: Bayplan's plugins sign less if less decides (whether a taint is tolerated,
not in which words), and each plugin has its own part.

In some cases upstream gives pods with equal signatures different answers. Bayplan's parts must
differ there, or the second pod would get the results of the first. Two parts may differ only
because of an input that upstream does not sign: without that input they must be equal.

    NodePorts          a host port's protocol and address
    NodeResourcesFit   the scored default of an unset request, which a request of zero does not have
    ImageLocality      how often a pod names an image
    InterPodAffinity   an affinity without terms: unsigned there, and here equal to no affinity
    volume plugins     the namespace of a claim, and an ephemeral claim of a pod: signed there by
                       its template, and unsigned here

NodeResourcesFit and NodeResourcesBalancedAllocation sign a pod that upstream leaves unsigned: one
that requests a resource which devices represent. A change of such resources changes all rows here.
DynamicResources signs no pod that requests an extended resource, because the pod does not
determine whether devices represent it.

A plugin that reads other nodes signs its inputs from the pod; upstream signs nothing for these
plugins, so their parts are not compared.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bayplan.api.device_objects import DeviceClass
from bayplan.state.pods import PodInfo
from bayplan.testing.clusters import SampleCluster
from tests.parity.objects import KINDS, read_pod
from tests.parity.tally import Sheet
from tests.parity.world import World

Json = dict[str, Any]
_Change = Callable[[Json], Json]

PORTS = "a host port's protocol or address"
UNSET = "an unset request, which has a default in scores"
TIMES = "an image named several times"
DEVICES = "a request that devices represent"
EXTENDED = "an extended resource that devices may represent"
NO_TERMS = "an affinity without terms"
NAMESPACE = "the namespace of a claim"
EPHEMERAL = "an ephemeral claim"

#: Plugins that leave a pod unsigned if devices represent a resource that it requests.
_REQUESTING = frozenset(("NodeResourcesFit", "NodeResourcesBalancedAllocation"))
#: Plugins whose answers depend on ephemeral claims of a pod.
_OWN_CLAIMS = frozenset(("NodeVolumeLimits", "VolumeBinding"))
_SIGNABLE = frozenset(("signable", "group"))
_REFUSED = frozenset(("signable", "refusedBy"))


@dataclass(frozen=True, slots=True)
class _Signed:
    content: Json
    pod: PodInfo
    parts: Mapping[str, Hashable | None]


def compare_signatures(
    world: World, pending: Sequence[Json], recorded: Sequence[Json], sheet: Sheet
) -> None:
    """Compare all pending pods of a case, each with the first one of its group."""
    firsts: dict[int, _Signed] = {}
    for content, answer in zip(pending, recorded, strict=False):
        pod = read_pod(content)
        at = sheet.at(pod.key)
        framework = world.profiles[pod.scheduler_name].framework
        signed = _Signed(content, pod, framework.sign_pod(pod).parts)
        signature: Json = answer.get("signature") or {}
        if signature.keys() not in (_SIGNABLE, _REFUSED):
            at.not_understood("signature", is_answer=True)
            continue
        _compare_unsigned(world, signed, signature.get("refusedBy") or {}, at)
        if signature["signable"]:
            first = firsts.setdefault(signature["group"], signed)
            if first is not signed:
                _compare_equal(world, first, signed, at)


def _compare_unsigned(world: World, signed: _Signed, refusing: Json, sheet: Sheet) -> None:
    """Compare the plugins that leave the pod unsigned."""
    are_devices = _stand_for_requests(signed.pod, world.cluster)
    for name, part in signed.parts.items():
        if name in _REQUESTING and name in refusing and part is not None and are_devices:
            sheet.deviates("signature.unsigned", DEVICES)
        elif name == "DynamicResources" and part is None and name not in refusing:
            sheet.deviates("signature.unsigned", EXTENDED)
        elif name in refusing and _has_no_terms(world, name, signed):
            sheet.deviates("signature.unsigned", NO_TERMS)
        elif name in _OWN_CLAIMS and part is None and signed.pod.shape.volumes.has_ephemeral:
            sheet.deviates("signature.unsigned", EPHEMERAL)
        else:
            sheet.compare("signature.unsigned", name in refusing, part is None, name)
    for name in sorted(refusing.keys() - signed.parts.keys()):
        sheet.compare("signature.unsigned", True, "no such plugin in the profile", name)


def _stand_for_requests(pod: PodInfo, cluster: SampleCluster) -> bool:
    """Whether devices represent a resource that the pod requests."""
    names: set[str] = set()
    for device_class in cluster.objects(KINDS["deviceClasses"]).list():
        assert isinstance(device_class, DeviceClass)
        names.add(device_class.spec.extended_resource_name or "")
        names.add(f"deviceclass.resource.kubernetes.io/{device_class.metadata.name}")
    return bool(names & set(pod.requests))


def _has_no_terms(world: World, name: str, signed: _Signed) -> bool:
    """Whether a pod affinity without terms is signed like a missing one."""
    part = signed.parts[name]
    if name != "InterPodAffinity" or part is None:
        return False
    has_empty_part = _without_terms(signed.content) != signed.content
    return has_empty_part and part == _in_other_words(world, name, _without_terms, signed)


def _compare_equal(world: World, first: _Signed, second: _Signed, sheet: Sheet) -> None:
    row_wise = [
        plugin.instance_name
        for plugin in world.profiles[second.pod.scheduler_name].plugins.instances()
        if plugin.scope == "row" and plugin.instance_name in second.parts
    ]
    for name in row_wise:
        one, other = first.parts[name], second.parts[name]
        field = f"signature.{name}"
        kind = _deviation(world, name, first, second) if one != other else ""
        if kind:
            sheet.deviates(field, kind)
        else:
            sheet.compare(field, one, other, f"and {first.pod.key}")


# ---- on purpose ----------------------------------------------------------------------------


def _deviation(world: World, name: str, first: _Signed, second: _Signed) -> str:
    """The kind of deviation for which two parts may differ; "" if there is none."""
    if name not in _KINDS:
        return ""
    kind, change = _KINDS[name]
    one, other = (_in_other_words(world, name, change, each) for each in (first, second))
    return kind if one == other else ""


def _in_other_words(world: World, name: str, change: _Change, signed: _Signed) -> Hashable | None:
    """The part that a plugin signs of a changed pod."""
    framework = world.profiles[signed.pod.scheduler_name].framework
    return framework.sign_pod(read_pod(change(signed.content))).parts[name]


def _containers(content: Json) -> tuple[Json, list[Json]]:
    """(a copy of a pod, its containers and init containers)."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(content))
    spec = changed["spec"]
    return changed, [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _with_plain_ports(content: Json) -> Json:
    """The pod with host ports that have a number only."""
    changed, containers = _containers(content)
    for container in containers:
        for port in container.get("ports") or ():
            port.pop("protocol", None)
            port.pop("hostIP", None)
    return changed


def _with_requests(content: Json) -> Json:
    """The pod with a request of zero for each missing request."""
    changed, containers = _containers(content)
    for container in containers:
        resources: Json = container.setdefault("resources", {})
        resources["requests"] = {"cpu": "0", "memory": "0", **(resources.get("requests") or {})}
    return changed


def _with_each_image_once(content: Json) -> Json:
    """The pod without containers that repeat an earlier image."""
    changed, _ = _containers(content)
    seen: set[str] = set()
    for name in ("containers", "initContainers"):
        remaining: list[Json] = []
        for container in changed["spec"].get(name) or ():
            image = container.get("image", "")
            image = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
            if image not in seen:
                remaining.append(container)
            seen.add(image)
        changed["spec"][name] = remaining
    return changed


def _without_terms(content: Json) -> Json:
    """The pod without a pod affinity or anti-affinity that has no terms."""
    changed, _ = _containers(content)
    affinity: Json = changed["spec"].get("affinity") or {}
    parts = [affinity.get(name) or {} for name in ("podAffinity", "podAntiAffinity")]
    if not any(any(part.values()) for part in parts):
        affinity.pop("podAffinity", None)
        affinity.pop("podAntiAffinity", None)
    return changed


#: Plugin → (an input of its part that upstream's part lacks, the pod without that input).
def _without_namespace(content: Json) -> Json:
    metadata = {k: v for k, v in content["metadata"].items() if k != "namespace"}
    return {**content, "metadata": metadata}


_KINDS: Mapping[str, tuple[str, _Change]] = {
    "NodePorts": (PORTS, _with_plain_ports),
    "NodeResourcesFit": (UNSET, _with_requests),
    "ImageLocality": (TIMES, _with_each_image_once),
    "NodeVolumeLimits": (NAMESPACE, _without_namespace),
    "VolumeBinding": (NAMESPACE, _without_namespace),
    "VolumeZone": (NAMESPACE, _without_namespace),
}
