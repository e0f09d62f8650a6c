"""PodDisruptionBudget."""

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.objects import decode


def test_a_budget_is_decoded_with_either_kind_of_bound() -> None:
    spec = {"minAvailable": "50%", "selector": {"matchLabels": {"app": "a"}}}
    status = {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}}
    pod_disruption_budget = decode(
        POD_DISRUPTION_BUDGET, {"metadata": {"name": "b"}, "spec": spec, "status": status}
    )
    assert isinstance(pod_disruption_budget, PodDisruptionBudget)
    assert (
        pod_disruption_budget.spec.min_available,
        pod_disruption_budget.spec.max_unavailable,
    ) == ("50%", None)
    assert pod_disruption_budget.status.disruptions_allowed == 2
    assert pod_disruption_budget.status.disrupted_pods == {"p": "2026-01-01T00:00:00Z"}
