"""Disruption budgets in the API server in memory: their controller, and evictions.

A budget says how many of its pods may be unavailable; it may refuse an eviction.

`BudgetController` computes which disruptions budgets allow now. It writes the status of a budget
when the spec changes, and when a pod that the budget selects appears, disappears, begins to run or
ends. A budget from a cluster comes with a status. The controller keeps that status until a selected
pod becomes healthy or stops being healthy, for the cluster knew controllers that are unknown here.
Upstream: pkg/controller/disruption. Two points differ from upstream. A pod without a condition
Ready is healthy while it runs, for nothing reports readiness here. A controller that is not stored
has the scale of the largest number of pods that it has had at a time.

`Evictions` is the eviction subresource of pods. An evicted pod gets the condition DisruptionTarget
(EvictionByEvictionAPI) and is then deleted with its grace period. Before that, the budget's
``disruptionsAllowed`` is decremented and the pod is noted in ``disruptedPods``, so that two
evictions of one moment cannot both use the last allowed disruption. Upstream:
pkg/registry/core/pod/storage/eviction.go. One point differs from upstream. A budget from the input
may have a status without ``observedGeneration``; this status counts as observed, for no controller
overwrites it at once.
"""

import re
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple, cast, final

from msgspec import Struct, field

from bayplan.adapters.embedded.api_errors import ForbiddenError, TooManyRequestsError
from bayplan.adapters.embedded.api_server import ApiServer, Soon, with_condition
from bayplan.adapters.embedded.versioned_store import StoredObject, VersionedStore
from bayplan.api.disruption_objects import (
    POD_DISRUPTION_BUDGET,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
)
from bayplan.api.object_meta import controller_of
from bayplan.api.objects import POD, TERMINAL_PHASES, ObjectMeta, Pod
from bayplan.api.selectors import Selector, SelectorError, label_selector
from bayplan.clock import epoch_of
from bayplan.objects.keys import Content, ObjectKey, key_of_owner
from bayplan.ports import ApiError

# ---- the controller -------------------------------------------------------------------------


#: How long the deletion of a pod may take after its eviction. Upstream's DeletionTimeout.
_DELETION_SECONDS_MAX = 120.0

_PERCENT = re.compile(r"(\d+)%")


class _Owner(NamedTuple):
    """The controller of a pod."""

    key: ObjectKey
    uid: str


#: The workload of a controller and the number of pods that it wants; None: it is not stored.
ScaleOf = Callable[[_Owner], tuple[ObjectKey, int | None]]


class _Member(Struct, frozen=True):
    """A pod that a budget selects."""

    is_healthy: bool
    is_leaving: bool
    #: None: the pod has no controller.
    owner: _Owner | None


class _TrackedBudget(Struct):
    """A budget, and the pods that it selects."""

    namespace: str
    selector: Selector | None
    #: Whether the budget keeps the status that it came with.
    keeps_status: bool
    pods: dict[str, _Member] = field(default_factory=dict[str, _Member])
    healthy_count: int = 0
    #: Controller → the number of its pods: now, and the highest so far.
    owned: Counter[_Owner | None] = field(default_factory=Counter["_Owner | None"])
    scales: dict[_Owner | None, int] = field(default_factory=dict["_Owner | None", int])

    def see(self, name: str, pod: Pod | None) -> bool:
        """Note the new state of a pod; None: the pod is gone. Returns whether the budget is
        affected."""
        before = self.pods.pop(name, None)
        after = _member(pod) if pod is not None and self._selects(pod) else None
        if before is not None:
            self.healthy_count -= before.is_healthy
            self.owned[before.owner] -= 1
        if after is not None:
            self.pods[name] = after
            self.healthy_count += after.is_healthy
            self.owned[after.owner] += 1
            scale = self.scales.get(after.owner, 0)
            self.scales[after.owner] = max(scale, self.owned[after.owner])
        was_healthy = before is not None and before.is_healthy
        is_healthy = after is not None and after.is_healthy
        if self.keeps_status:
            # The status already counts a pod that is healthy when it appears.
            self.keeps_status = before is None or was_healthy == is_healthy
            return not self.keeps_status
        return before != after

    def _selects(self, pod: Pod) -> bool:
        return self.selector is not None and self.selector.matches(pod.metadata.labels or {})

    def status(self, budget: PodDisruptionBudget, stamp: str, scale_of: ScaleOf) -> Content:
        """A merge patch of the budget's status at a time. Upstream: getExpectedPodCount,
        updatePdbStatus, buildDisruptedPodMap."""
        expected, desired = self._expected_counts(budget.spec, scale_of)
        noted = budget.status.disrupted_pods or {}
        disrupted = {name for name, since in noted.items() if self._goes_soon(name, since, stamp)}
        current = self.healthy_count - sum(self.pods[name].is_healthy for name in disrupted)
        status: Content = {
            "currentHealthy": current,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": max(current - desired, 0) if expected > 0 else 0,
        }
        confirmed = {name: None for name in noted if name not in disrupted}
        return {**status, "disruptedPods": confirmed} if confirmed else status

    def _goes_soon(self, name: str, since: str, stamp: str) -> bool:
        """Whether the eviction of a pod has been accepted and its deletion is still to come."""
        member = self.pods.get(name)
        if member is None or member.is_leaving:
            return False
        evicted, now = epoch_of(since), epoch_of(stamp)
        if evicted is None or now is None:
            return False
        return now - evicted <= _DELETION_SECONDS_MAX

    def _expected_counts(self, spec: PodDisruptionBudgetSpec, scale_of: ScaleOf) -> tuple[int, int]:
        """(expected number of pods, desired number of healthy pods)."""
        scales: dict[ObjectKey, int] = {}
        for owner, count in self.owned.items():
            if owner is not None and count > 0:
                key, scale = scale_of(owner)
                scales[key] = self.scales[owner] if scale is None else scale
        scale = sum(scales.values())
        if spec.max_unavailable is not None:
            return scale, max(scale - _scaled(spec.max_unavailable, scale), 0)
        if isinstance(spec.min_available, str):
            return scale, _scaled(spec.min_available, scale)
        if spec.min_available is not None:
            return len(self.pods), spec.min_available
        return 0, 0


@final
class BudgetController:
    """Follows pods and budgets of one store."""

    def __init__(self, server: ApiServer, store: VersionedStore, soon: Soon) -> None:
        self._server = server
        self._store = store
        self._soon = soon
        self._tracked: dict[ObjectKey, _TrackedBudget] = {}
        #: Budgets whose status is to be written, in order.
        self.waiting: deque[ObjectKey] = deque()
        self._is_writing = False
        store.observe(self._observe_budget, (POD_DISRUPTION_BUDGET,))
        store.observe(self._observe_pod, (POD,), is_active=lambda: bool(self._tracked))

    def work(self) -> None:
        """Write the statuses that follow from the changes so far."""
        while self.waiting:
            key = self.waiting.popleft()
            stored, tracked = self._store.get(key), self._tracked.get(key)
            if stored is None or tracked is None:
                continue
            budget = cast(PodDisruptionBudget, stored.object)
            generation = stored.content["metadata"]["generation"]
            status = tracked.status(budget, self._server.stamp(), self._scale_of)
            status["observedGeneration"] = generation
            self._is_writing = True
            try:
                self._server.patch(key, {"status": status})
            except ApiError:
                continue  # the budget is invalid
            finally:
                self._is_writing = False

    def _scale_of(self, owner: _Owner) -> tuple[ObjectKey, int | None]:
        """See `ScaleOf`. Upstream: getPodReplicaSet, getPodDeployment, getPodStatefulSet."""
        key = owner.key
        stored = self._store.get(key)
        if stored is None or stored.content["metadata"].get("uid") != owner.uid:
            return key, None
        above = _owner_of(stored.object.metadata, key.namespace)
        if above is not None:
            deployment, scale = self._scale_of(above)
            if scale is not None:
                return deployment, scale
        scale = _spec(stored).get("replicas")
        return key, scale if isinstance(scale, int) else None

    def _observe_pod(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        pod = None if after is None else cast(Pod, after.object)
        for key, tracked in self._tracked.items():
            if key.namespace == changed.key.namespace and tracked.see(changed.key.name, pod):
                self._look_at(key)

    def _observe_budget(self, before: StoredObject | None, after: StoredObject | None) -> None:
        had_budgets = bool(self._tracked)
        self._see_budget(before, after)
        if bool(self._tracked) != had_budgets:
            self._store.renew_observers()

    def _see_budget(self, before: StoredObject | None, after: StoredObject | None) -> None:
        if after is None:
            assert before is not None
            del self._tracked[before.key]
            return
        if before is not None and _spec(before) == _spec(after):
            if not self._is_writing and _status(before) != _status(after):
                self._tracked[after.key].keeps_status = True
            return
        keeps_status = before is None and "disruptionsAllowed" in _status(after)
        self._tracked[after.key] = self._follow(after, keeps_status=keeps_status)
        if not keeps_status:
            self._look_at(after.key)

    def _follow(self, stored: StoredObject, *, keeps_status: bool) -> _TrackedBudget:
        budget = cast(PodDisruptionBudget, stored.object)
        tracked = _TrackedBudget(stored.key.namespace, _selector(budget), keeps_status)
        for one in self._store.all(POD):
            if one.key.namespace == stored.key.namespace:
                tracked.see(one.key.name, cast(Pod, one.object))
        return tracked

    def _look_at(self, key: ObjectKey) -> None:
        if key not in self.waiting:
            self.waiting.append(key)
        self._soon(self.work)


def _spec(stored: StoredObject) -> Content:
    return stored.content.get("spec") or {}


def _status(stored: StoredObject) -> Content:
    return stored.content.get("status") or {}


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """The selector of a budget; None: it selects nothing."""
    try:
        return label_selector(budget.spec.selector)
    except SelectorError:
        return None


def _member(pod: Pod) -> _Member:
    is_leaving = pod.metadata.deletion_timestamp is not None
    is_healthy = is_ready(pod) and not is_leaving  # upstream: countHealthyPods
    return _Member(is_healthy, is_leaving, _owner_of(pod.metadata, pod.metadata.namespace or ""))


def _owner_of(meta: ObjectMeta, namespace: str) -> _Owner | None:
    one = controller_of(meta)
    return None if one is None else _Owner(key_of_owner(one, namespace), one.uid)


def is_ready(pod: Pod) -> bool:
    """Whether a pod is ready. A running pod without a condition Ready is ready."""
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition.status == "True"
    return pod.status.phase == "Running"


def _scaled(bound: int | str, count: int) -> int:
    """A number, or a percentage of the pods, rounded up. An invalid percentage counts as all pods.
    Upstream: GetScaledValueFromIntOrPercent."""
    if isinstance(bound, int):
        return bound
    percent = _PERCENT.fullmatch(bound)
    return -(-int(percent[1]) * count // 100) if percent else count


# ---- evictions ------------------------------------------------------------------------------


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

    def __init__(self, server: ApiServer, store: VersionedStore) -> None:
        self._server = server
        self._store = store

    def evict(self, key: ObjectKey) -> None:
        """Evict a pod. Raises ApiError: 404, no such pod; 429, a budget allows no disruption now;
        403, the status of a budget is broken; 500, several budgets select the pod."""
        stored = self._server.get(key)
        pod = cast(Pod, stored.object)
        if not ignores_budgets(pod):
            budgets = self._budgets_of(key, pod)
            if len(budgets) > 1:
                raise ApiError(500, "", _SEVERAL)
            if budgets and not may_go_unready(pod, cast(PodDisruptionBudget, budgets[0].object)):
                self._use_disruption(budgets[0], key.name)
        conditions = with_condition(stored.content["status"], EVICTED, self._server.stamp())
        self._server.patch(key, {"status": {"conditions": conditions}})
        self._server.delete(key)

    def _budgets_of(self, key: ObjectKey, pod: Pod) -> list[StoredObject]:
        """The budgets that select a pod. A budget with an invalid selector selects nothing."""
        labels = pod.metadata.labels or {}
        budgets: list[StoredObject] = []
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

    def _use_disruption(self, budget: StoredObject, pod_name: str) -> None:
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


def ignores_budgets(pod: Pod) -> bool:
    """Whether a pod disrupts nothing: it has ended, is not running yet, or goes already."""
    is_leaving = pod.metadata.deletion_timestamp is not None
    return is_leaving or pod.status.phase in (*TERMINAL_PHASES, "Pending")


def may_go_unready(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether an unready pod may go without a disruption (unhealthyPodEvictionPolicy)."""
    if is_ready(pod):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


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
