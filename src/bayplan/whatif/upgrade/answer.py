"""The answer of `bayplan upgrade`: the configuration, then the pods by cause."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import ClassVar, Literal, TypeAlias, final

import msgspec
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.names import natural_key
from bayplan.answers.table import BLANK, Table, name_columns, number_columns
from bayplan.config.loading import FEATURE_GATES_FLAG
from bayplan.whatif.text import note_lines
from bayplan.whatif.upgrade.causes import How
from bayplan.whatif.upgrade.configuration import ConfigFinding

#: waits: the pod no longer fits; fits: it begins to fit; moves: other nodes are the best; evicts:
#: it waits, and preemption takes other pods or another node; message: it waits with another
#: message.
What: TypeAlias = Literal["waits", "fits", "moves", "evicts", "message"]

_TEXTS: dict[What, tuple[str, str]] = {
    "waits": ("fits no more", "fit no more"),
    "fits": ("begins to fit", "begin to fit"),
    "moves": ("prefers other nodes", "prefer other nodes"),
    "evicts": ("would evict other pods", "would evict other pods"),
    "message": ("waits with another message", "wait with another message"),
}
#: The number of workloads that the text names for each group. The document has all of them.
_WORKLOADS_MAX = 5
#: The most best nodes named in a line.
_NODES_MAX = 2


@final
class PodDifference(Value, frozen=True, kw_only=True):
    """A pod whose answer differs."""

    #: "namespace/name"
    pod: str
    #: The workload, such as "Deployment default/web".
    workload: str
    what: What
    #: The best nodes; () if the pod waits.
    nodes_before: tuple[str, ...] = ()
    nodes_after: tuple[str, ...] = ()
    message_before: str = ""
    message_after: str = ""
    #: The pods that preemption evicts for it.
    victims_before: tuple[str, ...] = ()
    victims_after: tuple[str, ...] = ()
    #: The titles of the changes that are the cause, and the kind of the cause.
    causes: tuple[str, ...] = ()
    how: How = "alone"
    is_running: bool = msgspec.field(default=False, name="running")


@final
class WorkloadCount(Value, frozen=True, kw_only=True):
    """Pods of one workload."""

    workload: str
    pods: int


@final
class ChangeGroup(Value, frozen=True, kw_only=True):
    """The pods whose answers one change, or changes together, alter."""

    changes: tuple[str, ...]
    #: alone: this change alters at least a part of the answer without other changes; together: only
    #: all of them alter it; either: one of them is enough.
    how: Literal["alone", "together", "either"]
    #: The change in a sentence.
    text: str
    pods: int
    #: The number of pods by what happens to them.
    counts: dict[str, int]
    #: The workloads, the largest first.
    workloads: tuple[WorkloadCount, ...]
    #: A pod, and what each version does with it: nodes, or a message.
    example: str
    before: str
    after: str


@final
class OmittedPods(Value, frozen=True, kw_only=True):
    """Pods that were not decided, and the reason."""

    reason: str
    pods: tuple[str, ...]


@final
class Upgrade(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan upgrade`."""

    kind: Literal["Upgrade"] = "Upgrade"
    field_of_list: ClassVar[str] = "pods"

    cluster: str
    before: str
    after: str
    #: same: only messages differ; changes: pods would be placed differently; refused: the
    #: configuration has to be changed first.
    verdict: Literal["same", "changes", "refused"]
    #: What to do, in a sentence.
    text: str
    pods_tried: int
    configuration: tuple[ConfigFinding, ...] = ()
    #: See `change_groups` for the order.
    changes: tuple[ChangeGroup, ...] = ()
    pods: tuple[PodDifference, ...] = ()
    omitted: tuple[OmittedPods, ...] = ()
    notes: tuple[str, ...] = ()

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        head = f"from kube-scheduler {self.before} to {self.after}: {self.text}"
        parts: list[RenderableType] = [Text(head, style="bold")]
        parts += self._config_parts()
        for group in self.changes:
            parts += _group_parts(group, self, is_wide=is_wide)
        omitted = (f"{pod_count(len(one.pods))} left out: {one.reason}" for one in self.omitted)
        return [*parts, *note_lines((*omitted, *self.notes))]

    def rows(self) -> Rows:
        """The pods whose answers differ."""
        rows = (
            (pod.pod, pod.what, " ".join(pod.nodes_before), " ".join(pod.nodes_after))
            for pod in self.pods
        )
        return Rows(("pod", "what", "nodes before", "nodes after"), rows)

    def _config_parts(self) -> Iterator[RenderableType]:
        written = [one for one in self.configuration if one.source]
        refused = [one for one in written if one.is_blocking]
        if refused:
            yield from (BLANK, Text("to change first:"))
            yield from _finding_lines(refused)
        remarks = [one for one in written if not one.is_blocking]
        if remarks:
            yield from (BLANK, Text("to look at:"))
            yield from _finding_lines(remarks)
        defaults: dict[str, list[ConfigFinding]] = defaultdict(list)
        for one in self.configuration:
            if not one.source:
                defaults[one.text].append(one)
        for change, findings in defaults.items():
            head = f"{counted(len(findings), 'default')}: {change}; to keep what was before:"
            yield from (BLANK, Text(head), *_default_lines(findings))


def _finding_lines(findings: Sequence[ConfigFinding]) -> Iterator[Text]:
    """The lines of the findings, each with its place. What to write comes once, after the findings
    that it settles."""
    for one, following in zip_longest(findings, findings[1:]):
        yield Text(f"  {one.place}: {one.text}")
        if following is None or (one.place, one.write) != (following.place, following.write):
            yield _advice(one.write, depth=2)


def _default_lines(findings: Sequence[ConfigFinding]) -> Iterator[Text]:
    """The lines about defaults: first what keeps each default, then together those that nothing
    keeps."""
    unkept: dict[str, list[str]] = defaultdict(list)
    for one in findings:
        if one.name in one.write:
            yield _advice(one.write, depth=1)
        else:
            unkept[one.write].append(one.name)
    for reason, names in unkept.items():
        yield _advice(f"{reason}: {', '.join(names)}", depth=1)


def _advice(text: str, *, depth: int) -> Text:
    """What to write. A flag is not wrapped: a line break in it would be copied, too."""
    is_flag = f"{FEATURE_GATES_FLAG}=" in text
    return Text("  " * depth + text, no_wrap=is_flag or None)


def _group_parts(group: ChangeGroup, answer: Upgrade, *, is_wide: bool) -> Iterator[RenderableType]:
    yield from (BLANK, Text(group.text))
    shown = group.workloads if is_wide else group.workloads[:_WORKLOADS_MAX]
    table = Table(*name_columns("workload"), *number_columns("pods"))
    for one in shown:
        table.add_row(one.workload, f"{one.pods:,}")
    yield table
    if len(shown) < len(group.workloads):
        left = counted(len(group.workloads) - len(shown), "workload")
        yield Text(f"… and {left} more (-o wide)")
    yield Text(f"for example {group.example}")
    yield Text(f"  {answer.before}: {group.before}")
    yield Text(f"  {answer.after}: {group.after}")


def ordered(pods: Iterable[PodDifference]) -> tuple[PodDifference, ...]:
    """The differences in order. Pods that no longer fit come first, and pods of which only the
    message differs come last."""
    return tuple(sorted(pods, key=lambda pod: list(_TEXTS).index(pod.what)))


# ---- groups --------------------------------------------------------------------------------


def change_groups(pods: Sequence[PodDifference]) -> tuple[ChangeGroup, ...]:
    """The pods by the cause of their answers. The largest group comes first, but groups of which
    only messages differ come last."""
    groups: dict[tuple[str, tuple[str, ...]], list[PodDifference]] = defaultdict(list)
    for pod in pods:
        if pod.how == "each":
            for cause in pod.causes:
                groups["alone", (cause,)].append(pod)
        else:
            groups[pod.how, pod.causes].append(pod)
    made = (_group(how, changes, pods) for (how, changes), pods in groups.items())
    return tuple(sorted(made, key=_rank))


def _rank(group: ChangeGroup) -> tuple[bool, int, tuple[str, ...]]:
    return set(group.counts) == {"message"}, -group.pods, group.changes


def _group(how: str, changes: tuple[str, ...], pods: Sequence[PodDifference]) -> ChangeGroup:
    counts: Counter[What] = Counter(pod.what for pod in pods)
    workloads = Counter(pod.workload for pod in pods)
    by_size = sorted(workloads.items(), key=lambda item: (-item[1], natural_key(item[0])))
    first = min(pods, key=lambda pod: (list(_TEXTS).index(pod.what), pod.pod))
    name = {"together": " together with ", "either": " or "}.get(how, "").join(changes)
    return ChangeGroup(
        changes=changes,
        how="alone" if how == "alone" else "either" if how == "either" else "together",
        text=f"{name}: {counts_text(counts, len(by_size))}",
        pods=len(pods),
        counts={what: counts[what] for what in _TEXTS if what in counts},
        workloads=tuple(WorkloadCount(workload=name, pods=n) for name, n in by_size),
        example=first.pod,
        before=_outcome(
            first.nodes_before, first.nodes_after, first.message_before, first.victims_before
        ),
        after=_outcome(
            first.nodes_after, first.nodes_before, first.message_after, first.victims_after
        ),
    )


def counts_text(counts: Mapping[What, int], workload_count: int) -> str:
    """ "14 pods of 3 workloads prefer other nodes, 1 pod fits no more" """
    whole = f" of {counted(workload_count, 'workload')}"
    parts: list[str] = []
    for what, (one, several) in _TEXTS.items():
        count = counts.get(what, 0)
        if count:
            parts.append(f"{pod_count(count)}{whole} {one if count == 1 else several}")
            whole = ""
    return ", ".join(parts)


def _outcome(
    nodes: Sequence[str], other_nodes: Sequence[str], message: str, victims: Sequence[str]
) -> str:
    """The outcome in words. ``other_nodes``: the nodes of the other version; the nodes that it
    lacks come first."""
    if not nodes:
        evicts = f" (evicts {pod_count(len(victims))}, such as {victims[0]})" if victims else ""
        return f"{message}{evicts}"
    names = sorted(nodes, key=lambda node: node in other_nodes)
    others = len(nodes) - _NODES_MAX
    text = " or ".join(names[:_NODES_MAX])
    return text if others <= 0 else f"{text} or {counted(others, 'other')}"


# ---- the verdict ---------------------------------------------------------------------------


def refusal_text(findings: Sequence[ConfigFinding], version: str) -> str:
    """What to do about a configuration that is refused, in a sentence."""
    places = list(dict.fromkeys(one.place for one in findings if one.is_blocking))
    more = f" and {counted(len(places) - 1, 'place')} more" if len(places) > 1 else ""
    return f"kube-scheduler {version} does not start: change {places[0]}{more} first"


def verdict_text(
    pods: Sequence[PodDifference], groups: Sequence[ChangeGroup], tried_count: int
) -> str:
    """What to do about the pods, in a sentence."""
    placed = [pod for pod in pods if pod.what != "message"]
    waiting_count = len(pods) - len(placed)
    one, several = _TEXTS["message"]
    text = one if waiting_count == 1 else several
    words = f"; {pod_count(waiting_count)} {text}" if waiting_count else ""
    if not placed:
        return f"nothing to do, 0 of {pod_count(tried_count)} would be placed differently{words}"
    counts: Counter[What] = Counter(pod.what for pod in placed)
    causes = [group for group in groups if set(group.counts) - {"message"}]
    mostly = "mostly by" if len(causes) > 1 else "by"
    cause = f"{mostly} {' and '.join(causes[0].changes)}"
    advice = "make room or change them before the upgrade"
    if not counts["waits"] and not counts["evicts"]:
        advice = "no pod that fits would wait, so nothing has to be done before the upgrade"
    text = counts_text(counts, len({pod.workload for pod in placed}))
    return f"of {pod_count(tried_count)}, {text}, {cause}; {advice}{words}"
