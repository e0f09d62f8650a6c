"""TimedJudge: the model and the judge in a thread of their own, and a budget of time for an answer.

Python code and arrays of a decision cannot be interrupted. So the thread alone touches the model,
and the event loop answers when the budget is over, whatever the thread does: a late judgement is
dropped, and counted. Events of the cluster wait in an inbox until the thread takes them, before
each judgement and at the latest some tenths of a second after their arrival.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, final

import msgspec

from bayplan.api.objects import DecodeError
from bayplan.api.quantity import QuantityError
from bayplan.clock import Clock
from bayplan.engine.one_shot import EvaluationError
from bayplan.metrics import Histogram
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.following import apply_event
from bayplan.ports import WatchEvent
from bayplan.problems import BadInputError
from bayplan.serving.log_lines import Log
from bayplan.webhook.judgement import JUDGED_KINDS, Judge, Judgement
from bayplan.webhook.reviews import Review, UnreadableReviewError

T = TypeVar("T")

#: How long an event waits at most.
_TICK_SECONDS: Final = 0.2
#: Requests that wait for the thread; further ones are late at once.
_WAITING_MAX: Final = 100
_BOUNDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
_UNREADABLE = (
    BadInputError,
    DecodeError,
    QuantityError,
    EvaluationError,
    UnreadableReviewError,
    msgspec.MsgspecError,
    RecursionError,
)
_log = Log("webhook")


@final
class TimedJudge:
    """Judges reviews within a budget. Use it as long as its thread is open."""

    def __init__(self, clock: Clock, budget_seconds: float) -> None:
        self._clock = clock
        self._budget_seconds = budget_seconds
        self._thread = ThreadPoolExecutor(1, "judge")
        self._inbox: deque[WatchEvent] = deque()
        self._waiting_count = 0
        #: None until the cluster was read.
        self._judge: Judge | None = None
        self._model: ClusterModel | None = None
        #: fits, warned, unjudged, late, failed, not-ready → reviews.
        self.results: Counter[str] = Counter()
        self.seconds = Histogram(
            "bayplan_webhook_review_duration_seconds",
            "Time from the arrival of an admission review to its answer.",
            _BOUNDS,
            (),
        )

    @property
    def is_ready(self) -> bool:
        return self._judge is not None

    @property
    def inbox(self) -> deque[WatchEvent]:
        """Events that were not applied yet."""
        return self._inbox

    def deliver(self, kind: str, events: Iterable[WatchEvent]) -> None:
        """Called by a reflector."""
        self._inbox.extend(events)

    async def begin(self, make: Callable[[], tuple[ClusterModel, Judge]]) -> None:
        """Make the model in the thread. From now on, reviews are judged."""
        self._model, self._judge = await self._run(make)

    async def follow(self) -> None:
        """Apply events until cancelled."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self._inbox:
                await self._run(self._apply_events)

    def close(self) -> None:
        """End the thread, and close the plugins."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        if self._model is not None:
            self._model.close()

    async def warning(self, review: Review) -> str:
        """The warning for a review; "": there is none, or it is late."""
        start = self._clock.now()
        judgement = await self._judged(review)
        self.seconds.observe(self._clock.now() - start)
        self.results[judgement.result if isinstance(judgement, Judgement) else judgement] += 1
        return judgement.warning if isinstance(judgement, Judgement) else ""

    async def _judged(self, review: Review) -> Judgement | str:
        """A judgement, or why there is none."""
        judge = self._judge
        if judge is None:
            return "not-ready"
        if str(review.kind) not in JUDGED_KINDS or not review.is_creation:
            return "unjudged"
        if self._waiting_count >= _WAITING_MAX:
            return "late"
        self._waiting_count += 1
        try:
            async with asyncio.timeout(self._budget_seconds):
                return await self._run(lambda: self._judge_now(judge, review))
        except TimeoutError:
            return "late"
        except _UNREADABLE:
            return "unjudged"
        except Exception as problem:  # noqa: BLE001 - one strange object stops no webhook
            _log.error("A review was not judged", kind=str(review.kind), err=repr(problem))
            return "failed"
        finally:
            self._waiting_count -= 1

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # ---- in the thread ----------------------------------------------------------------------

    def _judge_now(self, judge: Judge, review: Review) -> Judgement:
        self._apply_events()
        return judge.judge(str(review.kind), review.namespace, review.content())

    def _apply_events(self) -> None:
        assert self._model is not None
        while self._inbox:
            apply_event(self._model, self._inbox.popleft())
        with self._model.trial():
            """A trial drops the effects that the events caused: nobody performs them."""
