"""Placing the pods of a model that wait, as its scheduler would.

Each question begins with the cluster at rest: the pods that wait were tried in the order of the
scheduler's queue, and have a node as far as they fit. A pod that preemption evicts for them is
created again if a controller wants it, and then waits, too. A pod that did not fit is tried again
after others got a node, because it may need one of them in its zone. In the end no waiting pod
fits.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import final

from bayplan.answers.document import Value
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.daemon_pods import DaemonPod
from bayplan.state.pods import PodInfo
from bayplan.whatif.evictions import LeftOver, create_again, recreated
from bayplan.whatif.text import PendingPodCounts

#: The most rounds over the pods that wait. Each round after the first places a pod. More rounds
#: would be needed only for long chains of pods, in which each pod requires the one before.
_ROUNDS_MAX = 20


@final
class Move(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that gets a node."""

    #: The pod, "namespace/name"; for a replacement, the name of the pod that goes.
    pod: str
    #: The node that it leaves; "": it had none.
    source: str = ""
    target: str
    #: The name of the pod in its place, if it has another name.
    replacement: str = ""
    #: Whether it waited before the changes.
    waited: bool = False


@final
class Placer:
    """Places pods of a model, and notes which pods got a node, which left one, and which wait."""

    def __init__(self, model: ClusterModel, on_step: Callable[[], None] = lambda: None) -> None:
        """``on_step`` is called before each attempt, and may raise."""
        self._model = model
        self._on_step = on_step
        #: The pods that got a node. A pod that got a node several times is in the order of the last
        #: time.
        self._placed: dict[str, None] = {}
        #: Pod → the node that it left first.
        self._sources: dict[str, str] = {}
        #: Pod → why it did not get a node at the last attempt.
        self._messages: dict[str, str] = {}
        #: The version of the model at which no waiting pod fits; -1: it is not known.
        self._version_at_rest = -1
        #: Reason → pods that go and are not created again.
        self.gone: dict[str, list[str]] = {}

    # ---- what happens -----------------------------------------------------------------------

    def place_waiting(self) -> None:
        """Try the pods that wait until none of them fits.

        If a pod does not fit, equal pods do not fit either until something changes.
        """
        #: What equal pods share → the version of the model at which one of them did not fit, and
        #: the reason.
        failed: dict[Hashable, tuple[int, str]] = {}
        for _ in range(_ROUNDS_MAX):
            if self._version_at_rest == self._model.version:
                return
            placed_count = 0
            for info in self._model.in_queue_order():
                if not self._is_pending(info.key):
                    continue
                equal, version = _equal_key(info), self._model.version
                if equal is not None and equal in failed and failed[equal][0] == version:
                    self._on_step()
                    self._note(info.key, "", failed[equal][1])
                    continue
                placed_count += self.place(info.key)
                if equal is not None and version == self._model.version:
                    failed[equal] = version, self._messages[info.key]
            if not placed_count:
                self._version_at_rest = self._model.version

    def place(self, pod: str) -> bool:
        """Try a pod that waits, and then what it evicts. Returns whether the pod fits."""
        self._on_step()
        attempt = self._model.place(pod)
        self._note(pod, attempt.node, attempt.reason)
        for member, node in attempt.placed_members.items():
            self._note(member, node)
        self._replace_victims(attempt.victims)
        return bool(attempt.node)

    def replace(self, pod: PodInfo) -> None:
        """Create a pod again that was removed from its node. The new pod waits."""
        self._sources.setdefault(pod.key, pod.node_name)
        create_again(self._model, pod)

    def take(self, pods: Iterable[DaemonPod]) -> None:
        """Note the pods that DaemonSets created for a new node."""
        for pod in pods:
            self._note(pod.name, pod.node, pod.message)
            self._replace_victims(pod.victims)

    def is_gone(self, pod: str, reason: str) -> None:
        """Note that a pod was removed and is not created again."""
        self.gone.setdefault(reason, []).append(pod)

    def _note(self, pod: str, node: str, message: str = "") -> None:
        if node:
            self._placed.pop(pod, None)
            self._placed[pod] = None
        else:
            self._messages[pod] = message

    def _replace_victims(self, victims: Iterable[PodInfo]) -> None:
        for victim in victims:
            if recreated([victim]):
                self.replace(victim)
                self.place(victim.key)
            else:
                self.is_gone(victim.key, "preempted")

    def _is_pending(self, pod: str) -> bool:
        present = self._model.pod(pod)
        return present is not None and not present.spec.node_name

    # ---- what came of it --------------------------------------------------------------------

    def moves(self, waited: frozenset[str] = frozenset()) -> list[Move]:
        """The pods that got a node and still exist. ``waited``: the pods that waited before."""
        moves: list[Move] = []
        for name in self._placed:
            pod = self._model.pod(name)
            if pod is not None and pod.spec.node_name:
                source = self._sources.get(name, "")
                is_waiting = name in waited
                moves.append(
                    Move(pod=name, source=source, target=pod.spec.node_name, waited=is_waiting)
                )
        return moves

    def left_over(self) -> list[LeftOver]:
        """The pods that wait, in the order of the queue, each with the last reason."""
        return [
            LeftOver(
                pod=info.key,
                source=self._sources.get(info.key, ""),
                message=self._messages.get(info.key, ""),
            )
            for info in self._model.in_queue_order()
        ]


def _equal_key(pod: PodInfo) -> Hashable | None:
    """A key that is equal for pods for which the scheduler decides the same; None: each such pod is
    tried.

    Pods of one shape have the same labels and spec, and owners count for the spreading of a
    workload. Each pod of a group, with claims or with a nomination is tried.
    """
    spec = pod.spec
    if pod.group_key is not None or pod.nominated_node_name or spec.resource_claims:
        return None
    if any(True for _ in pod.claim_keys()):
        return None
    return pod.shape, tuple(each.uid for each in pod.metadata.owner_references or ())


def placed_first(model: ClusterModel, *, is_ignored: bool = False) -> PendingPodCounts:
    """Bring a model to rest, before a question. ``is_ignored``: whether to leave the waiting pods
    untried."""
    if is_ignored:
        return PendingPodCounts(waiting=len(model.pending()), is_ignored=True)
    placer = Placer(model)
    placer.place_waiting()
    return PendingPodCounts(placed=len(placer.moves()), waiting=len(model.pending()))
