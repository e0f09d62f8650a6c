"""What an upgrade of Kubernetes changes about a cluster's scheduling.

The cluster is decided twice from one picture, as kube-scheduler of both versions does: first the
configuration, then each pod. A pod that waits is tried as it is. A pod that runs is tried as if it
were created again: it goes, and its replacement is placed with everything else as it is. What
counts is the set of the best nodes, and not which of them is drawn; and the message of a pod that
fits nowhere.

A pod whose answer differs is tried again with one change of the new version at a time. The changes
that alone alter its answer are its causes; if there is none, several changes work together.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar, Literal, cast, final

import msgspec
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.amounts import counted, pod_count
from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.table import BLANK, Table, name_columns
from bayplan.api.objects import POD, Pod
from bayplan.config import SchedulerConfig
from bayplan.config.upgrades import gate_changes, named_changes
from bayplan.engine.cycle import Cycle
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.plugins.registry import Registry
from bayplan.problems import ConfigError
from bayplan.profile.resolved_config import resolve
from bayplan.state.pods import PodInfo, pod_info
from bayplan.whatif.evictions import is_mirror, replacement
from bayplan.whatif.text import note_lines

#: A change that no single row of the tables explains.
TOGETHER = "several changes together"
#: Of each cause the text names this many pods; the document has all.
_EXAMPLES_MAX = 3


# ---- the answer ----------------------------------------------------------------------------


@final
class ConfigFinding(Value, frozen=True, kw_only=True):
    """Something about the configuration."""

    #: refused: the new version does not start; default: a gate has another default.
    what: Literal["refused", "default"]
    path: str
    text: str


@final
class PodDifference(Value, frozen=True, kw_only=True):
    """A pod whose answer differs."""

    #: "namespace/name"
    pod: str
    #: moves: other nodes are the best; waits: it fits no more; fits: it begins to fit; message:
    #: it waits with another sentence.
    what: Literal["moves", "waits", "fits", "message"]
    #: The best nodes; () where it fits nowhere.
    nodes_before: tuple[str, ...] = ()
    nodes_after: tuple[str, ...] = ()
    message_before: str = ""
    message_after: str = ""
    #: The titles of the changes that explain it.
    causes: tuple[str, ...] = ()
    is_running: bool = msgspec.field(default=False, name="running")


@final
class Upgrade(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan upgrade`."""

    kind: Literal["Upgrade"] = "Upgrade"
    field_of_list: ClassVar[str] = "pods"

    cluster: str
    before: str
    after: str
    #: same: nothing differs but words; changes: pods would be placed differently; refused: the
    #: configuration has to be changed first.
    verdict: Literal["same", "changes", "refused"]
    pods_tried: int
    configuration: tuple[ConfigFinding, ...] = ()
    pods: tuple[PodDifference, ...] = ()
    #: Pods that could not be decided alone, such as members of groups.
    pods_left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def by_cause(self) -> Mapping[str, Sequence[PodDifference]]:
        """The cause → its pods; the causes with the most pods first."""
        causes: dict[str, list[PodDifference]] = defaultdict(list)
        for pod in self.pods:
            for cause in pod.causes:
                causes[cause].append(pod)
        return dict(sorted(causes.items(), key=lambda item: (-len(item[1]), item[0])))

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        parts: list[RenderableType] = [Text(self._head(), style="bold")]
        parts += [Text(f"  {one.path}: {one.text}") for one in self.configuration]
        for cause, pods in self.by_cause.items():
            parts += [BLANK, Text(f"{cause}: {_counts(pods)}")]
            table = Table(*name_columns("pod"), "before", "after")
            shown = pods if is_wide else pods[:_EXAMPLES_MAX]
            for pod in shown:
                table.add_row(pod.pod, _outcome(pod, is_after=False), _outcome(pod, is_after=True))
            parts.append(table)
            if len(shown) < len(pods):
                parts.append(Text(f"… and {pod_count(len(pods) - len(shown))} more (-o wide)"))
        notes = list(self.notes)
        if self.pods_left_out:
            notes.append(f"{pod_count(self.pods_left_out)} could not be decided alone")
        return [*parts, *note_lines(notes)]

    def rows(self) -> Rows:
        """The pods whose answers differ."""
        rows = (
            (pod.pod, pod.what, " ".join(pod.nodes_before), " ".join(pod.nodes_after))
            for pod in self.pods
        )
        return Rows(("pod", "what", "nodes before", "nodes after"), rows)

    def _head(self) -> str:
        versions = f"from kube-scheduler {self.before} to {self.after}"
        if self.verdict == "refused":
            return f"{versions}: the configuration is refused and has to be changed first"
        placed = [pod for pod in self.pods if pod.what != "message"]
        if placed:
            counts = f"{len(placed)} of {pod_count(self.pods_tried)}"
            return f"{versions}: {counts} would be placed differently"
        words = f"; {pod_count(len(self.pods))} with other messages" if self.pods else ""
        return f"{versions}: {pod_count(self.pods_tried)} would be placed as before{words}"


def _counts(pods: Sequence[PodDifference]) -> str:
    texts = {
        "moves": "would get other nodes",
        "waits": "would fit no more",
        "fits": "would begin to fit",
        "message": "would wait with another message",
    }
    counts = [(text, sum(pod.what == what for pod in pods)) for what, text in texts.items()]
    return ", ".join(f"{pod_count(count)} {text}" for text, count in counts if count)


def _outcome(pod: PodDifference, *, is_after: bool) -> str:
    nodes = pod.nodes_after if is_after else pod.nodes_before
    message = pod.message_after if is_after else pod.message_before
    if not nodes:
        return message
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} or {counted(len(nodes) - 1, 'other')}"


# ---- one version ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Decision:
    """What one version does with one pod."""

    nodes: tuple[str, ...]
    message: str = ""


@contextmanager
def _model(
    picture: ClusterPicture, config: SchedulerConfig, registry: Registry, seed: int
) -> Iterator[ClusterModel]:
    # The version is that of the configuration, whatever the cluster reports.
    model = ClusterModel(picture, replace(config, names_version=True), registry, seed=seed)
    try:
        yield model
    finally:
        model.close()


def _decisions(model: ClusterModel, pods: Sequence[PodInfo]) -> dict[str, _Decision]:
    """Each pod that can be decided → its decision."""
    decisions: dict[str, _Decision] = {}
    for pod in pods:
        # A pod whose group or claims do not let it be tried alone is left out.
        with suppress(KeyError, AssertionError):
            decision = _decision(model, pod)
            if decision is not None:
                decisions[pod.key] = decision
    return decisions


def _decision(model: ClusterModel, pod: PodInfo) -> _Decision | None:
    cycles: list[Cycle] = []

    def look(cycle: Cycle) -> None:
        if cycle.pod.key == pod.key:
            cycles.append(cycle)
            best.append(_best_nodes(cycle))

    best: list[tuple[str, ...]] = []
    with model.trial():
        if pod.node_name:
            model.remove(POD, pod.namespace, pod.name)
            model.add(POD, replacement(pod))
        attempt: Attempt = model.attempt(pod.key, look)
    if attempt.result in ("gated", "error"):
        return None
    nodes = best[-1] if best and attempt.node else ()
    return _Decision(nodes or tuple(filter(None, (attempt.node,))), attempt.reason)


def _best_nodes(cycle: Cycle) -> tuple[str, ...]:
    choice = cycle.choice
    if choice is None:
        return ()
    table = cycle.score_table()
    if table is None:
        return (choice.node_name,)
    names = table.nodes.names()
    return tuple(sorted(names[position] for position in table.best_positions().tolist()))


# ---- two versions --------------------------------------------------------------------------


def upgrade(
    picture: ClusterPicture,
    before: SchedulerConfig,
    after: SchedulerConfig,
    registry: Registry,
    *,
    seed: int = 0,
) -> Upgrade:
    """What changes with an upgrade. ``before``, ``after``: the configuration in both versions."""
    findings = tuple(_config_findings(before, after, registry))
    answer = Upgrade(
        cluster=picture.source,
        before=before.gates.version,
        after=after.gates.version,
        verdict="same",
        pods_tried=0,
        configuration=findings,
        notes=(*_other_notes(picture), *_preview_notes(after)),
    )
    if any(one.what == "refused" for one in findings):
        return replace(answer, verdict="refused")
    with _model(picture, before, registry, seed) as old:
        pods = [pod for pod in _pods(old) if not is_mirror(pod)]
        decided_before = _decisions(old, pods)
    with _model(picture, after, registry, seed) as new:
        decided_after = _decisions(new, pods)
    both = [p for p in pods if p.key in decided_before and p.key in decided_after]
    different = [p for p in both if decided_before[p.key] != decided_after[p.key]]
    causes = _causes(
        picture, (before, after), registry, different, before=decided_before, seed=seed
    )
    differences = tuple(
        _difference(pod, decided_before[pod.key], decided_after[pod.key], causes[pod.key])
        for pod in different
    )
    changes = any(pod.what != "message" for pod in differences)
    return replace(
        answer,
        verdict="changes" if changes else "same",
        pods_tried=len(both),
        pods=differences,
        pods_left_out=len(pods) - len(both),
    )


def _other_notes(picture: ClusterPicture) -> Iterator[str]:
    """Without the one about the version, which the answer names."""
    yield from (note for note in picture.notes if not note.startswith("answers are those"))


def _preview_notes(after: SchedulerConfig) -> Iterator[str]:
    version = after.gates.version
    if not version.is_recorded:
        what = "it has what merged pull requests say, and nothing is recorded"
        yield f"{version} is not released: {what}"


def _pods(model: ClusterModel) -> Iterator[PodInfo]:
    """The pods of the profiles of this scheduler: those that wait first."""
    waiting = model.in_queue_order()
    yield from waiting
    keys = {pod.key for pod in waiting}
    names = {profile.scheduler_name for profile in model.config.spec.profiles}
    for each in model.objects(POD):
        info = pod_info(cast(Pod, each))
        if info.node_name and info.key not in keys and info.scheduler_name in names:
            yield info


def _difference(
    pod: PodInfo, before: _Decision, after: _Decision, causes: tuple[str, ...]
) -> PodDifference:
    what: Literal["moves", "waits", "fits", "message"] = "message"
    if before.nodes != after.nodes:
        what = "moves" if before.nodes and after.nodes else "fits" if after.nodes else "waits"
    return PodDifference(
        pod=pod.key,
        what=what,
        nodes_before=before.nodes,
        nodes_after=after.nodes,
        message_before=before.message,
        message_after=after.message,
        causes=causes,
        is_running=bool(pod.node_name),
    )


def _causes(
    picture: ClusterPicture,
    configs: tuple[SchedulerConfig, SchedulerConfig],
    registry: Registry,
    pods: Sequence[PodInfo],
    *,
    before: Mapping[str, _Decision],
    seed: int,
) -> dict[str, tuple[str, ...]]:
    """Each pod → the titles of the changes that alone alter its answer."""
    causes: dict[str, list[str]] = {pod.key: [] for pod in pods}
    old, new = configs
    for change in named_changes(old.gates, new.gates) if pods else ():
        config = replace(old, gates=change.applied(old.gates, new.gates))
        with suppress(ConfigError), _model(picture, config, registry, seed) as model:
            for key, decision in _decisions(model, pods).items():
                if decision != before[key]:
                    causes[key].append(change.title)
    return {key: tuple(titles) or (TOGETHER,) for key, titles in causes.items()}


# ---- the configuration ---------------------------------------------------------------------


def _config_findings(
    before: SchedulerConfig, after: SchedulerConfig, registry: Registry
) -> Iterator[ConfigFinding]:
    try:
        resolve(after, registry)
    except ConfigError as error:
        for problem in error.problems:
            text = "; ".join(filter(None, (problem.actual, problem.expected)))
            yield ConfigFinding(what="refused", path=problem.path or "configuration", text=text)
    named = set(before.gates.named)
    for gate in gate_changes(before.gates, after.gates):
        if gate.name not in named:
            yield ConfigFinding(what="default", path=f"featureGates.{gate.name}", text=gate.text)
