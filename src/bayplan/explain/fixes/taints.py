"""Which taints a fix may let a pod tolerate, and which taints it may remove.

A taint that keeps plain pods away from special hardware stays where it is, unless the pod requests
that hardware. Whether a taint of the control plane may go depends on the wishes of the cluster's
owner.
"""

import re

from bayplan.api.objects import NO_EXECUTE, NO_SCHEDULE, Node, Taint
from bayplan.api.pod_requests import amounts, is_extended
from bayplan.api.selectors import tolerates
from bayplan.explain.fixes.edits import Harm
from bayplan.objects.pools import is_broken
from bayplan.printable import printable
from bayplan.state.pods import PodInfo

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
CONTROL_PLANE_NOTE = "the control plane needs its nodes for itself"
_HARDWARE = re.compile(r"gpu|tpu|accelerator|neuron|fpga|habana|gaudi|nvidia|cuda", re.IGNORECASE)


def untolerated(pod: PodInfo, node: Node) -> tuple[Taint, ...]:
    """The taints of a node that keep the pod out."""
    return tuple(
        taint
        for taint in node.spec.taints or ()
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
        and not any(tolerates(each, taint) for each in pod.shape.tolerations)
    )


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return printable(f"{taint.key}{value}:{taint.effect}")


def is_of_control_plane(taint: Taint) -> bool:
    return taint.key in _CONTROL_PLANE


def is_of_hardware(taint: Taint, node: Node) -> bool:
    """Whether the taint keeps pods away that do not use the special hardware of a node."""
    devices = [name for name in amounts(node.status.allocatable) if is_extended(name)]
    domains = {name.partition("/")[0] for name in devices}
    if taint.key in devices or taint.key.partition("/")[0] in domains:
        return True
    return _HARDWARE.search(f"{taint.key} {taint.value or ''}") is not None


def uses_hardware(pod: PodInfo, node: Node) -> bool:
    """Whether a pod requests devices of a node, or devices at all through claims."""
    offered = amounts(node.status.allocatable)
    if pod.spec.resource_claims:
        return True
    return any(is_extended(name) and name in offered for name in pod.requests)


def harm_of_tolerating(pod: PodInfo, node: Node, taint: Taint) -> Harm | None:
    """The harm of letting a pod tolerate a taint of a node; None: it must not."""
    if is_broken(taint.key):
        return None
    if is_of_hardware(taint, node):
        return Harm.NONE if uses_hardware(pod, node) else None
    return Harm.RISKY if is_of_control_plane(taint) else Harm.RULE
