"""Signatures: which pods of a case are alike.

kube-scheduler joins its plugins' parts into one text, so what was recorded is which pods are alike
in all of them. Pods that are alike there are alike here in the part of every row-wise plugin; and a
plugin that leaves a pod unsigned there does so here. The other way round nothing follows: ours
sign less where less decides (whether a taint is tolerated, not by which words), and one by one.

Upstream signs alike what it answers differently, in three places, and refuses to sign what nothing
follows from, in one. Ours must not sign alike there, or the second pod would get the first one's
answers. A part may differ if what upstream does not look at is all that makes the difference: the
same two pods said in other words, without it, must be alike.

    NodePorts          a host port's protocol and address
    NodeResourcesFit   what stands in scores for a request that is not set, which zero is not
    ImageLocality      how often an image is named
    InterPodAffinity   an affinity without terms: unsigned there, and here as good as none
    volume plugins     the namespace of a claim, and a claim that is made for the pod alone: it is
                       signed there by its template, and left unsigned here

Two sign here what upstream refuses to: NodeResourcesFit and NodeResourcesBalancedAllocation a pod
that requests a resource which devices stand for. Which resources those are is a change of all rows
here. DynamicResources signs no pod that requests an extended resource: whether devices stand for it
does not follow from the pod.

A plugin that looks across nodes signs what it asks of a pod before it looks; upstream signs nothing
of these pods, so theirs are not compared.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bayplan.state.pods import PodInfo
from tests.parity.missing import behind_fit, stand_for_requests
from tests.parity.objects import read_pod
from tests.parity.tally import Sheet
from tests.parity.world import World

Json = dict[str, Any]
_Change = Callable[[Json], Json]

PORTS = "a host port's protocol or address"
UNSET = "an unset request, which scores count as some"
TIMES = "an image named several times"
DEVICES = "a request that devices stand for"
ASKS = "an extended resource, for which devices may stand"
NO_TERMS = "an affinity without terms"
NAMESPACE = "the namespace of a claim"
EPHEMERAL = "a claim made for the pod alone"

#: Who leaves a pod unsigned where devices stand for a resource that it requests.
_REQUESTING = frozenset(("NodeResourcesFit", "NodeResourcesBalancedAllocation"))
#: Whose answers follow from claims that are made for a pod alone.
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
    """All pending pods of a case, each with the first one of its group."""
    firsts: dict[int, _Signed] = {}
    for content, wanted in zip(pending, recorded, strict=False):
        pod = read_pod(content)
        at = sheet.at(pod.key)
        framework = world.profiles[pod.scheduler_name].framework
        signed = _Signed(content, pod, framework.sign_pod(pod).parts)
        signature: Json = wanted.get("signature") or {}
        if signature.keys() not in (_SIGNABLE, _REFUSED):
            at.not_understood("signature", is_answer=True)
            continue
        _compare_unsigned(world, signed, signature.get("refusedBy") or {}, at)
        if signature["signable"]:
            first = firsts.setdefault(signature["group"], signed)
            if first is not signed:
                _compare_alike(world, first, signed, at)


def _compare_unsigned(world: World, signed: _Signed, refusing: Json, sheet: Sheet) -> None:
    """Each plugin that leaves the pod unsigned, on either side."""
    absent = sorted(set(refusing) & world.missing)
    if absent:
        sheet.pass_over("signature.unsigned", absent)
    behind = behind_fit(world.missing, signed.pod, world.cluster)
    are_devices = stand_for_requests(signed.pod, world.cluster)
    for name, part in signed.parts.items():
        if name in _REQUESTING and behind:
            sheet.pass_over("signature.unsigned", behind)
        elif name in _REQUESTING and name in refusing and part is not None and are_devices:
            sheet.deviates("signature.unsigned", DEVICES)
        elif name == "DynamicResources" and part is None and name not in refusing:
            sheet.deviates("signature.unsigned", ASKS)
        elif name in refusing and _has_no_terms(world, name, signed):
            sheet.deviates("signature.unsigned", NO_TERMS)
        elif name in _OWN_CLAIMS and part is None and signed.pod.shape.volumes.has_ephemeral:
            sheet.deviates("signature.unsigned", EPHEMERAL)
        else:
            sheet.compare("signature.unsigned", name in refusing, part is None, name)
    for name in sorted(refusing.keys() - signed.parts.keys() - world.missing):
        sheet.compare("signature.unsigned", True, "no such plugin in the profile", name)


def _has_no_terms(world: World, name: str, signed: _Signed) -> bool:
    """Whether a pod affinity that says nothing is signed here as none would be."""
    part = signed.parts[name]
    if name != "InterPodAffinity" or part is None:
        return False
    has_empty_part = _without_terms(signed.content) != signed.content
    return has_empty_part and part == _in_other_words(world, name, _without_terms, signed)


def _compare_alike(world: World, first: _Signed, second: _Signed, sheet: Sheet) -> None:
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
    """The kind of which two parts may differ; "" if there is none."""
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
    """(a copy of a pod, its containers of both sorts)."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(content))
    spec = changed["spec"]
    return changed, [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _with_plain_ports(content: Json) -> Json:
    """Host ports by their number alone."""
    changed, containers = _containers(content)
    for container in containers:
        for port in container.get("ports") or ():
            port.pop("protocol", None)
            port.pop("hostIP", None)
    return changed


def _with_requests(content: Json) -> Json:
    """Zero requested wherever nothing is."""
    changed, containers = _containers(content)
    for container in containers:
        resources: Json = container.setdefault("resources", {})
        resources["requests"] = {"cpu": "0", "memory": "0", **(resources.get("requests") or {})}
    return changed


def _with_each_image_once(content: Json) -> Json:
    """Without containers whose image an earlier one has."""
    changed, _ = _containers(content)
    seen: set[str] = set()
    for name in ("containers", "initContainers"):
        kept: list[Json] = []
        for container in changed["spec"].get(name) or ():
            image = container.get("image", "")
            image = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
            if image not in seen:
                kept.append(container)
            seen.add(image)
        changed["spec"][name] = kept
    return changed


def _without_terms(content: Json) -> Json:
    """Without a pod affinity or anti-affinity that says nothing; unchanged if it says something."""
    changed, _ = _containers(content)
    affinity: Json = changed["spec"].get("affinity") or {}
    parts = [affinity.get(name) or {} for name in ("podAffinity", "podAntiAffinity")]
    if not any(any(part.values()) for part in parts):
        affinity.pop("podAffinity", None)
        affinity.pop("podAntiAffinity", None)
    return changed


#: Plugin → (what of its part upstream's lacks, a pod said without it).
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
