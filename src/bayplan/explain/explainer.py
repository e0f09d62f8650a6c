"""explain_pod: why a pod has a node or none, and which changes would give it one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np
from msgspec import structs

from bayplan.answers.names import natural_key
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.objects import DEFAULT_SCHEDULER, NODE, POD, POD_SCHEDULED, Pod, is_terminal
from bayplan.api.pod_groups import UPSTREAM_GROUP
from bayplan.api.selectors import SelectorError, label_selector
from bayplan.engine.cycle import Cycle
from bayplan.explain.causes import causes_of, saturated_and_excluded
from bayplan.explain.diagnosis import NodeDiagnosis, diagnose, pods_by_node
from bayplan.explain.explanation import (
    Budget,
    Comparison,
    Explanation,
    Group,
    NodeComparison,
    Preemption,
    Result,
)
from bayplan.explain.fixes.owners import Owners, owners_of
from bayplan.explain.fixes.search import Search
from bayplan.explain.large_requests import large_request_remarks
from bayplan.explain.levels import ComparedLevel, levels_of
from bayplan.framework.status import Code
from bayplan.journal import NodeScore
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.objects.workloads import pod_name
from bayplan.plugins.node_resources_fit import INSUFFICIENT
from bayplan.plugins.registry import in_tree_plugins
from bayplan.printable import printable
from bayplan.problems import nearest
from bayplan.state.pods import PodInfo

_RESULTS: dict[str, Result] = {
    "scheduled": "fits",
    "waiting": "waiting",
    "gated": "gated",
    "error": "error",
}
#: The prefix of a scheduling gate → who removes the gate, and when.
_GATE_HOLDERS = {
    "kueue.x-k8s.io/": "Kueue, when it admits the pod's Workload (kubectl get workloads)",
    "volcano.sh/": "Volcano, when it admits the pod's queue",
    "scheduling.volcano.sh/": "Volcano, when it admits the pod's queue",
    "jobset.sigs.k8s.io/": "JobSet, when the leader of the job has a node",
    "leaderworkerset.sigs.k8s.io/": "LeaderWorkerSet, when the leader of the group runs",
    "grove.io/": "Grove, when the pod's gang is complete",
}
_BUDGETS_MAX = 10
#: The number of nodes with which a bound pod's node is compared.
_BEST_MAX = 5
#: Pods of other templates that are tried to see whether one of them fits.
_TRIED_MAX = 8


class NoSuchPodError(Exception):
    """There is no pod of this name."""


def explain_pod(model: ClusterModel, name: str, *, with_fixes: bool = True) -> Explanation:
    """The explanation of a pod. ``name``: "namespace/name". ``with_fixes``: whether to try changes
    with which the pod fits, which takes longer than the causes. Raises NoSuchPodError."""
    pod = model.pod(name)
    if pod is None and name in model.source.ended_pods:
        return Explanation(
            pod=name,
            scheduler="",
            result="ended",
            source=model.source.source,
            moment=model.source.moment,
            remarks=model.source.remarks,
        )
    if pod is None:
        raise NoSuchPodError(name)
    scheduler = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    head = Explanation(
        pod=name,
        scheduler=scheduler,
        result="bound",
        source=model.source.source,
        moment=model.source.moment,
        node=pod.spec.node_name or "",
        remarks=(*model.source.remarks, *large_request_remarks(model, [pod])),
    )
    if is_terminal(pod):
        return structs.replace(head, result="ended")
    if pod.spec.node_name and model.get(NODE, "", pod.spec.node_name) is None:
        return _with_missing_node(model, head)
    if pod.metadata.deletion_timestamp is not None and not pod.spec.node_name:
        message = f"{name} is being deleted: no scheduler tries it"
        return structs.replace(head, result="unschedulable", message=message)
    if not model.scheduler.is_responsible_for(scheduler) and not pod.spec.node_name:
        return structs.replace(head, result="foreign", stored_message=_stored(model, pod))
    if pod.spec.node_name:
        if not model.scheduler.is_responsible_for(scheduler):
            return structs.replace(head, result="foreign")
        # A note of the cluster names the finalizers that keep a pod.
        if pod.metadata.deletion_timestamp is not None and not pod.metadata.finalizers:
            leaving = f"{name} is being deleted, and holds its room until it is gone"
            head = structs.replace(head, remarks=(*head.remarks, leaving))
        return structs.replace(head, comparison=comparison_of(model, pod))
    return _pending(model, head, pod, with_fixes=with_fixes)


def _with_missing_node(model: ClusterModel, head: Explanation) -> Explanation:
    """The explanation of a pod that was bound to a node that is gone, or whose manifest has a wrong
    node name."""
    hint = nearest(head.node, [each.metadata.name for each in model.objects(NODE)])
    meant = f'; did you mean "{hint}"?' if hint is not None else ""
    collector = "pod garbage collection deletes pods of nodes that do not exist"
    return structs.replace(
        head,
        result="missing-node",
        message=f"{head.pod}: the pod's node {head.node} does not exist{meant}",
        remarks=(*head.remarks, f"{collector}; no scheduler moves a pod that names its node"),
    )


def _pending(model: ClusterModel, head: Explanation, pod: Pod, *, with_fixes: bool) -> Explanation:
    diagnosis = diagnose(model, head.pod)
    attempt = diagnosis.attempt
    stored = _stored(model, pod)
    explanation = structs.replace(
        head,
        result=_result(attempt),
        node=attempt.node,
        message=attempt.message,
        stored_message=stored if stored != attempt.message else "",
        node_count=diagnosis.node_count or model.scheduler.cache.table.node_count,
        feasible_count=diagnosis.feasible_count,
    )
    if attempt.node:
        remarks = (*head.remarks, *_queue_remarks(model, head.pod))
        return structs.replace(explanation, group=_group(model, diagnosis), remarks=remarks)
    levels = _levels(model, diagnosis)
    explanation = structs.replace(
        explanation,
        causes=causes_of(model, diagnosis),
        preemption=_preemption(model, diagnosis),
        group=_with_levels(_group(model, diagnosis), levels),
        remarks=(
            *head.remarks,
            *_gate_remarks(attempt),
            *_group_remarks(model, attempt),
            *_waiting_remarks(model, diagnosis),
        ),
    )
    if not with_fixes or attempt.nominated_node or attempt.result == "gated":
        return explanation
    if _is_error_of_own_plugin(attempt):
        return explanation
    owners = owners_of(model)
    peers = _peers(model, owners, attempt.pod)
    search = Search(model, owners, attempt.pod, peers, levels)
    solutions = search.run(diagnosis)
    fixes = tuple(each.fix for each in solutions)
    return structs.replace(explanation, fixes=fixes, trials=search.trials)


def _is_error_of_own_plugin(attempt: Attempt) -> bool:
    """Whether a plugin that is not kube-scheduler's failed. Its code has to change, not the
    cluster. An error of kube-scheduler's plugins may have its cause in the objects."""
    if attempt.result != "error" or attempt.record is None or not attempt.record.plugin:
        return False
    name = attempt.record.plugin.partition("/")[0]
    return all(name != plugin.name for plugin in in_tree_plugins())


def _queue_remarks(model: ClusterModel, pod: str) -> Iterator[str]:
    """Remarks about a pod that fits now: it may lose its room to pods that are tried before it."""
    names = [info.key for info in model.in_queue_order()]
    count = names.index(pod)
    if count:
        others = "1 pod that waits is" if count == 1 else f"{count:,} pods that wait are"
        yield f"{others} before it in the queue of the scheduler, and may take the room"


def _waiting_remarks(model: ClusterModel, diagnosis: NodeDiagnosis) -> Iterator[str]:
    """A pod that waits and fits may take the room that the amounts here count as free."""
    lacking: defaultdict[str, set[str]] = defaultdict(set)
    for node, status in diagnosis.rejected.items():
        for reason in status.reasons:
            if reason.startswith(INSUFFICIENT):
                lacking[node].add(reason.removeprefix(INSUFFICIENT))
    names = {name for each in lacking.values() for name in each}
    if not names:
        return
    waiting = {id(info.shape): info for info in reversed(model.in_queue_order())}
    rivals = [each for each in waiting.values() if names.intersection(each.requests)]
    for rival in rivals[: -_TRIED_MAX - 1 : -1]:
        node = model.attempt(rival.key).node
        if rival.key != diagnosis.attempt.pod.key and lacking[node].intersection(rival.requests):
            yield (
                f"the amounts are those of now; {rival.key} waits, too, and fits on {node}: "
                "`bayplan why --all-pending` places such pods first, so its amounts may be smaller"
            )
            return


def _gate_remarks(attempt: Attempt) -> Iterator[str]:
    """Remarks about who holds a gated pod. Nobody else removes the gate, so what the pod waits for
    has not happened."""
    for gate in attempt.pod.spec.scheduling_gates or () if attempt.result == "gated" else ():
        holders = (who for prefix, who in _GATE_HOLDERS.items() if gate.name.startswith(prefix))
        who = next(holders, "the controller that set it")
        yield printable(f"the scheduling gate {gate.name} is removed by {who}")


def _group_remarks(model: ClusterModel, attempt: Attempt) -> Iterator[str]:
    """Remarks about a pod without the object of its group: nothing says whether it will be placed
    with others."""
    state = model.scheduler.pod_groups.of(attempt.pod)
    if state is not None and state.group is None and state.key.api_group != UPSTREAM_GROUP:
        yield printable(
            f"kube-scheduler does not read PodGroups of {state.key.api_group}: without a plugin "
            "that does, such as Coscheduling, it places such pods one by one"
        )


def _result(attempt: Attempt) -> Result:
    if attempt.nominated_node and not attempt.node:
        return "nominated"
    return _RESULTS.get(attempt.result, "unschedulable")


def _stored(model: ClusterModel, pod: Pod) -> str:
    """The sentence in the pod's status as it was read."""
    key = model.source.objects.key_of_uid(pod.metadata.uid or "")
    if key is None:
        return ""
    original = cast(Pod, model.source.objects.get(key))
    conditions = original.status.conditions or ()
    own = (c for c in conditions if c.type == POD_SCHEDULED and c.status == "False")
    return next((c.message or "" for c in own), "")


def _peers(model: ClusterModel, owners: Owners, pod: PodInfo) -> list[str]:
    """The pods that a change of the template changes: the waiting pods of the same controller; for
    a member of a group, only the members among them. The pod itself comes first."""
    owner = owners.of(pod)
    if owner is None:
        return [pod.key]
    waiting = {each.key: each.group_key for each in model.pending()}
    own = (pod_name(p) for p in owners.pods(owner))
    peers = [n for n in own if n in waiting and n != pod.key and waiting[n] == pod.group_key]
    return [pod.key, *peers]


# ---- preemption ---------------------------------------------------------------------------------


def _preemption(model: ClusterModel, diagnosis: NodeDiagnosis) -> Preemption | None:
    attempt, pod = diagnosis.attempt, diagnosis.attempt.pod
    if attempt.result in ("gated", "error"):
        return None
    if attempt.nominated_node:
        return Preemption(
            verdict=f"victims leave {attempt.nominated_node}, then the pod gets it",
            nominated_node=attempt.nominated_node,
            victims=tuple(each.key for each in attempt.victims),
            budgets=_budgets(model, list(attempt.victims)),
        )
    _, marker, verdict = attempt.message.partition("preemption: ")
    if not marker:
        never = pod.spec.preemption_policy == "Never"
        return Preemption(verdict="preemptionPolicy is Never") if never else None
    if not any(model.objects(POD_DISRUPTION_BUDGET)):
        return Preemption(verdict=verdict)
    nodes = {n for n, s in diagnosis.rejected.items() if s.code is Code.UNSCHEDULABLE}
    in_the_way = [
        each
        for node, pods in pods_by_node(model).items()
        if node in nodes
        for each in pods
        if each.priority < pod.priority
    ]
    return Preemption(verdict=verdict, budgets=_budgets(model, in_the_way))


def _budgets(model: ClusterModel, pods: list[PodInfo]) -> tuple[Budget, ...]:
    """The budgets that cover these pods, those that allow the least first."""
    budgets: list[Budget] = []
    for each in model.objects(POD_DISRUPTION_BUDGET) if pods else ():
        if not isinstance(each, PodDisruptionBudget):
            continue
        try:
            selector = label_selector(each.spec.selector)
        except SelectorError:
            continue
        namespace = each.metadata.namespace
        covered = [p.key for p in pods if p.namespace == namespace and selector.matches(p.labels)]
        if covered:
            budgets.append(
                Budget(
                    name=f"{namespace}/{each.metadata.name}",
                    disruptions_allowed=each.status.disruptions_allowed,
                    pods=tuple(covered[:_BUDGETS_MAX]),
                )
            )
    return tuple(
        sorted(budgets, key=lambda b: (b.disruptions_allowed, natural_key(b.name)))[:_BUDGETS_MAX]
    )


# ---- groups -------------------------------------------------------------------------------------


def _group(model: ClusterModel, diagnosis: NodeDiagnosis) -> Group | None:
    attempt = diagnosis.attempt
    state = model.scheduler.pod_groups.of(attempt.pod)
    if state is None:
        return None
    record = attempt.group
    saturated, excluded = saturated_and_excluded(diagnosis)
    failing = diagnosis.pod.key if diagnosis.rejected or diagnosis.whole is not None else ""
    return Group(
        name=f"{state.key.namespace}/{state.key.name}",
        kind=f"{state.key.api_group} PodGroup",
        have=state.here_count,
        need=0 if state.group is None else state.min_member,
        placed=state.assigned_count,
        fitting=0 if record is None else record.fitting,
        first_failing_member=failing,
        domain="" if record is None else record.domain,
        saturated_nodes=saturated,
        excluded_nodes=excluded,
        message=attempt.message or state.message if record is None else record.message,
    )


def _levels(model: ClusterModel, diagnosis: NodeDiagnosis) -> tuple[ComparedLevel, ...]:
    state = model.scheduler.pod_groups.of(diagnosis.attempt.pod)
    if state is None or diagnosis.attempt.result == "gated":
        return ()
    return levels_of(model, state)


def _with_levels(group: Group | None, levels: Iterable[ComparedLevel]) -> Group | None:
    """The explanation with what each level of the topology lacks."""
    if group is None:
        return None
    return structs.replace(group, levels=tuple(each.answer for each in levels))


# ---- bound pods ---------------------------------------------------------------------------------


def comparison_of(model: ClusterModel, pod: Pod) -> Comparison:
    """The comparison of a bound pod's node with others. It takes the pod off its node in a trial,
    and tries the pod once."""
    namespace, name = pod.metadata.namespace or "", pod.metadata.name
    node = pod.spec.node_name or ""
    results: list[Comparison] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.key == f"{namespace}/{name}" and not results:
            results.append(_compared(cycle, node))

    # No scheduler tries a pod that is being deleted.
    metadata = structs.replace(pod.metadata, deletion_timestamp=None)
    spec = structs.replace(pod.spec, node_name=None, scheduling_gates=None)
    status = structs.replace(pod.status, nominated_node_name=None, conditions=None, phase="Pending")
    with model.trial():
        model.remove(POD, namespace, name)
        model.add(POD, cast(Pod, structs.replace(pod, metadata=metadata, spec=spec, status=status)))
        attempt = model.attempt(f"{namespace}/{name}", look)
    if not results:
        return Comparison(
            node=node, feasible=0, better=0, equal=0, nodes=(), rejection=attempt.message
        )
    return results[0]


def _compared(cycle: Cycle, node: str) -> Comparison:
    feasible_count = cycle.feasible_count
    statuses = cycle.node_to_status() if cycle.feasibility is not None else None
    table = cycle.score_table()
    position = None if table is None else table.nodes.position(node)
    if table is None or position is None:
        is_only = cycle.choice is not None and cycle.choice.node_name == node
        rejection = ""
        if not is_only:
            message = "" if statuses is None else statuses.get(node).message
            rejection = message or (cycle.status.message if cycle.status is not None else "")
        best = () if table is None else tuple(map(_line, table.best_lines(_BEST_MAX)))
        own = NodeComparison(node=node, reason=rejection)
        return Comparison(
            node=node,
            feasible=feasible_count,
            better=feasible_count - is_only,
            equal=0,
            nodes=(own, *best),
            rejection=rejection,
        )
    total = table.totals[position]
    own_line = _line(table.line_at(position))
    best = (_line(each) for each in table.best_lines(_BEST_MAX) if each.node != node)
    return Comparison(
        node=node,
        feasible=feasible_count,
        better=int(np.count_nonzero(table.totals > total)),
        equal=int(np.count_nonzero(table.totals == total)) - 1,
        nodes=(own_line, *best),
    )


def _line(score: NodeScore) -> NodeComparison:
    return NodeComparison(
        node=score.node,
        total=score.total,
        scores={each.plugin: each.weighted for each in score.plugins},
    )
