"""Judge: does a pod, or a workload, that is being created have a node now?

A pod arrives as the API server would store it, after all defaults and all changes of admission. It
is added to the model in a trial and tried once, as kube-scheduler would try it next. The pods of a
workload do not exist yet: its controller, admission and the claims of its pods run in memory, as
for `bayplan fit`, and the pods are placed one after the other. A DaemonSet is judged on all nodes
that should run it at once.

Only what kube-scheduler would reject is a warning. There is none for a pod that preemption makes
room for, that a gate or its group holds back, that another scheduler places, or whose attempt fails
with an error. Pods that wait are not placed first: kube-scheduler has tried those that do not fit,
and a pod that fits is bound within milliseconds.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final

import numpy as np

from bayplan.adapters.embedded.api_features import api_features
from bayplan.answers.amounts import counted, short_text
from bayplan.api.admission_objects import LIMIT_RANGE, RUNTIME_CLASS
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM_TEMPLATE
from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    STATEFUL_SET,
    STORAGE_CLASS,
    Pod,
    decode,
)
from bayplan.api.pod_requests import PODS
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.engine.attempt_record import OnAttempt
from bayplan.engine.cycle import Cycle
from bayplan.framework.status import Code, listed_reasons
from bayplan.model.additions import Additions, made_into_claims, read_additions
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.objects.workloads import pod_name
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_name import NodeName
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.registry import Registry
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.printable import printable
from bayplan.serving.extender_endpoints import CONSTRAINTS_MAX, constraint_count
from bayplan.sim.input.controller_pods import pod_for_node
from bayplan.sim.input.workload import Content
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, pod_info

CRON_JOB: Final = "batch/v1 CronJob"
#: The kinds that are judged.
JUDGED_KINDS: Final = (POD, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB, CRON_JOB)
#: What admission reads of the cluster for the pods of a workload, besides objects in its namespace.
_OF_CLUSTER = (PRIORITY_CLASS, STORAGE_CLASS, DEVICE_CLASS, RUNTIME_CLASS)
#: Kinds to follow besides those that the plugins read.
FURTHER_KINDS: Final = (*_OF_CLUSTER, LIMIT_RANGE, RESOURCE_CLAIM_TEMPLATE)
#: So many pods of a workload are placed: each takes some milliseconds.
PODS_MAX: Final = 5
#: The API server cuts longer warnings. Upstream: apiserver/pkg/endpoints/filters/warning.go.
WARNING_LENGTH_MAX: Final = 256
#: The plugins with which the controller of a DaemonSet chooses its nodes.
_CHOOSING_NODES = frozenset(
    plugin.name for plugin in (NodeName, NodeAffinity, NodeUnschedulable, TaintToleration)
)

#: fits: it has a node, also after an eviction; warned; unjudged: nothing can be said about it.
Result: TypeAlias = Literal["fits", "warned", "unjudged"]


class Judgement(NamedTuple):
    """What came of one object."""

    result: Result
    #: One line of at most `WARNING_LENGTH_MAX` characters.
    warning: str = ""


_FITS, _UNJUDGED = Judgement("fits"), Judgement("unjudged")


@final
class Judge:
    """Judges objects against a model, which stays as it is."""

    def __init__(self, model: ClusterModel, config: SchedulerConfig, registry: Registry) -> None:
        self._model = model
        self._read_kinds = {*registry.kinds, *group_kinds(config.spec.pod_groups.kinds)}
        self._features = api_features(config.gates)
        self._declared = model.scheduler.declared_fields.get(POD, ())

    def judge(self, kind: str, namespace: str, content: Content) -> Judgement:
        """``kind``: as "apps/v1 Deployment". Raises BadInputError, DecodeError, QuantityError for
        an object that cannot be read."""
        meta: dict[str, Any] = {**content.get("metadata", {}), "namespace": namespace}
        name = meta.get("name") or f"{meta.get('generateName') or 'generated-'}x"
        version, _, own_kind = kind.rpartition(" ")
        whole = {**content, "apiVersion": version, "kind": own_kind}
        whole["metadata"] = {**meta, "name": name}
        with self._model.trial():
            if kind == POD:
                return self._judge_pod(whole)
            if kind == DAEMON_SET:
                return self._judge_daemons(whole)
            return self._judge_workload(own_kind, whole)

    # ---- one pod ----------------------------------------------------------------------------

    def _judge_pod(self, content: Content) -> Judgement:
        pod = cast(Pod, decode(POD, content, self._declared))
        is_taken = self._model.pod(pod_name(pod)) is not None
        if is_taken or pod.spec.node_name or not self._is_judged(pod):
            return _UNJUDGED
        if _makes_claims(pod.spec):
            additions = self._read(content, pod.metadata.namespace or "")
            self._model.add_missing(additions.objects)
            pods: tuple[Pod, ...] = additions.pods
            if len(pods) != 1:
                return _UNJUDGED
            pod = pods[0]
        self._model.add(POD, pod)
        shortages: list[_Shortage] = []
        attempt = self._model.attempt(pod_name(pod), _noting(shortages))
        if attempt.node or attempt.nominated_node or attempt.result == "waiting":
            return _FITS
        if attempt.result != "unschedulable":
            return _UNJUDGED
        return _warned("no node can hold this pod", attempt, shortages)

    def _is_judged(self, pod: Pod) -> bool:
        is_small = constraint_count(pod.spec) <= CONSTRAINTS_MAX
        is_own = self._model.scheduler.is_responsible_for(pod.spec.scheduler_name)
        return is_small and is_own and not pod.spec.scheduling_gates

    # ---- workloads --------------------------------------------------------------------------

    def _judge_workload(self, kind: str, content: Content) -> Judgement:
        """Place the pods one after the other, until one has no node."""
        namespace: str = content["metadata"]["namespace"]
        additions = self._read(_with_few_pods(_job_of(content)), namespace)
        if not additions.pods or not all(map(self._is_judged, additions.pods)):
            return _UNJUDGED
        self._model.add_missing(additions.objects)
        for pod in additions.pods:
            self._model.add(POD, pod)
        for number, pod in enumerate(additions.pods):
            present = self._model.pod(pod_name(pod))
            if present is not None and present.spec.node_name:
                continue  # as a member of a group that was placed
            shortages: list[_Shortage] = []
            attempt = self._model.place(pod_name(pod), _noting(shortages))
            if attempt.node or attempt.result == "waiting":
                continue
            if attempt.result != "unschedulable":
                return _UNJUDGED
            head = f"no node can hold a pod of this {kind}"
            if number:
                head = f"only {counted(number, 'pod')} of this {kind} {_have(number)} a node"
            return _warned(head, attempt, shortages)
        return _FITS

    def _judge_daemons(self, content: Content) -> Judgement:
        """Nodes that should run a pod of a DaemonSet, and that cannot hold it.

        A node counts if no eviction can help: the rejection is for good, or the node has no pod of
        lower priority.
        """
        whole: Content = {**content, "metadata": {"uid": "new", **content["metadata"]}}
        made = pod_for_node(whole, f"{content['metadata']['name']}-x", "")
        template: Content = whole["spec"]["template"]["spec"]
        spec = {**template, "tolerations": made["spec"]["tolerations"]}
        pods = self._read({**made, "spec": spec}, content["metadata"]["namespace"]).pods
        if len(pods) != 1 or not self._is_judged(pods[0]):
            return _UNJUDGED
        info = pod_info(pods[0], rules=self._model.scheduler.pod_rules)
        feasible_count, rejections = self._model.scheduler.one_shot.rejections(
            info.scheduler_name, info
        )
        reasons: Counter[str] = Counter()
        full_nodes: set[str] = set()
        for each in rejections:
            if each.plugin.partition("/")[0] not in _CHOOSING_NODES:
                is_final = each.code is not Code.UNSCHEDULABLE
                nodes = [
                    name for name in each.names if is_final or not self._has_victim(name, info)
                ]
                full_nodes.update(nodes)
                reasons.update(dict.fromkeys(each.reasons, len(nodes)) if nodes else {})
        if not full_nodes:
            return _FITS
        total = len(full_nodes) + feasible_count
        head = (
            f"{len(full_nodes):,} of {counted(total, 'node')} of this DaemonSet cannot hold its pod"
        )
        return Judgement("warned", _line(head, listed_reasons(reasons), ""))

    def _has_victim(self, node: str, pod: PodInfo) -> bool:
        table = self._model.scheduler.cache.table
        return any(each.priority < pod.priority for each in table.pods[table.row_of[node]].values())

    # ---- additions --------------------------------------------------------------------------

    def _read(self, content: Content, namespace: str) -> Additions:
        """The pods of a workload as the API server would have them, and their claims.

        Raises BadInputError.
        """
        by_kind = {kind: tuple(self._model.objects(kind)) for kind in _OF_CLUSTER}
        name = self._model.get(NAMESPACE, "", namespace)
        by_kind[NAMESPACE] = () if name is None else (name,)
        ranges = self._model.objects(LIMIT_RANGE)
        by_kind[LIMIT_RANGE] = tuple(r for r in ranges if r.metadata.namespace == namespace)
        objects = store_of(by_kind)
        for key, each in made_into_claims((namespace,), self._model.store, self._features):
            objects.put(key, each)
        return read_additions(
            [content],
            ClusterPicture(objects, admission=self._model.source.admission),
            self._read_kinds,
            None,
            declared=self._model.scheduler.declared_fields,
            features=self._features,
        )


# ---- contents -----------------------------------------------------------------------------------


def _makes_claims(spec: Any) -> bool:
    """Whether a controller creates claims for a pod after the pod."""
    return any(each.ephemeral is not None for each in spec.volumes or ()) or any(
        each.resource_claim_template_name for each in spec.resource_claims or ()
    )


def _job_of(content: Content) -> Content:
    """A CronJob's next Job; any other object as it is."""
    if content["kind"] != "CronJob":
        return content
    template: dict[str, Any] = content["spec"]["jobTemplate"]
    own: dict[str, Any] = template.get("metadata") or {}
    meta = {**own, **{key: content["metadata"][key] for key in ("name", "namespace")}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template["spec"]}


def _with_few_pods(content: Content) -> Content:
    spec: dict[str, Any] = content["spec"]
    few = {
        name: min(spec[name], PODS_MAX)
        for name in ("replicas", "parallelism")
        if spec.get(name) is not None
    }
    return {**content, "spec": {**spec, **few}}


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


# ---- warnings -----------------------------------------------------------------------------------


class _Shortage(NamedTuple):
    """Why a pod has no node."""

    #: kube-scheduler's sentence, without what it says about preemption.
    sentence: str
    #: How far the nearest node is; "": no node lacks resources.
    distance: str


def _warned(head: str, attempt: Attempt, shortages: list[_Shortage]) -> Judgement:
    sentence, distance = shortages[0] if shortages else (attempt.message, "")
    return Judgement("warned", _line(head, sentence.rstrip("."), distance))


def _line(head: str, sentence: str, distance: str) -> str:
    """One line; the sentence is cut if the line is too long."""
    tail = f", {distance}" if distance else ""
    length = WARNING_LENGTH_MAX - len(head) - len(tail) - len(": ")
    text = printable(sentence)
    if len(text) > length:
        text = f"{text[: length - 1]}…"
    return printable(f"{head}: {text}{tail}")[:WARNING_LENGTH_MAX]


def _noting(shortages: list[_Shortage]) -> OnAttempt:
    """Notes the first cycle without a node."""

    def look(cycle: Cycle) -> None:
        if cycle.choice is None and not shortages and cycle.feasible_count == 0:
            shortages.append(_Shortage(cycle.fit_error().message, next(_nearest(cycle), "")))

    return look


def _nearest(cycle: Cycle) -> Iterator[str]:
    """How far the nearest of the nodes is that lack resources: the one that lacks the fewest
    resources and, of these, the smallest share of the request."""
    outcome = cycle.filter_outcome()
    if outcome is None:
        return
    entries = [e for e in outcome.entries if e.plugin.partition("/")[0] == NodeResourcesFit.name]
    if not entries:
        return
    is_short = np.zeros(len(outcome.nodes), dtype=np.bool_)
    for entry in entries:
        is_short[entry.positions] = True
    short = outcome.nodes.take(np.flatnonzero(is_short))
    lacking = {name: _lacking(short, cycle.pod, name) for name in (*cycle.pod.requests, PODS)}
    counts = sum((amounts > 0).astype(np.float64) for amounts in lacking.values())
    shares = sum(
        amounts / max(cycle.pod.requests.get(name, 1), 1) for name, amounts in lacking.items()
    )
    position = int(np.lexsort((shares, counts))[0])
    lacks = [
        f"{short_text(name, int(amounts[position]))} {name}"
        for name, amounts in lacking.items()
        if amounts[position] and name != PODS
    ]
    what = f"lacks {' and '.join(lacks)}" if lacks else "has room for no more pod"
    yield f"nearest {short.name(position)} {what}"


def _lacking(nodes: NodeView, pod: PodInfo, resource: str) -> Any:
    """int64[nodes]: what each node lacks of a resource."""
    requested = 1 if resource == PODS else pod.requests.get(resource, 0)
    used = nodes.pods.counts() if resource == PODS else nodes.requested(resource)
    free = np.maximum(nodes.allocatable(resource) - used, 0)
    return np.maximum(requested - free, 0)
