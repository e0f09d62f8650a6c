"""What an update makes of an object: the new content, with what no update of the API changes.

The scenario's file is the object as a user sends it. The parts of a pod that admission once added
stay, and a subresource changes its own part only. Upstream: updateAny of scheduler_perf, the
strategies of pods and their resize in pkg/registry/core/pod.
"""

from collections.abc import Sequence

from bayplan.adapters.object_names import Content, kind_of
from bayplan.api.objects import POD

#: What a pod's creation added, and an update keeps.
_ADMITTED = ("priority", "preemptionPolicy", "tolerations")


def updated(old: Content, new: Content, subresources: Sequence[str]) -> Content:
    """``new`` as it replaces ``old``."""
    if "resize" in subresources:
        return {**old, "spec": _resized(old["spec"], new.get("spec") or {})}
    if "status" in subresources:
        return {**old, "status": new.get("status") or {}}
    if kind_of(new) != POD:
        return new
    given = old.get("spec") or {}
    kept = {name: given[name] for name in _ADMITTED if name in given}
    return {**new, "spec": {**kept, **(new.get("spec") or {})}}


def _resized(old: Content, new: Content) -> Content:
    """Containers with the resources that the update names for them."""
    resources = {one.get("name"): one.get("resources") for one in new.get("containers") or ()}
    containers = [
        {**one, "resources": resources[one.get("name")]} if resources.get(one.get("name")) else one
        for one in old.get("containers") or ()
    ]
    return {**old, "containers": containers}
