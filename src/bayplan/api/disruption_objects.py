"""PodDisruptionBudget: how many of the selected pods may be unavailable at a time.

Upstream: k8s.io/api/policy/v1.
"""

from bayplan.api.object_meta import Api, Int64, LabelSelector, ObjectMeta, Strings

POD_DISRUPTION_BUDGET = "policy/v1 PodDisruptionBudget"


class PodDisruptionBudgetSpec(Api):
    """Exactly one of the two bounds is set: a number of pods, or a percentage."""

    selector: LabelSelector | None = None
    min_available: Int64 | str | None = None
    max_unavailable: Int64 | str | None = None
    #: "AlwaysAllow" or "IfHealthyBudget", the default.
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Api):
    disruptions_allowed: Int64 = 0
    current_healthy: Int64 = 0
    desired_healthy: Int64 = 0
    #: Name of a pod whose eviction the API server has accepted → time of the eviction.
    disrupted_pods: Strings | None = None


class PodDisruptionBudget(Api):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
