"""Objects of a workload from which no pod came that could be judged, and why.

An answer about a workload says so: a Job that is suspended has no pods, and neither has an object
whose kind Bayplan does not know. The second may hide any number of pods, so an answer that all pods
fit would be wrong.
"""

from typing import final

from msgspec import Struct, field

from bayplan.api.objects import DAEMON_SET, POD
from bayplan.objects.keys import Content, ObjectKey
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.idle_controllers import why_no_pods
from bayplan.sim.input.object_checks import has_containers
from bayplan.sim.input.workload import has_ended

NO_FURTHER_PODS = "needs no further pods"


@final
class UnjudgedWorkload(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object without pods to judge."""

    #: As in "Job default/index".
    object: str
    message: str
    #: Whether the object has pods of which nothing is known.
    hides_pods: bool = field(default=False, name="hidesPods")


def unjudged(
    key: ObjectKey, content: Content, *, is_present: bool, is_read: bool
) -> UnjudgedWorkload | None:
    """Why no pod came from an object; None: it is a pod to judge, or no workload.

    ``is_present``: the cluster has it already. ``is_read``: whether Bayplan reads its kind.
    """
    if key.kind.endswith(" CronJob"):
        message = "creates Jobs by the clock: give the Job that it would create"
    elif not is_read and has_containers(content):
        message = f"is of a kind that Bayplan does not know ({key.kind}): give the pods that its "
        message += "controller creates"
        return UnjudgedWorkload(object=str(key), message=message, hides_pods=True)
    elif not is_read:
        message = f"is of a kind that Bayplan does not read ({key.kind})"
    elif key.kind == POD:
        message = _why_not_placed(content)
    elif key.kind not in CONTROLLERS:
        return None
    elif why := why_no_pods(key, content):
        message = why
    elif is_present:
        message = "is in the cluster already and lacks no pods"
    elif key.kind == DAEMON_SET:
        message = "is meant for no node of the cluster (node selector, affinity or taints)"
    else:
        message = NO_FURTHER_PODS
    return UnjudgedWorkload(object=str(key), message=message) if message else None


def _why_not_placed(pod: Content) -> str:
    """Why a pod is not to be placed; "": it is."""
    node = (pod.get("spec") or {}).get("nodeName")
    if node:
        return f"names its node (spec.nodeName): {node}"
    return "has ended" if has_ended(pod) else ""
