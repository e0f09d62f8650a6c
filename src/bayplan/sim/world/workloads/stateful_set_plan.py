"""What the controller of a StatefulSet does next: a function of the StatefulSet and its pods.

A pass goes through the ordinals from the lowest. It creates what is missing (a pod that waits may
lack its claims, too), and stops at the first pod that does not run, unless ``podManagementPolicy``
is Parallel. Then the pods above the replicas go, from the highest. Then, if the template was
changed, pods of the old template go, from the highest ordinal down to ``partition``, as far as
``maxUnavailable`` (1 if missing) permits. They come back with the new template.

Upstream: pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet, processReplica,
updateStatefulSetAfterInvariantEstablished), stateful_set_utils.go. ``maxUnavailable`` counts, as by
default since v1.37. ``minReadySeconds`` counts as 0.
"""

from bayplan.objects.keys import Content, ObjectKey, key_of
from bayplan.objects.workloads import ordinal_of
from bayplan.sim.input.controller_pods import (
    REVISION_HASH_LABEL,
    is_ordered,
    is_pending,
    is_running,
    ordinals,
    stateful_pod,
    template_hash,
)
from bayplan.sim.input.workload import has_ended
from bayplan.sim.world.workloads.plans import OwnedPods, Plan, Surroundings, amount_of


def stateful_set_plan(controller: Content, pods: OwnedPods, surroundings: Surroundings) -> Plan:
    """The next pass over a StatefulSet."""
    if controller["metadata"].get("deletionTimestamp"):
        return Plan()
    by_name = {pod["metadata"]["name"]: pod for pod in pods.existing()}
    finished = {pod["metadata"]["name"] for pod in pods.finished.values()} - by_name.keys()
    ordered, plan, replicas = is_ordered(controller), Plan(), list[Content | None]()
    key = key_of(controller)
    for number in ordinals(controller):
        name = f"{key.name}-{number}"
        pod = by_name.pop(name, None)
        replicas.append(pod)
        if name in finished or (pod is not None and is_running(pod)):
            continue
        if pod is None:
            _create(controller, number, surroundings, plan)
        elif has_ended(pod) and not pod["metadata"].get("deletionTimestamp"):
            plan.delete.append(key_of(pod))
        elif is_pending(pod):
            plan.create += missing_claims(controller, number, surroundings)
        if ordered:
            plan.waits_for_pod = True
            return plan
    surplus = {
        number: pod for name, pod in by_name.items() if (number := ordinal_of(key.name, name)) >= 0
    }
    if not _remove_surplus(surplus, plan, ordered=ordered) or not ordered:
        _update(controller, replicas, surroundings, plan)
    return plan


def missing_claims(controller: Content, number: int, surroundings: Surroundings) -> list[Content]:
    """The claims that the pod of an ordinal lacks."""
    claims, _ = stateful_pod(controller, number)
    return [one for one in claims if not surroundings.exists(key_of(one))]


def _create(controller: Content, number: int, surroundings: Surroundings, plan: Plan) -> None:
    index = number - ordinals(controller).start
    old = surroundings.old_template
    if old is not None and index < _partition(controller):
        controller = {**controller, "spec": {**controller["spec"], "template": old}}
    claims, pod = stateful_pod(controller, number)
    if not surroundings.exists(key_of(pod)):
        plan.create += [one for one in claims if not surroundings.exists(key_of(one))]
        plan.create.append(pod)


def _remove_surplus(surplus: dict[int, Content], plan: Plan, *, ordered: bool) -> bool:
    """Delete the pods above the replicas. Returns whether there are any."""
    for number in sorted(surplus, reverse=True):
        pod = surplus[number]
        if not pod["metadata"].get("deletionTimestamp"):
            if ordered and not is_running(pod) and number != _first_unready(surplus):
                plan.waits_for_pod = True
                return True
            plan.delete.append(key_of(pod))
        if ordered:
            return True
    return bool(surplus)


def _first_unready(surplus: dict[int, Content]) -> int:
    return min((number for number, pod in surplus.items() if not is_running(pod)), default=-1)


# ---- rollouts -------------------------------------------------------------------------------


def _update(
    controller: Content, replicas: list[Content | None], surroundings: Surroundings, plan: Plan
) -> None:
    """Delete pods of the old template. ``replicas``: the pods by ordinal; None: there is no such
    pod."""
    strategy: Content = controller["spec"].get("updateStrategy") or {}
    if (strategy.get("type") or "RollingUpdate") != "RollingUpdate":
        return
    rolling: Content = strategy.get("rollingUpdate") or {}
    budget = max(amount_of(rolling.get("maxUnavailable"), len(replicas), default=1), 1)
    budget -= sum(pod is None or not is_running(pod) for pod in replicas)
    candidates = [
        pod
        for pod in reversed(replicas[_partition(controller) :])
        if pod is not None and _is_old(controller, pod, surroundings.old_template)
    ]
    plan.waits_for_pod = plan.waits_for_pod or bool(candidates)
    there = [pod for pod in candidates if not pod["metadata"].get("deletionTimestamp")]
    if not is_ordered(controller):
        # A pod that is not available anyway costs nothing.
        broken = [pod for pod in there if not is_running(pod)]
        plan.delete += [key_of(pod) for pod in broken if key_of(pod) not in plan.delete]
        there = [pod for pod in there if is_running(pod)]
    plan.delete += [key_of(pod) for pod in there[: max(budget, 0)]]


def _partition(controller: Content) -> int:
    rolling = (controller["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling.get("partition") or 0


def _is_old(controller: Content, pod: Content, old_template: Content | None) -> bool:
    """Whether a pod is of another revision than the template.

    The label of a pod that was read from a cluster names a revision that only the status knows.
    """
    revision = (pod["metadata"].get("labels") or {}).get(REVISION_HASH_LABEL)
    own = template_hash(controller["spec"]["template"])
    if old_template is not None:
        return revision != own
    updated = (controller.get("status") or {}).get("updateRevision")
    return bool(updated and revision) and revision not in (updated, own)


# ---- claims ---------------------------------------------------------------------------------


def claims_after_scaling(controller: Content, pod: Content) -> list[ObjectKey]:
    """The claims that are deleted with a pod that is gone. A pod above the replicas has such claims
    if the StatefulSet says so. Upstream: persistentVolumeClaimRetentionPolicy.whenScaled."""
    number = ordinal_of(key_of(controller).name, key_of(pod).name)
    if number < 0 or number in ordinals(controller) or not _deletes(controller, "whenScaled"):
        return []
    claims, _ = stateful_pod(controller, number)
    return [key_of(one) for one in claims]


def claims_after_deletion(controller: Content, pods: list[Content]) -> list[ObjectKey]:
    """The claims that go with a StatefulSet. Upstream: whenDeleted."""
    if not _deletes(controller, "whenDeleted"):
        return []
    name = key_of(controller).name
    numbers = {ordinal_of(name, key_of(pod).name) for pod in pods} | {*ordinals(controller)}
    return [
        key_of(one)
        for number in sorted(numbers)
        if number >= 0
        for one in stateful_pod(controller, number)[0]
    ]


def _deletes(controller: Content, when: str) -> bool:
    policy = controller["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get(when) == "Delete"
