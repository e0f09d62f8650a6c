"""A pod's priority from its class, as the Priority admission plugin resolves it.

A priority that is given is kept whatever the class says: a pod of a scenario needs no class to be
important, and one that was read from a cluster keeps what it was admitted with.
"""

from collections.abc import Iterable

from bayplan.adapters.api_validation import SYSTEM_PRIORITY_CLASSES
from bayplan.adapters.object_names import Content
from bayplan.api.objects import PriorityClass

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


class NoPriorityClass(LookupError):
    """A pod names a class that does not exist."""


def with_priority(pod: Content, classes: Iterable[PriorityClass]) -> Content:
    """The pod with priority and preemptionPolicy. Raises NoPriorityClass."""
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    given = spec.get("priority")
    if name:
        found = _named(name, classes)
        if found is None and given is None:
            raise NoPriorityClass(f"no PriorityClass with name {name} was found")
    else:
        # A class for all who name none is for those without a priority of their own.
        found = _global_default(classes) if given is None else None
    filled = dict(spec)
    if given is None:
        filled["priority"] = found.value if found is not None else 0
    if found is not None and not name:
        filled["priorityClassName"] = found.metadata.name
    if not spec.get("preemptionPolicy"):
        policy = found.preemption_policy if found is not None else None
        filled["preemptionPolicy"] = policy or PREEMPT_LOWER_PRIORITY
    return {**pod, "spec": filled}


def _named(name: str, classes: Iterable[PriorityClass]) -> PriorityClass | None:
    for one in classes:
        if one.metadata.name == name:
            return one
    if name in SYSTEM_PRIORITY_CLASSES:
        return PriorityClass(value=SYSTEM_PRIORITY_CLASSES[name])
    return None


def _global_default(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """Of several, which a race may leave, the one of the lowest value."""
    marked = [one for one in classes if one.global_default]
    return min(marked, key=lambda one: one.value, default=None)
