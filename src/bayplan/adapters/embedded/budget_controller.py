"""The disruption controller, as far as a simulation needs it: which disruptions budgets allow now.

The controller writes the status of a budget when the spec changes, and when a pod that the budget
selects appears, disappears, begins to run or ends. A budget from a cluster comes with a status. The
controller keeps that status until a selected pod becomes healthy or stops being healthy, for the
cluster knew controllers that are unknown here. Upstream: pkg/controller/disruption.

Two points differ from upstream. A pod without a condition Ready is healthy while it runs, for
nothing reports readiness here. The scale of a controller is the largest number of pods that it has
had at a time, for controllers are not stored.
"""

import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast, final

from bayplan.adapters.embedded.api_server import ApiServer
from bayplan.adapters.embedded.field_validation import Content, ObjectKey
from bayplan.adapters.embedded.object_store import ObjectStore, Stored
from bayplan.api.disruption_objects import (
    POD_DISRUPTION_BUDGET,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
)
from bayplan.api.objects import POD, Pod
from bayplan.api.selectors import Selector, SelectorError, label_selector
from bayplan.ports import ApiError

_PERCENT = re.compile(r"(\d+)%")

#: Calls back when the change under way is done.
Soon = Callable[[Callable[[], None]], object]


@dataclass(frozen=True, slots=True)
class _Member:
    """A pod that a budget selects."""

    is_healthy: bool
    #: uid of its controller; "": it has none.
    owner: str


@dataclass(slots=True)
class _TrackedBudget:
    """A budget, and the pods that it selects."""

    namespace: str
    selector: Selector | None
    #: Whether the budget keeps the status that it came with.
    keeps_status: bool
    pods: dict[str, _Member] = field(default_factory=dict[str, _Member])
    healthy_count: int = 0
    #: Pods by controller: now, and the most there ever were.
    owned: Counter[str] = field(default_factory=Counter[str])
    scales: dict[str, int] = field(default_factory=dict[str, int])

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

    def status(self, spec: PodDisruptionBudgetSpec) -> Content:
        """Upstream: getExpectedPodCount, updatePdbStatus."""
        expected, desired = self._expected_counts(spec)
        allowed = max(self.healthy_count - desired, 0) if expected > 0 else 0
        return {
            "currentHealthy": self.healthy_count,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
        }

    def _expected_counts(self, spec: PodDisruptionBudgetSpec) -> tuple[int, int]:
        """(expected number of pods, desired number of healthy pods)."""
        scale = sum(
            self.scales[owner] for owner, count in self.owned.items() if owner and count > 0
        )
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

    def __init__(self, server: ApiServer, store: ObjectStore, soon: Soon) -> None:
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
            spec = cast(PodDisruptionBudget, stored.object).spec
            generation = stored.content["metadata"]["generation"]
            status = {**tracked.status(spec), "observedGeneration": generation}
            self._is_writing = True
            try:
                self._server.patch(key, {"status": status})
            except ApiError:
                continue  # the budget is invalid
            finally:
                self._is_writing = False

    def _observe_pod(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        pod = None if after is None else cast(Pod, after.object)
        for key, tracked in self._tracked.items():
            if key.namespace == changed.key.namespace and tracked.see(changed.key.name, pod):
                self._look_at(key)

    def _observe_budget(self, before: Stored | None, after: Stored | None) -> None:
        had_budgets = bool(self._tracked)
        self._see_budget(before, after)
        if bool(self._tracked) != had_budgets:
            self._store.renew_observers()

    def _see_budget(self, before: Stored | None, after: Stored | None) -> None:
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

    def _follow(self, stored: Stored, *, keeps_status: bool) -> _TrackedBudget:
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


def _spec(stored: Stored) -> Content:
    return stored.content.get("spec") or {}


def _status(stored: Stored) -> Content:
    return stored.content.get("status") or {}


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """The selector of a budget; None: it selects nothing."""
    try:
        return label_selector(budget.spec.selector)
    except SelectorError:
        return None


def _member(pod: Pod) -> _Member:
    owners = pod.metadata.owner_references or ()
    controller = next((owner.uid for owner in owners if owner.controller), "")
    return _Member(_is_healthy(pod), controller or "")


def _is_healthy(pod: Pod) -> bool:
    """Upstream: countHealthyPods."""
    if pod.metadata.deletion_timestamp is not None:
        return False
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
