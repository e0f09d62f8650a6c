"""What the controller of a Job does next: a function of the Job, its active pods and its tally.

A pod that is deleted before its end counts as failed, as upstream counts it. Upstream waits 10 s
and longer before it replaces a failed pod; a plan knows no time, so the driver's delay is the only
one. The fields ``activeDeadlineSeconds`` and ``successPolicy`` have no effect.

Upstream: pkg/controller/job/job_controller.go (syncJob, manageJob).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from bayplan.adapters.embedded.field_validation import Content, key_of
from bayplan.sim.input.jobs import (
    BACKOFF_LIMIT,
    JobTally,
    completion_index,
    is_over,
    new_pods,
    replaces_failed_only,
)
from bayplan.sim.world.workloads.plans import OwnedPods, Plan, Surroundings, ranked_for_removal


def job_plan(job: Content, pods: OwnedPods, tally: JobTally, surroundings: Surroundings) -> Plan:
    """The next pass over a Job. A patch of the plan sets the condition that ends the Job."""
    if job["metadata"].get("deletionTimestamp") or is_over(job):
        return Plan()
    spec, active = job["spec"], pods.active
    reason = _failure(job, tally)
    if reason:
        plan = Plan(delete=[key_of(pod) for pod in active.values()])
        plan.patches.append((key_of(job), _ended(job, "Failed", reason, tally)))
        return plan
    if spec.get("suspend"):
        return Plan(delete=[key_of(pod) for pod in active.values()])
    if _is_complete(job, len(active), tally):
        return Plan(patches=[(key_of(job), _ended(job, "Complete", "CompletionsReached", tally))])
    limit = _active_limit(job, len(active), tally)
    surplus = _surplus(job, active.values(), len(active) - limit)
    if surplus:
        return Plan(delete=[key_of(pod) for pod in surplus])
    missing = limit - len(active) - len(pods.terminating) * replaces_failed_only(job)
    if missing <= 0:
        return Plan()
    names, is_taken = surroundings.names(job), _taken(key_of(job).namespace, surroundings)
    made = new_pods(job, tally, active.values(), names=names, is_taken=is_taken)
    return Plan(create=list(islice(made, missing)))


def _taken(namespace: str, surroundings: Surroundings) -> Callable[[str], bool]:
    return lambda name: surroundings.was_named(namespace, name)


def _failure(job: Content, tally: JobTally) -> str:
    """Why the Job fails; "": it goes on."""
    spec = job["spec"]
    if tally.failure:
        return tally.failure
    is_per_index = spec.get("backoffLimitPerIndex") is not None
    limit = spec.get("backoffLimit")
    if limit is None:
        limit = None if is_per_index else BACKOFF_LIMIT
    if limit is not None and tally.failed_count > limit:
        return "BackoffLimitExceeded"
    failed, most = len(tally.failed_indexes), spec.get("maxFailedIndexes")
    if is_per_index and most is not None and failed > most:
        return "MaxFailedIndexesExceeded"
    done = failed + len(tally.succeeded_indexes)
    if is_per_index and failed and done >= (spec.get("completions") or 0):
        return "FailedIndexes"
    return ""


def _is_complete(job: Content, active_count: int, tally: JobTally) -> bool:
    if active_count:
        return False
    completions: int | None = job["spec"].get("completions")
    if completions is None:
        return tally.succeeded_count > 0
    return _successes(job, tally) >= completions


def _active_limit(job: Content, active_count: int, tally: JobTally) -> int:
    """The number of pods that are to be active now."""
    spec = job["spec"]
    parallelism: int = 1 if spec.get("parallelism") is None else spec["parallelism"]
    if spec.get("completions") is None:
        return active_count if tally.succeeded_count else parallelism
    return max(min(parallelism, spec["completions"] - _successes(job, tally)), 0)


def _successes(job: Content, tally: JobTally) -> int:
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
        index = completion_index(pod)
        if index is None or index in seen or index >= completions:
            surplus.append(pod)
        else:
            seen[index] = pod
    if len(surplus) < count:
        surplus += ranked_for_removal(seen.values())[: count - len(surplus)]
    return surplus


def _ended(job: Content, condition: str, reason: str, tally: JobTally) -> Content:
    """The patch of a Job that is over."""
    before = (job.get("status") or {}).get("conditions") or ()
    ended = {"type": condition, "status": "True", "reason": reason}
    return {"status": {**tally.status(), "conditions": [*before, ended]}}
