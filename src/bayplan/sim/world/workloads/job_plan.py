"""What the controller of a Job does next: a function of the Job, its active pods and its tally.

A pod that is deleted before its end counts as failed, as upstream counts it. A failed pod is
replaced after a delay; with ``backoffLimitPerIndex`` each index has a delay of its own.

Upstream: pkg/controller/job/job_controller.go (syncJob, manageJob).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from bayplan.clock import epoch_of
from bayplan.objects.keys import Content, key_of
from bayplan.sim.input import jobs
from bayplan.sim.world.workloads.plans import OwnedPods, Plan, Surroundings, ranked_for_removal

#: A moment that is nearer than this counts as reached, because times since 1970 are not exact.
_NEAR_SECONDS = 1e-3


def job_plan(
    job: Content, pods: OwnedPods, tally: jobs.JobTally, surroundings: Surroundings
) -> Plan:
    """The next pass over a Job. A patch of the plan sets the condition that ends the Job."""
    if job["metadata"].get("deletionTimestamp") or jobs.is_over(job) or jobs.other_manager(job):
        return Plan()
    active = pods.active
    failure = _failure(job, tally, surroundings.now_seconds)
    if failure:
        return _end(job, pods, _ended(job, "Failed", failure, tally))
    if jobs.meets_success_policy(job, tally):
        met = {"type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy"}
        return _end(job, pods, _ended(job, "Complete", "SuccessPolicy", tally, met))
    if job["spec"].get("suspend"):
        return Plan(delete=[key_of(pod) for pod in active.values()])
    if _is_complete(job, len(active), tally):
        return Plan(patches=[(key_of(job), _ended(job, "Complete", "CompletionsReached", tally))])
    limit = _active_limit(job, len(active), tally)
    surplus = _surplus(job, active.values(), len(active) - limit)
    if surplus:
        plan = Plan(delete=[key_of(pod) for pod in surplus])
    else:
        missing = limit - len(active) - len(pods.terminating) * jobs.replaces_failed_only(job)
        plan = _creations(job, pods, tally, surroundings, missing=missing)
    deadline = deadline_seconds(job, tally.resumed_seconds)
    times = [time for time in (plan.next_seconds, deadline) if time is not None]
    plan.next_seconds = min(times, default=None)
    return plan


def deadline_seconds(job: Content, resumed_seconds: float | None) -> float | None:
    """The time at which the Job has been active for too long, in seconds since 1970; None: never.

    A Job is active since its start, or since it was resumed.
    """
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None or job["spec"].get("suspend"):
        return None
    start = resumed_seconds
    if start is None:
        stamp = (job.get("status") or {}).get("startTime")
        start = epoch_of(stamp or job["metadata"].get("creationTimestamp") or "")
    return None if start is None else start + limit


def _end(job: Content, pods: OwnedPods, patch: Content) -> Plan:
    """The last pass: the Job has ended, and its active pods go."""
    return Plan(
        delete=[key_of(pod) for pod in pods.active.values()], patches=[(key_of(job), patch)]
    )


def _creations(
    job: Content, pods: OwnedPods, tally: jobs.JobTally, surroundings: Surroundings, *, missing: int
) -> Plan:
    """New pods, without those that are delayed after a failure."""
    now_seconds = surroundings.now_seconds + _NEAR_SECONDS
    is_per_index = job["spec"].get("backoffLimitPerIndex") is not None
    if missing <= 0:
        return Plan()
    if not is_per_index and tally.backoff.end_seconds > now_seconds:
        return Plan(next_seconds=tally.backoff.end_seconds)
    names, is_taken = surroundings.names(job), _taken(key_of(job).namespace, surroundings)
    made = jobs.new_pods(job, tally, pods.active.values(), names=names, is_taken=is_taken)
    plan = Plan()
    for pod in islice(made, missing):
        index = jobs.completion_index(pod)
        backoff = tally.index_backoffs.get(index) if is_per_index and index is not None else None
        if backoff is None or backoff.end_seconds <= now_seconds:
            plan.create.append(pod)
        elif plan.next_seconds is None or backoff.end_seconds < plan.next_seconds:
            plan.next_seconds = backoff.end_seconds
    return plan


def _taken(namespace: str, surroundings: Surroundings) -> Callable[[str], bool]:
    return lambda name: surroundings.was_named(namespace, name)


def _failure(job: Content, tally: jobs.JobTally, now_seconds: float) -> str:
    """Why the Job fails; "": it goes on."""
    spec = job["spec"]
    if tally.failure:
        return tally.failure
    is_per_index = spec.get("backoffLimitPerIndex") is not None
    limit = spec.get("backoffLimit")
    if limit is None:
        limit = None if is_per_index else jobs.BACKOFF_LIMIT
    if limit is not None and tally.failed_count > limit:
        return "BackoffLimitExceeded"
    deadline = deadline_seconds(job, tally.resumed_seconds)
    if deadline is not None and now_seconds >= deadline - _NEAR_SECONDS:
        return "DeadlineExceeded"
    failed, most = len(tally.failed_indexes), spec.get("maxFailedIndexes")
    if is_per_index and most is not None and failed > most:
        return "MaxFailedIndexesExceeded"
    done = failed + len(tally.succeeded_indexes)
    if is_per_index and failed and done >= (spec.get("completions") or 0):
        return "FailedIndexes"
    return ""


def _is_complete(job: Content, active_count: int, tally: jobs.JobTally) -> bool:
    if active_count:
        return False
    completions: int | None = job["spec"].get("completions")
    if completions is None:
        return tally.succeeded_count > 0
    return _successes(job, tally) >= completions


def _active_limit(job: Content, active_count: int, tally: jobs.JobTally) -> int:
    """The number of pods that are to be active now."""
    spec = job["spec"]
    parallelism: int = 1 if spec.get("parallelism") is None else spec["parallelism"]
    if spec.get("completions") is None:
        return active_count if tally.succeeded_count else parallelism
    return max(min(parallelism, spec["completions"] - _successes(job, tally)), 0)


def _successes(job: Content, tally: jobs.JobTally) -> int:
    if job["spec"].get("completionMode") != "Indexed":
        return tally.succeeded_count
    return len(tally.succeeded_indexes)


def _surplus(job: Content, active: Iterable[Content], count: int) -> Sequence[Content]:
    """Active pods to delete: second pods of an index, then ``count`` pods in all."""
    if job["spec"].get("completionMode") != "Indexed":
        return ranked_for_removal(active)[:count] if count > 0 else ()
    completions: int = job["spec"].get("completions") or 0
    seen: dict[int, Content] = {}
    surplus: list[Content] = []
    for pod in active:
        index = jobs.completion_index(pod)
        if index is None or index in seen or index >= completions:
            surplus.append(pod)
        else:
            seen[index] = pod
    if len(surplus) < count:
        surplus += ranked_for_removal(seen.values())[: count - len(surplus)]
    return surplus


def _ended(
    job: Content, condition: str, reason: str, tally: jobs.JobTally, *interim: Content
) -> Content:
    """The patch of a Job that has ended. ``interim``: the conditions that come before the last
    one."""
    before = (job.get("status") or {}).get("conditions") or ()
    ended = {"type": condition, "status": "True", "reason": reason}
    return {"status": {**tally.status(), "conditions": [*before, *interim, ended]}}
