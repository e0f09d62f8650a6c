"""Jobs: pods up to the parallelism now, the others when those succeed.

Upstream: pkg/controller/job (manageJob), indexed_job_utils.go.
"""

from collections.abc import Iterator
from itertools import count, islice

from bayplan.adapters.object_names import key_of, stable_suffix
from bayplan.sim.pod_templates import is_active, pod_from
from bayplan.sim.workload import Content

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"


def job_pods(job: Content, owned: list[Content]) -> tuple[list[Content], list[Content]]:
    """(pods to make now, pods that take the places of those that succeed).

    ``owned``: what of the Job's is there, pods that have ended included.
    """
    spec = job["spec"]
    if spec.get("suspend") or _is_over(job):
        return [], []
    active = [pod for pod in owned if is_active(pod)]
    succeeded = _succeeded_count(job, owned)
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 1)
    if completions is None:
        # Nobody knows how many it takes: once one has succeeded, no new one is begun.
        missing = 0 if succeeded else parallelism - len(active)
        return list(islice(_pods(job, owned), max(missing, 0))), []
    left = max(completions - succeeded - len(active), 0)
    pods = list(islice(_pods(job, owned), left))
    now = max(min(parallelism - len(active), left), 0)
    return pods[:now], pods[now:]


def _is_over(job: Content) -> bool:
    """Whether the Job is complete or has failed for good."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(
        one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
        for one in conditions
    )


def _succeeded_count(job: Content, owned: list[Content]) -> int:
    """What the Job says, or what is to be seen: finished pods may be gone by now."""
    seen = sum(_phase(pod) == "Succeeded" for pod in owned)
    return max(seen, (job.get("status") or {}).get("succeeded") or 0)


def _phase(pod: Content) -> str | None:
    phase: str | None = (pod.get("status") or {}).get("phase")
    return phase


def _pods(job: Content, owned: list[Content]) -> Iterator[Content]:
    """New pods without end, each with a name of its own."""
    key = key_of(job)
    taken = {pod["metadata"]["name"] for pod in owned}
    uid = job["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": key.name,
        "controller-uid": uid,
        "job-name": key.name,
    }
    if job["spec"].get("completionMode") == "Indexed":
        for index in _free_indexes(job, owned):
            own = {INDEX_ANNOTATION: str(index)}
            name = f"{key.name}-{index}-{stable_suffix(f'{key}/{index}')}"
            yield pod_from(job, name, labels={**labels, **own}, annotations=own)
        return
    for number in count():
        name = f"{key.name}-{stable_suffix(f'{key}/{number}')}"
        if name not in taken:
            yield pod_from(job, name, labels=labels)


def _free_indexes(job: Content, owned: list[Content]) -> Iterator[int]:
    """Indexes that no pod has or had with success, from the lowest."""
    done = set(_ranges((job.get("status") or {}).get("completedIndexes") or ""))
    for pod in owned:
        index = (pod["metadata"].get("annotations") or {}).get(INDEX_ANNOTATION, "")
        if index.isdecimal() and (is_active(pod) or _phase(pod) == "Succeeded"):
            done.add(int(index))
    yield from (i for i in range(job["spec"].get("completions") or 0) if i not in done)


def _ranges(text: str) -> Iterator[int]:
    """`1,3-5,7` as numbers; what is not so written is not read."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal():
            yield from range(int(first), min(int(last), 10**6) + 1)
