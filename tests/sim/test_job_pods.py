"""Jobs: how many pods now, and how many later."""

from typing import Any

import pytest

from bayplan.sim.job_pods import INDEX_ANNOTATION, job_pods
from tests.adapters.manifests import Content, pod
from tests.sim.manifests import controller


def job(**spec: Any) -> Content:
    return controller("Job", "j", uid="u1", **spec)


def in_phase(name: str, phase: str, index: int | None = None) -> Content:
    notes = {} if index is None else {INDEX_ANNOTATION: str(index)}
    return pod(name, annotations=notes, status={"phase": phase})


def counts(owned: list[Content], **spec: Any) -> tuple[int, int]:
    now, later = job_pods(job(**spec), owned)
    return len(now), len(later)


RUNNING = in_phase("r", "Running")
DONE = in_phase("d", "Succeeded")
FAILED = in_phase("f", "Failed")


@pytest.mark.parametrize(
    ("spec", "owned", "expected"),
    [
        ({}, [], (1, 0)),
        ({"parallelism": 3}, [], (3, 0)),
        ({"parallelism": 3}, [RUNNING], (2, 0)),
        ({"parallelism": 3}, [RUNNING, DONE], (0, 0)),
        ({"completions": 5}, [], (1, 4)),
        ({"completions": 5, "parallelism": 2}, [], (2, 3)),
        ({"completions": 5, "parallelism": 2}, [RUNNING, DONE, FAILED], (1, 2)),
        ({"completions": 5, "parallelism": 9}, [], (5, 0)),
        ({"completions": 1, "parallelism": 2}, [DONE], (0, 0)),
        ({"completions": 5, "parallelism": 2, "status": {"succeeded": 4}}, [], (1, 0)),
        ({"completions": 5, "parallelism": 0}, [], (0, 5)),
        ({"completions": 5, "suspend": True}, [], (0, 0)),
    ],
)
def test_pods_up_to_the_parallelism_now_and_the_others_later(
    spec: dict[str, Any], owned: list[Content], expected: tuple[int, int]
) -> None:
    assert counts(owned, **spec) == expected


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [("Complete", "True", 0), ("Failed", "True", 0), ("Failed", "False", 1), ("Other", "True", 1)],
)
def test_a_job_that_is_over_makes_no_pods(kind: str, status: str, expected: int) -> None:
    over = {"conditions": [{"type": kind, "status": status}]}
    assert counts([], completions=1, status=over) == (expected, 0)


def test_names_are_free_all_different_and_the_same_every_time() -> None:
    (first, second), later = job_pods(job(completions=9, parallelism=2), [])
    names = [one["metadata"]["name"] for one in (first, second, *later)]
    assert len(set(names)) == 9
    assert all(name.startswith("j-") and len(name) == 7 for name in names)
    owned = [in_phase(names[0], "Running")]
    (again,), _ = job_pods(job(completions=2, parallelism=2), owned)
    assert again["metadata"]["name"] == names[1]


def test_pods_carry_the_jobs_labels() -> None:
    (made,), _ = job_pods(job(), [])
    labels = made["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "j"
    assert labels["batch.kubernetes.io/controller-uid"] == labels["controller-uid"] == "u1"


def test_indexed_jobs_give_each_pod_an_index_that_is_not_done() -> None:
    owned = [in_phase("a", "Running", 1), in_phase("b", "Failed", 2), in_phase("c", "Succeeded", 3)]
    spec = {"completions": 8, "parallelism": 3, "completionMode": "Indexed"}
    status = {"succeeded": 3, "completedIndexes": "3,5-6"}
    now, later = job_pods(job(**spec, status=status), owned)
    indexes = [one["metadata"]["annotations"][INDEX_ANNOTATION] for one in now + later]
    assert indexes == ["0", "2", "4", "7"]
    assert now[0]["metadata"]["name"].startswith("j-0-")
    assert now[0]["metadata"]["labels"][INDEX_ANNOTATION] == "0"


@pytest.mark.parametrize("said", ["", "x", "3-", "-", "1-x", "9-2"])
def test_indexes_nobody_can_read_are_not_done(said: str) -> None:
    spec = {"completions": 2, "completionMode": "Indexed"}
    now, later = job_pods(job(**spec, status={"completedIndexes": said}), [])
    assert len(now + later) == 2
