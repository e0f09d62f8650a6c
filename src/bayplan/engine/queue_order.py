"""What the queue is told of a configuration's plugins, kept safe from what they do wrong.

There is one queue for all pods, so a key that fails for one of them must not stop it: such a pod
comes after all others. A key that cannot be compared with the others' would fail later, in the
middle of the queue, so all keys must be of one kind.
"""

from collections.abc import Callable
from typing import Any, cast, final

from bayplan.engine.group_domains import TOPOLOGY_EVENTS, TOPOLOGY_NAME
from bayplan.engine.profiles import BuiltProfile
from bayplan.engine.reservations import RESERVATION_EVENTS, RESERVATION_NAME
from bayplan.framework.answers import WrongAnswer
from bayplan.framework.events import default_events
from bayplan.framework.interface import QueuedPodInfo, QueueSortPlugin
from bayplan.framework.status import EXTENDER_NAME
from bayplan.queue.settings import QueueProfile

#: (pod, instance, what was wrong)
OnFailure = Callable[[QueuedPodInfo, str, BaseException], None]


@final
class QueueOrder:
    """The key of queue.settings.QueueSettings: ascending."""

    def __init__(self, plugin: QueueSortPlugin, failed: OnFailure) -> None:
        self._name = plugin.instance_name
        self._key = plugin.key
        self._failed = failed
        self._kind: object = None

    def __call__(self, queued: QueuedPodInfo) -> tuple[int, Any]:
        try:
            key = self._key(queued)
            kind = _kind(key)
            if kind != self._kind:
                self._take_kind(key, kind)
            return 0, key
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure does not stop the queue
            self._failed(queued, self._name, problem)
            return 1, 0

    def _take_kind(self, key: object, kind: object) -> None:
        """The first key says what kind all are of. Raises WrongAnswer, TypeError."""
        if self._kind is not None:
            raise WrongAnswer(repr(key), "a key of the same kind as of other pods")
        _ = cast("Any", key) < key
        self._kind = kind


def _kind(key: object) -> object:
    """Keys of one kind can be compared."""
    if isinstance(key, tuple):
        return tuple(map(_kind, cast("tuple[object, ...]", key)))
    return float if isinstance(key, int) else type(key)


def queue_profile(built: BuiltProfile, has_extenders: bool) -> QueueProfile:
    """A profile as the queue knows it.

    Extenders say nothing of what may help the pods they turned away: everything may.
    """
    events = {
        **built.events,
        TOPOLOGY_NAME: TOPOLOGY_EVENTS,
        RESERVATION_NAME: RESERVATION_EVENTS,
    }
    if has_extenders:
        events[EXTENDER_NAME] = default_events()
    return QueueProfile(built.plugins.pre_enqueue, events, built.signer.part)
