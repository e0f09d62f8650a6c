"""leader_election_master_status: 1 for who leads, as all Kubernetes components have it."""

from collections.abc import Callable, Iterable
from typing import final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bayplan.metrics import described


@final
class LeaderGauge(Collector):
    """Asked when it is looked at. Upstream: component-base/metrics/prometheus/clientgo."""

    def __init__(self, lease_name: str, leads: Callable[[], bool]) -> None:
        self._lease_name = lease_name
        self._leads = leads

    def collect(self) -> Iterable[GaugeMetricFamily]:
        text = "Whether this replica leads (1) or stands by (0)."
        name = "leader_election_master_status"
        family = GaugeMetricFamily(name, described(name, text), labels=["name"])
        family.add_metric([self._lease_name], float(self._leads()))
        yield family
