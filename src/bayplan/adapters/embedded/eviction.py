"""The eviction subresource of pods: a deletion that a PodDisruptionBudget may refuse.

Upstream: pkg/registry/core/pod/storage/eviction.go. An evicted pod gets the condition
DisruptionTarget (EvictionByEvictionAPI) and is then deleted with its grace period. Before that, the
budget's ``disruptionsAllowed`` is decremented and the pod is noted in ``disruptedPods``, so that
two evictions of one moment cannot both use the last allowed disruption.

One point differs from upstream. A budget from the input may have a status without
``observedGeneration``; this status counts as observed, for no controller overwrites it at once.
"""

from typing import cast, final

from bayplan.adapters.embedded.api_errors import ForbiddenError, TooManyRequestsError
from bayplan.adapters.embedded.api_server import ApiServer, with_condition
from bayplan.adapters.embedded.budget_controller import is_ready
from bayplan.adapters.embedded.field_validation import Content, ObjectKey
from bayplan.adapters.embedded.object_store import ObjectStore, Stored
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.objects import Pod
from bayplan.api.selectors import SelectorError, label_selector
from bayplan.ports import ApiError

#: Upstream's MaxDisruptedPodSize.
DISRUPTED_PODS_MAX = 2000

EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


@final
class Evictions:
    """Evicts pods of one store."""

    def __init__(self, server: ApiServer, store: ObjectStore) -> None:
        self._server = server
        self._store = store

    def evict(self, key: ObjectKey) -> None:
        """Evict a pod. Raises ApiError: 404, no such pod; 429, a budget allows no disruption now;
        403, the status of a budget is broken; 500, several budgets select the pod."""
        stored = self._server.get(key)
        pod = cast(Pod, stored.object)
        if not _ignores_budgets(pod):
            budgets = self._budgets_of(key, pod)
            if len(budgets) > 1:
                raise ApiError(500, "", _SEVERAL)
            if budgets and not _may_go_unready(pod, budgets[0]):
                self._use_disruption(budgets[0], key.name)
        conditions = with_condition(stored.content["status"], EVICTED, self._server.stamp())
        self._server.patch(key, {"status": {"conditions": conditions}})
        self._server.delete(key)

    def _budgets_of(self, key: ObjectKey, pod: Pod) -> list[Stored]:
        """The budgets that select a pod. A budget with an invalid selector selects nothing."""
        labels = pod.metadata.labels or {}
        budgets: list[Stored] = []
        for stored in self._store.all(POD_DISRUPTION_BUDGET):
            if stored.key.namespace == key.namespace:
                spec = cast(PodDisruptionBudget, stored.object).spec
                try:
                    selects = label_selector(spec.selector).matches(labels)
                except SelectorError:
                    continue
                if selects:
                    budgets.append(stored)
        return budgets

    def _use_disruption(self, budget: Stored, pod_name: str) -> None:
        """Take one of the disruptions that a budget allows. Raises ApiError.

        Upstream: checkAndDecrement.
        """
        name, status = budget.key.name, _status(budget)
        generation = budget.content["metadata"].get("generation", 1)
        if status.get("observedGeneration", generation) < generation:
            cause = f"The disruption budget {name} is still being processed by the server."
            raise TooManyRequestsError(_VIOLATED, cause)
        allowed = status.get("disruptionsAllowed", 0)
        disrupted = status.get("disruptedPods") or {}
        if allowed < 0:
            raise ForbiddenError(budget.key, "pdb disruptions allowed is negative")
        if len(disrupted) > DISRUPTED_PODS_MAX:
            raise ForbiddenError(
                budget.key,
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            )
        if not allowed:
            raise TooManyRequestsError(_VIOLATED, _refusal(name, status))
        noted = {"disruptedPods": {**disrupted, pod_name: self._server.stamp()}}
        self._server.patch(budget.key, {"status": {"disruptionsAllowed": allowed - 1, **noted}})


def _ignores_budgets(pod: Pod) -> bool:
    """Whether a pod disrupts nothing: it has ended, is not running yet, or goes already."""
    is_leaving = pod.metadata.deletion_timestamp is not None
    return is_leaving or pod.status.phase in ("Succeeded", "Failed", "Pending")


def _may_go_unready(pod: Pod, budget: Stored) -> bool:
    """Whether an unready pod may go without a disruption (unhealthyPodEvictionPolicy)."""
    if is_ready(pod):
        return False
    if (budget.content.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = _status(budget)
    desired: int = status.get("desiredHealthy", 0)
    return status.get("currentHealthy", 0) >= desired > 0


def _refusal(name: str, status: Content) -> str:
    """The cause of a refusal, in upstream's words."""
    conditions = status.get("conditions") or ()
    condition = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), {})
    message: str = condition.get("message") or ""
    reason: str = condition.get("reason") or ""
    explains = condition.get("status") == "False" and bool(message)
    start = f"The disruption budget {name}"
    if explains and reason == "SyncFailed":
        return f"{start} does not allow evicting pods currently because it failed sync: {message}"
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if current <= desired:
        return f"{start} needs {desired} healthy pods and has {current} currently"
    if explains:
        return f"{start} does not allow evicting pods currently ({reason}): {message}"
    return f"{start} does not allow evicting pods currently"


def _status(stored: Stored) -> Content:
    return stored.content.get("status") or {}
