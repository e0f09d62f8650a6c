"""Shadow: follows the events of a cluster, and compares each decision as its binding arrives.

A decision is compared on the state just before its binding arrived in the watch of pods: all
earlier events are applied, later ones are not. A decision that disagrees is compared once more, on
the states that a reordering of the bindings in flight allows; see `judgement`. This waits until the
pods that come earlier in the scheduler's queue, or arrived earlier, have their nodes: the decision
was made on a state with their bindings, which may arrive many seconds later.

The shadow reads no clock and does no I/O: the caller passes events with their times.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Final, cast, final

from bayplan.api.objects import POD, Pod
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.following import apply_event
from bayplan.ports import EventType, WatchEvent
from bayplan.shadow import judgement
from bayplan.shadow.report import (
    Decision,
    DecisionCounts,
    Disagreement,
    LongerWait,
    PluginCount,
    Policy,
    PolicyDecision,
    Relist,
    ShadowReport,
    Stream,
    WaitingCounts,
)

#: A decision that disagrees is compared again after so long at the earliest, because other changes
#: may arrive late, too.
REVIEW_SECONDS_MIN: Final = 1.0
#: A pod waits longer than in the shadow if the shadow would have placed it so much earlier.
LONGER_FROM_SECONDS: Final = 5.0
#: Attempts at waiting pods per call of `check_waiting`.
ATTEMPTS_MAX: Final = 16


@final
@dataclass(frozen=True, slots=True)
class ShadowOptions:
    """Bounds of the report."""

    disagreements_max: int = 100
    longer_waits_max: int = 20
    policy_decisions_max: int = 20
    relists_max: int = 20


@final
@dataclass(slots=True)
class _WaitingPod:
    """A pod that waits for the scheduler."""

    uid: str
    since_seconds: float
    #: See `NodeArrival`.
    queue_place: tuple[int, int]
    #: Since when the shadow would place it, and where first.
    fits_since_seconds: float | None = None
    first_node: str = ""


@final
@dataclass(frozen=True, slots=True)
class _PendingReview:
    """A decision that disagrees, until the bindings in flight with it have arrived."""

    binding: judgement.NodeArrival
    verdict: judgement.Verdict
    #: How many bindings arrived before it.
    number: int
    #: The keys of pods that come earlier in the queue or arrived earlier. Those at the end that
    #: have a node by now are taken away.
    ahead: list[str]


@final
@dataclass(slots=True)
class _PolicyCounts:
    """How a policy compares."""

    equal: int = 0
    compared: int = 0
    unplaced: int = 0
    untried: int = 0
    decisions: list[PolicyDecision] = field(default_factory=list[PolicyDecision])


@final
class Shadow:
    """Compares the decisions of the schedulers that the model's profiles stand for."""

    def __init__(
        self,
        model: ClusterModel,
        *,
        policy: ClusterModel | None = None,
        policy_source: str = "",
        options: ShadowOptions | None = None,
        at_seconds: float = 0.0,
        on_decision: Callable[[Decision], None] = lambda decision: None,
    ) -> None:
        """``policy``: a second model of the same objects; ``at_seconds``: the time of the start,
        on the clock of the events. ``on_decision`` gets each decision when it is judged for good:
        one that disagrees, up to `SECONDS_MAX` later."""
        self._model = model
        self._policy = policy
        self._policy_source = policy_source
        self._on_decision = on_decision
        self._options = options or ShadowOptions()
        self._start_seconds = at_seconds
        self._now_seconds = at_seconds
        self._models = (model,) if policy is None else (model, policy)
        self._arrival_count = 0
        #: By "namespace/name", in the order of arrival.
        self._waiting: dict[str, _WaitingPod] = {}
        #: Waiting pods in the order in which they are tried next.
        self._turns: deque[str] = deque()
        #: The last bindings, and the number of all.
        self._bindings: deque[judgement.NodeArrival] = deque(maxlen=2 * judgement.BINDINGS_MAX + 1)
        self._binding_count = 0
        self._reviews: deque[_PendingReview] = deque()
        self._results: Counter[str] = Counter()
        self._reordered_count = 0
        self._unordered_count = 0
        self._first_seen_bound_count = 0
        self._best_counts: list[int] = []
        self._wait_seconds: list[float] = []
        self._disagreements: list[Disagreement] = []
        self._omitted_count = 0
        self._plugins: dict[str, Counter[str]] = {}
        #: The longest, and the number of all.
        self._longer: list[LongerWait] = []
        self._longer_count = 0
        self._policy_counts = _PolicyCounts()
        self._events: Counter[str] = Counter()
        #: The first, and the number of all.
        self._relists: list[Relist] = []
        self._relist_count = 0
        self._missed_count = 0
        for pod in model.pending():
            self._begin_to_wait(pod.key, pod.uid, pod.spec.priority)

    # ---- looking in -------------------------------------------------------------------------

    @property
    def results(self) -> Mapping[str, int]:
        """Result → decisions so far."""
        return MappingProxyType(self._results)

    @property
    def best_when_reordered_count(self) -> int:
        return self._reordered_count

    @property
    def plugins(self) -> Mapping[str, Mapping[str, int]]:
        """Plugin → "rejected", "favours", "points": disagreements that no reordering explains."""
        return MappingProxyType(self._plugins)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def events(self) -> Mapping[str, int]:
        """Kind → events so far."""
        return MappingProxyType(self._events)

    @property
    def missed_event_count(self) -> int:
        """A lower bound of the number of events that were missed."""
        return self._missed_count

    # ---- events -----------------------------------------------------------------------------

    def observe(self, event: WatchEvent, at_seconds: float, *, is_listed: bool = False) -> None:
        """Take the next event. ``is_listed``: a relist brought it."""
        self._now_seconds = at_seconds
        self._events[event.kind] += 1
        self._review_due()
        if event.kind != POD:
            self._apply(event)
            return
        meta = event.object.metadata
        key = f"{meta.namespace or ''}/{meta.name}"
        if event.type is EventType.DELETED:
            self._waiting.pop(key, None)
            self._apply(event)
            return
        pod, before = cast(Pod, event.object), self._model.pod(key)
        if not self._model.scheduler.is_responsible_for(pod.spec.scheduler_name):
            self._apply(event)
        elif not pod.spec.node_name:
            self._apply(event)
            if key not in self._waiting:
                self._begin_to_wait(key, meta.uid or "", pod.spec.priority)
        elif before is None or before.metadata.uid != meta.uid:
            self._first_seen_bound_count += 1
            self._apply(event)
        elif not before.spec.node_name:
            self._bound(event, key, pod, before, is_listed=is_listed)
        else:
            self._apply(event)

    def relisted(self, kind: str, change_count: int, at_seconds: float) -> None:
        """A kind was listed again, and ``change_count`` objects differ from what was known."""
        self._missed_count += change_count
        self._relist_count += 1
        if len(self._relists) < self._options.relists_max:
            at = round(at_seconds - self._start_seconds, 3)
            self._relists.append(Relist(kind=kind, at_seconds=at, changes=change_count))

    def _begin_to_wait(self, key: str, uid: str, priority: int | None) -> None:
        place = (-(priority or 0), self._arrival_count)
        self._waiting[key] = _WaitingPod(uid, self._now_seconds, place)
        self._arrival_count += 1
        self._turns.append(key)

    def _apply(self, event: WatchEvent) -> None:
        for model in self._models:
            apply_event(model, event)

    # ---- decisions --------------------------------------------------------------------------

    def _bound(
        self, event: WatchEvent, key: str, pod: Pod, before: Pod, *, is_listed: bool
    ) -> None:
        """A pod that waited has a node."""
        node = pod.spec.node_name or ""
        verdict: judgement.Verdict | None = None
        if is_listed:
            self._unordered_count += 1
        else:
            verdict = self._judged(self._model, key, node)
            self._count(verdict)
            if verdict.result in ("best", "untried"):
                at = self._since_start()
                self._on_decision(
                    Decision(pod=key, at_seconds=at, node=node, result=verdict.result)
                )
            if self._policy is not None:
                self._count_policy(key, self._judged(self._policy, key, node))
        self._apply(event)
        waiting = self._waiting.pop(key, None)
        assert waiting is not None, f"{key} waited unseen"
        self._end_wait(key, waiting, node)
        if verdict is not None:
            arrival = judgement.NodeArrival(
                before,
                node,
                self._now_seconds,
                waiting.queue_place,
                since_seconds=waiting.since_seconds,
            )
            self._arrived(arrival, verdict)

    def _arrived(self, binding: judgement.NodeArrival, verdict: judgement.Verdict) -> None:
        """Take a binding for the reviews of the decisions around it, and begin its own."""
        if verdict.result in ("lower", "rejected"):
            ahead, number = self._ahead_of(binding), self._binding_count
            self._reviews.append(_PendingReview(binding, verdict, number, ahead))
        self._bindings.append(binding)
        self._binding_count += 1
        self._review_due()

    def _ahead_of(self, binding: judgement.NodeArrival) -> list[str]:
        """The keys of pods that come earlier in the queue, or that arrived earlier, and whose
        bindings may be in flight. A pod that has waited for longer has no node that fits, most
        likely."""
        horizon, place = self._now_seconds - judgement.SECONDS_MAX, binding.queue_place
        return [
            key
            for key, waiting in self._waiting.items()
            if (waiting.queue_place < place or waiting.queue_place[1] < place[1])
            and waiting.since_seconds >= horizon
        ]

    def _judged(self, model: ClusterModel, key: str, node: str) -> judgement.Verdict:
        try:
            return judgement.judge(model, key, node)
        except KeyError:
            return judgement.Verdict(
                "untried", node, message="the pod does not wait for this scheduler"
            )

    def _count(self, verdict: judgement.Verdict) -> None:
        self._results[verdict.result] += 1
        if verdict.result != "untried":
            self._best_counts.append(verdict.best_count)

    def _count_policy(self, key: str, verdict: judgement.Verdict) -> None:
        counts = self._policy_counts
        if verdict.result == "untried":
            counts.untried += 1
            return
        counts.compared += 1
        counts.equal += verdict.agrees
        counts.unplaced += not verdict.own_node
        if not verdict.agrees and len(counts.decisions) < self._options.policy_decisions_max:
            counts.decisions.append(
                PolicyDecision(
                    pod=key,
                    at_seconds=self._since_start(),
                    node=verdict.node,
                    policy_node=verdict.own_node,
                    message=verdict.message,
                )
            )

    def _review_due(self) -> None:
        while self._reviews and self._is_due(self._reviews[0]):
            self._finish_review(self._reviews.popleft())

    def _is_due(self, review: _PendingReview) -> bool:
        """Whether no further binding counts as in flight with the decision."""
        passed_seconds = self._now_seconds - review.binding.at_seconds
        after_count = self._binding_count - review.number - 1
        if passed_seconds > judgement.SECONDS_MAX or after_count >= judgement.BINDINGS_MAX:
            return True
        while review.ahead and review.ahead[-1] not in self._waiting:
            review.ahead.pop()
        return passed_seconds > REVIEW_SECONDS_MIN and not review.ahead

    def _with_bindings(self, pending: _PendingReview) -> judgement.Review:
        """The decision with the bindings in flight with it."""
        bindings = list(self._bindings)
        place = pending.number - (self._binding_count - len(bindings))
        horizon = pending.binding.at_seconds - judgement.SECONDS_MAX
        before = bindings[max(place - judgement.BINDINGS_MAX, 0) : place]
        return judgement.Review(
            pending.binding,
            pending.verdict,
            [each for each in before if each.at_seconds >= horizon],
            bindings[place + 1 :],
        )

    def _finish_review(self, pending: _PendingReview) -> None:
        review = self._with_bindings(pending)
        verdict, binding = review.verdict, review.binding
        is_best = judgement.agrees_when_reordered(self._model, review)
        self._reordered_count += is_best
        if not is_best:
            self._count_plugins(verdict)
        disagreement = Disagreement(
            pod=binding.key,
            at_seconds=round(binding.at_seconds - self._start_seconds, 3),
            result="lower" if verdict.result == "lower" else "rejected",
            node=verdict.node,
            shadow_node=verdict.own_node,
            best_nodes=verdict.best_count,
            feasible_nodes=verdict.feasible_count,
            points=verdict.points,
            plugin_points=dict(verdict.plugin_points),
            plugin=verdict.plugin,
            message=verdict.message,
            best_when_reordered=is_best,
        )
        self._on_decision(
            Decision(
                pod=disagreement.pod,
                at_seconds=disagreement.at_seconds,
                node=disagreement.node,
                result=disagreement.result,
                disagreement=disagreement,
            )
        )
        if len(self._disagreements) < self._options.disagreements_max:
            self._disagreements.append(disagreement)
        else:
            self._omitted_count += 1

    def _count_plugins(self, verdict: judgement.Verdict) -> None:
        if verdict.result == "rejected":
            self._plugins.setdefault(verdict.plugin, Counter())["rejected"] += 1
        for plugin, points in verdict.plugin_points.items():
            if points > 0:
                counts = self._plugins.setdefault(plugin, Counter())
                counts["favours"] += 1
                counts["points"] += points

    # ---- waiting pods -----------------------------------------------------------------------

    def check_waiting(self, at_seconds: float) -> None:
        """Try some of the pods that wait; call this once a second."""
        self._now_seconds = at_seconds
        self._review_due()
        for _ in range(min(ATTEMPTS_MAX, len(self._turns))):
            key = self._turns.popleft()
            waiting = self._waiting.get(key)
            if waiting is None:
                continue
            self._turns.append(key)
            try:
                attempt = self._model.attempt(key)
            except KeyError:
                continue
            if not attempt.fits:
                waiting.fits_since_seconds = None
            elif waiting.fits_since_seconds is None:
                waiting.fits_since_seconds = at_seconds
                waiting.first_node = attempt.node

    def _end_wait(self, key: str, waiting: _WaitingPod, node: str) -> None:
        """A pod got a node, or (``node`` "") the shadow ends."""
        waited = self._now_seconds - waiting.since_seconds
        if node:
            self._wait_seconds.append(waited)
        if waiting.fits_since_seconds is None:
            return
        fitted = self._now_seconds - waiting.fits_since_seconds
        if fitted < LONGER_FROM_SECONDS:
            return
        self._longer_count += 1
        self._longer.append(
            LongerWait(
                pod=key,
                waited_seconds=round(waited, 3),
                fitted_seconds=round(fitted, 3),
                shadow_node=waiting.first_node,
                node=node,
            )
        )
        self._longer.sort(key=lambda one: (-one.fitted_seconds, one.pod))
        del self._longer[self._options.longer_waits_max :]

    # ---- report -----------------------------------------------------------------------------

    def finish(self, at_seconds: float) -> None:
        """End: no further event comes."""
        self._now_seconds = at_seconds
        while self._reviews:
            self._finish_review(self._reviews.popleft())
        for key, waiting in self._waiting.items():
            self._end_wait(key, waiting, "")

    def report(
        self,
        started_at: str,
        *,
        failures: Mapping[str, int] = MappingProxyType({}),
        remarks: tuple[str, ...] = (),
    ) -> ShadowReport:
        """The report of what was seen so far. ``started_at``: in RFC 3339."""
        source = self._model.source
        return ShadowReport(
            source=source.source,
            schedulers=self._model.scheduler.profile_names,
            started_at=started_at,
            seconds=self._since_start(),
            nodes=self._model.scheduler.cache.table.node_count,
            decisions=self._decisions(),
            disagreements=tuple(self._disagreements),
            disagreements_omitted=self._omitted_count,
            plugins=self._plugin_counts(),
            waiting=self._waiting_report(),
            policy=self._policy_report(),
            stream=Stream(
                events=dict(sorted(self._events.items())),
                missed_events=self._missed_count,
                relists=tuple(self._relists),
                relists_omitted=self._relist_count - len(self._relists),
                failures=dict(sorted(failures.items())),
                unreadable=dict(source.unreadable),
            ),
            remarks=(*source.notes, *self._model.left_out_plugins, *remarks),
        )

    def _decisions(self) -> DecisionCounts:
        results, reordered = self._results, self._reordered_count
        best = results["best"]
        compared = best + results["lower"] + results["rejected"]
        return DecisionCounts(
            compared=compared,
            best=best,
            lower=results["lower"],
            rejected=results["rejected"],
            best_when_reordered=reordered,
            share_best=_share(best, compared),
            share_best_when_reordered=_share(best + reordered, compared),
            untried=results["untried"],
            unordered=self._unordered_count,
            first_seen_bound=self._first_seen_bound_count,
            median_best_nodes=median(self._best_counts) if self._best_counts else None,
        )

    def _plugin_counts(self) -> tuple[PluginCount, ...]:
        counts = (
            PluginCount(
                plugin=plugin,
                rejected=each["rejected"],
                favours_shadow=each["favours"],
                points=each["points"],
            )
            for plugin, each in self._plugins.items()
        )
        return tuple(
            sorted(counts, key=lambda one: (-one.rejected - one.favours_shadow, one.plugin))
        )

    def _waiting_report(self) -> WaitingCounts:
        waits = self._wait_seconds
        return WaitingCounts(
            pending=len(self._waiting),
            median_seconds=round(median(waits), 3) if waits else None,
            longer_from_seconds=LONGER_FROM_SECONDS,
            longer=self._longer_count,
            pods=tuple(self._longer),
            omitted=self._longer_count - len(self._longer),
        )

    def _policy_report(self) -> Policy | None:
        if self._policy is None:
            return None
        counts = self._policy_counts
        return Policy(
            source=self._policy_source,
            compared=counts.compared,
            equal=counts.equal,
            share_equal=_share(counts.equal, counts.compared),
            unplaced=counts.unplaced,
            untried=counts.untried,
            decisions=tuple(counts.decisions),
            omitted=counts.compared - counts.equal - len(counts.decisions),
        )

    def _since_start(self) -> float:
        return round(self._now_seconds - self._start_seconds, 3)


def _share(count: int, total: int) -> float | None:
    return count / total if total else None
