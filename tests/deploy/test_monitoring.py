"""Alerts and dashboard of the chart use existing metrics, and each alert is documented."""

from tests.deploy.monitoring import (
    alert_names,
    dashboard,
    exposed,
    graphs,
    used_by_alerts,
    used_by_dashboard,
)
from tests.deploy.rendering import CHART

OPERATIONS = (CHART.parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_metric_of_an_alert_is_exposed_and_documented() -> None:
    metrics = used_by_alerts()
    assert len(metrics) == 10
    assert metrics <= exposed()
    families = {name.removesuffix("_bucket") for name in metrics}
    assert {name for name in families if name not in OPERATIONS} == set()


def test_every_metric_of_the_dashboard_is_exposed() -> None:
    metrics = used_by_dashboard()
    assert len(metrics) > 20
    assert metrics <= exposed()


def test_a_misspelt_metric_is_detected() -> None:
    assert "bayplan_reuse_mismatch_total" in exposed()
    assert "bayplan_reuse_mismatches_total" not in exposed()


def test_every_alert_has_its_place_in_the_objectives() -> None:
    names = alert_names()
    assert len(names) == len(set(names)) == 10
    assert {name for name in names if f"`{name}`" not in OPERATIONS} == set()


def test_graphs_have_titles_units_and_separate_places() -> None:
    titles = [panel["title"] for panel in graphs()]
    assert len(titles) == len(set(titles)) > 12
    assert all(panel["fieldConfig"]["defaults"]["unit"] for panel in graphs())
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in dashboard()["panels"]]
    assert len(places) == len(set(places))
    identifiers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(identifiers) == len(set(identifiers))


def test_graphs_select_one_release_by_namespace_and_job() -> None:
    for panel in graphs():
        for target in panel["targets"]:
            selectors = target["expr"].count("{")
            assert selectors > 0
            assert target["expr"].count('{namespace="$namespace",job=~"$job"') == selectors
