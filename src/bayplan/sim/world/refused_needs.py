"""Objects that the API server refuses, and what is not created without them.

A controller that does not exist creates nothing. A StatefulSet creates the claims of a pod before
the pod: without them, it does not create the pod. Upstream:
pkg/controller/statefulset/stateful_pod_control.go (CreateStatefulPod).
"""

from typing import final

from bayplan.adapters.embedded.admission.plugin import is_admitted
from bayplan.api.objects import PERSISTENT_VOLUME_CLAIM
from bayplan.objects.keys import Content, ObjectKey, key_of, key_of_reference
from bayplan.objects.workloads import controller_reference
from bayplan.ports import ApiError
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.workload import is_pod


@final
class RefusedNeeds:
    """The refusals of one cluster."""

    def __init__(self) -> None:
        self._problems: dict[ObjectKey, ApiError] = {}

    def add(self, content: Content, problem: ApiError) -> None:
        """Note why an object was refused."""
        key = key_of(content)
        if key.kind == PERSISTENT_VOLUME_CLAIM or key.kind in CONTROLLERS:
            self._problems[key] = problem

    def of_controller(self, content: Content) -> ApiError | None:
        """Why the controller of a new object does not exist; None: it exists, or there is none."""
        owner = controller_reference(content) if self._problems else None
        if owner is None or is_admitted(content):
            return None
        return self._problems.get(key_of_reference(owner, key_of(content).namespace))

    def of_claims(self, content: Content) -> ApiError | None:
        """Why a StatefulSet lacks a claim of a new pod; None: it has them all."""
        owner = controller_reference(content) if self._problems and is_pod(content) else None
        if owner is None or owner.get("kind") != "StatefulSet":
            return None
        namespace = key_of(content).namespace
        for volume in content["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""
            problem = self._problems.get(ObjectKey(PERSISTENT_VOLUME_CLAIM, namespace, name))
            if problem is not None:
                return problem
        return None
