"""Drains of nodes, as `kubectl drain` does them.

A drain cordons the node. If a pod needs a flag that is missing, the drain names the pod and evicts
nothing; the node stays cordoned. Otherwise all pods are evicted at once, except DaemonSet pods and
mirror pods. An eviction that a disruption budget refuses is tried again every 5 s. Upstream:
k8s.io/kubectl/pkg/drain (filters.go, drain.go).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import cast, final

from msgspec import Struct, field

from bayplan.adapters.embedded.api_errors import TooManyRequestsError
from bayplan.adapters.embedded.cluster import EmbeddedCluster
from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET
from bayplan.api.objects import DAEMON_SET, POD, Pod
from bayplan.clock import Clock
from bayplan.objects.keys import ObjectKey, object_key
from bayplan.objects.workloads import MIRROR_ANNOTATION, controller_reference
from bayplan.ports import ApiError, NotFoundError
from bayplan.sim.input.workload import DrainOptions, has_ended
from bayplan.sim.loop import running_loop

#: Upstream's EvictErrorRetryDelay.
RETRY_SECONDS = 5.0

#: Upstream's messages: daemonSetFatal, localStorageFatal, unmanagedFatal.
_DAEMON_SET = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
_LOCAL_STORAGE = "Pods with local storage (use --delete-emptydir-data to override)"
_UNMANAGED = "cannot delete Pods that declare no controller (use --force to override)"


# ---- which pods -----------------------------------------------------------------------------


class DrainPlan(Struct, frozen=True):
    """What a drain does with the pods of a node."""

    #: The pods to evict, in the order of their names.
    evicted: tuple[ObjectKey, ...]
    #: Why no pod is evicted, in kubectl's words; empty: the drain is possible.
    problems: tuple[str, ...]


def drain_plan(
    pods: Iterable[StoredObject], options: DrainOptions, exists: Callable[[ObjectKey], bool]
) -> DrainPlan:
    """The plan for the pods of a node. ``exists``: whether the object of a key exists."""
    evicted: list[ObjectKey] = []
    refusals: dict[str, list[str]] = defaultdict(list)
    for stored in sorted(pods, key=lambda one: (one.key.namespace, one.key.name)):
        refusal = _refusal(stored, options, exists)
        if refusal:
            refusals[refusal].append(f"{stored.key.namespace}/{stored.key.name}")
        elif refusal is not None:
            evicted.append(stored.key)
    problems = [f"{_sentence(text)}: {', '.join(names)}" for text, names in refusals.items()]
    return DrainPlan(tuple(evicted), tuple(problems))


def _sentence(text: str) -> str:
    return text if text.lower().startswith("cannot delete") else f"cannot delete {text}"


def _refusal(
    stored: StoredObject, options: DrainOptions, exists: Callable[[ObjectKey], bool]
) -> str | None:
    """Why a pod cannot be evicted; "": the pod is evicted; None: it stays. Upstream:
    makeFilters."""
    pod, has_gone = stored.content, has_ended(stored.content)
    controller = controller_reference(pod)
    if controller is not None and controller.get("kind") == "DaemonSet" and not has_gone:
        key = object_key(DAEMON_SET, stored.key.namespace, controller.get("name") or "")
        if exists(key):
            return None if options.ignore_daemonsets else _DAEMON_SET
        if not options.force:
            return f'daemonsets.apps "{key.name}" not found'
    if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        return None
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    has_local_storage = any(one.get("emptyDir") is not None for one in volumes)
    if has_local_storage and not has_gone and not options.delete_empty_dir_data:
        return _LOCAL_STORAGE
    if controller is None and not has_gone and not options.force:
        return _UNMANAGED
    return ""


# ---- drains under virtual time --------------------------------------------------------------


class _RefusedEviction(Struct):
    """An eviction that a budget refused."""

    node: str
    cause: str
    #: The versions of the pod and of the budgets of its namespace at that time.
    versions: tuple[int, ...]


class _Drain(Struct):
    """One drain that budgets delayed."""

    since_seconds: float
    waiting: set[ObjectKey] = field(default_factory=set[ObjectKey])


@final
class Drains:
    """The drains of one cluster."""

    def __init__(self, cluster: EmbeddedCluster, clock: Clock, note: Callable[[str], None]) -> None:
        """``note``: called with each line about the outcome of a drain."""
        self._cluster = cluster
        self._clock = clock
        self._note = note
        #: Evictions that are tried again, by the uid of the pod.
        self._refused: dict[tuple[ObjectKey, str], _RefusedEviction] = {}
        self._drains: dict[str, _Drain] = {}

    def begin(self, node: ObjectKey, options: DrainOptions) -> None:
        """Cordon a node and evict its pods. Raises ApiError: the node does not exist."""
        self._cluster.server.patch(node, {"spec": {"unschedulable": True}})
        pods = [
            one
            for one in self._cluster.objects(POD)
            if cast(Pod, one.object).spec.node_name == node.name
        ]
        plan = drain_plan(pods, options, self._exists)
        if plan.problems:
            problems = "; ".join(plan.problems)
            self._say(f'unable to drain node "{node.name}" due to error: {problems}')
            return
        for key in plan.evicted:
            stored = self._cluster.get(key)
            if stored is not None:
                self._evict(key, stored.content["metadata"]["uid"], node.name)

    def _exists(self, key: ObjectKey) -> bool:
        """Whether a DaemonSet exists. If the input has no DaemonSet, it has only pods and nodes,
        and each named DaemonSet counts as existing."""
        if self._cluster.get(key) is not None:
            return True
        return next(iter(self._cluster.objects(DAEMON_SET)), None) is None

    def are_futile(self) -> bool:
        """Whether every waiting eviction would be refused again, because neither the pod nor a
        budget of its namespace has changed since the last try."""
        return all(
            refused.versions == self._versions(key) for (key, _), refused in self._refused.items()
        )

    def report(self) -> None:
        """Name the pods that are still to be evicted."""
        for (key, _), refused in self._refused.items():
            self._say(f"the drain of {refused.node} is not done: {key}: {refused.cause}")

    def _evict(self, key: ObjectKey, uid: str, node: str) -> None:
        refused = self._refused.get((key, uid))
        stored = self._cluster.get(key)
        if stored is not None and stored.content["metadata"]["uid"] == uid:
            try:
                self._cluster.evictions.evict(key)
            except TooManyRequestsError as problem:
                self._try_again(key, uid, node, f"{problem} {problem.cause}")
                return
            except NotFoundError:
                pass
            except ApiError as problem:
                self._say(f"drain of {node}: error when evicting {key}: {problem}")
        if refused is not None:
            del self._refused[key, uid]
            self._one_went(key, node)

    def _try_again(self, key: ObjectKey, uid: str, node: str, cause: str) -> None:
        self._refused[key, uid] = _RefusedEviction(node, cause, self._versions(key))
        drain = self._drains.setdefault(node, _Drain(self._clock.now()))
        drain.waiting.add(key)
        running_loop().call_later(RETRY_SECONDS, self._evict, key, uid, node)

    def _one_went(self, key: ObjectKey, node: str) -> None:
        """Note an eviction that was accepted after refusals. The last one of a drain is
        reported."""
        drain = self._drains[node]
        drain.waiting.discard(key)
        if not drain.waiting:
            del self._drains[node]
            seconds = self._clock.now() - drain.since_seconds
            self._say(f"disruption budgets delayed the drain of {node} by {seconds:g} s")

    def _versions(self, key: ObjectKey) -> tuple[int, ...]:
        stored = self._cluster.get(key)
        budgets = self._cluster.objects(POD_DISRUPTION_BUDGET)
        versions = [one.version for one in budgets if one.key.namespace == key.namespace]
        return (-1 if stored is None else stored.version, *versions)

    def _say(self, text: str) -> None:
        self._note(f"at {self._clock.now():g} s: {text}")
