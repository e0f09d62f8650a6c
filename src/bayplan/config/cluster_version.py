"""The version of kube-scheduler that answers about a cluster are given as.

A version that the user names wins. Otherwise it is that of the cluster: of its API server, of a
capture, or of the newest kubelet. If nothing says it, the newest version answers.
"""

from collections.abc import Iterator

from msgspec import Struct

from bayplan.config.kubernetes_versions import (
    NEWEST,
    KubernetesVersion,
    nearest_version,
    version_of_release,
)
from bayplan.config.loading import SchedulerConfig, in_version
from bayplan.problems import shown


class ReportedReleases(Struct, frozen=True):
    """The releases that parts of a cluster report."""

    #: Such as "v1.36.3"; the newest one decides.
    releases: tuple[str, ...] = ()
    #: Which parts, for a note.
    reporter: str = ""


NOTHING_REPORTED = ReportedReleases()


class VersionChoice(Struct, frozen=True):
    """Which version decides about a cluster."""

    #: The configuration in this version.
    config: SchedulerConfig
    reason: str
    #: Whether it is the version of the cluster, or named by the user; otherwise the nearest one
    #: decides.
    is_certain: bool = True

    @property
    def version(self) -> KubernetesVersion:
        return self.config.gates.version


def choose_version(config: SchedulerConfig, reported: ReportedReleases) -> VersionChoice:
    """The version that the configuration names, or that of a cluster."""
    if config.names_version:
        return VersionChoice(config, "--kubernetes or bayplan.yaml names it")
    nearest = nearest_version(reported.releases)
    if nearest is None or not config.gate_sources:
        reason = "nothing says which version the cluster runs"
        for release in reported.releases[:1]:
            reason = f"{reported.reporter} {shown(release)}, which is no release of Kubernetes"
        return VersionChoice(config, reason, False)
    version, release = nearest
    changed = config if version is config.gates.version else in_version(config, version)
    reason = f"{reported.reporter} {release}"
    if version_of_release(release) is version:
        return VersionChoice(changed, reason)
    return VersionChoice(changed, f"{reason}, a version that Bayplan does not know", False)


def for_cluster(config: SchedulerConfig, reported: ReportedReleases) -> tuple[SchedulerConfig, str]:
    """(the configuration in the version of a cluster, a note for its answers; "": none)."""
    choice = choose_version(config, reported)
    is_reported = bool(reported.releases) and not config.names_version
    if choice.version is NEWEST and (choice.is_certain or not is_reported):
        return choice.config, ""
    reason = f" ({choice.reason})" if is_reported else ""
    note = f"answers are those of kube-scheduler {choice.version}{reason}"
    is_recorded = choice.version.is_recorded
    return choice.config, note if is_recorded else f"{note}, which is not released yet"


def version_for(config: SchedulerConfig, reported: ReportedReleases) -> KubernetesVersion:
    """The version that answers about a cluster are given as."""
    return choose_version(config, reported).version


def in_other_versions(config: SchedulerConfig) -> Iterator[SchedulerConfig]:
    """The configuration as each other released version reads it, the newest first. Nothing if it
    names its version."""
    for version in () if config.names_version else reversed(KubernetesVersion):
        if version.is_recorded and version is not config.gates.version:
            yield in_version(config, version)
