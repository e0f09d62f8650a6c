"""What pods request by namespace, by label and by node pool."""

from typing import Any

import msgspec
import pytest

from bayplan.ui.answers import PodPage
from bayplan.ui.subjects import ClusterSubject, RunSubject
from bayplan.ui.usage_by import UsagePage, UsageRow
from tests.ui.fetching import fetched


def page_of(subject: Any, question: str) -> UsagePage:
    response, body = fetched([subject], f"api/usage?{question}")
    assert response.status == 200, body
    return msgspec.json.decode(body, type=UsagePage)


def cpu(row: UsageRow) -> tuple[int, int]:
    return next((u.used, u.allocatable) for u in row.usage if u.resource == "cpu")


def test_a_namespace_has_its_requests_and_what_waits(cluster: ClusterSubject) -> None:
    (row,) = page_of(cluster, "by=namespace").rows
    assert (row.name, row.pods, row.waiting) == ("default", 1, 3)
    assert cpu(row) == (3000, 10000)
    assert row.waiting_requests["cpu"] == 9000


def test_the_values_of_a_label_sort_and_lead_to_their_pods(cluster: ClusterSubject) -> None:
    page = page_of(cluster, "by=label&label=app&sort=-waiting")
    assert [(row.name, row.pods, row.waiting) for row in page.rows] == [
        ("web", 0, 2),
        ("", 0, 1),
        ("db", 1, 0),
    ]
    assert page.labels == ("app", "pod-template-hash")
    for row in page.rows:
        _, body = fetched([cluster], f"api/pods?label=app%3D{row.name}")
        assert msgspec.json.decode(body, type=PodPage).total == row.pods + row.waiting


@pytest.mark.parametrize("at", [0, 123, 300, 450])
def test_the_groups_sum_to_the_numbers_of_the_moment(subject: RunSubject, at: int) -> None:
    state = subject.timeline.state(at)
    total = int(state.used[state.there].sum(0)[subject.timeline.resources.index("cpu")])
    for by in ("namespace", "label&label=x", "pool"):
        rows = page_of(subject, f"by={by}&at={at}").rows
        assert sum(cpu(row)[0] for row in rows) == total
        assert sum(row.pods for row in rows) == len(state.placement_rows)


@pytest.mark.parametrize("question", ["by=team", "by=namespace&sort=nope"])
def test_an_unknown_grouping_or_column_is_refused(cluster: ClusterSubject, question: str) -> None:
    response, _ = fetched([cluster], f"api/usage?{question}")
    assert response.status == 404
