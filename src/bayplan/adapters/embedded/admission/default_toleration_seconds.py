"""DefaultTolerationSeconds: a pod stays on a node that is not ready or unreachable for five
minutes, unless the pod tolerates the taint itself.

Upstream: plugin/pkg/admission/defaulttolerationseconds.
"""

from typing import final

from bayplan.adapters.embedded.admission.plugin import AdmissionPlugin
from bayplan.api.objects import NO_EXECUTE, POD, UNREACHABLE_TAINT
from bayplan.objects.keys import Content, ObjectKey

TOLERATION_SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", UNREACHABLE_TAINT)


@final
class DefaultTolerationSeconds(AdmissionPlugin):
    """See the module."""

    name = "DefaultTolerationSeconds"
    changed_kinds = (POD,)

    def admit(self, key: ObjectKey, content: Content) -> Content:
        spec = content["spec"]
        own: list[Content] = spec.get("tolerations") or []
        added = [_toleration(taint) for taint in _TAINTS if not any(_is_for(t, taint) for t in own)]
        return {**content, "spec": {**spec, "tolerations": [*own, *added]}}


def _toleration(taint: str) -> Content:
    return {
        "key": taint,
        "operator": "Exists",
        "effect": NO_EXECUTE,
        "tolerationSeconds": TOLERATION_SECONDS,
    }


def _is_for(toleration: Content, taint: str) -> bool:
    """Whether a pod's own toleration is for a taint. No effect and no key mean all of them."""
    is_for_key = (toleration.get("key") or taint) == taint
    return is_for_key and (toleration.get("effect") or NO_EXECUTE) == NO_EXECUTE
