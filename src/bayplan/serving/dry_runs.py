"""A dry run of a pod in a running scheduler: its next attempt, with the cached results."""

from typing import Final

import msgspec
from msgspec import Struct

from bayplan.engine.scheduler import Scheduler
from bayplan.journal import AttemptRecord
from bayplan.state.pods import PodInfo

#: The path of the endpoint.
PATH: Final = "/debug/dry-run"


class DryRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of the next attempt at a pod, without a decision."""

    #: None: there is no such attempt; ``reason`` says why.
    record: AttemptRecord | None = None
    reason: str = ""
    #: Nodes for which this dry run called a plugin, and nodes whose results were cached, summed
    #: over the row-wise plugins.
    evaluated_count: int = 0
    cached_count: int = 0


def dry_run_of(pod: str, scheduler: Scheduler) -> DryRun:
    """The outcome of the next attempt at a pod. ``pod``: "namespace/name"."""
    info = _pending(pod, scheduler)
    if info is None:
        return DryRun(reason=f"{pod} does not wait for this scheduler")
    if info.group_key is not None:
        return DryRun(reason=f"{pod} belongs to a group, and groups are tried as a whole")
    before = _row_counts(info.scheduler_name, scheduler)
    record = scheduler.dry_runs.record_of(info.uid)
    after = _row_counts(info.scheduler_name, scheduler)
    if record is None:
        return DryRun(reason=f"{pod} needs the answers of extenders, which are not called")
    evaluated, cached = after[0] - before[0], after[1] - before[1]
    return DryRun(record=record, evaluated_count=evaluated, cached_count=cached)


def _pending(pod: str, scheduler: Scheduler) -> PodInfo | None:
    groups = scheduler.queue.pending_pods().values()
    return next((each for group in groups for each in group if each.key == pod), None)


def _row_counts(profile: str, scheduler: Scheduler) -> tuple[int, int]:
    counts = scheduler.reuse(profile).row_counts().values()
    return sum(each.evaluated for each in counts), sum(each.cached for each in counts)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(DryRun).decode
