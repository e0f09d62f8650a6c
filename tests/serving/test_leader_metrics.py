"""The gauge that tells who leads."""

from prometheus_client import CollectorRegistry

from bayplan.serving.leader_metrics import LeaderGauge


def test_it_is_asked_when_it_is_looked_at() -> None:
    registry, leads = CollectorRegistry(), [False]
    registry.register(LeaderGauge("bayplan", lambda: leads[0]))

    def value() -> float | None:
        return registry.get_sample_value("leader_election_master_status", {"name": "bayplan"})

    assert value() == 0.0
    leads[0] = True
    assert value() == 1.0
