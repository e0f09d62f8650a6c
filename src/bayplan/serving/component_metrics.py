"""Metrics of every Kubernetes component, and of the connection to the cluster.

Upstream: component-base/metrics/version.go. The versions are Bayplan's own.
"""

import platform
from collections.abc import Iterable

from prometheus_client import CollectorRegistry

from bayplan import __version__
from bayplan.adapters.live.cluster import LiveCluster
from bayplan.metrics import COUNTER, GAUGE, ScrapedFamily

_BUILD_LABELS = (
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

_Samples = Iterable[tuple[tuple[str, ...], float]]


def register_build_info(registry: CollectorRegistry) -> None:
    """kubernetes_build_info: always 1, with the versions as labels. The labels for the git commit,
    the build date and Go are empty."""
    number = __version__
    major, _, after_major = number.partition(".")
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    compiler = f"{platform.python_implementation()} {platform.python_version()}"
    where = f"{platform.system().lower()}/{architecture}"
    labels = (major, after_major.partition(".")[0], f"v{number}", "", "", "", "", compiler, where)
    text = "Always 1: the version of Bayplan and of the Python that runs it."
    build = ScrapedFamily(
        GAUGE,
        "kubernetes_build_info",
        text,
        _BUILD_LABELS,
        read=lambda: [(labels, 1.0)],
    )
    registry.register(build)


def register_cluster(registry: CollectorRegistry, cluster: LiveCluster) -> None:
    """Metrics of dropped events, of operations that fail at present, and of the queue of events."""

    def dropped() -> _Samples:
        yield (), cluster.dropped_event_count

    def stalls() -> _Samples:
        for kind, count in sorted(cluster.watch_stall_counts.items()):
            yield (kind,), count

    def problems() -> _Samples:
        for what in sorted(cluster.problems):
            yield (what,), 1.0

    registry.register(
        ScrapedFamily(
            COUNTER,
            "bayplan_events_dropped",
            "Events about pods that were not written: too many waited, or the API server refused.",
            (),
            read=dropped,
        )
    )
    registry.register(
        ScrapedFamily(
            GAUGE,
            "bayplan_cluster_problem",
            "What the API server does not answer at present, such as list v1 Node; 1 while it "
            "lasts.",
            ("request",),
            read=problems,
        )
    )
    registry.register(
        ScrapedFamily(
            COUNTER,
            "bayplan_watch_stalls",
            "Watches that the API server accepted and did not answer, or that fell silent.",
            ("kind",),
            read=stalls,
        )
    )
    cluster.event_queue.register(registry)
