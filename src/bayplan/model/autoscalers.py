"""The workloads of a model whose size an autoscaler sets.

A HorizontalPodAutoscaler names its target with any version of the target's group, and a
ScaledObject of KEDA may leave out group and kind: the kind and the name tell the target.
"""

from bayplan.api.objects import Unstructured
from bayplan.model.cluster_model import ClusterModel
from bayplan.objects.keys import ObjectKey
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.object_checks import AUTOSCALERS
from bayplan.sim.input.priority_classes import members


def autoscaled(model: ClusterModel) -> dict[ObjectKey, ObjectKey]:
    """Workload controller → the autoscaler that sets its size."""
    kinds = {kind.rpartition(" ")[2]: kind for kind in CONTROLLERS}
    targets: dict[ObjectKey, ObjectKey] = {}
    for autoscaler in AUTOSCALERS:
        for each in model.objects(autoscaler):
            if not isinstance(each, Unstructured):
                continue
            # Nothing has checked the content of such a kind.
            target = members(members(each.content, "spec"), "scaleTargetRef")
            kind = kinds.get(str(target.get("kind") or "Deployment"))
            if kind is not None:
                namespace, name = each.metadata.namespace or "", str(target.get("name") or "")
                key = ObjectKey(autoscaler, namespace, each.metadata.name)
                targets[ObjectKey(kind, namespace, name)] = key
    return targets
