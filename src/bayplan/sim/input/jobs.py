"""Jobs: how many of their pods have succeeded and failed, and which pods they lack.

Upstream: pkg/controller/job (job_controller.go, indexed_job_utils.go, pod_failure_policy.go,
backoff_utils.go, success_policy.go).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any, final

from bayplan.adapters.embedded.field_validation import GENERATE_NAME_MAX, stable_suffix
from bayplan.objects.keys import key_of
from bayplan.sim.input.controller_pods import is_active, pod_from, pod_names
from bayplan.sim.input.workload import Content, has_ended

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
#: The conditions of a Job that makes no more pods.
_ENDS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
#: The value of spec.managedBy for the Job controller of Kubernetes itself.
OWN_MANAGER = "kubernetes.io/job-controller"
#: The number of failures that upstream's default allows.
BACKOFF_LIMIT = 6

#: The delay before the replacement of a failed pod. It doubles with each failure.
_BACKOFF_SECONDS_MIN = 10.0
_BACKOFF_SECONDS_MAX = 600.0

# ---- tally ----------------------------------------------------------------------------------


@final
class JobBackoff:
    """The failures since the last success. Upstream: backoffRecord."""

    def __init__(self) -> None:
        self.failure_count = 0
        self._failed_seconds = -math.inf
        self._succeeded_seconds = -math.inf

    def fail(self, at_seconds: float) -> None:
        """Note that a pod failed. A failure that is not after the last success has no effect."""
        if at_seconds > self._succeeded_seconds:
            self.failure_count += 1
            self._failed_seconds = max(self._failed_seconds, at_seconds)

    def succeed(self, at_seconds: float) -> None:
        """Note that a pod succeeded."""
        self.failure_count = 0
        self._succeeded_seconds = max(self._succeeded_seconds, at_seconds)

    @property
    def end_seconds(self) -> float:
        """From when on a new pod may be created; minus infinity: at any time."""
        if not self.failure_count:
            return -math.inf
        # Beyond this exponent the delay is the longest one.
        exponent = min(self.failure_count - 1, 16)
        return self._failed_seconds + min(_BACKOFF_SECONDS_MIN * 2**exponent, _BACKOFF_SECONDS_MAX)


@final
class JobTally:
    """The pods of one Job that have succeeded or failed. Each pod counts once."""

    def __init__(self, job: Content) -> None:
        status = job.get("status") or {}
        self.succeeded_count: int = status.get("succeeded") or 0
        self.failed_count: int = status.get("failed") or 0
        self.succeeded_indexes = set(_ranges(status.get("completedIndexes") or ""))
        #: Indexes that are never tried again.
        self.failed_indexes = set(_ranges(status.get("failedIndexes") or ""))
        self._failures: Counter[int] = Counter()
        self.backoff = JobBackoff()
        #: For a Job with backoffLimitPerIndex, by index.
        self.index_backoffs: dict[int, JobBackoff] = defaultdict(JobBackoff)
        #: When the Job was resumed last, in seconds since 1970; None: it was not.
        self.resumed_seconds: float | None = None
        #: Why the Job fails whatever its limits say; "": nothing says so.
        self.failure = ""
        self._uids: set[str] = set()
        self._first_open_index = 0

    @classmethod
    def of(cls, job: Content, pods: Iterable[Content]) -> "JobTally":
        """The tally of a Job with these pods. The status of the Job may count pods that are gone
        already."""
        tally, seen = cls(job), cls({"spec": job["spec"]})
        for pod in pods:
            if has_ended(pod):
                tally.count(job, pod)
                seen.count(job, pod)
        before = job.get("status") or {}
        tally.succeeded_count = max(seen.succeeded_count, before.get("succeeded") or 0)
        tally.failed_count = max(seen.failed_count, before.get("failed") or 0)
        return tally

    def count(self, job: Content, pod: Content, at_seconds: float | None = None) -> None:
        """Count a pod that has ended, or that goes before its end and counts as failed.

        ``at_seconds``: when this happened, in seconds since 1970. None: before the Job's controller
        began to watch, so that the failure delays no pod.
        """
        uid = pod["metadata"].get("uid") or pod["metadata"]["name"]
        if uid in self._uids:
            return
        self._uids.add(uid)
        index = completion_index(pod)
        is_success = (pod.get("status") or {}).get("phase") == "Succeeded"
        if at_seconds is not None:
            self._note_for_backoff(index, at_seconds, is_success=is_success)
        if is_success:
            self.succeeded_count += 1
            if index is not None:
                self.succeeded_indexes.add(index)
            return
        action = _failure_action(job, pod)
        if action == "Ignore":
            return
        self.failed_count += 1
        if action == "FailJob":
            self.failure = self.failure or "PodFailurePolicy"
        if index is not None:
            self._failures[index] += 1
            limit = job["spec"].get("backoffLimitPerIndex")
            if action == "FailIndex" or (limit is not None and self._failures[index] > limit):
                self.failed_indexes.add(index)

    def _note_for_backoff(self, index: int | None, at_seconds: float, *, is_success: bool) -> None:
        """Failures that a podFailurePolicy ignores delay the next pod, too."""
        if is_success:
            self.backoff.succeed(at_seconds)
            return
        self.backoff.fail(at_seconds)
        if index is not None:
            self.index_backoffs[index].fail(at_seconds)

    def open_indexes(self, completions: int) -> Iterator[int]:
        """Indexes that are still to succeed, from the lowest."""
        done = self.succeeded_indexes
        while self._first_open_index < completions and self._first_open_index in done:
            self._first_open_index += 1
        for index in range(self._first_open_index, completions):
            if index not in done and index not in self.failed_indexes:
                yield index

    def status(self) -> Content:
        """The status of a Job with this tally, for a Job whose ended pods are left out."""
        status: Content = {"succeeded": self.succeeded_count, "failed": self.failed_count}
        if self.succeeded_indexes:
            status["completedIndexes"] = ",".join(map(str, sorted(self.succeeded_indexes)))
        if self.failed_indexes:
            status["failedIndexes"] = ",".join(map(str, sorted(self.failed_indexes)))
        return status


def meets_success_policy(job: Content, tally: JobTally) -> bool:
    """Whether the indexes that have succeeded suffice. Upstream: matchSuccessPolicy."""
    succeeded = tally.succeeded_indexes
    if job["spec"].get("completionMode") != "Indexed" or not succeeded:
        return False
    completions = job["spec"].get("completions") or 0
    for rule in (job["spec"].get("successPolicy") or {}).get("rules") or ():
        count: int | None = rule.get("succeededCount")
        if rule.get("succeededIndexes") is None:
            if count is not None and len(succeeded) >= count:
                return True
            continue
        required = {index for index in _ranges(rule["succeededIndexes"]) if index < completions}
        met = len(required & succeeded)
        if required and (met == len(required) or (count is not None and met >= count)):
            return True
    return False


def replaces_failed_only(job: Content) -> bool:
    """Whether a pod that is terminating is replaced only after its end."""
    spec = job["spec"]
    policy: str | None = spec.get("podReplacementPolicy")
    return policy == "Failed" if policy else bool(spec.get("podFailurePolicy"))


def completion_index(pod: Content) -> int | None:
    """The index of a pod of an indexed Job."""
    text: str = (pod["metadata"].get("annotations") or {}).get(INDEX_ANNOTATION, "")
    return int(text) if text.isdecimal() else None


def _failure_action(job: Content, pod: Content) -> str:
    """What the Job's podFailurePolicy says about a pod. Exit codes match no pod here."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if any(_matches(pattern, one) for one in pod["status"].get("conditions") or ()):
                return rule.get("action") or ""
    return "Count"


def _matches(pattern: Content, condition: Content) -> bool:
    status: Any = pattern.get("status") or "True"
    return condition.get("type") == pattern.get("type") and condition.get("status") == status


def _ranges(text: str) -> Iterator[int]:
    """`1,3-5,7` as numbers; other text is ignored."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal():
            yield from range(int(first), min(int(last), 10**6) + 1)


# ---- pods -----------------------------------------------------------------------------------


def job_pods(job: Content, owned: list[Content]) -> tuple[list[Content], list[Content]]:
    """(pods to create now, pods that replace pods that succeed).

    ``owned``: the existing objects of the Job, including pods that have ended.
    """
    spec = job["spec"]
    if spec.get("suspend") or is_over(job) or other_manager(job):
        return [], []
    active = [pod for pod in owned if is_active(pod)]
    if replaces_failed_only(job):
        active += [pod for pod in owned if _is_terminating(pod)]
    tally = JobTally.of(job, [pod for pod in owned if pod["kind"] == "Pod"])
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 1)
    names = {pod["metadata"]["name"] for pod in owned}
    is_taken = names.__contains__
    pods = new_pods(job, tally, active, names=pod_names(job, is_taken), is_taken=is_taken)
    if completions is None:
        # The number of completions is unknown: after one success, no new pod is created.
        missing = 0 if tally.succeeded_count else parallelism - len(active)
        return list(islice(pods, max(missing, 0))), []
    left = max(completions - tally.succeeded_count - len(active), 0)
    lacking = list(islice(pods, left))
    now = max(min(parallelism - len(active), left), 0)
    return lacking[:now], lacking[now:]


def end_of(job: Content) -> Content | None:
    """The condition that says that a Job makes no more pods; None: it goes on. A Job that is about
    to end waits only for the end of its pods."""
    conditions: list[Content] = (job.get("status") or {}).get("conditions") or []
    ends = (one for one in conditions if one.get("type") in _ENDS and one.get("status") == "True")
    return next(ends, None)


def is_over(job: Content) -> bool:
    """Whether the Job is complete or has failed for good, or is about to be."""
    return end_of(job) is not None


def other_manager(job: Content) -> str:
    """The controller that makes the pods of a Job in place of kube-controller-manager's; "": none
    does. Upstream: controllerName in job_controller.go."""
    manager: str = (job.get("spec") or {}).get("managedBy") or OWN_MANAGER
    return "" if manager == OWN_MANAGER else manager


def _is_terminating(pod: Content) -> bool:
    is_leaving = pod["kind"] == "Pod" and pod["metadata"].get("deletionTimestamp")
    return bool(is_leaving) and not has_ended(pod)


def new_pods(
    job: Content,
    tally: JobTally,
    active: Iterable[Content],
    *,
    names: Iterator[str],
    is_taken: Callable[[str], bool],
) -> Iterator[Content]:
    """The next pods of a Job: without end, or one for each index that is to be tried.

    ``names``: for a Job without indexes. ``is_taken``: whether a pod has, or had, a name.
    """
    labels = _labels(job)
    if job["spec"].get("completionMode") != "Indexed":
        for name in names:
            yield pod_from(job, name, labels=labels)
        return
    tried = {completion_index(pod) for pod in active}
    for index in tally.open_indexes(job["spec"].get("completions") or 0):
        if index not in tried:
            own = {INDEX_ANNOTATION: str(index)}
            name = _indexed_name(job, index, is_taken)
            yield pod_from(job, name, labels={**labels, **own}, annotations=own)


def _indexed_name(job: Content, index: int, is_taken: Callable[[str], bool]) -> str:
    """The name of a pod of one index. A pod that replaces another one has another name."""
    key, ending = key_of(job), f"-{index}-"
    prefix = key.name[: GENERATE_NAME_MAX - len(ending)] + ending
    name = f"{prefix}{stable_suffix(f'{key}/{index}')}"
    for number in count(1):
        if not is_taken(name):
            break
        name = f"{prefix}{stable_suffix(f'{key}/{index}/{number}')}"
    return name


def _labels(job: Content) -> dict[str, str]:
    name, uid = key_of(job).name, job["metadata"]["uid"]
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
