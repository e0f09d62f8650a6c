"""The alerts of the chart use existing metrics."""

import re

from prometheus_client import CollectorRegistry

from bayplan.serving.election.election import LeaderGauge
from tests.deploy.rendering import CHART
from tests.engine.kit import Engine

RULES = CHART / "templates" / "prometheusrule.yaml"
OPERATIONS = CHART.parents[1] / "docs" / "operations.md"


def alerted() -> set[str]:
    text = RULES.read_text(encoding="utf-8")
    return set(
        re.findall(r"(?:bayplan|leader)_[a-z_]+", re.sub(r"include \S+|name: bayplan", "", text))
    )


def shown() -> set[str]:
    """Names of families, a counter's with its ending."""
    registry = CollectorRegistry()
    registry.register(LeaderGauge("bayplan", lambda: True))
    families = [*Engine().scheduler.metrics.registry.collect(), *registry.collect()]
    # Those of the connection to a cluster: tests/serving/test_component_metrics.py.
    names = {"bayplan_cluster_problem", "bayplan_events_dropped_total"}
    return names | {
        f"{family.name}_total" if family.type == "counter" else family.name for family in families
    }


def test_every_alert_uses_an_exposed_and_documented_metric() -> None:
    assert len(alerted()) == 6
    assert alerted() <= shown()
    text = OPERATIONS.read_text(encoding="utf-8")
    assert {name for name in alerted() if name not in text} == set()
