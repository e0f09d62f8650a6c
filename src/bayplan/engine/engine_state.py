"""What the parts of the scheduler share: the cluster as known, the queue, and the way out.

One object, made once, handed to the parts that change it. It decides nothing.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.clock import Clock
from bayplan.engine.waiting import WaitingPods
from bayplan.framework.runtime import Framework
from bayplan.journal import Journal, NoteRecord
from bayplan.metrics import SchedulerMetrics
from bayplan.ports import Effect, EmitEvent
from bayplan.queue.nominator import Nominator
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import Cache
from bayplan.state.object_store import ObjectStore
from bayplan.state.pods import PodInfo

#: Longer notes of events are cut, as upstream cuts them.
NOTE_LENGTH_MAX = 1024


@dataclass(slots=True)
class EngineState:
    """The scheduler's memory, and the effects it wants performed."""

    clock: Clock
    seed: int
    journal: Journal
    metrics: SchedulerMetrics
    cache: Cache
    objects: ObjectStore
    nominator: Nominator
    waiting: WaitingPods
    queue: SchedulingQueue
    frameworks: Mapping[str, Framework]
    #: The newest version of each pod the API has told of, by uid.
    known: dict[str, PodInfo] = field(default_factory=dict[str, PodInfo])
    effects: deque[Effect] = field(default_factory=deque[Effect])

    def note(self, subject: str, text: str) -> None:
        """Keep something for the journal."""
        self.journal.write(NoteRecord(at_seconds=self.clock.now(), subject=subject, text=text))

    def emit(
        self, profile_name: str, pod: PodInfo, kind: str, reason: str, action: str, note: str
    ) -> None:
        """An event about a pod."""
        if len(note) > NOTE_LENGTH_MAX:
            ending = " ..."
            note = note[: NOTE_LENGTH_MAX - len(ending)] + ending
        self.effects.append(
            EmitEvent(pod.namespace, pod.name, pod.uid, kind, reason, action, note, profile_name)
        )
