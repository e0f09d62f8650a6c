"""The metrics of each version: which it has, their stability levels, and their label values.

A row of `HISTORY` is the life of one metric, without a counter's ``_total``: from each version on
its level. A name that ends with "_" stands for all metrics that begin with it, and "label=value" is
a value of a label. A metric without a row is ALPHA in every version. Recorded from the binaries'
/metrics and from pkg/scheduler/metrics. The texts of metrics are Bayplan's own.
"""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from bayplan.config.feature_gates import FeatureGates
from bayplan.config.kubernetes_versions import KubernetesVersion

HISTORY = """
extension_point=PreBindPreFlight: 1.35
extension_point=Sign: 1.35
kubernetes_build_info: 1.34 alpha, 1.36 beta
kubernetes_feature_enabled: 1.34 beta
queue=incomplete: 1.37.0
queue=pending: 1.37.0
scheduler_batch_attempts: 1.35 alpha
scheduler_batch_cache_flushed: 1.35 alpha
scheduler_framework_extension_point_duration_seconds: 1.34 stable
scheduler_generated_placements: 1.37.0 alpha
scheduler_get_node_hint_duration_seconds: 1.35 alpha
scheduler_goroutines: 1.34 alpha, 1.36 beta
scheduler_pending_pods: 1.34 stable
scheduler_permit_wait_duration_seconds: 1.34 alpha, 1.36 beta
scheduler_placement_evaluation_duration_seconds: 1.37.0 alpha
scheduler_placement_evaluations: 1.37.0 alpha
scheduler_plugin_evaluation: 1.34 alpha, 1.36 beta
scheduler_plugin_execution_duration_seconds: 1.34 alpha, 1.37.0 beta
scheduler_pod_scheduled_after_flush: 1.36 alpha
scheduler_pod_scheduling_attempts: 1.34 stable
scheduler_pod_scheduling_sli_duration_seconds: 1.34 beta
scheduler_podgroup_schedule_attempts: 1.36 alpha
scheduler_podgroup_scheduling_algorithm_duration_seconds: 1.36 alpha
scheduler_podgroup_scheduling_attempt_duration_seconds: 1.36 alpha
scheduler_preemption_attempts: 1.34 stable
scheduler_preemption_evaluation_duration_seconds: 1.37.0 alpha
scheduler_preemption_execution_duration_seconds: 1.37.0 alpha
scheduler_preemption_goroutines_duration_seconds: 1.34 alpha, 1.37.0 alpha deprecated
scheduler_preemption_pdb_violations: 1.37.0 alpha
scheduler_preemption_victims: 1.34 stable
scheduler_preemption_workload_disruptions: 1.37.0 alpha
scheduler_queue_incoming_entities: 1.37.0 alpha
scheduler_queue_incoming_pods: 1.34 stable
scheduler_queued_entities: 1.37.0 alpha
scheduler_schedule_attempts: 1.34 stable
scheduler_scheduling_algorithm_duration_seconds: 1.34 alpha, 1.37.0 beta
scheduler_scheduling_attempt_duration_seconds: 1.34 stable
scheduler_unschedulable_pods: 1.34 alpha, 1.36 beta
scheduler_workload_preemption_attempts: 1.37.0 alpha
scheduler_workload_preemption_victims: 1.37.0 alpha
workqueue_: 1.34 alpha, 1.36 beta
"""

#: Bayplan's own metrics, and those of every process, have no stability level.
_WITHOUT_LEVEL = ("bayplan_", "process_")

#: The label event before resources of pods had their names (`Behaviour.has_pod_resources`).
_OLDER_EVENTS = {"UnscheduledPod": "UnschedulablePod"}


class MetricStandard(Struct, frozen=True):
    """How a version exposes metrics."""

    #: Metric, or beginning of metrics that ends with "_" → its level.
    levels: Mapping[str, str]
    #: Metrics that newer versions have, and values of labels ("queue=pending").
    absent: frozenset[str]
    #: Beginning of a value of the label event → what the version writes in its place.
    event_names: Mapping[str, str]

    def help_text(self, name: str, text: str) -> str:
        """A metric's help text with its stability level in front, as Kubernetes writes it."""
        if name.startswith(_WITHOUT_LEVEL):
            return text
        level = self.levels.get(name) or self.levels.get(f"{name.partition('_')[0]}_", "[ALPHA]")
        return f"{level} {text}"


@cache
def _standard(version: KubernetesVersion, *, has_pod_resources: bool) -> MetricStandard:
    levels: dict[str, str] = {}
    absent: set[str] = set()
    for row in HISTORY.strip().splitlines():
        name, _, life = row.partition(": ")
        entries = [entry.split() for entry in life.split(", ")]
        lived = [e for e in entries if KubernetesVersion(e[0]).position <= version.position]
        if not lived:
            absent.add(name)
        elif len(lived[-1]) > 1:
            since, level, *deprecated = lived[-1]
            levels[name] = f"[{level.upper()}]" + f" (Deprecated since {since})" * bool(deprecated)
    event_names = {} if has_pod_resources else _OLDER_EVENTS
    return MetricStandard(levels, frozenset(absent), event_names)


def metric_standard(gates: FeatureGates) -> MetricStandard:
    """How the version of these gates exposes metrics."""
    return _standard(gates.version, has_pod_resources=gates.behaviour.has_pod_resources)
