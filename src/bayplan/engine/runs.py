"""Runs: attempts at equal pods that come soon after one another, without a cycle for each of them.

The theory. Pods of one template agree in all that a complete ranking, or cells, answer from. A
cycle at one of them finds the framework, the cache entry, the ranking and the notes of PreFilter
and PreScore, and would find the same for the next one. A `Run` holds these values. What remains for
each pod is the choice, the assumption, the record and the effect. Two kinds of runs differ:

- Where no node is feasible, the pod takes the reasons of the pod before. What is its own follows as
  after a cycle: PostFilter, the condition, the event, and the place in the queue. Pods that are
  popped together fail together, if no PostFilter plugin has to be called for each of them.
- Where PreFilter leaves one node, the run has that node in place of a ranking (`PinnedNode`).

Why it stays true. Whatever could change an answer between two pods is compared before each choice:
the template and the owners of the pod, its nominations and all others, reservations, the objects
that the notes depend on, the cache entry and its ranking, and whether a check is due. The ranking
follows the one node that the pod before was placed on (`RankedNodes.follow`), or evaluates the few
rows that changed. In every other case the pod gets a cycle. A plugin that takes part in Reserve or
Permit, an extender, a sample of the nodes or a score graph rules runs out.

Pods that are popped together are placed together where a placement changes nothing but amounts and
host ports that the ranking has seen before, and the pods that cells count. Then all choices are
made first (`ranking/choices.py`), and the clock, the comparisons, the node table, the queue and the
counts are used once for all of them. A node that becomes full as another one did before leaves the
choice. The next check of the cache, and a pod that differs, end this stretch. Members of groups are
chosen for in the same way, pass by pass (`podgroups/trial.py`).

Metrics count each attempt of a run as a cycle would. What takes no time is observed as 0 seconds,
and attempts that are made together take equally long. A plugin that is not called counts no
evaluation.
"""

from collections.abc import Iterable, Sequence
from typing import final

from msgspec import Struct
from msgspec.structs import replace

from bayplan.engine.attempt_record import BEST_NODES_MAX
from bayplan.engine.cycle import NO_NODE_FITS, Cycle
from bayplan.engine.cycle_answer import CycleAnswer
from bayplan.engine.pinned_node import PinnedNode, pinned_node_of
from bayplan.engine.placements import PlacedPod, Placements
from bayplan.engine.podgroups.trial import TrialSetup
from bayplan.engine.ranking.choices import MovingCells, choices
from bayplan.engine.ranking.evaluation_plan import RankingInvalid, SingleNodeEvaluator
from bayplan.engine.ranking.node_cells import CellAnswer, NodeCells
from bayplan.engine.ranking.node_feasibility import FEASIBLE
from bayplan.engine.ranking.ranked_nodes import CHANGES_MAX, SCORED_MIN, RankedNodes
from bayplan.engine.reuse.cache import ResultCache
from bayplan.engine.reuse.entry import CachedPreState, SignatureEntry
from bayplan.engine.unplaced_pods import FailedAttempt, UnplacedPods
from bayplan.framework.calls import Calls
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.filtering import RejectionSummary
from bayplan.framework.plugin import Repetition
from bayplan.framework.runtime import STRAIGHT_TO_BIND, Framework
from bayplan.framework.scoring import Choice
from bayplan.framework.status import Code
from bayplan.framework.timing import Observe
from bayplan.framework.types import QueuedPodInfo
from bayplan.journal import AttemptRecord, NodeScore, RejectionCount
from bayplan.metrics import Buckets
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.rng import stream
from bayplan.state.pods import PodInfo, PodShape
from bayplan.state.resources import uses as used_of_node

#: A choice, the scores of the best nodes, the number of feasible nodes, and the rejections of the
#: others.
_Chosen = tuple[Choice, tuple[NodeScore, ...], tuple[int, tuple[RejectionCount, ...]]]


#: The share of attempts that record durations per plugin; upstream: pluginMetricsSamplePercent.
METRICS_SAMPLE = 0.1

#: The points of a cycle with one node, as the run has their results.
_NARROWED = (("PreFilter", Code.SUCCESS), ("Filter", Code.SUCCESS))

#: The number of templates whose runs may alternate. With more templates, a ranking is too far
#: behind when its template comes again.
_TEMPLATES_MAX = CHANGES_MAX


class Run(Struct, eq=False):
    """What the attempts at the pods of one template share. Three things may answer: the ranking
    with the notes of a cycle, the cells of the ranking, or the one node that PreFilter leaves."""

    framework: Framework
    cache: ResultCache
    entry: SignatureEntry
    #: The ranking that answers. None: the run has one node.
    ranking: RankedNodes | None
    #: The notes that a cycle would start with.
    notes: CycleState
    #: The states of attempts without durations of plugins, and with them.
    states: tuple[CycleState, CycleState]
    #: Observe how long an attempt took.
    observers: Sequence[Observe]
    #: The counts of durations of 0 seconds: of the extension points without a plugin; and of these
    #: and the observers.
    idle_counts: Sequence[list[int]]
    all_idle_counts: Sequence[list[int]]
    pre_state: CachedPreState | None = None
    cells: NodeCells | None = None
    pinned: PinnedNode | None = None
    #: Whether the notes are those of PreScore, too. If not, the run serves while no node is
    #: feasible.
    is_scored: bool = True
    #: What a pod uses of its node, if a placement changes nothing else that the next choice depends
    #: on. "": each pod needs a further look.
    uses: str = ""
    #: The last failure of a pod, and the reasons of the nodes that it holds for. None: PostFilter
    #: is called for the next one.
    failed: FailedAttempt | None = None
    failed_summary: RejectionSummary | None = None

    def goes_on(self, pod: PodInfo) -> bool:
        """Whether a cycle at the pod would answer from the same values."""
        entry, cells, cache, ranking = self.entry, self.cells, self.cache, self.ranking
        generation, signer = cache.object_generation, self.framework.signer
        if cells is not None:
            is_current = cells.fits(pod, generation.now_of_distinct_terms())
        else:
            # This does what `CachedPreState.fits` does, without a call for each pod. The template
            # is that of the run.
            notes = self.pre_state or self.pinned
            assert notes is not None, "a run has notes or cells"
            is_current = (
                entry.pre_state is self.pre_state
                # As `ObjectGeneration.now`.
                and notes.object_generation
                == generation.objects.change_count + generation.terms.change_count
                and notes.owners == pod.metadata.owner_references
            )
        if ranking is None:
            is_current = is_current and cache.may_pass(entry)
        else:
            is_current = is_current and not ranking.is_dropped and cache.repeats_left(entry) > 0
        return (
            is_current
            and entry.cells is cells
            and (signer.signs_templates or signer.sign(pod) is entry.signature)
        )


@final
class Runs:
    """The present runs of one scheduler."""

    def __init__(
        self,
        setup: TrialSetup,
        queue: SchedulingQueue,
        placements: Placements,
        unplaced: UnplacedPods,
    ) -> None:
        runner = setup.runner
        self._clock = setup.telemetry.clock
        self._cluster = setup.cluster
        self._reservations = setup.reservations
        self._exclusive_groups = setup.reservations.exclusive.groups
        self._telemetry = setup.telemetry
        self._runner = runner
        self._extenders = runner.extenders
        self._nominator = runner.nominator
        self._reuse = runner.caches
        self._seed = runner.seed
        self._placements = placements
        self._end = setup.end
        self._unplaced = unplaced
        self._queue = queue
        #: Draws a number that decides whether an attempt records durations of plugins.
        self.draw = stream(runner.seed, "plugin-metrics").random
        #: The runs by template; the template that got a run last is at the end. Only this class
        #: writes.
        self.of_shape: dict[PodShape, Run] = {}
        #: The runs of pods that differ in the node that they name, by their template without that
        #: node.
        self._of_unpinned: dict[PodShape, Run] = {}
        #: How many attempts were made without a cycle.
        self.attempt_count = 0

    def attempt(
        self,
        pods: list[QueuedPodInfo],
        place: int,
        started_seconds: float,
        *,
        is_sampled: bool,
    ) -> int:
        """Make attempts at the pod at this place of a list, and at equal pods right behind it.
        Returns how many attempts it made; 0: the pod needs a cycle.

        ``pods``: pods that were popped together. If the attempt changed activeQ, or recorded an
        event, the pods behind it leave the list and return to the queue. ``is_sampled``: whether
        the attempt at the pod records durations of plugins.
        """
        queued = pods[place]
        pod = queued.pod
        run = self.of_shape.get(pod.shape)
        if run is None and pod.shape.pin is not None:
            run = self._of_unpinned.get(pod.shape.pin.unpinned)
        if (
            run is None
            or pod.status.nominated_node_name
            or pod.node_name
            or self._nominator.node_of
            # This does what `Reservations.is_active` does, without a call for each pod.
            or self._reservations.current is not None
            or self._exclusive_groups
            or not run.goes_on(pod)
        ):
            return 0
        ranking = run.ranking
        if ranking is None:
            answer = self._pinned_node(run, pod, is_sampled)
        elif not (ranking.follow() or self._catch_up(run, ranking, pod, is_sampled)):
            answer = None
        elif run.cells is not None:
            answer = _answer_of_cells(run, run.cells)
        elif ranking.feasibility.counts[FEASIBLE] >= SCORED_MIN and run.is_scored:
            answer = ranking
        elif not ranking.feasibility.counts[FEASIBLE]:
            return self._fail(
                run, ranking, pods, place, started_seconds=started_seconds, is_sampled=is_sampled
            )
        else:
            # A cycle looks at the ranking once more.
            ranking.uncount()
            answer = None
        if answer is None:
            return 0
        popped = pods[place:] if place else pods
        return self._place(run, popped, answer, started_seconds, is_sampled=is_sampled)

    def _equal(self, run: Run, pods: Sequence[QueuedPodInfo]) -> Sequence[QueuedPodInfo]:
        """The first pod, and the pods behind it that a run may place without comparing anew what it
        answers from."""
        owners, placed_pods = pods[0].pod.metadata.owner_references, self._cluster.cache.by_uid
        count = 1
        for queued in pods[1 : run.cache.repeats_left(run.entry)]:
            pod = queued.pod
            if (
                pod.status.nominated_node_name
                or pod.node_name
                or pod.metadata.deletion_timestamp is not None
                or pod.metadata.owner_references != owners
                or pod.uid in placed_pods
            ):
                break
            count += 1
        return pods[:count]

    def _place(
        self,
        run: Run,
        pods: Sequence[QueuedPodInfo],
        answer: CycleAnswer | PinnedNode,
        started_seconds: float,
        *,
        is_sampled: bool,
    ) -> int:
        """Place the first pod, and equal pods right behind it. Returns how many it placed. Each pod
        gets the record that a cycle would write."""
        is_recording = self._telemetry.journal.is_recording
        lines_max = BEST_NODES_MAX if is_recording else 0
        is_single = len(pods) == 1 or not run.uses or self._end.is_observed
        if run.ranking is None or is_single:
            pods = pods[:1]
            choice = answer.choose(self._seed, pods[0].pod.uid, pods[0].attempts)
            scores = answer.best_scores(lines_max) if lines_max else ()
            chosen = ((choice, scores, answer.feasibility.for_journal()),)
        else:
            equal = self._equal(run, pods)
            if isinstance(answer, CellAnswer):
                chosen = self._chosen_by_cells(run, answer, equal, lines_max)
            else:
                chosen = self._chosen(run, run.ranking, equal, lines_max)
            pods = pods[: len(chosen)]
        count, now = len(pods), self._clock.now()
        self.attempt_count += count
        run.cache.repeated(run.entry, run.ranking, pods)
        idle_counts, seconds = run.all_idle_counts, (now - started_seconds) / count
        if seconds:
            idle_counts = run.idle_counts
            for observe in run.observers:
                for _ in pods:
                    observe(seconds)
        for counts in idle_counts:
            counts[0] += count
        placed, records = list[PlacedPod](), list[AttemptRecord]()
        framework, profile = run.framework, run.framework.profile_name
        node_count = self._cluster.cache.table.node_count
        for queued, (choice, scores, feasibility) in zip(pods, chosen, strict=True):
            if placed:
                is_sampled = self.draw() < METRICS_SAMPLE
            # This does what `PodInfo.on_node` does, without a call for each pod.
            pod, state = replace(queued.pod, node_name=choice.node_name), run.states[is_sampled]
            placed.append(PlacedPod(queued, framework, pod, state, started_seconds))
            if is_recording:
                feasible_count, rejections = feasibility
                record = AttemptRecord(
                    at_seconds=now,
                    pod=pod.key,
                    uid=pod.uid,
                    profile=profile,
                    attempt=queued.attempts,
                    result="scheduled",
                    node=choice.node_name,
                    node_count=node_count,
                    feasible_count=feasible_count,
                    rejections=rejections,
                    scores=scores,
                    tied_count=choice.tied_count,
                    tied_index=choice.tied_index,
                )
                records.append(record)
        if self._end.is_observed:
            self._show(run, placed[0], answer, chosen[0][0])
        self._placements.place_straight(placed, records)
        return count

    def _chosen(
        self,
        run: Run,
        ranking: RankedNodes,
        pods: Sequence[QueuedPodInfo],
        lines_max: int,
    ) -> Sequence[_Chosen]:
        """The choices for the first of these pods."""
        counts, feasibility = ranking.feasibility.counts, ranking.feasibility.for_journal()
        chosen: list[_Chosen] = []
        for choice in choices(ranking, self._seed, pods, run.uses):
            if counts[FEASIBLE] != feasibility[0]:
                feasibility = ranking.feasibility.for_journal()
            scores = ranking.best_scores(lines_max) if lines_max else ()
            chosen.append((choice, scores, feasibility))
        return chosen

    def _chosen_by_cells(
        self, run: Run, answer: CellAnswer, pods: Sequence[QueuedPodInfo], lines_max: int
    ) -> Sequence[_Chosen]:
        """The same where cells answer: each placement changes what they count. No term comes with
        it, because the cells would not fit if the pod before had brought one."""
        moving = MovingCells(answer, pods[0].pod.shape)
        chosen: list[_Chosen] = []
        for choice in choices(moving, self._seed, pods, run.uses):
            scores = moving.answer.best_scores(lines_max) if lines_max else ()
            chosen.append((choice, scores, moving.answer.feasibility.for_journal()))
        if moving.problem:
            run.cache.drop_cells(run.entry, moving.problem)
        return chosen

    def _fail(
        self,
        run: Run,
        ranking: RankedNodes,
        pods: list[QueuedPodInfo],
        place: int,
        *,
        started_seconds: float,
        is_sampled: bool,
    ) -> int:
        """Fail the attempt at a pod, because no node is feasible. The reasons are those of the pods
        before. PostFilter and the condition follow for the pod by itself. Where PostFilter repeats
        its answer, the attempts at equal pods right behind fail with it. Returns how many fail."""
        first, newest = pods[place], self._cluster.pods
        equal = self._equal(run, pods[place:]) if run.framework.signer.signs_templates else ()
        count = 0
        while count < len(equal) and newest.get(equal[count].pod.uid) is equal[count].pod:
            count += 1
        failed = self._equal_failure(run, ranking, first) if count else None
        begin, sampled = 0, [first] if is_sampled else []
        if failed is None:
            mark, begin, sampled = self._queue.run_mark(), 1, list[QueuedPodInfo]()
            cycle = self._failing(run, ranking, first, started_seconds, is_sampled=is_sampled)
            self.attempt_count += 1
            run.cache.repeated(run.entry, ranking, (first,))
            run.cache.observe_hinted(self._clock.now() - started_seconds)
            run.framework.stopwatches["Sign"].idle()
            failed = self._unplaced.end(cycle, NO_NODE_FITS)
            if self._queue.run_mark() != mark:
                self._queue.put_back(pods, place + 1)
                return 1
            repetition = failed and self._unplaced.repetition(cycle, failed)
            if failed is None or not repetition:
                return 1
            if repetition is Repetition.UNTIL_OTHER_STATUSES:
                run.failed, run.failed_summary = failed, ranking.feasibility.summary()
            if count <= 1:
                return 1
            started_seconds = self._clock.now()
        ranking.count_repeats(count - 1)
        sampled += [queued for queued in equal[1:count] if self.draw() < METRICS_SAMPLE]
        seconds = self._count_failures(
            failed,
            run,
            ranking,
            equal[begin:count],
            sampled=sampled,
            started_seconds=started_seconds,
        )
        self._unplaced.repeat(failed, equal[begin:count], seconds, first)
        return count

    def _equal_failure(
        self, run: Run, ranking: RankedNodes, queued: QueuedPodInfo
    ) -> FailedAttempt | None:
        """The last failure, if the attempt at this pod fails alike. None: PostFilter is called."""
        in_flight = self._queue.in_flight
        if (
            run.failed is None
            or self._end.is_observed
            or run.failed_summary is not ranking.feasibility.summary()
            or in_flight.marks[queued.pod.uid] != in_flight.recorded_count
        ):
            return None
        return run.failed

    def _count_failures(
        self,
        failed: FailedAttempt,
        run: Run,
        ranking: RankedNodes,
        pods: Sequence[QueuedPodInfo],
        *,
        sampled: Sequence[QueuedPodInfo],
        started_seconds: float,
    ) -> float:
        """Count the attempts at pods that fail as the one before them. Returns how many seconds
        each took. ``sampled``: those that record durations of plugins."""
        count = len(pods)
        self.attempt_count += count
        run.cache.repeated(run.entry, ranking, pods)
        for queued in sampled:
            cycle = self._failing(run, ranking, queued, started_seconds, is_sampled=True)
            self._unplaced.repeat_post_filter(cycle)
        diagnosis, stopwatches = failed.failure.diagnosis, run.framework.stopwatches
        assert diagnosis is not None, "plugins rejected the pods"
        if diagnosis.post_filter_code is not None:
            run.framework.count_repeats(count - len(sampled))
            observed = stopwatches["PostFilter"].took[diagnosis.post_filter_code]
            _add_idle([observed], count - len(sampled))
        seconds = (self._clock.now() - started_seconds) / count
        for observe in run.observers if seconds else ():
            for _ in pods:
                observe(seconds)
        idle = [stopwatches["Sign"].took[Code.SUCCESS]]
        _add_idle(idle if seconds else (*idle, *run.observers), count)
        return seconds

    def _failing(
        self,
        run: Run,
        ranking: RankedNodes,
        queued: QueuedPodInfo,
        started_seconds: float,
        *,
        is_sampled: bool,
    ) -> Cycle:
        """The cycle of a pod for which no node is feasible. The cluster is lent to it."""
        cycle = self._cycle(run, queued, started_seconds, is_sampled=is_sampled)
        cycle.ranking = cycle.ranked_answer = ranking
        cycle.candidates, cycle.status = cycle.snapshot.nodes, NO_NODE_FITS
        return cycle

    def _pinned_node(self, run: Run, pod: PodInfo, is_sampled: bool) -> PinnedNode | None:
        """The one node that PreFilter leaves, if it passes every filter."""
        pinned, counts = run.pinned, run.entry.caches.counts
        assert pinned is not None, "a run has a ranking or one node"
        is_feasible = pinned.passes(
            self._cluster, run.framework, run.notes, pod, is_sampled=is_sampled, counts=counts
        )
        return pinned if is_feasible else None

    def _catch_up(self, run: Run, ranking: RankedNodes, pod: PodInfo, is_sampled: bool) -> bool:
        """Evaluate the rows that changed. False: the ranking is dropped, or the cells have no
        totals to choose by."""
        cluster = self._cluster
        state, caches = run.notes.clone(), run.entry.caches
        state.record_plugin_metrics, state.cached_results = is_sampled, caches
        calls, nodes = run.framework.calls(state, pod), cluster.lend().nodes
        evaluator = SingleNodeEvaluator(calls, state, pod, nodes, counts=caches.counts)
        try:
            ranking.update(evaluator)
            has_scores = run.is_scored and ranking.feasible_count >= SCORED_MIN
            if has_scores and (ranking.is_behind or ranking.with_extremes):
                ranking.score(evaluator)
        except RankingInvalid as problem:
            run.cache.drop_ranking(run.entry, ranking, problem.reason)
            return False
        finally:
            cluster.take_back()
        if run.cells is not None and not has_scores:
            ranking.uncount()
            return False
        return True

    def follow(self, cycle: Cycle) -> None:
        """Follow a cycle that placed its pod, or that is about to fail because no node is feasible.
        What answered the cycle serves the next pods if it existed before the cycle."""
        if cycle.node_names is not None:
            self._follow_pinned(cycle)
            return
        entry, answer, ranking = cycle.entry, cycle.ranked_answer, cycle.ranking
        if entry is None or answer is None or ranking is None:
            return
        cells = entry.cells if isinstance(answer, CellAnswer) else None
        pre_state = entry.pre_state if cells is None else None
        shape = cycle.pod.shape
        run = self.of_shape.get(shape)
        if run is not None and (run.pre_state, run.cells) == (pre_state, cells):
            return
        if pre_state is not None:
            is_scored, notes = pre_state.is_scored, pre_state.state
            may_follow = answer is pre_state.ranking and shape is pre_state.shape
            may_follow = may_follow and (is_scored or not ranking.feasible_count)
        elif cells is not None:
            may_follow, is_scored, notes = True, True, cells.state()
        else:
            return
        if may_follow and self._needs_no_cycle(cycle):
            run = self._new_run(cycle, entry, ranking, notes)
            uses = ""
            if is_scored and self._changes_only_what_is_followed(cycle, ranking, cells):
                uses = used_of_node(shape)
            run = replace(run, pre_state=pre_state, cells=cells, is_scored=is_scored, uses=uses)
            _add(self.of_shape, shape, run)

    def _changes_only_what_is_followed(
        self, cycle: Cycle, ranking: RankedNodes, cells: NodeCells | None
    ) -> bool:
        """Whether the next choice depends on nothing that a placement changes but amounts and host
        ports, and what cells count."""
        shape = cycle.pod.shape
        is_followed = shape.takes_amounts_and_ports or (
            cells is not None and not shape.volumes.has_any
        )
        return ranking.depends_on_amounts and is_followed and cycle.framework.signer.signs_templates

    def _follow_pinned(self, cycle: Cycle) -> None:
        """Follow a cycle whose nodes PreFilter narrowed. If one node was left, and such pods have
        come before, the node serves the next pods."""
        framework, pod, names = cycle.framework, cycle.pod, cycle.node_names
        if names is None or len(names) != 1 or cycle.choice is None:
            return
        cache, table = self._reuse[framework.profile_name], self._cluster.cache.table
        entry, pin = cache.narrowed_entry(framework.signer.sign(pod)), pod.shape.pin
        if entry is None or not self._needs_no_cycle(cycle):
            return
        generation = cache.object_generation.now()
        pinned = pinned_node_of(cycle, entry, table, generation, cluster=self._cluster)
        if pinned is None:
            return
        run = replace(self._new_run(cycle, entry, None, cycle.state), pinned=pinned)
        _add(self.of_shape, pod.shape, run)
        if pin is not None and pinned.serves_all_pins:
            _add(self._of_unpinned, pin.unpinned, run)

    def _new_run(
        self, cycle: Cycle, entry: SignatureEntry, ranking: RankedNodes | None, notes: CycleState
    ) -> Run:
        plain, sampled, start = notes.clone(), notes.clone(), notes.clone()
        plain.record_plugin_metrics, sampled.record_plugin_metrics = False, True
        plain.pods_to_activate = sampled.pods_to_activate = {}
        framework = cycle.framework
        cache, points = self._reuse[framework.profile_name], [("Sign", Code.SUCCESS)]
        observers: list[Observe] = [self._unplaced.observe_seconds]
        if ranking is None:
            points += _NARROWED
        else:
            observers.append(cache.observe_hinted)
        if cycle.choice is not None:
            points += STRAIGHT_TO_BIND
        idle = [framework.stopwatches[point].observer(code) for point, code in points]
        return Run(
            framework,
            cache,
            entry,
            ranking,
            start,
            (plain, sampled),
            observers,
            _counts(idle),
            _counts((*observers, *idle)),
        )

    def _needs_no_cycle(self, cycle: Cycle) -> bool:
        """Whether cached values alone decide about such pods."""
        framework = cycle.framework
        return not (
            cycle.within is not None
            or cycle.pod.shape.group_key is not None
            or self._extenders
            or not self._runner.may_rank(cycle)
            or not _binds_alone(framework, framework.calls(cycle.state, cycle.pod))
        )

    def _show(
        self, run: Run, placed: PlacedPod, answer: CycleAnswer | PinnedNode, choice: Choice
    ) -> None:
        """Show the attempt as a cycle to the one that observes cycles."""
        cycle = self._cycle(run, placed.queued, placed.started_seconds, is_sampled=False)
        if isinstance(answer, PinnedNode):
            cycle.entry = None
            answer.show_in(cycle)
        else:
            cycle.ranking, cycle.ranked_answer = run.ranking, answer
        cycle.choice = choice
        self._end.show(cycle)
        self._cluster.take_back()

    def _cycle(
        self, run: Run, queued: QueuedPodInfo, started_seconds: float, *, is_sampled: bool
    ) -> Cycle:
        """The cycle that the run saves, with the notes of its steps. The cluster is lent to it."""
        cycle = Cycle(queued, run.framework, self._cluster.lend(), started_seconds)
        cycle.state.record_plugin_metrics = is_sampled
        cycle.start_with(run.notes.clone(), run.entry)
        cycle.step, cycle.entry = 1, run.entry
        return cycle


def _add(runs: dict[PodShape, Run], shape: PodShape, run: Run) -> None:
    """Add a run for a template. The oldest one leaves if there are too many."""
    for other, ended in list(runs.items()):
        if other is shape or (ended.ranking is not None and ended.ranking.is_dropped):
            del runs[other]
    if len(runs) >= _TEMPLATES_MAX:
        del runs[next(iter(runs))]
    runs[shape] = run


def _answer_of_cells(run: Run, cells: NodeCells) -> CellAnswer | None:
    """The answer of the cells, whose ranking is up to date. None: the cells are dropped, or fewer
    than two nodes are feasible. Then a cycle looks at the ranking once more."""
    answer = None
    try:
        cells.update()
        answer = cells.answer()
    except RankingInvalid as problem:
        run.cache.drop_cells(run.entry, problem.reason)
    if answer is None:
        cells.ranking.uncount()
    return answer


def _binds_alone(framework: Framework, calls: Calls) -> bool:
    """Whether no plugin takes part after the choice but one that binds with one request."""
    is_alone = framework.binds_with_one_request
    return is_alone and not (
        calls.reserve or calls.unreserve or calls.permit or calls.pre_bind_pre_flight
    )


def _add_idle(observers: Iterable[Observe], count: int) -> None:
    """Observe 0 seconds so many times by each of these observers."""
    for counts in _counts(observers):
        counts[0] += count


def _counts(observers: Iterable[Observe]) -> list[list[int]]:
    """The counts of these observers. The first count of each is for 0 seconds."""
    return [observer.counts for observer in observers if isinstance(observer, Buckets)]
