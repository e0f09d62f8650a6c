"""The metrics of a scheduler as a version of kube-scheduler exposes them.

Metrics that newer versions have are left out, as are those that a flag hides; help texts get the
version's stability levels, and labels its values. See config/metric_table.py.
"""

from collections.abc import Iterable, Iterator
from typing import final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.samples import Sample

from bayplan.config.metric_table import MetricStandard


@final
class ShownMetrics(CollectorRegistry):
    """What a scrape reads."""

    def __init__(
        self,
        registry: CollectorRegistry,
        standard: MetricStandard,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        """``hidden``: full names of metrics that are not exposed."""
        super().__init__()
        self._registry = registry
        self._standard = standard
        #: The name of a counter's family lacks the suffix of its samples.
        shown_as = {name.removesuffix("_total") for name in hidden}
        self._left_out = standard.absent | hidden | shown_as

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            if family.name in self._left_out:
                continue
            family.documentation = self._standard.help_text(family.name, family.documentation)
            family.samples = list(self._samples(family.samples))
            yield family

    def _samples(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """The samples whose label values the version has, events by its names."""
        names = self._standard.event_names
        values = {tuple(each.split("=")) for each in self._standard.absent if "=" in each}
        renamed: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for sample in samples:
            if values and not values.isdisjoint(sample.labels.items()):
                continue
            event = sample.labels.get("event")
            if event is None or not names:
                yield sample
                continue
            labels = {**sample.labels, "event": self._event(event)}
            key = sample.name, tuple(labels.items())
            renamed[key] = renamed.get(key, 0.0) + sample.value
        for (name, items), value in renamed.items():
            yield Sample(name, dict(items), value)

    def _event(self, event: str) -> str:
        for beginning, older in self._standard.event_names.items():
            if event.startswith(beginning):
                return older + event.removeprefix(beginning)
        return event
