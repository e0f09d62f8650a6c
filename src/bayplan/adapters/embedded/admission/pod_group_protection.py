"""PodGroupProtection: a new PodGroup gets a finalizer, which its controller removes
(`group_protection`).

Upstream: plugin/pkg/admission/scheduling/podgroupprotection.
"""

from typing import final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.api.finalizers import POD_GROUP_PROTECTION
from bayplan.api.pod_groups import UPSTREAM_KINDS
from bayplan.objects.keys import Content, ObjectKey


@final
class PodGroupProtection(AdmissionPlugin):
    """See the module."""

    name = "PodGroupProtection"
    changed_kinds = UPSTREAM_KINDS

    def admit(self, key: ObjectKey, content: Content) -> Content:
        meta: Content = content["metadata"]
        finalizers: list[str] = meta.get("finalizers") or []
        if POD_GROUP_PROTECTION in finalizers:
            return content
        return {
            **content,
            "metadata": {**meta, "finalizers": [*finalizers, POD_GROUP_PROTECTION]},
        }
