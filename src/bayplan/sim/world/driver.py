"""Plays a workload into an embedded cluster: the users, controllers and kubelets of a simulation.

The driver changes one object at a time, and then waits until the scheduler has nothing more to do.
So pods of one moment are tried in the order of the workload. Events that are due at a moment by
themselves (a pod ends, a grace period ends, a retry) happen before the steps of the workload at
that moment.

A pod with a running time ends that long after its binding. It then succeeds, or it is deleted if
its annotation says so. Workload controllers replace pods that go (`workloads`). If the input is
expanded once, there are no controllers, and only the next pod of a Job is created when a pod of the
Job succeeds. Claims get their volumes (`volume_controller`). Pods on a deleted node are garbage
(`pod_gc_controller`).
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import cast, final

import msgspec

from bayplan.adapters.embedded.api_errors import TooManyRequestsError
from bayplan.adapters.embedded.cluster import EVENT, EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import PodChange, StoredObject
from bayplan.api.finalizers import FOREGROUND, ORPHAN
from bayplan.api.objects import JOB, NAMESPACE, NODE, POD, STATEFUL_SET, Pod
from bayplan.clock import Clock
from bayplan.durations import DURATION_ANNOTATION, DurationError, parse_duration
from bayplan.lazy_loader import built
from bayplan.objects.keys import (
    ObjectKey,
    key_of,
    key_of_owner,
    key_of_reference,
    kind_of,
    object_key,
)
from bayplan.objects.workloads import controller_reference
from bayplan.ports import ApiError
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_pods import is_daemon_pod, target_node
from bayplan.sim.input.workload import (
    WHEN_DONE_ANNOTATION,
    Content,
    DrainOptions,
    ExpansionMode,
    Step,
    Verb,
    Workload,
    is_pending_pod,
    is_pod,
    with_scheduler,
)
from bayplan.sim.loop import running_loop, settled_after_each
from bayplan.sim.world.drains import Drains
from bayplan.sim.world.pending_deletions import PendingDeletions
from bayplan.sim.world.refused_needs import RefusedNeeds
from bayplan.sim.world.volume_controller import VolumeController
from bayplan.sim.world.workloads.controllers import WorkloadControllers

#: A run without an end stops when a busy scheduler has changed nothing for this long.
QUIET_SECONDS_MAX = 3600.0
_CORDON: Content = {"spec": {"unschedulable": True}}
_UNCORDON: Content = {"spec": {"unschedulable": False}}


@final
class Driver:
    """Feeds one cluster from one workload. Use it once, inside a virtual loop."""

    def __init__(
        self,
        workload: Workload,
        cluster: EmbeddedCluster,
        clock: Clock,
        *,
        settle: Callable[[], Awaitable[None]],
        only_retries_wait: Callable[[], bool],
        on_end: Callable[[str], None] = lambda uid: None,
        arrive: Callable[[Iterator[object]], bool] = lambda steps: False,
    ) -> None:
        """``settle`` returns when the scheduler has nothing more to do at this moment. ``arrive``
        takes steps that create one pod each, and returns whether it took one. Before each further
        step, the scheduler has nothing more to do. ``only_retries_wait`` returns whether the
        scheduler would later do nothing but futile retries. ``on_end`` is called with the uid of a
        pod whose running time has passed.
        """
        self._workload = workload
        self._cluster = cluster
        self._clock = clock
        self._settle = settle
        self._only_retries_wait = only_retries_wait
        self._on_end = on_end
        self._arrive = arrive
        #: Pods that will end, by uid.
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._followers = {uid: deque(pods) for uid, pods in workload.followers.items()}
        #: A future that the next change completes; None: no task waits for a change.
        self._change: asyncio.Future[None] | None = None
        #: The number of pods that controllers have created since the beginning, and of pods of
        #: controllers in the input that were not created with the others.
        self._created_count = self._uncreated_count = 0
        #: Notes with their times: refusals of the API server, and the outcome of drains and Jobs.
        self.refused: list[str] = []
        #: The number of refused pods by controller, if the input is expanded once.
        self._refused_pods: Counter[ObjectKey] = Counter()
        cluster.observe(self._observe, ignored_kinds=(EVENT,), ignored_changes=(PodChange.ARRIVES,))
        self._volumes = VolumeController(cluster, self._refuse)
        #: The workload controllers; None: the input is expanded once.
        self._controllers = self._workload_controllers()
        self._deletions = PendingDeletions(cluster)
        self._drains = Drains(cluster, clock, self.refused.append)
        self._refused_needs = RefusedNeeds()
        #: Pods whose running time has passed, by uid.
        self._finished: set[str] = set()

    def _workload_controllers(self) -> WorkloadControllers | None:
        if self._workload.expansion is ExpansionMode.ONCE:
            return None
        return WorkloadControllers(
            self._cluster,
            self._clock,
            create=self._come,
            note=self.refused.append,
            delay_seconds=self._workload.recreate_after_seconds,
            recreates_unknown=self._workload.recreates_unknown,
        )

    @property
    def further_count(self) -> int:
        """How many pods controllers created besides those that the input expects of them. A number
        below 0 says how many of the expected pods were not created."""
        expected_count = self._workload.follower_count + self._uncreated_count
        return self._created_count - expected_count

    async def play(self) -> None:
        """Run from the beginning to the workload's end, or until nothing is left to happen."""
        await self._begin()
        until = self._workload.until_seconds
        for step in self._workload.steps:
            if until is not None and step.at_seconds > until:
                break
            await self._reach(step.at_seconds)
            await self._do(step)
        if until is not None:
            await self._reach(until)
        else:
            await self._play_out()
        self._drains.report()
        self.refused += self._notes_of_refused_pods()
        if self._controllers is not None:
            self.refused += self._controllers.notes()
        self.refused += self._deletions.notes()

    async def _begin(self) -> None:
        """Create the initial objects at once, and then the pods to place one by one."""
        others: list[Content] = []
        pending: list[Content] = []
        for content in self._workload.initial:
            (pending if is_pending_pod(content) else others).append(content)
        # A claim that was made for a pod would be deleted while the pod does not exist.
        owners = [_owning_pod(content) for content in others]
        owned: dict[ObjectKey, list[Content]] = {}
        if any(owners):
            owned = {key_of(content): [] for content in pending}
        for content, owner in zip(others, owners, strict=True):
            if owner is not None and owner in owned:
                owned[owner].append(content)
                continue
            self._create(content)
            if content["kind"] in _MAY_GO_ON:
                self._expect_pods(content)
        await self._settle()
        arrivals = self._arrivals(pending, owned)
        await settled_after_each(arrivals if owned else self._together(arrivals))
        await self._end_begun_deletions()
        if self._controllers is not None:
            self._controllers.go_on_with_rollouts()
            self._controllers.find_surplus_pods()
            await self._settle()

    def _arrivals(
        self,
        pending: Iterable[Content],
        owned: Mapping[ObjectKey, Iterable[Content]],
    ) -> Iterator[None]:
        """Create the pods to place, each with the claims that were made for it."""
        for content in pending:
            for claim in owned[key_of(content)] if owned else ():
                self._create(claim)
            # Before the scheduler sees the pod, it gets the claims for its ephemeral volumes.
            self._create(content)
            self._volumes.act()
            yield

    def _together(self, arrivals: Iterator[None]) -> Iterator[None]:
        """Do what `_arrivals` does, with as many pods at once as the scheduler takes without a
        pause."""
        for _ in arrivals:
            yield
            while self._arrive(arrivals):
                yield

    async def _end_begun_deletions(self) -> None:
        """Let controllers act on what was being deleted when the input was read."""
        if self._controllers is None:
            return
        for stored in self._deletions.objects():
            if stored.key.kind == POD:
                self._controllers.pod_was_terminating(stored)
            await self._collect_garbage(stored, self._controllers)
            await self._settle()

    async def _reach(self, seconds: float) -> None:
        """Run up to a moment, with all events that are due by then."""
        if seconds > self._clock.now():
            loop = running_loop()
            reached = loop.create_future()
            loop.call_at(seconds, reached.set_result, None)
            await reached
            await self._settle()

    async def _play_out(self) -> None:
        """Run until no event is due any more."""
        version, quiet_since = self._cluster.version, self._clock.now()
        while True:
            if self._ends:
                self._change = running_loop().create_future()
                await self._change
                await self._settle()
            elif (due := self._next_due()) is not None:
                await self._reach(due)
                await self._settle()
            elif self._only_retries_wait() and self._drains.are_futile():
                return
            else:
                due = running_loop().next_timer_seconds()
                if due is None or due - quiet_since > QUIET_SECONDS_MAX:
                    return
                await self._reach(due)
            if self._cluster.version != version:
                version, quiet_since = self._cluster.version, self._clock.now()

    def _next_due(self) -> float | None:
        """The next time when a grace period ends, pods are collected, or controllers replace pods;
        None: never."""
        learns = None if self._controllers is None else self._controllers.due_seconds
        times = (
            self._cluster.next_grace_end_seconds,
            self._cluster.next_collection_seconds,
            learns,
        )
        return min([one for one in times if one is not None], default=None)

    # ---- steps of the workload --------------------------------------------------------------

    async def _do(self, step: Step) -> None:
        if self._controllers is not None:
            self._controllers.step_follows()
        stored = self._cluster.get(step.key)
        if self._controllers is not None and step.verb is Verb.CREATE and step.key.kind == NODE:
            await self._create_node(step, self._controllers)
            return
        self._try_to_perform(step)
        await self._settle()
        if self._controllers is not None and stored is not None:
            await self._collect_garbage(stored, self._controllers)

    async def _create_node(self, step: Step, controllers: WorkloadControllers) -> None:
        """Create a node, which gets the pods of its DaemonSets first. The node is cordoned until
        each of these pods was tried; they tolerate that."""
        self._try_to_perform(step)
        pods = list(controllers.pods_for_node(step.key.name))
        is_held_back = bool(pods) and not (step.content.get("spec") or {}).get("unschedulable")
        if is_held_back:
            self._cluster.server.patch(step.key, _CORDON)
        await self._settle()
        for pod in pods:
            problem = self._come(pod)
            if problem is not None:
                controllers.creation_was_refused(pod, problem)
            await self._settle()
        if is_held_back and self._cluster.get(step.key) is not None:
            self._cluster.server.patch(step.key, _UNCORDON)
            await self._settle()

    def _try_to_perform(self, step: Step) -> None:
        if step.verb is Verb.CREATE:
            self._create(step.content, f"{step.verb} {step.key}")
            self._expect_pods(step.content)
        else:
            try:
                self._perform(step)
            except ApiError as problem:
                self._refuse(f"{step.verb} {step.key}", problem)
        self._volumes.act()

    def _perform(self, step: Step) -> None:
        """Perform a step. Raises ApiError."""
        if step.verb is Verb.EVICT:
            self._cluster.evictions.evict(step.key)
        elif step.verb is Verb.DRAIN:
            self._drains.begin(step.key, msgspec.convert(step.content, built(DrainOptions)))
        elif step.verb is Verb.DELETE:
            self._cluster.delete(step.key)
            if step.key.kind == NAMESPACE:
                self._empty(step.key.name)
            if step.key.kind == NODE and self._controllers is None:
                self._remove_daemons_meant_for(step.key.name)
        else:
            self._cluster.server.patch(step.key, step.content)

    async def _collect_garbage(self, owner: StoredObject, controllers: WorkloadControllers) -> None:
        """Do what the garbage collector does after a change of ``owner``. The dependents of a
        deleted controller are deleted, too, and a deletion in the foreground begins with them. The
        workload itself deletes what other objects own."""
        current = self._cluster.get(owner.key)
        if current is None:
            is_orphaned = ORPHAN in (owner.content["metadata"].get("finalizers") or ())
            if owner.key.kind in CONTROLLERS and not is_orphaned:
                await self._delete_dependents(owner, controllers)
            return
        finalizers = current.content["metadata"].get("finalizers") or ()
        own = [one for one in finalizers if one in (FOREGROUND, ORPHAN)]
        if not current.content["metadata"].get("deletionTimestamp") or not own:
            return
        if FOREGROUND in own:
            await self._delete_dependents(current, controllers)
        rest = [one for one in finalizers if one not in own]
        self._cluster.server.patch(owner.key, {"metadata": {"finalizers": rest}})

    async def _delete_dependents(
        self, owner: StoredObject, controllers: WorkloadControllers
    ) -> None:
        """Delete the objects that a deleted object owned, as the garbage collector does."""
        is_controller = owner.key.kind in CONTROLLERS
        for key in controllers.dependents(owner) if is_controller else self._owned_by(owner):
            dependent = self._cluster.get(key)
            if dependent is not None:
                self._cluster.delete(key)
                self._volumes.act()
                await self._settle()
                await self._delete_dependents(dependent, controllers)

    def _owned_by(self, owner: StoredObject) -> Iterator[ObjectKey]:
        """The objects that have no other owner. Objects that a pod owns have controllers of their
        own."""
        if owner.key.kind == POD:
            return
        uid = owner.content["metadata"]["uid"]
        for key in self._cluster.owned_by(uid):
            dependent = self._cluster.get(key)
            owners = () if dependent is None else dependent.object.metadata.owner_references or ()
            if all(one.uid == uid for one in owners):
                yield key

    def _empty(self, namespace: str) -> None:
        """Delete the content of a namespace, as its controller does."""
        keys = [
            stored.key
            for kind in self._cluster.kinds()
            if kind != EVENT
            for stored in self._cluster.objects(kind)
            if stored.key.namespace == namespace
        ]
        # Workloads are deleted first, so that they do not replace their pods.
        for key in sorted(keys, key=lambda key: key.kind not in CONTROLLERS):
            if self._cluster.get(key) is not None:
                self._cluster.delete(key)

    def _remove_daemons_meant_for(self, node_name: str) -> None:
        """Delete pending daemon pods of a deleted node, as their controller does.

        Upstream: getUnscheduledPodsWithoutNode. Daemon pods on the node are pod garbage.
        """
        for stored in self._cluster.objects(POD):
            pod = stored.content
            if is_pending_pod(pod) and is_daemon_pod(pod) and target_node(pod) == node_name:
                self._cluster.delete(stored.key)

    def _come(self, content: Content) -> ApiError | None:
        """Create an object of a controller, and, before the scheduler sees a pod, the claims for
        its ephemeral volumes. Returns why the API server refuses it."""
        if self._workload.scheduler_name:
            content = with_scheduler(content, self._workload.scheduler_name)
        try:
            self._cluster.create(content)
        except ApiError as problem:
            return problem
        self._wake()
        self._created_count += is_pod(content)
        self._volumes.act()
        return None

    def _create(self, content: Content, what: str = "create") -> None:
        """Create an object of the input. If the API server refuses it to a controller, the
        controller tries again later, and then creates the pods that follow."""
        controllers = self._controllers
        if (
            controllers is not None
            and controllers.refused.waiting
            and controllers.waits_to_create(content)
        ):
            self._uncreated_count += is_pod(content)
            return
        needs = self._refused_needs
        missing = needs.of_controller(content)
        if missing is not None:
            needs.add(content, missing)
            self._uncreated_count += is_pod(content)
            return
        try:
            if problem_of_claims := needs.of_claims(content):
                raise problem_of_claims
            self._cluster.create(content)
        except ApiError as problem:
            needs.add(content, problem)
            self._uncreated_count += is_pod(content) and "ownerReferences" in content["metadata"]
            if controllers is None or not controllers.creation_was_refused(content, problem):
                self._refuse_creation(content, what, problem)

    def _refuse_creation(self, content: Content, what: str, problem: ApiError) -> None:
        """Note the first refusal of a pod of a controller, and count the others."""
        owner = controller_reference(content)
        if owner is not None:
            key = key_of_reference(owner, key_of(content).namespace)
            self._refused_pods[key] += 1
            if self._refused_pods[key] > 1:
                return
        self._refuse(what, problem)

    def _notes_of_refused_pods(self) -> Iterator[str]:
        for key, count in self._refused_pods.items():
            if count > 1:
                more = "1 more was" if count == 2 else f"{count - 1:,} more were"
                yield f"of the pods of {key}, {more} refused, too"

    def _expect_pods(self, content: Content) -> None:
        """Follow the pods of a new StatefulSet if some of them are created later. A new Job may
        have a deadline."""
        if self._controllers is None:
            return
        kind, key = kind_of(content), key_of(content)
        stored = self._cluster.get(key) if kind in (STATEFUL_SET, JOB) else None
        if stored is None:
            return
        if kind == JOB:
            self._controllers.job_begins(stored.content)
        elif content["metadata"].get("uid") in self._workload.followers:
            self._controllers.expects_pods(key)

    def _refuse(self, what: str, problem: ApiError) -> None:
        cause = f" {problem.cause}" if isinstance(problem, TooManyRequestsError) else ""
        self.refused.append(f"at {self._clock.now():g} s: {what}: {problem}{cause}")

    # ---- changes of pods --------------------------------------------------------------------

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Observe a change while it is made. The consequences of the change follow right after
        it."""
        if self._change is not None:
            self._wake()
        changed = after or before
        if changed is None or changed.key.kind != POD:
            if self._controllers is not None:
                self._controllers.object_changed(before, after)
            return
        old = None if before is None else before.placed_pod
        new = None if after is None else after.placed_pod
        if new is not None and old is None:
            if new.metadata.annotations:
                self._starts(changed.key, new)
        elif old is not None and new is None:
            self._ended(old)
        if self._controllers is not None:
            if before is not None and (
                after is None
                or not after.is_visible
                or after.object.metadata.deletion_timestamp is not None
            ):
                self._lose(before, after, self._controllers)
            elif new is not None and self._controllers.waiting:
                self._controllers.pod_started(changed)
        elif old is not None and new is None and after is not None:
            pod = cast(Pod, after.object)
            if pod.status.phase == "Succeeded":
                self._make_room(changed.key, pod)

    def _lose(
        self, before: StoredObject, after: StoredObject | None, controllers: WorkloadControllers
    ) -> None:
        """Follow a pod that is gone, has ended or is terminating."""
        uid = before.content["metadata"]["uid"]
        controllers.pod_lost(before, after, is_finished=uid in self._finished)
        if after is None:
            self._finished.discard(uid)

    def _starts(self, key: ObjectKey, pod: Pod) -> None:
        """Note that a pod runs. Set the timer for its end if it has a running time."""
        annotations, uid = pod.metadata.annotations or {}, pod.metadata.uid or ""
        seconds = _run_seconds(annotations)
        if seconds is None:
            return
        end = self._delete if annotations.get(WHEN_DONE_ANNOTATION) == "delete" else self._succeed
        self._ends[uid] = running_loop().call_later(seconds, end, key, uid)

    def _succeed(self, key: ObjectKey, uid: str) -> None:
        self._finish(uid)
        self._cluster.end_pod(key)

    def _delete(self, key: ObjectKey, uid: str) -> None:
        self._finish(uid)
        self._cluster.delete(key)

    def _finish(self, uid: str) -> None:
        """Note that the running time of a pod has passed. That may change nothing of a pod that is
        terminating already."""
        del self._ends[uid]
        self._wake()
        self._on_end(uid)
        if self._controllers is not None:
            self._finished.add(uid)

    def _ended(self, pod: Pod) -> None:
        """Note that a pod no longer runs, or is gone."""
        timer = self._ends.pop(pod.metadata.uid or "", None)
        if timer is not None:
            timer.cancel()

    def _make_room(self, key: ObjectKey, pod: Pod) -> None:
        """After a pod has succeeded, create the next pod of its Job, if the Job still exists."""
        for owner in pod.metadata.owner_references or ():
            job = key_of_owner(owner, key.namespace)
            if self._followers.get(owner.uid) and self._cluster.get(job) is not None:
                running_loop().call_soon(self._follow, self._followers[owner.uid].popleft())

    def _follow(self, pod: Content) -> None:
        """Create the next pod of a Job."""
        problem = self._come(pod)
        if problem is not None:
            self._refuse("create", problem)


#: The kinds whose controllers continue after their first pods, although no pod goes.
_MAY_GO_ON = ("StatefulSet", "Job")


def _run_seconds(annotations: dict[str, str]) -> float | None:
    """The running time of a pod in seconds; None: the pod does not end by itself."""
    text = annotations.get(DURATION_ANNOTATION)
    if text is None:
        return None
    try:
        return parse_duration(text)
    except DurationError:
        return None


def _owning_pod(content: Content) -> ObjectKey | None:
    """The pod for which a controller made the object."""
    owner = controller_reference(content)
    if owner is None or owner.get("kind") != "Pod":
        return None
    return object_key(POD, content["metadata"].get("namespace") or "", owner.get("name") or "")
