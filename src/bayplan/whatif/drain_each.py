"""Can each node, or each topology domain, be drained or removed, and which pods would be left over?

Every question is a trial on one model; nothing is copied. Most questions need no trial, because a
count proves the answer. For each shape of pods, one attempt in the unchanged cluster finds the
nodes that can take a pod. If k pods have to move, the other k - 1 can make at most k - 1 nodes
infeasible for a pod, and only if the feasibility of a node depends on the pods of that node alone.
So a pod with at least k feasible nodes outside of the domain fits, wherever the other pods go. A
pod also fits if one of its feasible nodes has room for all k pods.

Pods that the proof does not cover (`model.independent_pods`) are placed in a trial, before those
that it covers. If the proof fails for one pod, all pods of the domain are placed in the trial.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Literal, cast, final

from msgspec import field as struct_field
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.names import in_natural_order
from bayplan.answers.reasons import short_reason
from bayplan.answers.table import BLANK, Column, Table, name_columns, number_columns
from bayplan.api.objects import NODE, POD, Node
from bayplan.api.pod_requests import PODS
from bayplan.api.selectors import Selector
from bayplan.engine.cycle import Cycle
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.independent_pods import IndependentPods, hard_selectors
from bayplan.model.picture import RunMoment
from bayplan.objects.workloads import controller_kind, pod_name
from bayplan.problems import BadInputError, suggestion
from bayplan.sim.simulation import OnProgress
from bayplan.state.pods import PodInfo, PodShape
from bayplan.whatif import evictions
from bayplan.whatif.placing import placed_first
from bayplan.whatif.text import PendingPodCounts, note_lines

#: can-go: domains that cannot go come first; pods: domains with the most pods come first.
SortKey = Literal["can-go", "name", "pods"]


def _ignore(_done: int, _total: int) -> None: ...


class Action(StrEnum):
    #: The nodes are cordoned and the pods are evicted, as budgets allow.
    DRAIN = "drain"
    #: The nodes are gone, and their pods with them.
    REMOVE = "remove"


# ---- the answer ----------------------------------------------------------------------------


@final
class Departure(Value, frozen=True, kw_only=True):
    """What happens if one node, or all nodes of one domain, go."""

    #: The name of the node, or the value of the topology key.
    name: str
    can_go: bool
    #: The number of pods that have to be placed elsewhere.
    pods: int
    #: The number of nodes.
    nodes: int = 1
    left_over: tuple[evictions.LeftOver, ...] = ()
    blocked: tuple[evictions.BlockedPod, ...] = ()
    #: Pods without a controller: nothing creates them again.
    unmanaged: tuple[str, ...] = ()
    #: Pods that other schedulers place; they are not tried.
    other_schedulers: int = 0
    #: Whether the pods were placed in a trial. Otherwise a count proves that they fit.
    is_tried: bool = struct_field(default=False, name="tried")

    @property
    def reason(self) -> str:
        """The first reason, with the pod."""
        if self.can_go:
            return ""
        if self.left_over:
            return f"{self.left_over[0].pod}: {self.left_over[0].message}"
        if self.blocked:
            return f"{self.blocked[0].pod}: {self.blocked[0].message}"
        return f"{self.unmanaged[0]} has no controller (with --force it may go)"

    @property
    def short_reason(self) -> str:
        """The first reason, in a few words."""
        if self.left_over:
            return short_reason(self.left_over[0].message)
        if self.blocked:
            pod, budgets = self.blocked[0].pod, self.blocked[0].budgets
            names = ", ".join(f"{pod.partition('/')[0]}/{name}" for name in budgets)
            return f"budget {names}" if names else self.blocked[0].message
        if self.unmanaged and not self.can_go:
            return f"without a controller: {self.unmanaged[0]}"
        return ""


@final
class DepartureReport(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan whatif --drain-each` and `--remove-each`."""

    kind: Literal["DepartureReport"] = "DepartureReport"
    field_of_list: ClassVar[str] = "departures"
    #: The name of the cluster, for messages.
    cluster: str
    #: For the folder of a run: the moment that the answer is about.
    moment: RunMoment | None = None
    action: Action
    #: The topology key; "": each node is a domain of its own.
    topology_key: str = ""
    #: The number of nodes or domains that can go.
    can_go_count: int = 0
    departures: tuple[Departure, ...]
    #: The nodes without the topology key, which belong to no domain.
    nodes_without_domain: int = 0
    #: The pods that wait in the cluster before anything goes.
    waiting: PendingPodCounts = PendingPodCounts()
    notes: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """One line per node or domain. Those that cannot go come first. ``is_wide``: whether to
        show the first pod in the way, and kube-scheduler's whole sentence."""
        rows = self.departures
        can_go = self.can_go_count
        noun = f"domains of {self.topology_key}" if self.topology_key else "nodes"
        verb = "be drained" if self.action is Action.DRAIN else "go"
        head = f"{can_go:,} of {len(rows):,} {noun} of {self.cluster} can {verb}"
        parts: list[RenderableType] = [
            Text(head, style="bold"),
            BLANK,
            self._table(is_wide=is_wide),
        ]
        lines = list(self.notes)
        if self.nodes_without_domain:
            count = counted(self.nodes_without_domain, "node")
            lines.append(f"{count} without the label {self.topology_key}")
        others = sum(row.other_schedulers for row in rows)
        if others:
            lines.append(f"{pod_count(others)} of other schedulers were not tried")
        return [*parts, *note_lines([*self.waiting.lines(), *lines])]

    def _table(self, *, is_wide: bool) -> Table:
        name = "domain" if self.topology_key else "node"
        nodes = number_columns("nodes") if self.topology_key else []
        counts = number_columns("pods", "left over", "blocked")
        table = Table(*name_columns(name), *nodes, "can go", *counts, Column("why not", "line"))
        for row in self.departures:
            count = (f"{row.nodes:,}",) if self.topology_key else ()
            cells = (f"{row.pods:,}", _count_or_none(row.left_over), _count_or_none(row.blocked))
            reason = row.reason if is_wide else row.short_reason
            table.add_row(row.name, *count, "yes" if row.can_go else "no", *cells, reason)
        return table

    def rows(self) -> Rows:
        """The nodes, or the domains."""
        headings = ("name", "can_go", "nodes", "pods", "left_over", "blocked", "reason")
        rows = (
            (
                row.name,
                row.can_go,
                row.nodes,
                row.pods,
                len(row.left_over),
                len(row.blocked),
                row.reason,
            )
            for row in self.departures
        )
        return Rows(headings, rows)

    def names(self) -> Iterator[str]:
        """The nodes, or the domains, that can go."""
        yield from (row.name for row in self.departures if row.can_go)


def _count_or_none(values: Sequence[object]) -> str:
    return f"{len(values):,}" if values else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Which nodes or domains are asked about, and how the answer is sorted."""

    topology_key: str = ""
    #: The selector of nodes by their labels; None: all nodes.
    selector: Selector | None = None
    sort_by: SortKey = "can-go"


ALL_NODES: Final = Departures()


def drain_each(
    model: ClusterModel,
    which: Departures = ALL_NODES,
    *,
    force: bool = False,
    on_progress: OnProgress = _ignore,
) -> DepartureReport:
    """Can each node, or each domain of a topology key, be drained?

    ``force``: whether pods without a controller may go, as with `kubectl drain --force`. Local
    storage does not matter. The pods that wait are placed first (`placing`). The model stays as it
    is. ``on_progress`` gets the number of domains that were tried, and of all. Raises BadInputError
    if no node has the topology key and the labels.
    """
    return _report(model, Action.DRAIN, which, force=force, on_progress=on_progress)


def remove_each(
    model: ClusterModel, which: Departures = ALL_NODES, *, on_progress: OnProgress = _ignore
) -> DepartureReport:
    """Can the cluster do without each node, or each domain of a topology key?

    Budgets do not count, because the nodes are gone. Pods without a controller are lost. For the
    other arguments, see `drain_each`.
    """
    return _report(model, Action.REMOVE, which, force=True, on_progress=on_progress)


def _report(
    model: ClusterModel, action: Action, which: Departures, *, force: bool, on_progress: OnProgress
) -> DepartureReport:
    topology_key, selector = which.topology_key, which.selector
    domains: dict[str, list[Node]] = defaultdict(list)
    outside_count = 0
    for each in model.objects(NODE):
        node = cast(Node, each)
        if selector is not None and not selector.matches(node.metadata.labels or {}):
            continue
        if not topology_key:
            domains[node.metadata.name].append(node)
        elif topology_key in (node.metadata.labels or {}):
            domains[(node.metadata.labels or {})[topology_key]].append(node)
        else:
            outside_count += 1
    if not domains and (topology_key or selector is not None):
        raise BadInputError(_no_domain(model, which))
    with model.trial():
        waiting = placed_first(model)
        question = _Question(model, action, force=force)
        departures: list[Departure] = []
        for name in in_natural_order(domains):
            departures.append(question.departure(name, domains[name]))
            on_progress(len(departures), len(domains))
    departures.sort(key=_SORTS[which.sort_by])
    return DepartureReport(
        cluster=model.source.source,
        moment=model.source.moment,
        action=action,
        topology_key=topology_key,
        can_go_count=sum(departure.can_go for departure in departures),
        departures=tuple(departures),
        nodes_without_domain=outside_count,
        waiting=waiting,
        notes=model.source.notes,
    )


def _no_domain(model: ClusterModel, which: Departures) -> str:
    """The message that no node has the labels. If no node has one of the labels, the message names
    the label that may be meant."""
    keys = {key for each in model.objects(NODE) for key in each.metadata.labels or {}}
    requirements = () if which.selector is None else which.selector.requirements
    required = [each.key for each in requirements if not each.matches_value(None)]
    required += [which.topology_key] if which.topology_key else []
    unknown = next((key for key in required if key not in keys), None)
    if unknown is None:
        return "no node has all of these labels"
    hint = suggestion(unknown, keys)
    return f"no node has the label {unknown}" + (f"; {hint}" if hint else "")


#: The sort keys. The departures come in the natural order of their names, and equal ones keep that
#: order.
_SORTS: Mapping[SortKey, Callable[[Departure], Any]] = {
    "can-go": lambda row: row.can_go,
    "name": lambda _row: 0,
    "pods": lambda row: -row.pods,
}


# ---- the proof -----------------------------------------------------------------------------


@final
class _FeasibleNodes:
    """For each shape, the names of the nodes that can take one more pod of the shape now."""

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._independent = IndependentPods(model)
        #: The nodes by the id of the shape. The shape is stored, too, so that the id stays valid.
        self._of_shape: dict[int, tuple[PodShape, frozenset[str]]] = {}
        self._distinct: dict[frozenset[str], frozenset[str]] = {}
        self._of_signed: dict[Hashable, frozenset[str]] = {}

    def covers(self, shape: PodShape) -> bool:
        """Whether the feasibility of a node for the shape follows from that node's pods alone."""
        return self._independent.covers(shape)

    def of(self, pod: PodInfo) -> frozenset[str]:
        entry = self._of_shape.get(id(pod.shape))
        if entry is None:
            signed = self._independent.signed(pod)
            names = self._of_signed.get(signed) if signed is not None else None
            if names is None:
                names = self._attempted(pod)
                names = self._distinct.setdefault(names, names)
                if signed is not None:
                    self._of_signed[signed] = names
            entry = self._of_shape[id(pod.shape)] = pod.shape, names
        return entry[1]

    def _attempted(self, pod: PodInfo) -> frozenset[str]:
        names: list[str] = []

        def look(cycle: Cycle) -> None:
            answer = cycle.answer
            if answer is not None and cycle.status is None:
                names.extend(answer.feasible_nodes(cycle.snapshot.nodes).names())

        with self._model.trial():
            copy = evictions.replacement(pod, suffix="-bayplan-whatif")
            self._model.add(POD, copy)
            self._model.attempt(pod_name(copy), look)
        return frozenset(names)


# ---- one domain ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Pods:
    """The pods of one domain."""

    #: The pods that go and are created again, in the order of their names.
    moving: list[PodInfo] = field(default_factory=list[PodInfo])
    blocked: list[evictions.BlockedPod] = field(default_factory=list[evictions.BlockedPod])
    unmanaged: list[str] = field(default_factory=list[str])
    other_count: int = 0


@final
class _Question:
    def __init__(self, model: ClusterModel, action: Action, *, force: bool) -> None:
        self._model = model
        self._action = action
        self._force = force
        self._budgets = evictions.Budgets(model) if action is Action.DRAIN else None
        self._feasible = _FeasibleNodes(model)
        self._pods: dict[str, list[PodInfo]] = defaultdict(list)
        for each in model.objects(POD):
            info = model.scheduler.cache.pod(each.metadata.uid or "")
            if info is not None and info.node_name:
                self._pods[info.node_name].append(info)

    def departure(self, name: str, nodes: Sequence[Node]) -> Departure:
        """What happens if these nodes go."""
        pods = self._sorted_out(nodes)
        names = frozenset(node.metadata.name for node in nodes)
        special = [pod for pod in pods.moving if not self._feasible.covers(pod.shape)]
        plain = [pod for pod in pods.moving if self._feasible.covers(pod.shape)]
        if not self._is_proven(plain, special, names):
            special, plain = [*special, *plain], []
        left_over: list[evictions.LeftOver] = []
        if special:
            left_over = self._tried(nodes, special, pods)
        is_held_up = pods.blocked or (pods.unmanaged and not self._force)
        return Departure(
            name=name,
            can_go=not (left_over or is_held_up),
            pods=len(pods.moving),
            nodes=len(nodes),
            left_over=tuple(left_over),
            blocked=tuple(pods.blocked),
            unmanaged=tuple(pods.unmanaged),
            other_schedulers=pods.other_count,
            is_tried=bool(special),
        )

    def _sorted_out(self, nodes: Iterable[Node]) -> _Pods:
        pods = _Pods()
        scheduler = self._model.scheduler
        on_nodes = (pod for node in nodes for pod in self._pods.get(node.metadata.name, ()))
        for pod in sorted(on_nodes, key=lambda pod: pod.key):
            if not evictions.is_evicted(pod):
                continue
            if not controller_kind(pod.metadata):
                pods.unmanaged.append(pod.key)
                continue
            blocked = None
            if self._budgets is not None:
                blocked = evictions.blocked_by(pod, self._budgets.of(pod), {})
            if blocked is not None:
                pods.blocked.append(blocked)
            elif not scheduler.is_responsible_for(pod.scheduler_name):
                pods.other_count += 1
            else:
                pods.moving.append(pod)
        return pods

    def _is_proven(
        self, plain: Sequence[PodInfo], special: Sequence[PodInfo], names: frozenset[str]
    ) -> bool:
        """Whether all plain pods fit, wherever the pods go."""
        count = len(plain) + len(special)
        requests: Counter[str] = Counter({PODS: count})
        for pod in (*plain, *special):
            requests.update(pod.requests)
        for shape_pod in {id(pod.shape): pod for pod in plain}.values():
            feasible = self._feasible.of(shape_pod)
            # Names of the domain may be among the feasible nodes.
            if len(feasible) < count + len(names):
                outside = feasible - names
                if len(outside) < count and not self._any_has_room(outside, requests):
                    return False
            if any(_concerns(pod, shape_pod) for pod in special):
                return False
        return True

    def _any_has_room(self, names: Iterable[str], requests: Mapping[str, int]) -> bool:
        """Whether one of the nodes has all these amounts free."""
        table = self._model.scheduler.cache.table
        columns = [
            (table.resources.free(resource).values, amount)
            for resource, amount in requests.items()
            if amount
        ]
        rows = (table.row_of[name] for name in names)
        return any(all(free.item(row) >= amount for free, amount in columns) for row in rows)

    def _tried(
        self, nodes: Sequence[Node], moving: Iterable[PodInfo], pods: _Pods
    ) -> list[evictions.LeftOver]:
        """Place the replacements of pods in a trial. Returns those that do not fit.

        A replacement that does not fit uses up a disruption of its budget. Victims of preemption
        are replaced, too.
        """
        model, left_over = self._model, list[evictions.LeftOver]()
        used: dict[str, int] = defaultdict(int)
        leaving, victims = deque(moving), set[str]()
        with model.trial():
            for node in nodes:
                self._take_away(node)
            while leaving:
                pod = leaving.popleft()
                is_victim = pod.uid in victims
                budgets = [] if self._budgets is None else self._budgets.of(pod)
                blocked = None if is_victim else evictions.blocked_by(pod, budgets, used)
                if blocked is not None:
                    pods.blocked.append(blocked)
                    continue
                if not is_victim:
                    model.remove(POD, pod.namespace, pod.name)
                evictions.create_again(model, pod)
                attempt = self._placed(pod)
                if attempt is None or attempt.node:
                    evicted = [] if attempt is None else evictions.recreated(attempt.victims)
                    victims.update(victim.uid for victim in evicted)
                    leaving.extend(evicted)
                    continue
                left_over.append(evictions.LeftOver(pod=pod.key, message=attempt.reason))
                for budget in budgets:
                    used[f"{pod.namespace}/{budget.name}"] += 1
        return left_over

    def _take_away(self, node: Node) -> None:
        if self._action is Action.DRAIN:
            cordoned = replace(node, spec=replace(node.spec, unschedulable=True))
            self._model.replace(NODE, cordoned)
        else:
            self._model.remove(NODE, "", node.metadata.name)

    def _placed(self, pod: PodInfo) -> Attempt | None:
        """Place the replacement of a pod. None: it was placed with its group."""
        queued = self._model.pod(pod.key)
        assert queued is not None
        return None if queued.spec.node_name else self._model.place(pod.key)


def _concerns(pod: PodInfo, other: PodInfo) -> bool:
    """Whether ``pod`` may keep ``other`` away, or the node of ``other`` may matter to the placement
    of ``pod``."""
    terms = (*pod.shape.affinity.required, *pod.shape.anti_affinity.required)
    selectors = [term.selector for term in terms] + hard_selectors(pod.spec)
    return any(selector.matches(other.labels) for selector in selectors)
