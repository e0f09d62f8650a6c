"""What the controller of a Deployment does next: a function of the Deployment and its ReplicaSets.

The new ReplicaSet is the one with the template of the Deployment. During a rollout, a Deployment
scales the new one up and the others down, so that at most ``maxSurge`` pods exist besides the
desired ones and at most ``maxUnavailable`` desired ones are not available. With ``Recreate``, the
new pods come when all old ones are gone. A change of the number of replicas during a rollout scales
all ReplicaSets in proportion to their sizes.

A plan is one pass. The next pass comes when a pod begins to run or goes, because that may allow the
next step.

Upstream: pkg/controller/deployment (sync.go, rolling.go, recreate.go, util/deployment_util.go).
Missing here: progress deadlines, and the removal of old ReplicaSets.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bayplan.objects.keys import Content, key_of
from bayplan.objects.workloads import TEMPLATE_HASH_LABEL
from bayplan.sim.input.controller_pods import is_running, replica_count
from bayplan.sim.input.expansion import replica_set_of
from bayplan.sim.world.workloads.plans import OwnedPods, Plan, amount_of, creation_seconds

#: Annotations of a ReplicaSet: the replicas of its Deployment when it was scaled last, without and
#: with the surplus.
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAX = "deployment.kubernetes.io/max-replicas"
_REVISION = "deployment.kubernetes.io/revision"
#: Upstream's default of maxSurge and of maxUnavailable.
_SHARE = "25%"


class ReplicaSetPods(NamedTuple):
    """A ReplicaSet of a Deployment with its pods."""

    replica_set: Content
    pods: OwnedPods

    @property
    def size(self) -> int:
        return replica_count(self.replica_set)

    @property
    def available_count(self) -> int:
        """Pods that run, or that have run for their whole duration."""
        return sum(map(is_running, self.pods.active.values())) + len(self.pods.finished)

    @property
    def has_running_pods(self) -> bool:
        """Whether pods are left that have not ended."""
        return bool(self.pods.active or self.pods.terminating)


def deployment_plan(
    deployment: Content, replica_sets: Sequence[ReplicaSetPods], *, has_new_template: bool = False
) -> Plan:
    """The next pass over a Deployment.

    ``has_new_template``: whether the template was changed. If it was, only a ReplicaSet with the
    same template is the new one. If not, and no template is equal, the newest ReplicaSet is the new
    one, because the templates of an input that was written by hand may differ in what a server
    adds.
    """
    if deployment["metadata"].get("deletionTimestamp") or not (replica_sets or has_new_template):
        return Plan()
    new = new_replica_set(deployment, [one.replica_set for one in replica_sets])
    if new is None and not has_new_template:
        new = max((one.replica_set for one in replica_sets), key=_revision)
    rollout = _Rollout(deployment, replica_sets, new)
    if deployment["spec"].get("paused") or rollout.is_scaled():
        rollout.scale()
    elif _strategy(deployment) == "Recreate":
        rollout.recreate()
    else:
        rollout.roll()
    rollout.plan.waits_for_pod = not is_rolled_out(deployment, replica_sets, new)
    return rollout.plan


def new_replica_set(deployment: Content, replica_sets: Iterable[Content]) -> Content | None:
    """The oldest ReplicaSet with the template of the Deployment; None: there is none.

    Upstream: FindNewReplicaSet.
    """
    template = _comparable(deployment["spec"]["template"])
    equal = [one for one in replica_sets if _comparable(one["spec"]["template"]) == template]
    return min(equal, key=_age, default=None)


def is_rolled_out(
    deployment: Content, replica_sets: Sequence[ReplicaSetPods], new: Content | None
) -> bool:
    """Whether all pods are of the new ReplicaSet and available."""
    if new is None:
        return False
    wanted = replica_count(deployment)
    return all(
        one.size == one.available_count == wanted if one.replica_set is new else not one.size
        for one in replica_sets
    )


def progress(deployment: Content, replica_sets: Sequence[ReplicaSetPods]) -> str:
    """The progress of a rollout, in words for the reader."""
    new = new_replica_set(deployment, [one.replica_set for one in replica_sets])
    if new is None and replica_sets:
        new = max((one.replica_set for one in replica_sets), key=_revision)
    available = sum(one.available_count for one in replica_sets if one.replica_set is new)
    old = sum(len(one.pods.active) for one in replica_sets if one.replica_set is not new)
    wanted = replica_count(deployment)
    are = "is" if available == 1 else "are"
    left = f"{old} old pod{'s are' if old != 1 else ' is'} left"
    return f"its rollout is not complete: {available} of {wanted} new pods {are} available, {left}"


class _Rollout:
    """One pass over one Deployment."""

    def __init__(
        self, deployment: Content, replica_sets: Sequence[ReplicaSetPods], new: Content | None
    ) -> None:
        self.plan = Plan()
        self._deployment = deployment
        self._replicas = replica_count(deployment)
        self._all = list(replica_sets)
        self._new = next((one for one in replica_sets if one.replica_set is new), None)
        self._old = sorted(
            (one for one in replica_sets if one is not self._new), key=lambda one: _age(one[0])
        )
        self._surge, self._unavailable = rollout_limits(deployment)

    def is_scaled(self) -> bool:
        """Whether the number of replicas has changed since the ReplicaSets were scaled last.

        Upstream: isScalingEvent.
        """
        noted = [_annotation(one.replica_set, _DESIRED) for one in self._all if one.size]
        return any(one is not None and one != self._replicas for one in noted)

    # ---- scaling ----------------------------------------------------------------------------

    def scale(self) -> None:
        """Upstream: sync.go (scale)."""
        active = [one for one in self._all if one.size]
        if len(active) <= 1:
            for only in (active or [*filter(None, [self._new]), *reversed(self._old)])[:1]:
                self._resize(only, self._replicas)
        elif self._is_saturated():
            for one in self._old:
                self._resize(one, 0)
        elif _strategy(self._deployment) != "Recreate":
            self._scale_in_proportion(active)

    def _is_saturated(self) -> bool:
        new = self._new
        if new is None or _annotation(new.replica_set, _DESIRED) != self._replicas:
            return False
        return new.size == new.available_count == self._replicas

    def _scale_in_proportion(self, active: list[ReplicaSetPods]) -> None:
        allowed = self._replicas + self._surge if self._replicas else 0
        missing = allowed - sum(one.size for one in active)
        # Of two equal ReplicaSets, the newer one grows and the older one shrinks.
        active.sort(key=lambda one: _age(one.replica_set), reverse=missing > 0)
        active.sort(key=lambda one: -one.size)
        sizes: list[int] = []
        added = 0
        for one in active:
            share = self._share(one, missing, added)
            added += share
            sizes.append(one.size + share)
        sizes[0] = max(sizes[0] + missing - added, 0)
        for one, size in zip(active, sizes, strict=True):
            self._resize(one, size, always=True)

    def _share(self, one: ReplicaSetPods, missing: int, added: int) -> int:
        """Upstream: GetReplicaSetProportion."""
        if missing == added:
            return 0
        if not self._replicas:
            share = -one.size
        else:
            before = _annotation(one.replica_set, _MAX) or sum(each.size for each in self._all)
            share = _rounded(one.size * (self._replicas + self._surge) / before) - one.size
        return min(share, missing - added) if missing > 0 else max(share, missing - added)

    def _resize(self, one: ReplicaSetPods, size: int, *, always: bool = False) -> bool:
        """Scale a ReplicaSet. Returns whether its size changes.

        ``always``: whether to note the size of the Deployment even if the size of the ReplicaSet
        stays.
        """
        if one.size == size and not always:
            return False
        noted = {_DESIRED: str(self._replicas), _MAX: str(self._replicas + self._surge)}
        patch: Content = {"metadata": {"annotations": noted}, "spec": {"replicas": size}}
        self.plan.patches.append((key_of(one.replica_set), patch))
        return one.size != size

    # ---- rollouts ---------------------------------------------------------------------------

    def recreate(self) -> None:
        """Upstream: recreate.go (rolloutRecreate)."""
        resized = [one for one in self._old if one.size and self._resize(one, 0)]
        if resized or any(one.has_running_pods for one in self._old):
            return
        if self._new is None:
            self._create_new(self._replicas)
        else:
            self._resize(self._new, self._replicas)

    def roll(self) -> None:
        """Upstream: rolling.go (rolloutRolling)."""
        total = sum(one.size for one in self._all)
        room = max(self._replicas + self._surge - total, 0)
        if self._new is None:
            self._create_new(min(room, self._replicas))
            return
        if self._new.size > self._replicas:
            self._resize(self._new, self._replicas)
        elif not self._resize(self._new, min(self._new.size + room, self._replicas)):
            self._shrink_old(total)

    def _create_new(self, size: int) -> None:
        self.plan.create.append(replica_set_of(self._deployment, size))

    def _shrink_old(self, total: int) -> None:
        """Scale old ReplicaSets down: first by pods that are not available, then as far as enough
        pods stay available. Upstream: reconcileOldReplicaSets."""
        assert self._new is not None
        least = self._replicas - self._unavailable
        removable = total - least - (self._new.size - self._new.available_count)
        if removable <= 0:
            return
        sizes = [one.size for one in self._old]
        for index, one in enumerate(self._old):
            unavailable = max(one.size - one.available_count, 0)
            cut = min(removable, unavailable)
            sizes[index] -= cut
            removable -= cut
        surplus = sum(one.available_count for one in self._all) - least
        for index, size in enumerate(sizes):
            cut = min(max(surplus, 0), size)
            sizes[index] -= cut
            surplus -= cut
        for one, size in zip(self._old, sizes, strict=True):
            self._resize(one, size)


def _strategy(deployment: Content) -> str:
    return (deployment["spec"].get("strategy") or {}).get("type") or "RollingUpdate"


def rollout_limits(deployment: Content) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in pods. Upstream: ResolveFenceposts, MaxUnavailable, MaxSurge."""
    replicas = replica_count(deployment)
    if _strategy(deployment) == "Recreate":
        return 0, 0
    rolling: Content = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = amount_of(rolling.get("maxSurge"), replicas, default=_SHARE, rounds_up=True)
    unavailable = amount_of(rolling.get("maxUnavailable"), replicas, default=_SHARE)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, replicas)


def _rounded(size: float) -> int:
    """Halves are rounded away from zero."""
    return math.floor(size + 0.5)


def _annotation(content: Content, name: str) -> int | None:
    text = str((content["metadata"].get("annotations") or {}).get(name, ""))
    return int(text) if text.isdecimal() else None


def _revision(replica_set: Content) -> tuple[object, ...]:
    return _annotation(replica_set, _REVISION) or 0, *_age(replica_set)


def _age(replica_set: Content) -> tuple[float, str]:
    return creation_seconds(replica_set), replica_set["metadata"]["name"]


def _comparable(template: Content) -> Any:
    """A template without the label of its ReplicaSet, and without what is empty."""
    meta = template.get("metadata") or {}
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != TEMPLATE_HASH_LABEL}
    return _without_empty({**template, "metadata": {**meta, "labels": labels}})


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        members = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in members.items() if one not in (None, {}, [], "")}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value
