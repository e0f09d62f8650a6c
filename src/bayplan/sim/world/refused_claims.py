"""The claims of StatefulSets that the API server refuses.

A StatefulSet creates the claims of a pod before the pod: without them, it does not create the pod.
Upstream: pkg/controller/statefulset/stateful_pod_control.go (CreateStatefulPod).
"""

from typing import final

from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM
from bayplan.objects.keys import Content, ObjectKey, key_of
from bayplan.objects.workloads import controller_reference
from bayplan.ports import ApiError


@final
class RefusedClaims:
    """The refusals of one cluster."""

    def __init__(self) -> None:
        self._problems: dict[ObjectKey, ApiError] = {}

    def add(self, content: Content, problem: ApiError) -> None:
        """Note why an object was refused."""
        key = key_of(content)
        if key.kind == PERSISTENT_VOLUME_CLAIM:
            self._problems[key] = problem

    def check(self, content: Content) -> None:
        """Raises the refusal of a claim without which a StatefulSet does not create a pod."""
        if not self._problems or content.get("kind") != "Pod":
            return
        owner = controller_reference(content)
        if owner is None or owner.get("kind") != "StatefulSet":
            return
        namespace = key_of(content).namespace
        for volume in content["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
            problem = self._problems.get(ObjectKey(PERSISTENT_VOLUME_CLAIM, namespace, name))
            if problem is not None:
                raise problem
