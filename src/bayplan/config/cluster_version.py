"""The version of kube-scheduler that answers about a cluster are given as.

A version that the user names wins. Otherwise it is that of the cluster: of its API server, of a
capture, or of the newest kubelet. If nothing says it, the newest version answers.
"""

from msgspec import Struct

from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion, nearest_version
from bayplan.config.loading import SchedulerConfig, in_version


class ReportedReleases(Struct, frozen=True):
    """The releases that parts of a cluster report."""

    #: Such as "v1.36.3"; the newest one decides.
    releases: tuple[str, ...] = ()
    #: Which parts, for a note.
    reporter: str = ""


NOTHING_REPORTED = ReportedReleases()


def for_cluster(config: SchedulerConfig, reported: ReportedReleases) -> tuple[SchedulerConfig, str]:
    """(the configuration in the version of a cluster, a note for its answers; "": none)."""
    version = config.gates.version
    if config.names_version:
        return config, _note(version, "")
    nearest = nearest_version(reported.releases)
    if nearest is None or not config.gate_sources:
        return config, ""
    version, release = nearest
    changed = config if version is config.gates.version else in_version(config, version)
    return changed, _note(version, f" ({reported.reporter} {release})")


def version_for(config: SchedulerConfig, reported: ReportedReleases) -> KubernetesVersion:
    """The version that answers about a cluster are given as."""
    return for_cluster(config, reported)[0].gates.version


def _note(version: KubernetesVersion, reason: str) -> str:
    if version is NEWEST:
        return ""
    note = f"answers are those of kube-scheduler {version}{reason}"
    return note if version.is_recorded else f"{note}, which is not released yet"
