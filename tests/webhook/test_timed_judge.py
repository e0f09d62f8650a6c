"""The thread of the judge: what waits for it, and what is dropped."""

import asyncio
import threading
from typing import Any

from bayplan.api.objects import NODE
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.testing import node
from bayplan.webhook.judgement import Judge, Judgement
from bayplan.webhook.reviews import Review, read_review
from bayplan.webhook.timed_judge import TimedJudge
from tests.webhook.bodies import review

REVIEW: Review = read_review(review("3"))


def made() -> tuple[ClusterModel, Judge]:
    config, registry = SchedulerConfig(), default_registry(())
    model = ClusterModel(ClusterPicture(store_of({NODE: (node("n1", cpu="2"),)})), config, registry)
    return model, Judge(model, config, registry)


async def judging(budget_seconds: float) -> TimedJudge:
    timed = TimedJudge(RealClock(), budget_seconds)
    await timed.begin(made)
    return timed


async def test_while_one_judgement_takes_too_long_all_others_are_late(monkeypatch: Any) -> None:
    """The event loop answers although the thread is busy; what never began is not judged."""
    going_on = threading.Event()
    calls: list[str] = []

    def hang(judge: Judge, kind: str, *_: Any) -> Judgement:
        calls.append(kind)
        going_on.wait()
        return Judgement("fits")

    timed = await judging(0.05)
    monkeypatch.setattr(Judge, "judge", hang)
    texts = await asyncio.gather(*(timed.warning(REVIEW) for _ in range(150)))
    assert (texts, timed.results) == ([""] * 150, {"late": 150})
    going_on.set()
    timed.close()
    assert calls == ["v1 Pod"]


async def test_other_kinds_and_changes_of_objects_are_not_judged() -> None:
    timed = await judging(30.0)
    update = review("3").replace(b"CREATE", b"UPDATE")
    service = review("3").replace(b'"Pod"', b'"Service"')
    for body in (update, service):
        assert await timed.warning(read_review(body)) == ""
    assert timed.results == {"unjudged": 2}
    assert await timed.warning(REVIEW) != ""
    timed.close()
