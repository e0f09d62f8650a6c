"""The consequences of the commands of a fix: changes in a trial, and what controllers do after
them.

A fix is tried by making the changes that its commands make, in a model, and by letting the
controllers act on them: new pods pass through admission, a smaller controller removes the pods that
the real one would remove, a changed template rolls out under the limits of its strategy, and a new
node first gets the pods of its DaemonSets. The scheduler tries every new pod; a pod that gets a
node counts as running. A fix is offered only if pods that waited have a node at the end.

Other pods that wait are not tried, and at most `_PLACED_MAX` pods are tried for one fix. The first
of several equal pods is placed. The others are only counted if a count proves how many of them fit
(`model.independent_pods`), and if nothing after them depends on their nodes. If an attempt fails
and changes nothing, equal pods that follow fail, too.

The next step of a controller follows from the plans of a simulation
(`bayplan.sim.world.workloads`). For a DaemonSet it follows upstream's daemon/update.go.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import cast, final

from bayplan.adapters.embedded.json_merge import merge_patch
from bayplan.api.objects import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Pod,
)
from bayplan.clock import epoch_of
from bayplan.explain.explanation import Change
from bayplan.explain.fixes.edits import EditNotPossibleError, patched, plain
from bayplan.explain.fixes.owners import Owners
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import Attempt, ClusterModel
from bayplan.model.daemon_pods import place_daemon_pods
from bayplan.model.independent_pods import UNKNOWN_ROOM, IndependentPods, Room
from bayplan.objects.keys import Content, ObjectKey, key_of
from bayplan.objects.workloads import pod_name
from bayplan.problems import BadInputError
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.controller_pods import (
    is_active,
    pod_for_node,
    pod_names,
    replica_count,
    target_node,
    with_uid,
)
from bayplan.sim.input.jobs import job_pods
from bayplan.sim.world.workloads.deployment_plan import ReplicaSetPods, deployment_plan
from bayplan.sim.world.workloads.plans import (
    OwnedPods,
    Surroundings,
    plan_of,
    ranked_for_removal,
    restart_count,
)
from bayplan.sim.world.workloads.stateful_set_plan import stateful_set_plan
from bayplan.state.pods import PodInfo, PodShape

#: The most pods that are tried for one fix.
_PLACED_MAX = 100
#: The number of pods of one template that fail in a row after which no more are tried.
_FAILED_MAX = 3
#: A bound of the passes of one controller. Each pass changes something, so it is never reached.
_PASSES_MAX = 1000
_TEMPLATE = "/spec/template"
#: The controllers that read little of their pods.
_WITH_OUTLINES = frozenset((REPLICA_SET, REPLICATION_CONTROLLER))


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a fix."""

    #: The node of the pod, or of the pod that replaces it; "": it gets none.
    node: str
    #: The number of pods of the workload that wait now, and of those that get a node.
    waiting: int
    helped: int
    #: Whether some of them were not tried, so that more of them may get a node.
    is_bounded: bool = False
    #: Pods of other workloads that preemption evicts.
    victims: tuple[str, ...] = ()


@final
class Consequences:
    """The changes of one fix in a trial of a model. Use it once, within `ClusterModel.trial`."""

    def __init__(
        self, model: ClusterModel, owners: Owners, *, workload: ObjectKey | None, copied_node: str
    ) -> None:
        """``workload``: the controller of the pod that waits. ``copied_node``: the node of which
        new nodes are copies; "": there are no new nodes."""
        self._model = model
        self._owners = owners
        self._workload = workload
        self._copied_node = copied_node
        self._admission = AdditionsReader(model, scheduler_name=None)
        self._independent = model.once(IndependentPods)
        #: Controllers as the fix leaves them.
        self._contents: dict[ObjectKey, Content] = {}
        #: Controllers that have something to do, in the order of the changes.
        self._busy: dict[ObjectKey, None] = {}
        #: Controllers whose template has changed.
        self._rolled: set[ObjectKey] = set()
        #: Their templates before the change.
        self._former: dict[ObjectKey, Content] = {}
        #: Controller → the names of its pods.
        self._names: dict[ObjectKey, list[str]] = {}
        #: New pods of the workload, and all new pods.
        self._replacements: list[str] = []
        self._created: set[str] = set()
        #: The nodes of daemon pods that the fix deletes.
        self._daemon_nodes: list[str] = []
        self._placed_count = 0
        #: The pods that preemption evicts.
        self._victims: list[PodInfo] = []
        #: The pods of the workload that wait at the beginning; None: nobody counts which of them
        #: get a node.
        self._peers: Sequence[str] | None = None
        #: Pods that certainly get a node, although they have none in the model; and equal pods that
        #: get none.
        self._counted: set[str] = set()
        self._failing: set[str] = set()

    def of(self, changes: Iterable[Change], pod: str, peers: Sequence[str]) -> Outcome:
        """The outcome of the changes. ``peers``: the pods of the workload that wait.

        Raises EditNotPossibleError for changes that the API server refuses.
        """
        self._peers = peers
        before, waiting = self._placed(peers), len(peers) + self._missing()
        self.make(changes)
        self._place_all(peers, is_last=self._workload_kind != STATEFUL_SET)
        if self._workload is not None and self._missing():
            # A StatefulSet continues when the pod that it waits for runs.
            with _refusals():
                self._sync(self._workload)
        replaced = [*peers, *self._replacements]
        left = sum(map(self._is_waiting, replaced)) + self._missing()
        gained = self._placed(peers) - before
        helped = min(waiting, max(waiting - left, gained, 0))
        node = self._node(pod) or next(filter(None, map(self._node, replaced)), "")
        is_bounded = self._placed_count >= _PLACED_MAX and helped < waiting
        # An evicted pod of the workload is replaced, so its eviction is a part of the rollout.
        victims = tuple(
            each.key
            for each in self._victims
            if self._workload is None or self._owners.of(each) != self._workload
        )
        return Outcome(node, waiting, helped if node else 0, is_bounded, victims)

    @property
    def _workload_kind(self) -> str:
        return "" if self._workload is None else self._workload.kind

    def _missing(self) -> int:
        """How many pods a StatefulSet has not created yet."""
        key = self._workload
        if key is None or key.kind != STATEFUL_SET:
            return 0
        present = sum(self._model.pod(name) is not None for name in self._pods(key))
        return max(replica_count(self._content(key)) - present, 0)

    def make(self, changes: Iterable[Change]) -> None:
        """Make changes, and let the controllers act. Raises EditNotPossibleError."""
        nodes: list[str] = []
        with _refusals():
            for change in changes:
                self._make(change)
                if change.verb == "create" and change.kind == NODE:
                    nodes.append(change.name)
            if nodes:
                place_daemon_pods(self._model, nodes, self._admission, self._copied_node)
            for key in list(self._busy):
                self._control(key)

    def _placed(self, peers: Sequence[str]) -> int:
        """How many pods of the workload have a node."""
        own = [] if self._workload is None else self._owners.pods(self._workload)
        names = {pod_name(each) for each in own}
        every = {*names, *peers, *self._replacements}
        return sum(name in self._counted or bool(self._node(name)) for name in every)

    def _node(self, name: str) -> str:
        pod = self._model.pod(name)
        return "" if pod is None else pod.spec.node_name or ""

    # ---- changes ----------------------------------------------------------------------------

    def _make(self, change: Change) -> None:
        key = ObjectKey(change.kind, change.namespace, change.name)
        if change.verb == "patch":
            self._patch(key, change)
        elif change.verb == "delete":
            self._delete(key)
        elif change.content is not None:
            if change.verb == "replace":
                self._delete(key, is_for_good=True)
            self._create(key, change.content)

    def _create(self, key: ObjectKey, content: Content) -> None:
        if key.kind in (POD, PERSISTENT_VOLUME_CLAIM):
            self._admit([content], None)
        elif key.kind == JOB:
            made = {**content, "metadata": {**content["metadata"], "uid": f"new-{key.name}"}}
            self._admit(job_pods(made, [])[0], key)
        elif key.kind not in CONTROLLERS:
            self._model.add(key.kind, self._model.decoded(key.kind, content))

    def _delete(self, key: ObjectKey, *, is_for_good: bool = False) -> None:
        if key.kind == JOB:
            for name in self._pods(key):
                self._remove(name)
        elif key.kind != POD:
            self._model.remove(*key)
        else:
            name = f"{key.namespace}/{key.name}"
            pod = self._model.pod(name)
            parent = None if pod is None else self._owners.parent(pod.metadata, key.namespace)
            if parent is not None and not is_for_good:
                if parent.kind not in CONTROLLERS:
                    raise EditNotPossibleError(f"{parent} makes the pod again")
                self._keep_target(parent, name)
                self._busy[parent] = None
            self._remove(name)

    def _patch(self, key: ObjectKey, change: Change) -> None:
        if key.kind in CONTROLLERS:
            before = self._content(key)
            self._contents[key] = patched(before, change.patch)
            self._busy[key] = None
            if any(operation["path"].startswith(_TEMPLATE) for operation in change.patch):
                self._rolled.add(key)
                self._former.setdefault(key, before["spec"]["template"])
            return
        present = self._model.get(*key)
        if present is None:
            raise EditNotPossibleError(f"there is no {key}")
        content = patched(plain(present), change.patch)
        if key.kind == PERSISTENT_VOLUME and not content["spec"].get("claimRef"):
            content["status"] = {"phase": "Available"}
        self._model.replace(key.kind, self._model.decoded(key.kind, content))

    # ---- pods -------------------------------------------------------------------------------

    def _admit(self, contents: Sequence[Content], controller: ObjectKey | None) -> None:
        """Create pods and what they need, as the API server admits them."""
        is_last = self._is_last(controller)
        additions = self._admission(list(contents))
        # Admission only read the objects that exist already.
        self._model.add_missing(additions.objects)
        for pod in additions.pods:
            self._model.add(POD, pod)
            name = pod_name(pod)
            self._created.add(name)
            if controller is not None:
                self._pods(controller).append(name)
            if controller is None or self._owners.top(controller) == self._workload:
                self._replacements.append(name)
        names = [pod_name(pod) for pod in additions.pods]
        self._place_each(names, is_last=is_last)

    def _is_last(self, controller: ObjectKey | None) -> bool:
        """Whether nothing is placed after the new pods of a controller, and nothing depends on
        where they are."""
        if self._peers is None or controller is None or controller.kind not in _WITH_OUTLINES:
            return False
        is_alone = self._workload == controller and list(self._busy) == [controller]
        return is_alone and not any(map(self._is_waiting, self._peers))

    def _place_all(self, names: Sequence[str], *, is_last: bool = False) -> None:
        """Make attempts at the pods of the workload. They are equal, except those of a DaemonSet,
        so if some in a row fail, the others do, too. ``is_last``: nothing is placed after them."""
        is_equal = self._workload is not None and self._workload.kind != DAEMON_SET
        self._place_each(names, _FAILED_MAX if is_equal else None, is_last=is_last)

    def _place_each(
        self, names: Sequence[str], failed_max: int | None = None, *, is_last: bool
    ) -> None:
        """Make attempts at pods, until several in a row fail. A pod is only counted if the attempt
        at an equal pod shows its outcome."""
        place = failed = 0
        #: Whether the proof has worked so far. If it fails for one pod, it mostly fails for all.
        may_count = is_last
        while place < len(names) and (failed_max is None or failed < failed_max):
            name = names[place]
            place += 1
            attempt, room = self._place(name)
            following = names[place : place + max(_PLACED_MAX - self._placed_count, 0)]
            equal: Sequence[str] = ()
            fitting_count = 0
            if self._is_waiting(name):
                failed += 1
                equal = self._equal_failures(attempt, following)
            else:
                failed = 0
                if may_count and attempt is not None:
                    equal = self._equal_to(name, following)
                    may_count = _says_enough(room, equal, following)
                    equal = equal if may_count else ()
                    fitting_count = min(room.pod_count, len(equal))
                    self._failing.update(equal[fitting_count:])
            if failed_max is not None:
                equal = equal[: fitting_count + failed_max - failed]
            self._counted.update(equal[:fitting_count])
            self._placed_count += len(equal)
            place += len(equal)
            failed += len(equal) - fitting_count

    def _equal_to(self, placed: str, names: Sequence[str]) -> Sequence[str]:
        """The first names, as far as their pods are equal to a pod that has a node."""
        first = self._model.placed(placed)
        if first is None or not self._independent.covers(first.shape):
            return ()
        signed = self._independent.signed(first)
        shapes: set[PodShape] = set()
        return list(takewhile(lambda name: self._is_equal(name, signed, shapes), names))

    def _equal_failures(self, attempt: Attempt | None, names: Sequence[str]) -> Sequence[str]:
        """The first names, as far as their pods fail as a pod did before, because that attempt
        changed nothing."""
        if attempt is None or attempt.node or attempt.victims or attempt.placed_members:
            return ()
        template = self._independent.template(attempt.pod)
        if template is None:
            return ()
        return list(takewhile(lambda name: self._has_template(name, template), names))

    def _has_template(self, name: str, template: Hashable) -> bool:
        info = self._model.waiting(name)
        if info is None or info.is_terminating:
            return False
        return self._independent.template(info) == template

    def _is_equal(self, name: str, signed: Hashable | None, shapes: set[PodShape]) -> bool:
        """Whether a pod waits, and the scheduler decides about it as about a pod with this
        signature. ``shapes``: the shapes of such pods, to which the function adds."""
        info = self._model.waiting(name)
        if info is None or signed is None or info.nominated_node_name or info.is_terminating:
            return False
        if info.shape in shapes:
            return True
        independent = self._independent
        if not independent.covers(info.shape) or independent.signed(info) != signed:
            return False
        shapes.add(info.shape)
        return True

    def _place(self, name: str) -> tuple[Attempt | None, Room]:
        """Make one attempt at a pod that waits. Returns how many equal pods have room after it;
        None: there was no attempt."""
        pod = None if name in self._counted else self._model.pod(name)
        if pod is None or pod.spec.node_name or self._placed_count >= _PLACED_MAX:
            return None, UNKNOWN_ROOM
        if not self._model.scheduler.is_responsible_for(pod.spec.scheduler_name):
            return None, UNKNOWN_ROOM
        self._placed_count += 1
        if name in self._failing:
            return None, UNKNOWN_ROOM
        attempt, room = self._independent.place(name)
        self._victims += attempt.victims
        return attempt, room

    def _remove(self, name: str) -> None:
        namespace, _, own = name.partition("/")
        self._model.remove(POD, namespace, own)

    def _pods(self, controller: ObjectKey) -> list[str]:
        """The names of a controller's pods: those that were there at the beginning, and the new
        ones."""
        if controller not in self._names:
            top = self._owners.top(controller)
            self._names[controller] = [
                pod_name(pod)
                for pod in self._owners.pods(top)
                if self._owners.parent(pod.metadata, controller.namespace) == controller
            ]
        return self._names[controller]

    def _pod_contents(self, controller: ObjectKey) -> list[Content]:
        pods = ((name, self._model.pod(name)) for name in self._pods(controller))
        if controller.kind in _WITH_OUTLINES:
            return [self._owners.pod_outline(pod) for _, pod in pods if pod is not None]
        return [self._pod_content(name, pod) for name, pod in pods if pod is not None]

    def _restart_count(self, outline: Content) -> int:
        key = key_of(outline)
        name = f"{key.namespace}/{key.name}"
        pod = self._model.pod(name)
        assert pod is not None, f"the controller sees {name}"
        return restart_count(self._pod_content(name, pod))

    def _pod_content(self, name: str, pod: Pod) -> Content:
        """A pod as its controller sees it. A pod that got its node in the trial runs."""
        content = self._owners.pod_content(pod, is_new=name in self._created)
        meta = {**content["metadata"], "uid": pod.metadata.uid}
        if pod.metadata.annotations:
            meta["annotations"] = dict(pod.metadata.annotations)
        content = {**content, "apiVersion": "v1", "kind": "Pod", "metadata": meta}
        node = pod.spec.node_name
        if node and not self._owners.had_node(pod):
            content["spec"] = {**content["spec"], "nodeName": node}
            content["status"] = {"phase": "Running"}
        return content

    # ---- controllers ------------------------------------------------------------------------

    def _content(self, key: ObjectKey) -> Content:
        """A controller as it is now. One that was not read has its size and an empty template."""
        content = self._contents.get(key) or self._owners.template_content(key)
        content = content or self._owners.content(key) or self._owners.outline(key)
        size = "parallelism" if key.kind == JOB else "replicas"
        if key.kind != DAEMON_SET and content["spec"].get(size) is None:
            content["spec"][size] = self._owners.size(key)
        meta = content["metadata"]
        if not meta.get("uid"):
            meta["uid"] = self._owners.uid(key) or f"uid-of-{key.name}"
        meta.setdefault("namespace", key.namespace)
        return content

    def _control(self, key: ObjectKey) -> None:
        if key.kind == DEPLOYMENT:
            self._control_deployment(key)
        elif key.kind == DAEMON_SET:
            self._control_daemons(key)
        elif key.kind == JOB:
            self._control_job(key)
        else:
            self._sync(key)

    def _sync(self, key: ObjectKey) -> None:
        """Make passes of a controller of pods until it has nothing more to do."""
        content = self._content(key)
        self._contents[key] = content
        plan_for = stateful_set_plan if key.kind == STATEFUL_SET else plan_of
        for _ in range(_PASSES_MAX):
            pods = self._pod_contents(key)
            plan = plan_for(content, OwnedPods(pods), self._surroundings(key, pods))
            if not plan.delete and not plan.create:
                return
            for pod in plan.delete:
                self._remove(f"{pod.namespace}/{pod.name}")
            if key.kind in _WITH_OUTLINES and not plan.create:
                return  # As many pods are left as the controller wants.
            if plan.create:
                self._require_template(key, content)
                self._admit(plan.create, key)
        raise AssertionError(f"{key} does not settle")

    def _require_template(self, key: ObjectKey, content: Content) -> None:
        if not content["spec"]["template"]["spec"].get("containers"):
            raise EditNotPossibleError(f"the template of {key} was not read")

    def _surroundings(self, key: ObjectKey, pods: Iterable[Content]) -> Surroundings:
        stamps = (pod["metadata"].get("creationTimestamp") for pod in pods)
        newest = max((epoch_of(stamp) or 0.0 for stamp in stamps), default=0.0)
        return Surroundings(
            now_seconds=max(self._model.source.epoch_seconds, newest),
            exists=lambda key: self._model.get(*key) is not None,
            was_named=self._was_named,
            names=self._new_names,
            old_template=self._former.get(key),
            restart_count=self._restart_count,
        )

    def _was_named(self, namespace: str, name: str) -> bool:
        return self._model.get(POD, namespace, name) is not None

    def _new_names(self, controller: Content) -> Iterator[str]:
        namespace = key_of(controller).namespace
        return pod_names(controller, lambda name: self._was_named(namespace, name))

    # ---- Deployments ------------------------------------------------------------------------

    def _control_deployment(self, key: ObjectKey) -> None:
        """Make passes over a Deployment until its rollout is complete or stuck."""
        deployment, sets = self._content(key), self._owners.replica_sets(key)
        has_new_template = key in self._rolled
        if has_new_template:
            self._require_template(key, deployment)
        for each in sets:
            self._contents[each] = self._content(each)
        before: list[tuple[int, list[str]]] | None = None
        while (state := self._state(sets)) != before:
            before = state
            pods = {each: OwnedPods(self._pod_contents(each)) for each in sets}
            listed = [ReplicaSetPods(self._contents[each], pods[each]) for each in sets]
            plan = deployment_plan(deployment, listed, has_new_template=has_new_template)
            sets += [self._adopted(key, content) for content in plan.create]
            for changed, patch in plan.patches:
                self._contents[changed] = merge_patch(self._contents[changed], patch)
            for each in sets:
                self._sync(each)
                self._place_all(self._pods(each))

    def _state(self, sets: Iterable[ObjectKey]) -> list[tuple[int, list[str]]]:
        """The size of each ReplicaSet, and the nodes of its pods."""
        return [
            (replica_count(self._contents[each]), [self._node(name) for name in self._pods(each)])
            for each in sets
        ]

    def _adopted(self, deployment: ObjectKey, content: Content) -> ObjectKey:
        """The key of a new ReplicaSet, which is noted."""
        key = key_of(content)
        self._contents[key] = with_uid(content)
        self._names[key] = []
        self._owners.adopt(key, deployment)
        return key

    # ---- DaemonSets and Jobs ----------------------------------------------------------------

    def _is_waiting(self, name: str) -> bool:
        if name in self._counted:
            return False
        return self._model.pod(name) is not None and not self._node(name)

    def _keep_target(self, controller: ObjectKey, name: str) -> None:
        """Note the node of a daemon pod that is deleted."""
        if controller.kind == DAEMON_SET:
            pod = cast(Pod, self._model.pod(name))
            self._daemon_nodes.append(target_node(self._pod_content(name, pod)) or "")

    def _control_daemons(self, key: ObjectKey) -> None:
        """Replace the pods that wait, then the others one by one."""
        content = self._content(key)
        self._contents[key] = content
        for node in self._daemon_nodes:
            self._replace_daemon(key, content, node)
        strategy = (content["spec"].get("updateStrategy") or {}).get("type")
        if key not in self._rolled or strategy == "OnDelete":
            return
        names = sorted(self._pods(key), key=self._node)
        for name in names:
            pod = self._model.pod(name)
            if pod is None or name in self._created:
                continue
            if pod.spec.node_name and any(map(self._is_waiting, self._pods(key))):
                return
            node = target_node(self._pod_content(name, pod)) or ""
            self._remove(name)
            self._replace_daemon(key, content, node)

    def _replace_daemon(self, key: ObjectKey, content: Content, node: str) -> None:
        self._require_template(key, content)
        name = next(self._new_names(content))
        self._admit([pod_for_node(content, name, node)], key)

    def _control_job(self, key: ObjectKey) -> None:
        spec = self._content(key)["spec"]
        active = [pod for pod in self._pod_contents(key) if is_active(pod)]
        wanted = 0 if spec.get("suspend") else spec.get("parallelism", 1)
        for pod in ranked_for_removal(active)[: max(len(active) - wanted, 0)]:
            self._remove(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")


def _says_enough(room: Room, equal: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the room shows the outcome of all pods that are equal to a placed one. ``equal``: the
    first names; nothing else is tried after them."""
    return room.pod_count >= len(equal) or (room.is_exact and len(equal) == len(names))


@contextmanager
def _refusals() -> Iterator[None]:
    """Raises EditNotPossibleError if the API server refuses something in the block."""
    try:
        yield
    except BadInputError as refusal:
        raise EditNotPossibleError(str(refusal)) from None
