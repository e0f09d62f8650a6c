"""Does a workload fit into a cluster today, and how many more of its pods do?

Each pod is tried once, in the order in which its controller would create it, as if it were next.
Pods that wait in the cluster already are not tried; their nominations count. If preemption makes
room for a pod, its victims leave at once and the pod takes their place; the answer names them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import final

from msgspec import Struct, field
from rich.console import RenderableType
from rich.text import Text

from bayplan.api.objects import POD, Pod
from bayplan.api.pod_groups import GroupKey
from bayplan.explain.explainer import explain_pod
from bayplan.explain.explanation import Explanation
from bayplan.explain.text import explained
from bayplan.model.additions import Additions
from bayplan.model.cluster_model import ClusterModel
from bayplan.problems import BadInputError
from bayplan.sim.output.report import BLANK, by_message
from bayplan.whatif.copies import Unit
from bayplan.whatif.text import (
    API_VERSION,
    Answer,
    left_over_rows,
    named_pods,
    node_rows,
    note_lines,
    pod_count,
)

#: `--max` stops at this count by default.
LIMIT = 10_000
#: At most so many pods that do not fit are explained.
EXPLAINED_MAX = 3


@final
class PodFit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What came of one pod."""

    #: "namespace/name"
    pod: str
    #: "": it does not fit.
    node: str = ""
    #: The sentence that kube-scheduler writes into the condition PodScheduled.
    message: str = ""
    #: Pods that preemption evicts for it.
    victims: tuple[str, ...] = ()


@final
class MaxFit(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How many more pods fit, until the first does not."""

    #: What is counted, as in "Deployment default/web".
    workload: str
    count: int
    #: Whether the count ended because it reached its limit.
    is_limit: bool = field(default=False, name="isLimit")
    #: Why the next pod does not fit.
    message: str = ""
    #: How many pods preemption evicts for them.
    victim_count: int = field(default=0, name="victims")
    #: Node → how many of the pods it takes.
    nodes: dict[str, int] = field(default_factory=dict[str, int])

    def lines(self) -> Iterator[str]:
        """How many fit, and why no more."""
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

    api_version: str = API_VERSION
    kind: str = "Fit"
    fits: bool
    #: The name of the cluster, for messages.
    cluster: str
    pods: tuple[PodFit, ...] = ()
    #: Why pods do not fit, and what would make them fit: one pod for each kind of message.
    explanations: tuple[Explanation, ...] = ()
    #: With --max.
    max: MaxFit | None = None
    #: Pods that wait in the cluster already, and were not tried.
    pending_count: int = field(default=0, name="pendingPods")
    notes: tuple[str, ...] = ()

    @property
    def left_over(self) -> list[PodFit]:
        """The pods that do not fit."""
        return [pod for pod in self.pods if not pod.node]

    @property
    def victims(self) -> list[str]:
        """The pods that preemption evicts, in order."""
        return [victim for pod in self.pods for victim in pod.victims]

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """``is_wide``: with all nodes of a cause, and the manifests of fixes."""
        total, left_over = len(self.pods), self.left_over
        if left_over:
            some = f"{total - len(left_over):,} of {pod_count(total)}"
            head = f"{some} fit{'s' * (total == 1)} into {self.cluster}"
        else:
            head = f"{pod_count(total)} fit{'s' * (total == 1)} into {self.cluster}"
        parts: list[RenderableType] = [Text(head, style="bold")]
        by_node: dict[str, list[str]] = defaultdict(list)
        for pod in self.pods:
            if pod.node:
                by_node[pod.node].append(pod.pod)
        if by_node:
            parts += [BLANK, *node_rows(by_node)]
        if left_over:
            parts += [BLANK, *left_over_rows({pod.pod: pod.message for pod in left_over})]
        for explanation in self.explanations:
            heading = Text(f"why {explanation.pod} does not fit", style="bold")
            # The first part is the message, which the table has.
            parts += [BLANK, heading, *explained(explanation, is_wide=is_wide)[1:]]
        if self.victims:
            parts += [BLANK, Text(f"preemption evicts {named_pods(self.victims)}")]
        if self.max is not None:
            parts += [BLANK, *(Text(line) for line in self.max.lines())]
        parts += note_lines(self.pending_count, self.notes)
        return parts


def fit(model: ClusterModel, additions: Additions, *, explains: bool = True) -> Fit:
    """Place a workload. The placements stay in the model; see `ClusterModel.trial`.

    ``explains``: give causes and fixes for pods that do not fit. Raises BadInputError for a pod of
    a scheduler that the configuration does not have.
    """
    check_schedulers(model, additions.pods)
    pending_count = len(model.pending())
    add(model, additions)
    pods = tuple(placed(model, additions.pods))
    messages = {pod.pod: pod.message for pod in pods if not pod.node} if explains else {}
    examples = [names[0] for names in by_message(messages)][:EXPLAINED_MAX]
    return Fit(
        fits=all(pod.node for pod in pods),
        cluster=model.source.source,
        pods=pods,
        explanations=tuple(explain_pod(model, name) for name in examples),
        pending_count=pending_count,
        notes=(*model.source.notes, *additions.notes),
    )


def add(model: ClusterModel, additions: Additions) -> None:
    """Add the objects of a workload, and its pods as pending ones."""
    for kind, each in additions.objects:
        model.add(kind, each)
    for pod in additions.pods:
        model.add(POD, pod)


def placed(model: ClusterModel, pods: Sequence[Pod]) -> Iterator[PodFit]:
    """Attempts at pending pods, in order; the placements stay.

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

    The placements stay in the model. A group counts once, whatever the number of its members.
    """
    for kind, each in unit.shared:
        model.add(kind, each)
    nodes: Counter[str] = Counter()
    number, victim_count, message = 0, 0, ""
    copies = unit.copies()
    while number < limit and not message:
        objects, pods = next(copies)
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


def pod_name(pod: Pod) -> str:
    """ "namespace/name"."""
    return f"{pod.metadata.namespace or ''}/{pod.metadata.name}"


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
