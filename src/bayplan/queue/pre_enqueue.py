"""PreEnqueue: may a pod enter activeQ? A plugin that says no holds it back: the pod is gated."""

from collections.abc import Callable, Mapping, Sequence
from typing import final

from bayplan.framework.plugin import PreEnqueuePlugin
from bayplan.framework.status import Code, Status, is_success, shared_names
from bayplan.framework.types import QueuedPodInfo
from bayplan.framework.validation import checked, failure_of
from bayplan.queue.entry import Entry
from bayplan.queue.settings import QueueProfile, QueueRecorder
from bayplan.queue.transitions import State
from bayplan.state.pods import PodInfo

#: The durations of single plugins are observed for one pod in so many, as upstream's 10 %.
_SAMPLE_PERIOD = 10

_Ask = Callable[[PreEnqueuePlugin, PodInfo], Status | None]

_BACKING_OFF = (State.BACKOFF, State.ERROR_BACKOFF)


@final
class PreEnqueueCheck:
    """Asks the PreEnqueue plugins of a pod's profile."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        recorder: QueueRecorder,
        *,
        pop_from_backoff_q: bool,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``clock``: seconds, for durations."""
        self._plugins = {name: profile.pre_enqueue for name, profile in profiles.items()}
        self._recorder = recorder
        self._clock = clock
        self._asked_count = 0
        # What may be popped from backoffQ is asked on the way in there, and then not again.
        self._is_asked = _WITH_BACKOFF if pop_from_backoff_q else _BEFORE_ACTIVE

    def admits(self, entry: Entry, target: State) -> bool:
        """Whether the entry may move to ``target``; if not, who holds it back is noted in it."""
        if entry.is_short and target in _TO_BE_TRIED:
            # Not even to wait out a delay: what completes it brings it there.
            return False
        if (entry.state, target) not in self._is_asked:
            return True
        # Each pod has its own gate and its own count, so all of them are asked.
        held_back = [queued for queued in entry.pods if not self._admits(queued)]
        return not held_back

    def _admits(self, queued: QueuedPodInfo) -> bool:
        start = self._clock()
        self._asked_count += 1
        is_sampled = self._asked_count % _SAMPLE_PERIOD == 0
        admits = self._is_admitted(queued, self._timed if is_sampled else self._ask)
        self._recorder.pre_enqueue_took(queued.pod.scheduler_name, self._clock() - start)
        return admits

    def _is_admitted(self, queued: QueuedPodInfo, ask: _Ask) -> bool:
        for plugin in self._in_order(queued):
            status = ask(plugin, queued.pod)
            if not is_success(status):
                assert status is not None
                self._hold_back(queued, plugin.instance_name, status)
                return False
        queued.gating_plugin = queued.gating_message = ""
        return True

    def _in_order(self, queued: QueuedPodInfo) -> Sequence[PreEnqueuePlugin]:
        """As configured, but the one that holds the pod back goes first: it is likely to again."""
        plugins = self._plugins[queued.pod.scheduler_name]
        gate = queued.gating_plugin
        if not gate:
            return plugins
        return sorted(plugins, key=lambda plugin: plugin.instance_name != gate)

    def _ask(self, plugin: PreEnqueuePlugin, pod: PodInfo) -> Status | None:
        try:
            return checked(plugin.pre_enqueue(pod))
        except BaseException as problem:  # noqa: BLE001 - a plugin's failure is its pod's, not ours
            return failure_of(plugin, "PreEnqueue", problem)

    def _timed(self, plugin: PreEnqueuePlugin, pod: PodInfo) -> Status | None:
        start = self._clock()
        status = self._ask(plugin, pod)
        code = Code.SUCCESS if status is None else status.code
        self._recorder.pre_enqueue_plugin_took(plugin.instance_name, code, self._clock() - start)
        return status

    def _hold_back(self, queued: QueuedPodInfo, plugin: str, status: Status) -> None:
        pod = queued.pod
        if plugin not in queued.unschedulable_plugins and plugin not in queued.pending_plugins:
            self._recorder.unschedulable_delta(plugin, pod.scheduler_name, 1)
        queued.unschedulable_plugins = shared_names((*queued.unschedulable_plugins, plugin))
        if (queued.gating_plugin, queued.gating_message) != (plugin, status.message):
            self._recorder.gated(pod, plugin, status)
        queued.gating_plugin = plugin
        queued.gating_message = status.message


_TO_BE_TRIED = (State.ACTIVE, *_BACKING_OFF)
#: (from, to) moves on which PreEnqueue is asked.
_BEFORE_ACTIVE = frozenset((source, State.ACTIVE) for source in State)
_WITH_BACKOFF = frozenset(
    (source, target)
    for source in State
    for target in (State.ACTIVE, *_BACKING_OFF)
    if source not in _BACKING_OFF
)
