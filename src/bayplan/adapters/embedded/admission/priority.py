"""Priority: the priority and the preemption policy of a pod follow from its class.

A pod without a class that has a priority keeps the priority, so that a pod of a scenario needs no
class to be important (a real server refuses such a pod). A pod that was read from a cluster keeps
the priority that the cluster gave it, whatever its class says now. Groups of scheduling.k8s.io get
the priority of their class, too.

Upstream: plugin/pkg/admission/priority.
"""

from collections.abc import Iterable
from typing import cast, final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin, is_admitted, is_stored
from bayplan.adapters.embedded.api_errors import ForbiddenError
from bayplan.adapters.embedded.api_validation import SYSTEM_PRIORITY_CLASSES
from bayplan.adapters.embedded.versioned_store import VersionedStore
from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from bayplan.api.objects import (
    POD,
    PREEMPT_LOWER_PRIORITY,
    PRIORITY_CLASS,
    ApiObject,
    PriorityClass,
)
from bayplan.api.pod_groups import BUILT_IN_KINDS, UPSTREAM_GROUP, api_group_of
from bayplan.objects.keys import Content, ObjectKey

#: Kubernetes' own kinds of groups.
_GROUPS = (
    *(kind for kind in BUILT_IN_KINDS if api_group_of(kind) == UPSTREAM_GROUP),
    COMPOSITE_POD_GROUP,
)


class PriorityRefusal(ValueError):
    """A class does not exist, or it says something else than the pod or the group."""


@final
class Priority(AdmissionPlugin):
    """See the module."""

    name = "Priority"
    changed_kinds = (POD, *_GROUPS)
    refused_kinds = (PRIORITY_CLASS,)
    read_kinds = (PRIORITY_CLASS,)
    fills_stored = True

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def admit(self, key: ObjectKey, content: Content) -> Content:
        try:
            if key.kind != POD:
                return _group_with_priority(key.kind, content, self._classes())
            return with_priority(content, self._classes())
        except PriorityRefusal as problem:
            raise ForbiddenError(key, str(problem)) from None

    def validate(self, key: ObjectKey, content: Content, decoded: ApiObject) -> None:
        if cast(PriorityClass, decoded).global_default:
            default = _global_default(self._classes())
            if default is not None:
                name = default.metadata.name
                text = f"PriorityClass {name} is already marked as default."
                raise ForbiddenError(key, f"{text} Only one default can exist")

    def _classes(self) -> list[PriorityClass]:
        return [cast(PriorityClass, one.object) for one in self._store.all(PRIORITY_CLASS)]


def with_priority(pod: Content, classes: Iterable[PriorityClass]) -> Content:
    """The pod with priority and preemptionPolicy. Raises PriorityRefusal."""
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    own_priority = spec.get("priority")
    if name:
        priority_class = _named(name, classes)
        # Without its class, the pod of a dump has the priority that a scheduler reads: 0.
        if priority_class is None and own_priority is None and not is_stored(pod):
            raise PriorityRefusal(f"no PriorityClass with name {name} was found")
    else:
        # The default class is for pods without a class and without a priority.
        priority_class = _global_default(classes) if own_priority is None else None
    follows_class = priority_class is not None or (not name and own_priority is None)
    has_own = own_priority is not None or spec.get("preemptionPolicy")
    if has_own and follows_class and not is_admitted(pod):
        _refuse_other_values(spec, priority_class or PriorityClass())
    filled = dict(spec)
    if own_priority is None:
        filled["priority"] = priority_class.value if priority_class is not None else 0
    if priority_class is not None and not name:
        filled["priorityClassName"] = priority_class.metadata.name
    if not spec.get("preemptionPolicy"):
        policy = priority_class.preemption_policy if priority_class is not None else None
        filled["preemptionPolicy"] = policy or PREEMPT_LOWER_PRIORITY
    return {**pod, "spec": filled}


def _group_with_priority(kind: str, group: Content, classes: Iterable[PriorityClass]) -> Content:
    """The group with the priority of its class or of the default class. Without either it has no
    priority, which counts as 0. Raises PriorityRefusal."""
    spec: Content = group.get("spec") or {}
    name, own_priority = spec.get("priorityClassName") or "", spec.get("priority")
    priority_class = _named(name, classes) if name else _global_default(classes)
    if priority_class is None and name and own_priority is None and not is_stored(group):
        raise PriorityRefusal(f"no PriorityClass with name {name} was found")
    if priority_class is None or (own_priority is not None and not name):
        return group
    value = priority_class.value
    if own_priority not in (None, value) and not is_admitted(group):
        words = "composite pod group" if kind == COMPOSITE_POD_GROUP else "pod group"
        raise PriorityRefusal(
            f"priority set in the {words} ({own_priority}) must match the priority computed "
            f"({value}) based on the priority class set in the spec"
        )
    filled = {**spec, "priority": value if own_priority is None else own_priority}
    if not name:
        filled["priorityClassName"] = priority_class.metadata.name
    if priority_class.preemption_policy and not spec.get("preemptionPolicy"):
        filled["preemptionPolicy"] = priority_class.preemption_policy
    return {**group, "spec": filled}


def _refuse_other_values(spec: Content, priority_class: PriorityClass) -> None:
    """Raises PriorityRefusal if a pod has other values than its class."""
    own, value = spec.get("priority"), priority_class.value
    if own is not None and own != value:
        raise PriorityRefusal(
            f"the integer value of priority ({own}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name"
        )
    policy = spec.get("preemptionPolicy")
    expected = priority_class.preemption_policy or PREEMPT_LOWER_PRIORITY
    if policy and policy != expected:
        raise PriorityRefusal(
            f"the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; "
            f"priority admission controller computed {expected} from the given PriorityClass name"
        )


def _named(name: str, classes: Iterable[PriorityClass]) -> PriorityClass | None:
    for one in classes:
        if one.metadata.name == name:
            return one
    if name in SYSTEM_PRIORITY_CLASSES:
        return PriorityClass(value=SYSTEM_PRIORITY_CLASSES[name])
    return None


def _global_default(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """The default class of the lowest value: a race may leave several default classes."""
    marked = [one for one in classes if one.global_default]
    return min(marked, key=lambda one: one.value, default=None)
