"""What an upgrade of Kubernetes changes about a cluster's scheduling.

One picture of the cluster is decided twice, as the kube-schedulers of both versions would decide:
first the configuration, then each pod (`decisions`). A pod whose answer differs is decided again
with parts of the changes, until its cause is certain (`causes`).
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from bayplan.config import SchedulerConfig
from bayplan.config.upgrades import named_changes, with_changes
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.workloads import workload_of
from bayplan.plugins.registry import Registry
from bayplan.problems import ConfigError
from bayplan.state.pods import PodInfo
from bayplan.whatif.upgrade.answer import (
    OmittedPods,
    PodDifference,
    Upgrade,
    What,
    change_groups,
    ordered,
    refusal_text,
    verdict_text,
)
from bayplan.whatif.upgrade.causes import Cause, Changes, causes_of
from bayplan.whatif.upgrade.configuration import config_findings
from bayplan.whatif.upgrade.decisions import (
    Decision,
    decisions,
    pods_to_decide,
    version_model,
)


def upgrade(
    picture: ClusterPicture,
    before: SchedulerConfig,
    after: SchedulerConfig,
    registry: Registry,
    *,
    seed: int = 0,
) -> Upgrade:
    """What changes with an upgrade. ``before``, ``after``: the configuration in both versions."""
    findings = tuple(config_findings(before, after, registry))
    version = str(after.gates.version)
    answer = Upgrade(
        cluster=picture.source,
        before=before.gates.version,
        after=version,
        verdict="same",
        text="",
        pods_tried=0,
        configuration=findings,
        notes=(*_other_notes(picture), *_preview_notes(after)),
    )
    if any(finding.is_blocking for finding in findings):
        return replace(answer, verdict="refused", text=refusal_text(findings, version))
    cluster = _TwoVersions(picture, (before, after), registry, seed)
    pods, omitted = cluster.differences()
    groups = change_groups(pods)
    is_other = any(pod.what != "message" for pod in pods)
    return replace(
        answer,
        verdict="changes" if is_other else "same",
        text=verdict_text(pods, groups, cluster.tried_count),
        pods_tried=cluster.tried_count,
        changes=groups,
        pods=pods,
        omitted=omitted,
    )


def _other_notes(picture: ClusterPicture) -> Iterator[str]:
    """The notes without the one about the version, which the answer names."""
    yield from (note for note in picture.notes if not note.startswith("answers are those"))


def _preview_notes(after: SchedulerConfig) -> Iterator[str]:
    version = after.gates.version
    if not version.is_recorded:
        what = "it has what merged pull requests say, and nothing is recorded"
        yield f"{version} is not released: {what}"


class _TwoVersions:
    """One cluster, decided by two versions and by the old version with some of the changes."""

    def __init__(
        self,
        picture: ClusterPicture,
        configs: tuple[SchedulerConfig, SchedulerConfig],
        registry: Registry,
        seed: int,
    ) -> None:
        self._picture = picture
        self._before, self._after = before, after = configs
        self._registry, self._seed = registry, seed
        self._changes = tuple(named_changes(before.gates, after.gates))
        self._pods: dict[str, PodInfo] = {}
        #: How many pods were decided.
        self.tried_count = 0

    def differences(self) -> tuple[tuple[PodDifference, ...], tuple[OmittedPods, ...]]:
        """(the pods whose answers differ, those that nobody decides about)"""
        with version_model(self._picture, self._before, self._registry, self._seed) as model:
            pods, omitted = pods_to_decide(model)
            old = decisions(model, pods)
            workloads = {pod.key: _workload(model, pod) for pod in pods}
        with version_model(self._picture, self._after, self._registry, self._seed) as model:
            new = decisions(model, pods)
        self.tried_count = len(pods)
        self._pods = {pod.key: pod for pod in pods}
        answers = {key: (old[key], new[key]) for key in self._pods if old[key] != new[key]}
        causes = causes_of(answers, len(self._changes), self._decide)
        different = (
            self._difference(key, workloads[key], answers[key], causes[key]) for key in answers
        )
        reasons = sorted(omitted.items(), key=lambda item: (-len(item[1]), item[0]))
        by_reason = (OmittedPods(reason=reason, pods=tuple(keys)) for reason, keys in reasons)
        return ordered(different), tuple(by_reason)

    def _decide(self, changes: Changes, keys: Sequence[str]) -> Mapping[str, Decision]:
        """The decisions of the old version with some changes; nothing if they do not go
        together."""
        made = (self._changes[position] for position in changes)
        gates = with_changes(self._before.gates, self._after.gates, made)
        config = replace(self._before, gates=gates)
        try:
            with version_model(self._picture, config, self._registry, self._seed) as model:
                return decisions(model, [self._pods[key] for key in keys])
        except ConfigError:
            return {}

    def _difference(
        self, key: str, workload: str, answers: tuple[Decision, Decision], cause: Cause
    ) -> PodDifference:
        old, new = answers
        sets = (cause.changes, *cause.alternatives)
        titles = [" with ".join(self._changes[i].title for i in one) for one in sets]
        if cause.how != "either":
            titles = [self._changes[position].title for position in cause.changes]
        return PodDifference(
            pod=key,
            workload=workload,
            what=_what(old, new),
            nodes_before=old.nodes,
            nodes_after=new.nodes,
            message_before=old.message,
            message_after=new.message,
            victims_before=old.victims,
            victims_after=new.victims,
            causes=tuple(titles),
            how=cause.how,
            is_running=bool(self._pods[key].node_name),
        )


def _what(old: Decision, new: Decision) -> What:
    if old.nodes != new.nodes:
        return "moves" if old.nodes and new.nodes else "fits" if new.nodes else "waits"
    is_equal = (old.nominated_node, old.victims) == (new.nominated_node, new.victims)
    return "message" if is_equal else "evicts"


def _workload(model: ClusterModel, pod: PodInfo) -> str:
    stored = model.pod(pod.key)
    assert stored is not None, f"{pod.key} was listed"
    return workload_of(stored)
