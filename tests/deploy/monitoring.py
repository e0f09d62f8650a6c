"""The metrics that the chart's alerts and dashboard use, and those that Bayplan exposes."""

import asyncio
import json
import re
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric

from bayplan.adapters.live.cluster import open_cluster
from bayplan.config.feature_gates import default_gates
from bayplan.config.metric_table import metric_standard
from bayplan.serving.component_metrics import register_build_info, register_cluster
from bayplan.serving.election.election import LeaderGauge
from bayplan.serving.shown_metrics import ShownMetrics
from tests.adapters.live.clients import talking_to
from tests.deploy.rendering import CHART
from tests.engine.kit import Engine
from tests.kit.api_server import refuse

ALERTS = CHART / "templates" / "prometheusrule.yaml"
DASHBOARD = CHART / "files" / "dashboard.json"

_METRIC = re.compile(r"\b(?:bayplan|leader|process|rest_client|scheduler|workqueue)_[a-z_]+")
_SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "summary": ("_count", "_sum"),
}


def used_by_alerts() -> set[str]:
    expressions = re.findall(
        r"expr:(.*?)\n      (?:for|labels):", ALERTS.read_text(encoding="utf-8"), re.DOTALL
    )
    return {name for text in expressions for name in _METRIC.findall(text)}


def alert_names() -> list[str]:
    return re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def used_by_dashboard() -> set[str]:
    texts = [variable["query"] for variable in dashboard()["templating"]["list"]]
    texts += [target["expr"] for panel in graphs() for target in panel["targets"]]
    return {name for text in texts for name in _METRIC.findall(text)}


def graphs() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def exposed() -> set[str]:
    """Names of samples of `bayplan run`."""
    return {
        family.name + suffix
        for family in families()
        for suffix in _SUFFIXES.get(family.type, ("",))
    }


def families() -> list[Metric]:
    """The metrics of `bayplan run`, registered as the server registers them."""
    registry = Engine().scheduler.metrics.registry
    ProcessCollector(registry=registry)
    register_build_info(registry)
    registry.register(LeaderGauge("bayplan", lambda: True))
    asyncio.run(_register_connection(registry))
    return [*ShownMetrics(registry, metric_standard(default_gates())).collect()]


async def _register_connection(registry: CollectorRegistry) -> None:
    async with talking_to(refuse) as client, open_cluster(client) as cluster:
        register_cluster(registry, cluster)
        client.metrics.register(registry)
