"""What would happen if something changed: the cluster before and after, side by side.

Both states are at rest, so that the comparison is fair. Before the change, the pods that wait were
tried and have a node as far as they fit (`placing`). After the change, the same holds.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Literal, TypeVar, cast, final

from msgspec import field
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count, share_text, short_text
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.names import natural_key
from bayplan.answers.pod_tables import messages_table, named_pods
from bayplan.answers.table import BLANK, Table, name_columns, number_columns
from bayplan.api.device_objects import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ResourceClaim,
    ResourceClaimStatus,
)
from bayplan.api.objects import (
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    ApiObject,
    Node,
    OwnerReference,
    Pod,
    PodStatus,
)
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.api.pod_requests import CPU, MEMORY, PODS
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.model.additions import Additions, AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import RunMoment
from bayplan.objects.workloads import workload_of
from bayplan.sim.input.what_if import WhatIf
from bayplan.state.device_supply import DeviceSupply
from bayplan.whatif.changes import Outcome, check_changes, make_changes
from bayplan.whatif.copies import units_of
from bayplan.whatif.evictions import BlockedPod, LeftOver, without_late_volume
from bayplan.whatif.fit import MaxFit, max_fit
from bayplan.whatif.headroom import shape_names
from bayplan.whatif.placing import Move, Placer

#: If the user names no shapes, the largest workloads are counted, each up to a limit.
SHAPES_MAX = 3
_SUFFIX = "-headroom"
HEADROOM_LIMIT = 1000
_MOVES_MAX = 40
_EXAMPLES_MAX = 5
_RESOURCES_MAX = 4

P = TypeVar("P", bound="Move | LeftOver")


@final
class Utilization(Value, frozen=True, kw_only=True):
    """A resource over all nodes: cpu in millicores, others in whole units."""

    requested: int
    allocatable: int


@final
class ClusterState(Value, frozen=True, kw_only=True):
    """The numbers of a cluster at one moment."""

    nodes: int
    #: The number of nodes that are not cordoned.
    schedulable_nodes: int
    pods: int
    #: The number of pods of this scheduler that wait for a node.
    waiting: int
    utilization: dict[str, Utilization]
    #: Shape → the number of further pods of it that fit.
    headroom: dict[str, int]
    #: Shape → the number of pods that preemption would evict for them; without those with none.
    headroom_victims: dict[str, int] = {}


@final
class PodsOfReason(Value, frozen=True, kw_only=True):
    """Pods with one outcome for one reason."""

    outcome: Literal["left over", "not evicted", "gone"]
    reason: str
    pods: int
    #: The name of the first pod.
    examples: tuple[str, ...]
    #: The number of these pods that waited before the changes, too.
    waited_before: int = 0
    #: The budgets that do not allow the eviction of the pods, as namespace/name.
    budgets: tuple[str, ...] = ()


@final
class WhatIfAnswer(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan whatif`."""

    kind: Literal["WhatIfAnswer"] = "WhatIfAnswer"
    field_of_list: ClassVar[str] = "moves"
    #: The name of the cluster, for messages.
    cluster: str
    #: For the folder of a run: the moment that the answer is about.
    moment: RunMoment | None = None
    change: WhatIf
    #: The changes in a line.
    text: str
    #: The configuration that takes the place of the present one, if that is the change.
    configuration: str = ""
    before: ClusterState
    after: ClusterState
    #: The pods that get a node through the changes. Those that leave a node come first. Both parts
    #: are in the order of placement.
    moves: tuple[Move, ...]
    #: Pods that have no node after the changes and did not wait before them.
    left_over: tuple[LeftOver, ...]
    #: Pods that wait after the changes and waited before, too.
    waited_before: tuple[LeftOver, ...] = ()
    #: Pods of the cluster that wait and get a node without any change; they count as placed.
    placed_before: tuple[Move, ...] = ()
    #: Pods that a drain cannot evict.
    blocked: tuple[BlockedPod, ...]
    #: Reason → pods that go and are not created again.
    gone: dict[str, list[str]]
    #: The pods that have no node, that are not evicted, or that go, by reason.
    reasons: tuple[PodsOfReason, ...] = ()
    #: The limit of the counts in `ClusterState.headroom`.
    headroom_limit: int = HEADROOM_LIMIT
    notes: tuple[str, ...] = field(default=())

    @property
    def displaced(self) -> list[Move | LeftOver]:
        """The pods that leave a node: those that get another one, then those that get none."""
        pods = (*self.moves, *self.left_over)
        return [pod for pod in pods if pod.source]

    @property
    def verdict(self) -> str:
        """The answer in a line."""
        # Another configuration moves no pod, but chooses another node for a pod that waits.
        elsewhere, same = "displaced to another node", "no pod is displaced, and none gets a node"
        if self.configuration:
            elsewhere, same = "that would get another node", "no pod would get another node"
        placed = [move for move in self.moves if not move.source]
        counts = (
            (len(self.left_over), "newly without a node"),
            (len(self.moves) - len(placed), elsewhere),
            (len(placed), "with a node that had none"),
            (len(self.blocked), "not evicted"),
            (sum(map(len, self.gone.values())), "gone"),
        )
        listed = [f"{pod_count(count)} {what}" for count, what in counts if count]
        return ", ".join(listed) or same

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        parts: list[RenderableType] = [
            Text(f"{self.cluster}: {self.text}", style="bold"),
            Text(self.verdict),
        ]
        if self.displaced:
            words = ("displaced pod", "are displaced")
            if self.configuration:
                words = ("pod that waits", "would get another node")
            parts += [BLANK, *_displaced_table(self.displaced, *words, is_wide=is_wide)]
        if self.left_over:
            messages = {one.pod: one.message for one in self.left_over}
            heading, why = "newly without a node", "why they do not fit"
            parts += [BLANK, messages_table(heading, why, messages, is_wide=is_wide)]
        if self.waited_before:
            parts += [BLANK, Text(f"{pod_count(len(self.waited_before))} waited before, too")]
        parts += self._new_placements(is_wide=is_wide)
        if self.blocked:
            table = Table(*name_columns("not evicted"), "why")
            for one in self.blocked:
                table.add_row(one.pod, one.message)
            parts += [BLANK, table]
        parts += [BLANK, _states(self.before, self.after)]
        lines = [f"{reason}: {named_pods(pods)}" for reason, pods in self.gone.items()]
        lines += [*self._placed_before_lines(), *self.notes]
        return [*parts, *([BLANK, *map(Text, lines)] if lines else [])]

    def rows(self) -> Rows:
        """Every pod that the changes concern, with its outcome."""
        return Rows(("pod", "outcome", "from", "to", "why"), self._outcomes())

    def _outcomes(self) -> Iterator[tuple[str, str, str, str, str]]:
        for move in self.moves:
            yield move.pod, "gets a node", move.source, move.target, ""
        for left in self.left_over:
            yield left.pod, "left over", left.source, "", left.message
        for left in self.waited_before:
            yield left.pod, "waited before, too", "", "", left.message
        for blocked in self.blocked:
            yield blocked.pod, "not evicted", "", "", blocked.message
        for reason, pods in self.gone.items():
            for pod in pods:
                yield pod, reason, "", "", ""

    def _new_placements(self, *, is_wide: bool) -> list[RenderableType]:
        """Pods that had no node and get one."""
        placed = [move for move in self.moves if not move.source]
        placed.sort(key=lambda move: natural_key(move.pod))
        if not placed:
            return []
        table = Table(*name_columns("pod that gets a node", "node"))
        shown, further = _shown(placed, is_wide=is_wide)
        for move in shown:
            table.add_row(move.pod, move.target)
        return [BLANK, table, *_further_line(further, "get a node")]

    def _placed_before_lines(self) -> list[str]:
        count = len(self.placed_before)
        if not count:
            return []
        verb = "waits in the cluster and gets" if count == 1 else "wait in the cluster and get"
        return [f"{pod_count(count)} {verb} a node without the change, too"]


def _displaced_table(
    displaced: Iterable[Move | LeftOver], heading: str, what: str, *, is_wide: bool
) -> Iterator[RenderableType]:
    """The table of displaced pods. Pods that get no other node are the first rows. ``what``: the
    words about the pods that are left out."""
    ordered = sorted(displaced, key=lambda pod: (isinstance(pod, Move), natural_key(pod.pod)))
    shown, further = _shown(ordered, is_wide=is_wide)
    replacements = [pod.replacement.rpartition("/")[2] for pod in shown]
    table = Table(*name_columns(heading, "from", "to", *["as"] * any(replacements)))
    for pod, name in zip(shown, replacements, strict=True):
        target = pod.target if isinstance(pod, Move) else "no node"
        table.add_row(pod.pod, pod.source, target, *[name] * any(replacements))
    yield table
    yield from _further_line(further, what)


def _shown(pods: Sequence[P], *, is_wide: bool) -> tuple[Sequence[P], int]:
    """The pods with a row of their own, and the number of the other pods."""
    shown = pods if is_wide else pods[:_MOVES_MAX]
    return shown, len(pods) - len(shown)


def _further_line(count: int, what: str) -> list[RenderableType]:
    return [Text(f"and {pod_count(count)} more that {what}; -o wide lists all")] if count else []


def what_if(
    model: ClusterModel,
    change: WhatIf,
    read: AdditionsReader,
    kinds: PodGroupKinds,
    *,
    shapes: Additions | None = None,
    places: Sequence[str] = (),
    force: bool = False,
    on_step: Callable[[], None] = lambda: None,
) -> WhatIfAnswer:
    """Make changes in a trial, and compare. Raises BadInputError.

    ``kinds``: the kinds of pod groups. ``shapes``: the shapes whose headroom is counted; None:
    those of the largest workloads. ``places``: see `check_changes`. ``force``, ``on_step``: see
    `make_changes`.
    """
    shapes = largest_shapes(model) if shapes is None else shapes
    check_changes(model, change, read, places)
    with model.trial():
        placer = Placer(model, on_step)
        placer.place_waiting()
        placed_before = placer.moves()
        before = state_of(model, shapes, kinds)
        outcome: Outcome = make_changes(model, change, read, force=force, on_step=on_step)
        after = state_of(model, shapes, kinds)
    return what_if_answer(
        model, change, states=(before, after), outcome=outcome, placed_before=placed_before
    )


def what_if_answer(
    model: ClusterModel,
    change: WhatIf,
    *,
    states: tuple[ClusterState, ClusterState],
    outcome: Outcome,
    placed_before: Sequence[Move],
    configuration: str = "",
) -> WhatIfAnswer:
    """The answer. ``states``: the states before and after. ``placed_before``: the pods that get a
    node without the changes. ``configuration``: the one that replaces the present one."""
    text = described(change)
    if configuration:
        text = f"schedule the pods that wait with {configuration}"
    return WhatIfAnswer(
        cluster=model.source.source,
        moment=model.source.moment,
        change=change,
        text=text,
        configuration=configuration,
        before=states[0],
        after=states[1],
        moves=tuple(sorted(outcome.moves, key=lambda move: not move.source)),
        left_over=tuple(outcome.left_over),
        waited_before=tuple(outcome.waited_before),
        placed_before=tuple(placed_before),
        blocked=tuple(outcome.blocked),
        gone=outcome.gone,
        reasons=tuple(_reasons(outcome)),
        notes=tuple(dict.fromkeys((*model.source.notes, *outcome.notes))),
    )


def _reasons(outcome: Outcome) -> Iterator[PodsOfReason]:
    """The pods without a node come first. Of these, pods that did not wait before are the first
    examples."""
    left_over: dict[str, list[str]] = {}
    for one in (*outcome.left_over, *outcome.waited_before):
        left_over.setdefault(one.message, []).append(one.pod)
    waited = Counter(one.message for one in outcome.waited_before)
    for reason, pods in left_over.items():
        yield _of_reason("left over", reason, pods, waited_before=waited[reason])
    blocked: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in outcome.blocked:
        namespace = one.pod.partition("/")[0]
        budgets = tuple(f"{namespace}/{name}" for name in one.budgets)
        blocked.setdefault((one.message, budgets), []).append(one.pod)
    for (reason, budgets), pods in blocked.items():
        yield _of_reason("not evicted", reason, pods, budgets=budgets)
    for reason, pods in outcome.gone.items():
        yield _of_reason("gone", reason, pods)


def _of_reason(
    outcome: Literal["left over", "not evicted", "gone"],
    reason: str,
    pods: Sequence[str],
    *,
    waited_before: int = 0,
    budgets: tuple[str, ...] = (),
) -> PodsOfReason:
    return PodsOfReason(
        outcome=outcome,
        reason=reason,
        pods=len(pods),
        examples=tuple(pods[:_EXAMPLES_MAX]),
        waited_before=waited_before,
        budgets=budgets,
    )


# ---- states --------------------------------------------------------------------------------


def state_of(model: ClusterModel, shapes: Additions, kinds: PodGroupKinds) -> ClusterState:
    nodes = [cast(Node, each) for each in model.objects(NODE)]
    table = model.scheduler.cache.table
    rows = [table.row_of[node.metadata.name] for node in nodes]
    requested: Counter[str] = Counter()
    for row in rows:
        requested.update(table.resources.requested_on(row))
    offered = _device_supply(model, requested).total(nodes)
    utilization = {
        resource: Utilization(requested=requested[resource], allocatable=offered[resource])
        for resource in sorted(offered)
        if resource != PODS and offered[resource]
    }
    room = _headroom(model, shapes, kinds)
    return ClusterState(
        nodes=len(nodes),
        schedulable_nodes=sum(not node.spec.unschedulable for node in nodes),
        pods=sum(1 for _ in model.objects(POD)),
        waiting=len(model.pending()),
        utilization=utilization,
        headroom={name: one.count for name, one in room.items()},
        headroom_victims={n: one.victim_count for n, one in room.items() if one.victim_count},
    )


def _device_supply(model: ClusterModel, requested: Iterable[str]) -> DeviceSupply:
    """``requested``: the resources that pods request."""
    supply = DeviceSupply()
    for kind in (DEVICE_CLASS, RESOURCE_SLICE):
        for each in model.objects(kind):
            supply.change(each, is_there=True)
    supply.request(requested)
    return supply


def _headroom(model: ClusterModel, shapes: Additions, kinds: PodGroupKinds) -> dict[str, MaxFit]:
    units = units_of(shapes, kinds)
    counts: dict[str, MaxFit] = {}
    for unit, name in zip(units, shape_names(units), strict=True):
        with model.trial():
            counts[name] = max_fit(model, unit, HEADROOM_LIMIT)
    return counts


def largest_shapes(model: ClusterModel) -> Additions:
    """One pod of each of the workloads with the most pods."""
    counts: Counter[str] = Counter()
    examples: dict[str, Pod] = {}
    for each in model.objects(POD):
        pod = cast(Pod, each)
        workload = workload_of(pod)
        if workload.startswith(("Pod ", "DaemonSet ", "Node ")):
            continue
        if model.scheduler.is_responsible_for(pod.spec.scheduler_name):
            counts[workload] += 1
            examples.setdefault(workload, pod)
    ordered = sorted(counts, key=lambda workload: (-counts[workload], natural_key(workload)))
    copies = [_copy(model, examples[one]) for one in ordered[:SHAPES_MAX]]
    claims = [claim for _, own in copies for claim in own]
    return Additions(tuple(claims), tuple(pod for pod, _ in copies))


def _copy(model: ClusterModel, pod: Pod) -> tuple[Pod, list[tuple[str, ApiObject]]]:
    """A copy of a pod, and copies of the claims that were made for it, each with its kind."""
    name, statuses = f"{pod.metadata.name}{_SUFFIX}", pod.status.resource_claim_statuses or ()
    has_own_volumes = any(each.ephemeral for each in pod.spec.volumes or ())
    uid = f"{pod.metadata.uid}{_SUFFIX}" if statuses or has_own_volumes else None
    owner = OwnerReference(api_version="v1", kind="Pod", name=name, uid=uid or "", controller=True)
    claims: list[tuple[str, ApiObject]] = []
    for status in statuses:
        made_name = status.resource_claim_name or ""
        made = model.get(RESOURCE_CLAIM, pod.metadata.namespace or "", made_name)
        if isinstance(made, ResourceClaim):
            own = replace(
                made.metadata,
                name=f"{made.metadata.name}{_SUFFIX}",
                uid=None,
                resource_version=None,
                owner_references=(owner,),
            )
            claim = replace(made, metadata=own, status=ResourceClaimStatus())
            claims.append((RESOURCE_CLAIM, claim))
    for volume in pod.spec.volumes or ():
        made_name = f"{pod.metadata.name}-{volume.name}"
        made = model.get(PERSISTENT_VOLUME_CLAIM, pod.metadata.namespace or "", made_name)
        if volume.ephemeral is not None and isinstance(made, PersistentVolumeClaim):
            again = without_late_volume(model, made)
            own = replace(
                again.metadata,
                name=f"{name}-{volume.name}",
                uid=None,
                owner_references=(owner,),
            )
            claims.append((PERSISTENT_VOLUME_CLAIM, replace(again, metadata=own)))
    copied = tuple(
        replace(each, resource_claim_name=f"{each.resource_claim_name}{_SUFFIX}")
        for each in statuses
    )
    metadata = replace(pod.metadata, name=name, uid=uid, resource_version=None)
    return Pod(
        metadata=metadata,
        spec=replace(pod.spec, node_name=None),
        status=PodStatus(resource_claim_statuses=copied or None),
        declared=pod.declared,
    ), claims


# ---- text ----------------------------------------------------------------------------------


def described(change: WhatIf) -> str:
    """The changes in a line, in the order in which they happen."""
    words = [f"add {counted(new.count, 'node')} like {new.template}" for new in change.add]
    words += [f"uncordon {name}" for name in change.uncordon]
    if change.apply:
        words.append(f"apply {counted(len(change.apply), 'object')}")
    words += [
        f"scale {one.kind} {one.namespace}/{one.name} to {one.replicas}" for one in change.scale
    ]
    for verb, names in (
        ("cordon", change.cordon),
        ("remove", change.remove),
        ("drain", change.drain),
    ):
        words += [f"{verb} {name}" for name in names]
    return ", ".join(words) or "no change"


def _states(before: ClusterState, after: ClusterState) -> RenderableType:
    table = Table("", *number_columns("before", "after"))
    table.add_row("nodes", f"{before.nodes:,}", f"{after.nodes:,}")
    if (before.nodes, after.nodes) != (before.schedulable_nodes, after.schedulable_nodes):
        counts = (f"{one.nodes - one.schedulable_nodes:,}" for one in (before, after))
        table.add_row("cordoned", *counts)
    table.add_row("pods", f"{before.pods:,}", f"{after.pods:,}")
    table.add_row("waiting", f"{before.waiting:,}", f"{after.waiting:,}")
    for resource in _shown_resources(before, after):
        cells = (_share(one.utilization.get(resource), resource) for one in (before, after))
        table.add_row(f"{resource} requested", *cells)
    for shape, count in before.headroom.items():
        cells = (_count(number) for number in (count, after.headroom.get(shape, 0)))
        table.add_row(f"more pods such as {shape}", *cells)
        victims = [one.headroom_victims.get(shape, 0) for one in (before, after)]
        if any(victims):
            table.add_row("  pods evicted for them", *(f"{count:,}" for count in victims))
    return table


def _count(number: int) -> str:
    return f"{number:,}{'+' * (number >= HEADROOM_LIMIT)}"


def _shown_resources(before: ClusterState, after: ClusterState) -> Sequence[str]:
    """The resources to show: cpu, memory, and what else pods request."""
    used = {
        name
        for state in (before, after)
        for name, one in state.utilization.items()
        if one.requested
    }
    return sorted(used, key=lambda name: (name not in (CPU, MEMORY), name))[:_RESOURCES_MAX]


def _share(one: Utilization | None, resource: str) -> str:
    if one is None or not one.allocatable:
        return ""
    share = share_text(one.requested, one.allocatable)
    amounts = (short_text(resource, amount) for amount in (one.requested, one.allocatable))
    return f"{' of '.join(amounts)} ({share})"
