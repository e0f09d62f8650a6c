"""ExtendedResourceToleration: a pod tolerates the taint NoSchedule that is named as an extended
resource that the pod requests. It is off unless a configuration enables it.

Upstream: plugin/pkg/admission/extendedresourcetoleration.
"""

from typing import final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.api.objects import NO_SCHEDULE, POD
from bayplan.api.pod_requests import is_extended
from bayplan.objects.keys import Content, ObjectKey

_MATCHED = ("key", "effect", "operator", "value")


@final
class ExtendedResourceToleration(AdmissionPlugin):
    """See the module."""

    name = "ExtendedResourceToleration"
    changed_kinds = (POD,)

    def admit(self, key: ObjectKey, content: Content) -> Content:
        spec = content["spec"]
        tolerations: list[Content] = list(spec.get("tolerations") or ())
        for resource in sorted(_extended_resources(spec)):
            wanted = {"key": resource, "operator": "Exists", "effect": NO_SCHEDULE}
            matching = [i for i, one in enumerate(tolerations) if _matches(one, wanted)]
            for index in matching:
                tolerations[index] = wanted
            if not matching:
                tolerations.append(wanted)
        return {**content, "spec": {**spec, "tolerations": tolerations}} if tolerations else content


def _extended_resources(spec: Content) -> set[str]:
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return {
        resource
        for container in containers
        for resource in (container.get("resources") or {}).get("requests") or ()
        if is_extended(resource)
    }


def _matches(one: Content, other: Content) -> bool:
    return all((one.get(name) or "") == (other.get(name) or "") for name in _MATCHED)
