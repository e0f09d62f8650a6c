"""Workload controllers under virtual time: plans are made when pods go, and carried out.

A controller acts right after the change that concerns it, at the same moment. ``recreateAfter``
delays what it learns about its pods. Until then, a pod that is gone exists for the controller.

The index of pods by controller is built when it is first needed. A run in which no pod goes pays
nothing for the controllers.

A controller that creates pods again and again while nothing else happens would keep a run without
an end going for ever. Such a controller stops after `_ROUNDS` times the pods that it wants, and a
note says so.
"""

from asyncio import TimerHandle
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final

from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.finalizers import JOB_TRACKING
from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
)
from bayplan.clock import Clock
from bayplan.objects.keys import Content, ObjectKey, key_of, key_of_reference, kind_of, object_key
from bayplan.objects.workloads import controller_kind, is_bound_to_node
from bayplan.ports import ApiError
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_pods import (
    REVISION_HASH_LABEL,
    is_active,
    pod_names,
    replica_count,
    target_node,
    template_hash,
)
from bayplan.sim.input.jobs import JobTally, replaces_failed_only
from bayplan.sim.input.workload import has_ended, is_pod
from bayplan.sim.loop import running_loop
from bayplan.sim.world.workloads.deployment_plan import (
    ReplicaSetPods,
    deployment_plan,
    new_replica_set,
    progress,
)
from bayplan.sim.world.workloads.job_plan import deadline_seconds, job_plan
from bayplan.sim.world.workloads.plans import (
    OwnedPods,
    Plan,
    Surroundings,
    plan_of,
)
from bayplan.sim.world.workloads.refused_creations import RefusedCreations
from bayplan.sim.world.workloads.stateful_set_plan import (
    claims_after_deletion,
    claims_after_scaling,
    stateful_set_plan,
)

#: The metadata that a pod keeps when it is created again.
_COPIED = ("name", "namespace", "labels", "annotations", "ownerReferences")
#: How often a controller may replace all its pods between two steps of the workload.
_ROUNDS = 20


class _Owner(NamedTuple):
    """A controller as its pods name it."""

    key: ObjectKey
    uid: str


class _Loss(NamedTuple):
    """A pod that is gone, has ended, or is terminating."""

    owner: _Owner
    #: Its last content.
    pod: Content
    is_gone: bool
    is_finished: bool
    #: The time, in seconds since 1970.
    at_seconds: float


@final
class WorkloadControllers:
    """The workload controllers of one cluster."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        clock: Clock,
        *,
        create: Callable[[Content], ApiError | None],
        note: Callable[[str], None],
        delay_seconds: float = 0.0,
        recreates_unknown: bool = False,
    ) -> None:
        """``create`` creates an object, or returns why it cannot. ``note`` tells the reader.
        ``delay_seconds``: how late controllers learn about pods that go. ``recreates_unknown``:
        whether pods of controllers of other kinds come back as they were."""
        self._cluster = cluster
        self._clock = clock
        self._create = create
        self._note = note
        self._delay_seconds = delay_seconds
        self._recreates_unknown = recreates_unknown
        #: Controllers to bring up to date, each with the node that it is about; "": all nodes.
        self._dirty: dict[tuple[ObjectKey, str], None] = {}
        #: Pods by controller; None: the index has not been needed yet.
        self._pods: dict[_Owner, OwnedPods] | None = None
        self._tallies: dict[_Owner, JobTally] = {}
        #: Pods of Jobs that have been counted and that the tracking finalizer keeps.
        self._counted: deque[ObjectKey] = deque()
        self._names: dict[_Owner, Iterator[str]] = {}
        #: The losses that the controllers have not learned about, each with the time at which they
        #: do.
        self._losses: deque[tuple[float, _Loss]] = deque()
        #: The Jobs that continue at a certain time, each with its timer.
        self._timers: dict[ObjectKey, TimerHandle] = {}
        #: The StatefulSets and Deployments that continue when one of their pods runs.
        self.waiting: dict[ObjectKey, None] = {}
        #: The Deployments and StatefulSets whose template was changed, each with the template of
        #: its first pods.
        self._old_templates: dict[ObjectKey, Content] = {}
        self.refused = RefusedCreations(cluster, self._mark)
        self._created: Counter[ObjectKey] = Counter()
        self._stopped: set[ObjectKey] = set()

    @property
    def due_seconds(self) -> float | None:
        """When the controllers next learn about a loss, or continue with a Job; None: when
        something happens."""
        times = [timer.when() for timer in self._timers.values()]
        if self._losses:
            times.append(self._losses[0][0])
        if self.refused.due_seconds is not None:
            times.append(self.refused.due_seconds)
        return min(times, default=None)

    # ---- what happens in the cluster --------------------------------------------------------

    def step_follows(self) -> None:
        """Note a step of the workload, after which controllers may act as often as before."""
        self._created.clear()

    def pod_started(self, stored: StoredObject) -> None:
        """Note that a pod began to run, or became ready, while controllers wait."""
        owner = self._owner_of(stored.content)
        if owner is not None:
            self._mark_if_waiting(owner)

    def _mark_if_waiting(self, owner: _Owner) -> None:
        """Bring the controller of a pod up to date, or its Deployment, if it waits for pods."""
        if owner.key in self.waiting:
            self._mark(owner.key)
        elif owner.key.kind == REPLICA_SET and self.waiting:
            stored = self._cluster.get(owner.key)
            deployment = None if stored is None else self._owner_of(stored.content)
            if deployment is not None and deployment.key in self.waiting:
                self._mark(deployment.key)

    def pod_lost(
        self, before: StoredObject, after: StoredObject | None, *, is_finished: bool
    ) -> None:
        """Note a pod that is gone, has ended or is terminating.

        ``is_finished``: the running time of the pod has passed.
        """
        last = after or before
        self.refused.change_count += 1
        owner = self._owner_of(last.content)
        if owner is None:
            if self._recreates_unknown and after is None and not is_finished:
                self._recreate(last)
            return
        if self._pods is None and self._delay_seconds:
            self._index()[owner].put(before.content)
        now_seconds = self._clock.epoch_seconds()
        loss = _Loss(owner, last.content, after is None, is_finished, now_seconds)
        if not self._delay_seconds:
            self._learn(loss)
            return
        self._losses.append((self._clock.now() + self._delay_seconds, loss))
        running_loop().call_later(self._delay_seconds, self._learn_next)

    def _recreate(self, stored: StoredObject) -> None:
        """Create a pod again whose controller is of an unknown kind. It gets the same name, as in a
        what-if without time. The pods of DaemonSets of other API groups go with their nodes."""
        meta = stored.object.metadata
        # Garbage collection lets a pod fail before it deletes it; such a pod comes back, too.
        has_succeeded = (stored.content.get("status") or {}).get("phase") == "Succeeded"
        if has_succeeded or not controller_kind(meta) or is_bound_to_node(meta):
            return
        running_loop().call_later(self._delay_seconds, self._create_again, stored.content)

    def _create_again(self, pod: Content) -> None:
        key = key_of(pod)
        if self._cluster.get(key) is not None:
            return
        meta = {name: part for name, part in pod["metadata"].items() if name in _COPIED}
        spec = {name: part for name, part in pod["spec"].items() if name != "nodeName"}
        problem = self._create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        if problem is not None:
            self._note(f"at {self._clock.now():g} s: {key} does not come back: {problem}")

    def pod_was_terminating(self, stored: StoredObject) -> None:
        """Note a pod that was terminating when the run began. The controller of a Job counts it and
        removes its own finalizer. Upstream: job_controller.go (addPod calls deletePod)."""
        owner = self._owner_of(stored.content)
        if owner is not None and owner.key.kind == JOB and self._cluster.get(owner.key) is not None:
            self.pod_lost(stored, stored, is_finished=False)

    def object_changed(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Note that an object other than a pod was created, changed or deleted."""
        self.refused.change_count += 1
        if before is None:
            return
        kind, key = before.key.kind, before.key
        if kind == NODE:
            if after is None or _node_parts(before) != _node_parts(after):
                for one in self._cluster.objects(DAEMON_SET):
                    self._mark(one.key, key.name)
        elif kind == PERSISTENT_VOLUME_CLAIM and after is None:
            self._mark_users_of(key)
        elif kind in CONTROLLERS:
            if after is None:
                self.waiting.pop(key, None)
                self.refused.forget(key)
                self._wait_until(key, None)
            elif before.content["spec"] != after.content["spec"]:
                owner = self._owner_of(after.content)
                if owner is not None:
                    self._mark(owner.key)
                if kind in (DEPLOYMENT, STATEFUL_SET) and _template(before) != _template(after):
                    self._note_old_template(key, before)
                if kind == JOB and before.content["spec"].get("suspend"):
                    self._tally_of(after).resumed_seconds = self._clock.epoch_seconds()
                self._mark(key)

    def _note_old_template(self, key: ObjectKey, before: StoredObject) -> None:
        """Note a changed template. The template before it counts as the old one, unless pods of an
        older template still exist."""
        older = self._old_templates.get(key)
        pods = self._index()[_Owner(key, before.content["metadata"]["uid"])].active.values()
        if older is None or template_hash(older) not in map(_revision, pods):
            self._old_templates[key] = before.content["spec"]["template"]

    def _mark_users_of(self, claim: ObjectKey) -> None:
        """Let the StatefulSet of a pod that waits make a claim again that is gone."""
        for stored in self._cluster.objects(STATEFUL_SET):
            for template in stored.content["spec"].get("volumeClaimTemplates") or ():
                prefix = f"{template['metadata']['name']}-{stored.key.name}-"
                if claim.namespace == stored.key.namespace and claim.name.startswith(prefix):
                    self._mark(stored.key)

    def notes(self) -> list[str]:
        """The notes for the end of the run: which controllers lack pods, and which rollouts are not
        complete."""
        notes = self.refused.notes()
        for key in self.waiting:
            stored = self._cluster.get(key)
            if stored is not None and key.kind == DEPLOYMENT:
                sets = self._sets_of(_Owner(key, stored.content["metadata"]["uid"]))
                notes.append(f"{key}: {progress(stored.content, sets)}")
        return notes

    def go_on_with_rollouts(self) -> None:
        """Continue with rollouts: Deployments and StatefulSets of the input may be in the middle of
        one."""
        sets: dict[_Owner, list[Content]] = {}
        for stored in self._cluster.objects(REPLICA_SET):
            owner = self._owner_of(stored.content)
            if owner is not None and owner.key.kind == DEPLOYMENT:
                sets.setdefault(owner, []).append(stored.content)
        for owner, contents in sets.items():
            stored = self._cluster.get(owner.key)
            if stored is not None and _is_rolling(stored.content, contents):
                self._mark(owner.key)
        for stored in self._cluster.objects(STATEFUL_SET):
            status = stored.content.get("status") or {}
            if status.get("updateRevision") != status.get("currentRevision"):
                self._mark(stored.key)

    def find_surplus_pods(self) -> None:
        """Let the controllers of the input delete pods that they do not want, or that are on nodes
        for which they are no longer meant."""
        counts = Counter[_Owner]()
        for stored in self._cluster.objects(POD):
            if stored.object.metadata.owner_references and is_active(stored.content):
                owner = self._owner_of(stored.content)
                if owner is not None:
                    counts[owner] += 1
        for owner, count in counts.items():
            stored = self._cluster.get(owner.key)
            if stored is not None and stored.content["metadata"]["uid"] == owner.uid:
                wanted = _target_count(stored.content)
                if wanted is None or count > wanted:
                    self._mark(owner.key)

    def expects_pods(self, key: ObjectKey) -> None:
        """Note a new StatefulSet, of whose pods some are created later."""
        self.waiting[key] = None

    def job_begins(self, job: Content) -> None:
        """Note a new Job, whose first pods are created next. It may have a deadline."""
        self._wait_until(key_of(job), deadline_seconds(job, None))

    def pods_for_node(self, name: str) -> Iterator[Content]:
        """The pods that DaemonSets create for a new node, one after the other."""
        for stored in self._cluster.objects(DAEMON_SET):
            yield from self._plan(stored, name).create

    def dependents(self, stored: StoredObject) -> list[ObjectKey]:
        """The pods and ReplicaSets of a deleted controller, in the order of creation, and the
        claims that go with it, whether they exist or not."""
        owner = _Owner(stored.key, stored.content["metadata"]["uid"])
        if stored.key.kind == DEPLOYMENT:
            return [one.key for one in self._replica_sets(owner)]
        pods = list(_all(self._index().get(owner)))
        keys = {object_key(POD, stored.key.namespace, _name(pod)) for pod in pods}
        dependents = [one.key for one in self._cluster.objects(POD) if one.key in keys]
        if stored.key.kind == STATEFUL_SET:
            dependents += claims_after_deletion(stored.content, pods)
        return dependents

    # ---- the index --------------------------------------------------------------------------

    def _index(self) -> dict[_Owner, OwnedPods]:
        if self._pods is None:
            self._pods = _PodsByOwner()
            for stored in self._cluster.objects(POD):
                owner = self._owner_of(stored.content)
                if owner is not None:
                    self._pods[owner].put(stored.content)
            self._cluster.observe(self._observe, (POD,))
        return self._pods

    def _observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Keep the index current. `pod_lost` reports pods that go."""
        if after is None or not after.object.metadata.owner_references:
            return
        if is_active(after.content):
            owner = self._owner_of(after.content)
            if owner is not None:
                assert self._pods is not None
                self._pods[owner].put(after.content)

    def _owner_of(self, content: Content) -> _Owner | None:
        """The workload controller of an object, whether it exists or not."""
        for one in content["metadata"].get("ownerReferences") or ():
            key = key_of_reference(one, content["metadata"].get("namespace") or "")
            if key.kind in CONTROLLERS:
                return _Owner(key, one.get("uid") or self._uid(key))
        return None

    def _uid(self, key: ObjectKey) -> str:
        stored = self._cluster.get(key)
        return "" if stored is None else stored.content["metadata"]["uid"]

    def _replica_sets(self, deployment: _Owner) -> list[StoredObject]:
        sets = self._cluster.objects(REPLICA_SET)
        return [one for one in sets if self._owner_of(one.content) == deployment]

    # ---- losses -----------------------------------------------------------------------------

    def _learn_next(self) -> None:
        self._learn(self._losses.popleft()[1])

    def _learn(self, loss: _Loss) -> None:
        owner, pod = loss.owner, loss.pod
        index = self._index()
        pods = index[owner]
        if owner.key.kind == JOB:
            self._tally(owner, loss)
        if loss.is_finished:
            pods.finished[pod["metadata"]["uid"]] = pod
        if loss.is_gone:
            pods.remove(pod["metadata"]["uid"])
            self._delete_claims(owner, pod)
        else:
            pods.put(pod)
        if JOB_TRACKING in (pod["metadata"].get("finalizers") or ()):
            self._counted.append(key_of(pod))
        node = target_node(pod) if owner.key.kind == DAEMON_SET else None
        self._mark(owner.key, node or "")
        self._mark_if_waiting(owner)

    def _delete_claims(self, owner: _Owner, pod: Content) -> None:
        """Delete the claims that a StatefulSet does not retain when it is scaled down."""
        stored = self._cluster.get(owner.key) if owner.key.kind == STATEFUL_SET else None
        if stored is not None and stored.content["metadata"]["uid"] == owner.uid:
            for key in claims_after_scaling(stored.content, pod):
                running_loop().call_soon(self._delete_if_there, key)

    def _delete_if_there(self, key: ObjectKey) -> None:
        if self._cluster.get(key) is not None:
            self._cluster.delete(key)

    def _tally(self, owner: _Owner, loss: _Loss) -> None:
        """Count a pod of a Job that has ended, or that goes before its end."""
        stored = self._cluster.get(owner.key)
        if stored is None or stored.content["metadata"]["uid"] != owner.uid:
            return
        job, pod, tally = stored.content, loss.pod, self._tally_of(stored)
        if loss.is_finished:
            pod = {**pod, "status": {**pod["status"], "phase": "Succeeded"}}
        if has_ended(pod) or loss.is_gone or not replaces_failed_only(job):
            tally.count(job, pod, loss.at_seconds)

    def _tally_of(self, stored: StoredObject) -> JobTally:
        """The tally of a Job."""
        owner = _Owner(stored.key, stored.content["metadata"]["uid"])
        if owner not in self._tallies:
            self._tallies[owner] = JobTally(stored.content)
        return self._tallies[owner]

    # ---- plans ------------------------------------------------------------------------------

    def _mark(self, key: ObjectKey, node: str = "") -> None:
        """Note that a controller has work to do."""
        if not self._dirty:
            running_loop().call_soon(self._work)
        self._dirty[key, node] = None

    def _work(self) -> None:
        while self._counted:
            self._release(self._counted.popleft())
        while self._dirty:
            key, node = next(iter(self._dirty))
            del self._dirty[key, node]
            stored = self._cluster.get(key)
            if stored is not None:
                self._carry_out(stored, self._plan(stored, node), is_whole=not node)

    def _release(self, key: ObjectKey) -> None:
        """Remove the finalizer with which a Job's controller waits for the end of a pod."""
        stored = self._cluster.get(key)
        if stored is not None:
            finalizers = stored.content["metadata"].get("finalizers") or ()
            left = [one for one in finalizers if one != JOB_TRACKING]
            self._cluster.server.patch(key, {"metadata": {"finalizers": left}})

    def _plan(self, stored: StoredObject, node: str = "") -> Plan:
        content = stored.content
        owner = _Owner(stored.key, content["metadata"]["uid"])
        if kind_of(content) == DEPLOYMENT:
            return self._deployment_plan(stored, owner)
        pods, surroundings = self._index()[owner], self._surroundings(owner, node)
        if kind_of(content) == STATEFUL_SET:
            return stateful_set_plan(content, pods, surroundings)
        if kind_of(content) != JOB:
            return plan_of(content, pods, surroundings)
        return job_plan(content, pods, self._tally_of(stored), surroundings)

    def _deployment_plan(self, stored: StoredObject, owner: _Owner) -> Plan:
        is_changed = stored.key in self._old_templates
        return deployment_plan(stored.content, self._sets_of(owner), has_new_template=is_changed)

    def _sets_of(self, deployment: _Owner) -> list[ReplicaSetPods]:
        index = self._index()
        return [
            ReplicaSetPods(one.content, index[_Owner(one.key, one.content["metadata"]["uid"])])
            for one in self._replica_sets(deployment)
        ]

    def _surroundings(self, owner: _Owner, node: str) -> Surroundings:
        nodes: list[Content] = []
        if owner.key.kind == DAEMON_SET:
            stored = self._cluster.get(object_key(NODE, "", node)) if node else None
            there = self._cluster.objects(NODE) if not node else filter(None, (stored,))
            nodes = [one.content for one in there]
        return Surroundings(
            now_seconds=self._clock.epoch_seconds(),
            exists=lambda key: self._cluster.get(key) is not None,
            was_named=self._was_named,
            names=lambda controller: self._names_for(owner, controller),
            nodes=nodes,
            old_template=self._old_templates.get(owner.key),
        )

    def _names_for(self, owner: _Owner, controller: Content) -> Iterator[str]:
        if owner not in self._names:
            namespace = owner.key.namespace
            self._names[owner] = pod_names(
                controller, lambda name: self._was_named(namespace, name)
            )
        return self._names[owner]

    def _was_named(self, namespace: str, name: str) -> bool:
        return self._cluster.server.was_created(object_key(POD, namespace, name))

    def _wait_until(self, key: ObjectKey, next_seconds: float | None) -> None:
        """Continue with a controller at a time, in seconds since 1970; None: there is no such
        time."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if next_seconds is not None:
            delay = max(next_seconds - self._clock.epoch_seconds(), 0.0)
            self._timers[key] = running_loop().call_later(delay, self._go_on, key)

    def _go_on(self, key: ObjectKey) -> None:
        del self._timers[key]
        self._mark(key)

    def _carry_out(self, stored: StoredObject, plan: Plan, *, is_whole: bool) -> None:
        """Do what a plan says. ``is_whole``: whether the plan is about all pods of the controller,
        and not those of one node."""
        key = stored.key
        if key.kind == JOB:
            self._wait_until(key, plan.next_seconds)
        if key.kind in (STATEFUL_SET, DEPLOYMENT):
            self.waiting.pop(key, None)
            if plan.waits_for_pod:
                self.waiting[key] = None
        for patched_key, patch in plan.patches:
            self._cluster.server.patch(patched_key, patch)
            if patched_key == key:
                self._say_how_it_ended(key, patch)
        for pod in plan.delete:
            self._delete_if_there(pod)
        is_refused = False
        if plan.create and self._may_create(stored, plan):
            is_refused = not self._create_all(key, plan.create)
        if is_whole and not is_refused:
            self.refused.forget(key)

    def _create_all(self, key: ObjectKey, contents: Sequence[Content]) -> bool:
        """Create objects in batches whose sizes double. After a refusal, no batch follows. Returns
        whether there was no refusal.

        Upstream: replica_set.go (slowStartBatch). A StatefulSet creates one object at a time.
        """
        created_count, size = 0, 1
        while created_count < len(contents):
            batch = contents[created_count : created_count + size]
            problems = [(one, problem) for one in batch if (problem := self._create(one))]
            if problems:
                pods = sum(map(is_pod, contents[created_count:])) - len(batch) + len(problems)
                one, problem = problems[-1]
                lacking = self._lacking_count(key, pods)
                self.refused.add(key, key_of(one), problem, lacking_count=lacking)
                return False
            created_count += size
            size *= 1 if key.kind == STATEFUL_SET else 2
        if key.kind == DEPLOYMENT:
            for one in (*map(key_of, contents), key):
                self._mark(one)
        return True

    def _lacking_count(self, key: ObjectKey, refused_count: int) -> int:
        """How many pods a controller lacks. An ordered StatefulSet tries one after the other."""
        stored = self._cluster.get(key)
        if stored is None or key.kind not in (STATEFUL_SET, DEPLOYMENT):
            return refused_count
        pods = self._index()[_Owner(key, stored.content["metadata"]["uid"])]
        return replica_count(stored.content) - len(pods.active)

    def creation_was_refused(self, content: Content, problem: ApiError) -> bool:
        """Note that the API server refused an object of the input. Returns whether a controller
        will try again to create it."""
        owner = self._existing_owner_of(content)
        if owner is not None:
            lacking = self._lacking_count(owner, int(is_pod(content)))
            self.refused.add(owner, key_of(content), problem, lacking_count=lacking)
        return owner is not None

    def waits_to_create(self, content: Content) -> bool:
        """Whether the controller of an object of the input creates it later, because the API server
        refused one before it."""
        owner = self._existing_owner_of(content)
        if owner is None or owner not in self.refused:
            return False
        if owner.kind != STATEFUL_SET:
            self.refused.skip(owner)
        return True

    def _existing_owner_of(self, content: Content) -> ObjectKey | None:
        owner = self._owner_of(content)
        return None if owner is None or self._cluster.get(owner.key) is None else owner.key

    def _say_how_it_ended(self, key: ObjectKey, patch: Content) -> None:
        """Write a note about a Job that failed. A Job that is complete gets none."""
        last = patch["status"]["conditions"][-1]
        if last["type"] == "Failed":
            self._note(f"at {self._clock.now():g} s: {key} failed: {last['reason']}")

    def _may_create(self, stored: StoredObject, plan: Plan) -> bool:
        key = stored.key
        if key in self.refused:
            return True
        self._created[key] += sum(map(is_pod, plan.create))
        if self._created[key] <= _ROUNDS * (_pod_count(stored.content, self._cluster) + 1):
            return True
        if key not in self._stopped:
            self._stopped.add(key)
            self._note(
                f"at {self._clock.now():g} s: {key} creates no more pods: "
                "its pods go as fast as they are created"
            )
        return False


@final
class _PodsByOwner(dict[_Owner, OwnedPods]):
    """The pods of each controller. A controller without an entry has none."""

    def __missing__(self, owner: _Owner) -> OwnedPods:
        pods = self[owner] = OwnedPods()
        return pods


def _all(pods: OwnedPods | None) -> Iterator[Content]:
    if pods is not None:
        yield from pods.existing()
        yield from pods.finished.values()


def _name(content: Content) -> str:
    name: str = content["metadata"]["name"]
    return name


def _template(stored: StoredObject) -> object:
    return stored.content["spec"].get("template")


def _is_rolling(deployment: Content, replica_sets: Sequence[Content]) -> bool:
    """Whether the ReplicaSets differ from those at the end of a rollout."""
    sizes = [replica_count(one) for one in replica_sets if replica_count(one)]
    if sizes != [replica_count(deployment)] or len(replica_sets) == 1:
        return sum(sizes) != replica_count(deployment) or len(sizes) > 1
    new = new_replica_set(deployment, replica_sets)
    return new is not None and not replica_count(new)


def _revision(pod: Content) -> str:
    """The revision of a StatefulSet's pod."""
    revision: str = (pod["metadata"].get("labels") or {}).get(REVISION_HASH_LABEL, "")
    return revision


def _node_parts(stored: StoredObject) -> tuple[object, object]:
    """What DaemonSets read of a node. Upstream: shouldIgnoreNodeUpdate."""
    content = stored.content
    return content["metadata"].get("labels"), (content.get("spec") or {}).get("taints")


def _target_count(controller: Content) -> int | None:
    """The most pods that a controller leaves running; None: that depends on the nodes."""
    kind, spec = kind_of(controller), controller["spec"]
    if kind == DAEMON_SET:
        return None
    if kind == JOB:
        parallelism = spec.get("parallelism")
        return 0 if spec.get("suspend") else 1 if parallelism is None else parallelism
    return replica_count(controller)


def _pod_count(controller: Content, cluster: EmbeddedCluster) -> int:
    """The most pods that a controller wants at a time, or in all if it is a Job."""
    kind, spec = kind_of(controller), controller["spec"]
    if kind == DAEMON_SET:
        return len(cluster.objects(NODE))
    if kind == JOB:
        return max(spec.get("completions") or 0, spec.get("parallelism") or 1)
    return replica_count(controller)
