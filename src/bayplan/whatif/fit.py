"""Does a workload fit into a cluster today, and how many more of its pods do?

The pods of the cluster that wait are placed first, as `placing` has it, or left out. Then each pod
of the workload is tried once, in the order in which its controller would create it, as if it were
next. If preemption makes room for a pod, its victims leave at once and the pod takes their place;
the answer names them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Literal, final

from msgspec import field
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import pod_count
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.pod_tables import by_message, messages_table, named_pods, nodes_table
from bayplan.answers.table import BLANK
from bayplan.api.objects import NODE, POD, Pod
from bayplan.api.pod_groups import GroupKey, PodGroupKinds
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.explain.large_requests import large_request_remarks
from bayplan.model.additions import Additions, AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.daemon_pods import DaemonPod, place_daemon_pods
from bayplan.model.picture import RunMoment
from bayplan.model.unjudged import UnjudgedWorkload
from bayplan.objects.keys import key_of_metadata
from bayplan.objects.workloads import pod_name
from bayplan.problems import BadInputError
from bayplan.sim.input.sources import InputSource
from bayplan.whatif.copies import Unit, single_unit
from bayplan.whatif.placing import placed_first
from bayplan.whatif.quotas import QuotaCheck
from bayplan.whatif.text import PendingPodCounts, note_lines, unjudged_table

#: The count at which `--max` stops by default.
LIMIT = 10_000
#: The most pods that do not fit and are explained.
EXPLAINED_MAX = 3


@final
class PodFit(Value, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome for one pod."""

    #: "namespace/name"
    pod: str
    #: The node; "": the pod does not fit.
    node: str = ""
    #: The sentence that kube-scheduler writes into the condition PodScheduled, or the reason for
    #: which the API server refuses the pod.
    message: str = ""
    #: Pods that preemption evicts for it.
    victims: tuple[str, ...] = ()


@final
class MaxFit(Value, frozen=True, kw_only=True, omit_defaults=True):
    """How many more pods fit, until the first does not."""

    #: What is counted, such as "Deployment default/web".
    workload: str
    count: int
    #: Whether the count ended because it reached its limit.
    is_limit: bool = False
    #: Why the next pod does not fit.
    message: str = ""
    #: The number of pods that preemption evicts for them.
    victim_count: int = field(default=0, name="victims")
    #: Node → the number of the pods that it takes.
    nodes: dict[str, int] = field(default_factory=dict[str, int])

    def lines(self) -> Iterator[str]:
        """The lines that say how many pods fit, and why no more do."""
        more = " or more" if self.is_limit else ""
        copies = self._copies()
        yield f"{copies}{more} fit{'s' * (self.count == 1 and not more)}"
        if self.victim_count:
            yield f"preemption evicts {pod_count(self.victim_count)} for them"
        if self.message:
            yield f"the next does not: {self.message}"

    def _copies(self) -> str:
        if self.workload.startswith("PodGroup "):
            noun = f"pod group{'s' * (self.count != 1)} such as"
            return f"{self.count:,} {noun} {self.workload.partition(' ')[2]}"
        return f"{pod_count(self.count)} of {self.workload}"


@final
class Fit(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan fit`."""

    kind: Literal["Fit"] = "Fit"
    field_of_list: ClassVar[str] = "pods"
    #: Whether all pods fit. False if there is no pod, or if some object has pods that could not be
    #: judged.
    fits: bool
    #: The name of the cluster, for messages.
    cluster: str
    #: For the folder of a run: the moment that the answer is about.
    moment: RunMoment | None = None
    #: The number of pods that get a node.
    placed_count: int = 0
    pods: tuple[PodFit, ...] = ()
    #: Why pods do not fit, and what would make them fit: one pod for each kind of message.
    explanations: tuple[Explanation, ...] = ()
    #: The count of --max.
    max: MaxFit | None = None
    #: The objects of the workload that have no pod which could be judged.
    unjudged: tuple[UnjudgedWorkload, ...] = ()
    #: The pods of the cluster that wait.
    waiting: PendingPodCounts = PendingPodCounts()
    notes: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether there is a pod, and each object has pods that could be judged."""
        return bool(self.pods) and not any(one.hides_pods for one in self.unjudged)

    @property
    def left_over(self) -> list[PodFit]:
        """The pods that do not fit."""
        return [pod for pod in self.pods if not pod.node]

    @property
    def victims(self) -> list[str]:
        """The pods that preemption evicts, in order."""
        return [victim for pod in self.pods for victim in pod.victims]

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """The parts of the answer. ``is_wide``: whether to show all nodes of a cause, and the
        manifests of fixes."""
        total, left_over = len(self.pods), self.left_over
        if not total:
            head = f"nothing was judged: the workload has no pod to place into {self.cluster}"
        elif left_over:
            some = f"{self.placed_count:,} of {pod_count(total)}"
            head = f"{some} fit{'s' * (total == 1)} into {self.cluster}"
        else:
            head = f"{pod_count(total)} fit{'s' * (total == 1)} into {self.cluster}"
        parts: list[RenderableType] = [Text(head, style="bold")]
        if self.unjudged:
            parts += [BLANK, unjudged_table(self.unjudged, "not judged")]
        elif not total:
            parts.append(Text("it has no object that creates pods"))
        by_node: dict[str, list[str]] = defaultdict(list)
        for pod in self.pods:
            if pod.node:
                by_node[pod.node].append(pod.pod)
        if by_node:
            parts += [BLANK, *nodes_table(by_node)]
        if left_over:
            messages = {pod.pod: pod.message for pod in left_over}
            why = "why they do not fit"
            parts += [BLANK, messages_table("pods", why, messages, is_wide=is_wide)]
        for explanation in self.explanations:
            heading = Text(f"why {explanation.pod} does not fit", style="bold")
            # The first part is the message, which the table has, and the head has the moment.
            remarks = tuple(each for each in explanation.remarks if each not in self.notes)
            about_pod = replace(explanation, moment=None, remarks=remarks)
            parts += [BLANK, heading, *about_pod.parts(is_wide=is_wide)[1:]]
        if self.victims:
            parts += [BLANK, Text(f"preemption evicts {named_pods(self.victims)}")]
        if self.max is not None:
            parts += [BLANK, *(Text(line) for line in self.max.lines())]
        return [*parts, *note_lines([*self.waiting.lines(), *self.notes])]

    def rows(self) -> Rows:
        """The pods of the workload."""
        pods = ((pod.pod, pod.node, pod.message, " ".join(pod.victims)) for pod in self.pods)
        return Rows(("pod", "node", "message", "victims"), pods)


def fit(
    model: ClusterModel,
    additions: Additions,
    *,
    explains: bool = True,
    ignores_waiting: bool = False,
) -> Fit:
    """Place a workload. The placements stay in the model; see `ClusterModel.trial`.

    ``explains``: whether to give causes and fixes for pods that do not fit. ``ignores_waiting``:
    whether to leave out the pods of the cluster that wait. Raises BadInputError for a pod of a
    scheduler that the configuration does not have.
    """
    check_schedulers(model, additions.pods)
    waiting = placed_first(model, is_ignored=ignores_waiting)
    add(model, additions)
    pods = tuple(placed(model, additions.pods))
    messages = {pod.pod: pod.message for pod in pods if not pod.node} if explains else {}
    examples = [names[0] for names in by_message(messages)][:EXPLAINED_MAX]
    refused = additions.refused_pods
    pods += tuple(PodFit(pod=pod_name(one.pod), message=one.reason) for one in refused)
    is_judged = bool(pods) and not any(one.hides_pods for one in additions.unjudged)
    return Fit(
        fits=is_judged and all(pod.node for pod in pods),
        cluster=model.source.source,
        moment=model.source.moment,
        placed_count=sum(bool(pod.node) for pod in pods),
        pods=pods,
        explanations=tuple(explain_pod(model, name) for name in examples),
        unjudged=additions.unjudged,
        waiting=waiting,
        notes=(
            *model.source.notes,
            *additions.notes,
            *large_request_remarks(model, additions.pods),
        ),
    )


def fit_answer(
    model: ClusterModel,
    read: AdditionsReader,
    workload: Iterable[InputSource],
    kinds: PodGroupKinds,
    *,
    limit: int | None = None,
    ignores_waiting: bool = False,
    notes: Iterable[str] = (),
) -> Fit:
    """Does a workload fit, and with ``limit``, how many copies of it fit? The model stays as it is.

    ``kinds``: the kinds of pod groups. ``notes``: the notes about the workload. For the other
    arguments, see `fit`. Raises BadInputError.
    """
    sources = list(workload)
    additions = read(sources)
    if limit is not None and not (additions.pods or additions.refused_pods):
        # The number of pods that fit does not depend on the number of replicas.
        additions = read(sources, are_shapes=True)
    has_pods = bool(additions.pods or additions.refused_pods)
    unit = single_unit(additions, kinds) if limit is not None and has_pods else None
    with model.trial():
        answer = fit(model, additions, ignores_waiting=ignores_waiting)
        answer = replace(answer, notes=(*notes, *answer.notes))
    if unit is None or limit is None:
        return answer
    with model.trial():
        placed_first(model, is_ignored=ignores_waiting)
        return replace(answer, max=max_fit(model, unit, limit))


def add(model: ClusterModel, additions: Additions) -> list[DaemonPod]:
    """Add the objects of a workload, and its pods as pending ones. Returns the pods that
    DaemonSets created for new nodes."""
    for kind, each in additions.objects:
        model.add(kind, each)
    nodes = [each.metadata.name for kind, each in additions.objects if kind == NODE]
    read = AdditionsReader(model, scheduler_name=additions.scheduler_name)
    daemons = place_daemon_pods(model, nodes, read) if nodes else []
    for pod in additions.pods:
        model.add(POD, pod)
    return daemons


def placed(model: ClusterModel, pods: Sequence[Pod]) -> Iterator[PodFit]:
    """Make attempts at pending pods, in order. The placements stay.

    The attempt at the first pending member of a group is the attempt at the group.
    """
    failed_groups: dict[GroupKey, str] = {}
    for pod in pods:
        name = pod_name(pod)
        message, victims = "", ()
        queued = model.scheduler.queue.find(_uid_of(model, name))
        if queued is not None:
            group = queued.pod.group_key
            if group is not None and group in failed_groups:
                message = failed_groups[group]
            else:
                attempt = model.place(name)
                message, victims = attempt.reason, attempt.victims
                if group is not None and not attempt.node:
                    failed_groups[group] = message
        present = model.pod(name)
        node = (present.spec.node_name if present is not None else None) or ""
        yield PodFit(
            pod=name,
            node=node,
            message="" if node else message,
            victims=tuple(victim.key for victim in victims),
        )


def max_fit(model: ClusterModel, unit: Unit, limit: int = LIMIT) -> MaxFit:
    """How many copies of a pod, or of a pod group, fit until the first does not.

    The placements stay in the model. A group counts once, whatever the number of its members. A
    copy that a quota refuses does not fit.
    """
    if unit.refusal:
        return MaxFit(workload=unit.name, count=0, message=unit.refusal)
    model.add_missing(unit.shared)
    nodes: Counter[str] = Counter()
    number, victim_count, message = 0, 0, ""
    # A change that is tried may have added a pod of the same file.
    copies = (
        (objects, pods)
        for objects, pods in unit.copies()
        if not any(key_of_metadata(POD, pod.metadata) in model.store for pod in pods)
    )
    quotas = QuotaCheck(model, {pod.metadata.namespace or "" for pod in unit.pods})
    while number < limit and not message:
        objects, pods = next(copies)
        new = (*objects, *((POD, pod) for pod in pods))
        message = next(filter(None, (quotas.refusal(kind, each) for kind, each in new)), "")
        if message:
            break
        for kind, each in objects:
            model.add(kind, each)
        for pod in pods:
            model.add(POD, pod)
        outcomes = list(placed(model, pods))
        victim_count += sum(len(outcome.victims) for outcome in outcomes)
        failures = [outcome for outcome in outcomes if not outcome.node]
        if failures:
            message = failures[0].message or "it was not tried"
        else:
            number += 1
            nodes.update(outcome.node for outcome in outcomes)
    return MaxFit(
        workload=unit.name,
        count=number,
        is_limit=not message,
        message=message,
        victim_count=victim_count,
        nodes=dict(nodes),
    )


def _uid_of(model: ClusterModel, name: str) -> str:
    pod = model.pod(name)
    return "" if pod is None else pod.metadata.uid or ""


def check_schedulers(model: ClusterModel, pods: Iterable[Pod]) -> None:
    """Raises BadInputError for a pod of a scheduler that the configuration does not have."""
    scheduler = model.scheduler
    for pod in pods:
        if not scheduler.is_responsible_for(pod.spec.scheduler_name):
            names = ", ".join(scheduler.profile_names)
            raise BadInputError(
                f"{pod_name(pod)} is left to scheduler {pod.spec.scheduler_name}; "
                f"the configuration has {names}"
            )
