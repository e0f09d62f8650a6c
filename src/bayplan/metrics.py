"""The scheduler's metrics, under upstream's names, labels and buckets.

Each scheduler has its own metrics, so several schedulers can run in one process. Values are plain
numbers; they become metric families when a scrape reads them. Only then prometheus_client is
imported: with the web server inside, it takes as long to import as numpy. Stability levels, and
what older versions lack, are added where metrics are exposed (serving/shown_metrics.py).
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar, final

from bayplan.lazy_loader import load

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector
else:
    # A registry takes any object with the method `collect`.
    Collector = object

#: The families of a counter and of a gauge, as places of the lazy loader.
COUNTER = "prometheus_client.core:CounterMetricFamily"
GAUGE = "prometheus_client.core:GaugeMetricFamily"

#: From this number on, all numbers of attempts share one label value.
_ATTEMPTS_LABEL_MAX = 15


C = TypeVar("C", bound=Collector)


def _exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**power for power in range(count)]


@final
class Buckets:
    """The observations of one set of labels."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: list[float]) -> None:
        self.bounds = bounds
        #: The last count is for observations above all bounds.
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def __call__(self, amount: float, count: int = 1) -> None:
        """Observe an amount, so many times."""
        if amount:
            self.counts[bisect_left(self.bounds, amount)] += count
            self.total += amount * count
        else:
            self.counts[0] += count


@final
class Histogram(Collector):
    """A histogram that is cheap to observe: every attempt observes many histograms.

    Labels are any values; the exposed label is their text.
    """

    def __init__(self, name: str, text: str, bounds: list[float], labels: tuple[str, ...]) -> None:
        self._name = name
        self._text = text
        self._bounds = bounds
        self._labels = labels
        self._children: dict[tuple[Hashable, ...], Buckets] = {}

    def of(self, *labels: Hashable) -> Buckets:
        """What observes for these labels. Frequent callers store it."""
        buckets = self._children.get(labels)
        if buckets is None:
            assert len(labels) == len(self._labels), f"{self._name} has labels {self._labels}"
            buckets = self._children[labels] = Buckets(self._bounds)
        return buckets

    def observe(self, amount: float, *labels: Hashable, count: int = 1) -> None:
        buckets = self._children[labels] if labels in self._children else self.of(*labels)
        # As `Buckets.__call__`: each attempt observes several histograms.
        if amount:
            buckets.counts[bisect_left(buckets.bounds, amount)] += count
            buckets.total += amount * count
        else:
            buckets.counts[0] += count

    def collect(self) -> "Iterable[HistogramMetricFamily]":
        make_family = load("prometheus_client.core:HistogramMetricFamily")
        family = make_family(self._name, self._text, labels=self._labels)
        as_text = load("prometheus_client.utils:floatToGoString")
        bounds = [*map(as_text, self._bounds), "+Inf"]
        for labels, child in list(self._children.items()):
            buckets = list(zip(bounds, accumulate(child.counts), strict=True))
            family.add_metric([*map(str, labels)], buckets, child.total)
        yield family


@final
class Tally(Collector):
    """A counter that is cheap to increase. Labels are any values, exposed as their text.

    ``family``: COUNTER or GAUGE.
    """

    def __init__(self, family: str, name: str, text: str, labels: tuple[str, ...]) -> None:
        self._family = family
        self._name = name
        self._text = text
        self._labels = labels
        self._counts: dict[tuple[Hashable, ...], int] = {}
        if not labels:
            self._counts[()] = 0

    def add(self, *labels: Hashable, count: int = 1) -> None:
        try:
            self._counts[labels] += count
        except KeyError:
            assert len(labels) == len(self._labels), f"{self._name} has labels {self._labels}"
            self._counts[labels] = count

    def counts(self) -> dict[tuple[Hashable, ...], int]:
        """Labels → count, of all labels that were counted."""
        return dict(self._counts)

    def collect(self) -> "Iterable[Metric]":
        family = load(self._family)(self._name, self._text, labels=self._labels)
        for labels, count in list(self._counts.items()):
            family.add_metric([*map(str, labels)], count)
        yield family


#: (labels, value) of each sample.
Read = Callable[[], Iterable[tuple[tuple[str, ...], float]]]


@final
class ScrapedFamily(Collector):
    """A family whose samples are counted elsewhere, and read at each scrape.

    ``family``: COUNTER or GAUGE.
    """

    def __init__(
        self, family: str, name: str, text: str, labels: tuple[str, ...], *, read: Read
    ) -> None:
        self._family = family
        self._name = name
        self._text = text
        self._labels = labels
        self._read = read

    def collect(self) -> "Iterable[Metric]":
        family = load(self._family)(self._name, self._text, labels=self._labels)
        for labels, value in self._read():
            family.add_metric(labels, value)
        yield family


@final
class Gauge(Collector):
    """A gauge with one label. A value is read at each scrape, or counted here."""

    def __init__(self, name: str, text: str, label: str) -> None:
        self._name = name
        self._text = text
        self._labels = (label,)
        self._reads: dict[str, Callable[[], float]] = {}
        self._counts: dict[str, int] = {}

    def show(self, value: str, read: Callable[[], float]) -> None:
        """Show what ``read`` returns at this value of the label."""
        self._reads[value] = read

    def add(self, value: str, count: int) -> None:
        """Count at this value of the label, from 0."""
        self._counts[value] = self._counts.get(value, 0) + count
        if value not in self._reads:
            self._reads[value] = partial(self._counts.__getitem__, value)

    def collect(self) -> "Iterable[Metric]":
        family = load(GAUGE)(self._name, self._text, labels=self._labels)
        for value, read in list(self._reads.items()):
            family.add_metric((value,), read())
        yield family


# ---- declarations --------------------------------------------------------------------------


@final
class Declaration(Generic[C]):
    """The declaration of a metric; every `SchedulerMetrics` makes its own."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, metrics: "SchedulerMetrics", owner: type) -> C:
        """Make the metric. Called once per `SchedulerMetrics`, because the metric then replaces
        this descriptor as an attribute."""
        made = metrics.__dict__[self._name] = self._make()
        return made


def _counter(name: str, labels: str, text: str) -> Declaration[Tally]:
    return Declaration(lambda: Tally(COUNTER, name, text, tuple(labels.split())))


def _level(name: str, labels: str, text: str) -> Declaration[Tally]:
    """A gauge that increases and decreases."""
    return Declaration(lambda: Tally(GAUGE, name, text, tuple(labels.split())))


def _gauge(name: str, label: str, text: str) -> Declaration[Gauge]:
    return Declaration(lambda: Gauge(name, text, label))


def _histogram(
    name: str, labels: str, exponential: tuple[float, float, int], text: str
) -> Declaration[Histogram]:
    """``exponential``: the first bound, the factor between bounds, the number of bounds."""
    bounds = _exponential(*exponential)
    return Declaration(lambda: Histogram(name, text, bounds, tuple(labels.split())))


#: Buckets that several of upstream's metrics share.
_MS_TO_16_S = (0.001, 2, 15)
_10_US_TO_20_MS = (0.00001, 2, 12)
_10_US_TO_22_MS = (0.00001, 1.5, 20)


@final
class SchedulerMetrics:
    """The metrics of kube-scheduler for the parts that Bayplan has, and metrics of Bayplan.

    A metric is made when it is first used. Each line: name without a counter's ``_total``, labels,
    buckets, text.
    """

    def __init__(self) -> None:
        self._readings: list[ScrapedFamily] = []

    @cached_property
    def registry(self) -> "CollectorRegistry":
        """All metrics, for a scrape."""
        registry = load("prometheus_client:CollectorRegistry")()
        declared = vars(SchedulerMetrics).items()
        names = [name for name, each in declared if isinstance(each, Declaration)]
        for each in (*(getattr(self, name) for name in names), *self._readings):
            registry.register(each)
        return registry

    # ---- attempts -------------------------------------------------------------------------

    schedule_attempts = _counter(
        "scheduler_schedule_attempts",
        "result profile",
        "Attempts to schedule pods, by result.",
    )
    attempt_duration = _histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "result profile",
        _MS_TO_16_S,
        "Scheduling attempt latency: algorithm and binding.",
    )
    algorithm_duration = _histogram(
        "scheduler_scheduling_algorithm_duration_seconds",
        "",
        _MS_TO_16_S,
        "Scheduling algorithm latency: from the pop to a node, or to none.",
    )
    pod_scheduling_attempts = _histogram(
        "scheduler_pod_scheduling_attempts", "", (1, 2, 5), "Attempts until a pod was scheduled."
    )
    pod_scheduling_sli_duration = _histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "attempts",
        (0.01, 2, 20),
        "From first entering the queue to being bound.",
    )
    pod_scheduled_after_flush = _counter(
        "scheduler_pod_scheduled_after_flush",
        "",
        "Pods bound after they had waited in vain for an event and were tried again anyway.",
    )
    node_hint_duration = _histogram(
        "scheduler_get_node_hint_duration_seconds",
        "hinted profile",
        _10_US_TO_20_MS,
        "How long a look at the cached results took, by whether it gave the node.",
    )
    permit_wait_duration = _histogram(
        "scheduler_permit_wait_duration_seconds",
        "result",
        _MS_TO_16_S,
        "How long pods waited at Permit.",
    )
    goroutines = _gauge(
        "scheduler_goroutines",
        "operation",
        "Work under way besides the main loop, by operation.",
    )

    # ---- groups ---------------------------------------------------------------------------

    group_attempts = _counter(
        "scheduler_podgroup_schedule_attempts",
        "result profile",
        "Attempts to schedule groups of pods, by result.",
    )
    group_attempt_duration = _histogram(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        "result profile",
        _MS_TO_16_S,
        "Latency of attempts at groups of pods.",
    )
    group_algorithm_duration = _histogram(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "",
        _MS_TO_16_S,
        "How long it took to find nodes for a group of pods, or that there are none.",
    )
    generated_placements = _counter(
        "scheduler_generated_placements",
        "profile",
        "Domains that came into question for groups of pods.",
    )
    placement_evaluations = _counter(
        "scheduler_placement_evaluations",
        "result profile",
        "Domains that groups of pods were tried in, by whether they fitted.",
    )
    placement_evaluation_duration = _histogram(
        "scheduler_placement_evaluation_duration_seconds",
        "result profile",
        _MS_TO_16_S,
        "How long one domain took.",
    )
    group_members_retried = _counter(
        "bayplan_group_members_retried",
        "",
        "Members of groups whose binding failed while their group runs, tried again at once.",
    )

    # ---- queue and cache ------------------------------------------------------------------

    pending_pods = _gauge("scheduler_pending_pods", "queue", "Pending pods, by queue.")
    unschedulable_pods = _level(
        "scheduler_unschedulable_pods", "plugin profile", "Unschedulable pods, by plugin."
    )
    event_handling_duration = _histogram(
        "scheduler_event_handling_duration_seconds",
        "event",
        (0.0001, 2, 12),
        "How long the handling of an event of the API server took.",
    )
    hint_duration = _histogram(
        "scheduler_queueing_hint_execution_duration_seconds",
        "plugin event hint",
        _10_US_TO_22_MS,
        "How long a plugin took to say whether an event may help.",
    )
    hint_failures = _counter(
        "bayplan_queueing_hint_failures",
        "plugin",
        "Queueing hints that raised and counted as Queue.",
    )
    cache_size = _gauge("scheduler_cache_size", "type", "Nodes, pods and assumed pods known.")

    # ---- plugins and extenders ------------------------------------------------------------

    extension_point_duration = _histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "extension_point status profile",
        (0.0001, 2, 12),
        "Duration of all plugins of one extension point.",
    )
    plugin_execution_duration = _histogram(
        "scheduler_plugin_execution_duration_seconds",
        "plugin extension_point status",
        _10_US_TO_22_MS,
        "Duration of one plugin at one extension point, in a sample of attempts.",
    )
    plugin_failures = _counter(
        "bayplan_plugin_failures", "plugin", "Times a plugin raised, or answered what it may not."
    )
    plugin_blocking = _counter(
        "bayplan_plugin_blocking_seconds",
        "plugin extension_point",
        "Seconds that calls of a plugin held the scheduler, of calls that took over 5 s.",
    )
    extender_duration = _histogram(
        "bayplan_extender_duration_seconds",
        "extender verb result",
        _MS_TO_16_S,
        "How long extenders took to answer, or not to.",
    )

    # ---- preemption -----------------------------------------------------------------------

    preemption_attempts = _counter(
        "scheduler_preemption_attempts",
        "",
        "Attempts to make room for a pod by evicting others.",
    )
    preemption_victims = _histogram(
        "scheduler_preemption_victims", "", (1, 2, 7), "Pods chosen to be evicted for one pod."
    )
    workload_preemption_attempts = _counter(
        "scheduler_workload_preemption_attempts",
        "result",
        "Times that room was made for a group of pods.",
    )
    workload_preemption_victims = _histogram(
        "scheduler_workload_preemption_victims",
        "",
        (1, 2, 11),
        "Pods chosen to be evicted for one group.",
    )
    preemption_workload_disruptions = _histogram(
        "scheduler_preemption_workload_disruptions",
        "preemptor",
        (1, 2, 11),
        "Groups, and single members of others, that lost pods to one group.",
    )
    preemption_pdb_violations = _counter(
        "scheduler_preemption_pdb_violations",
        "preemptor",
        "Victims that a disruption budget would have kept.",
    )
    preemption_evaluation_duration = _histogram(
        "scheduler_preemption_evaluation_duration_seconds",
        "preemptor result",
        (0.001, 2, 16),
        "How long it took to find victims.",
    )
    preemption_execution_duration = _histogram(
        "scheduler_preemption_execution_duration_seconds",
        "preemptor result",
        (0.001, 2, 16),
        "How long it took to tell victims to go.",
    )
    preemption_goroutines_duration = _histogram(
        "scheduler_preemption_goroutines_duration_seconds",
        "result",
        (0.01, 2, 20),
        "The same, under its older name.",
    )
    preemption_goroutines_execution = _counter(
        "scheduler_preemption_goroutines_execution",
        "result",
        "Evictions for one pod that have ended, by result.",
    )

    # ---- failures -------------------------------------------------------------------------

    pods_rejected_by_kubelet = _counter(
        "bayplan_pods_rejected_by_kubelet",
        "reason",
        "Pods that failed on their node because the kubelet did not admit them, by its reason.",
    )
    bugs = _counter(
        "bayplan_bugs",
        "",
        "Failures of the scheduler itself: what failed was given up, or tried again.",
    )

    # ---- counted elsewhere ----------------------------------------------------------------

    def show_counter(self, name: str, text: str, labels: tuple[str, ...], read: Read) -> None:
        self._show(ScrapedFamily(COUNTER, name, text, labels, read=read))

    def show_gauge(self, name: str, text: str, labels: tuple[str, ...], read: Read) -> None:
        self._show(ScrapedFamily(GAUGE, name, text, labels, read=read))

    def _show(self, reading: ScrapedFamily) -> None:
        self._readings.append(reading)
        if "registry" in self.__dict__:
            self.registry.register(reading)

    # ---- recording ------------------------------------------------------------------------

    def attempt(self, result: str, profile: str, seconds: float, count: int = 1) -> None:
        """So many attempts ended, each of which took so long: scheduled, unschedulable, error."""
        self.schedule_attempts.add(result, profile, count=count)
        self.attempt_duration.observe(seconds, result, profile, count=count)

    def group_attempt(self, result: str, profile: str, seconds: float) -> None:
        """An attempt at a group ended: scheduled, unschedulable, waiting_on_preemption, error."""
        self.group_attempts.add(result, profile)
        self.group_attempt_duration.observe(seconds, result, profile)

    def scheduled(self, attempts: int, waited_seconds: float) -> None:
        """A pod was bound after ``attempts`` attempts and ``waited_seconds``."""
        self.pod_scheduling_attempts.observe(attempts)
        label = str(attempts) if attempts < _ATTEMPTS_LABEL_MAX else f"{_ATTEMPTS_LABEL_MAX}+"
        self.pod_scheduling_sli_duration.observe(waited_seconds, label)

    @contextmanager
    def working_on(self, operation: str | None) -> Generator[None]:
        """Count an operation while it lasts; None: the operation is not counted."""
        if operation is None:
            yield
            return
        self.goroutines.add(operation, 1)
        try:
            yield
        finally:
            self.goroutines.add(operation, -1)

    def value(self, name: str, **labels: str) -> float:
        """The current value of a sample; 0 if there is none. For reports and tests."""
        return self.registry.get_sample_value(name, labels) or 0.0
