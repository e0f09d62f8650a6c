"""The limits of the questions to the engine."""

import msgspec
import pytest

from bayplan.ui.model_views import MODEL_QUESTIONS, MODEL_TABLES
from bayplan.ui.subjects import ClusterSubject, RunSubject
from tests.ui.fetching import fetched


def test_each_table_is_a_question() -> None:
    assert MODEL_TABLES.keys() <= MODEL_QUESTIONS.keys()


@pytest.mark.parametrize(
    ("question", "status", "error"),
    [
        ("", 400, "found no change, wanted one such as drain=NODE"),
        ("drain=zz", 404, "no node 'zz' in this run"),
        ("add=3", 400, "add and template: wanted both: how many nodes, and the node to copy"),
        ("add=9999&template=a", 400, "add: found 9999, wanted 1 to 2000"),
        ("add=x&template=a", 400, "add: found 'x', wanted a number"),
        ("scale=web", 400, "scale: found"),
        ("scale=Job/web=3", 400, "scale: found"),
        ("scale=deploy/web=999999", 400, "scale: found 999999, wanted at most 20000"),
        (f"drain={','.join(f'n{n}' for n in range(201))}", 400, "drain: found 201 nodes"),
    ],
)
def test_an_invalid_what_if_is_refused_in_one_line(
    cluster: ClusterSubject, question: str, status: int, error: str
) -> None:
    response, body = fetched([cluster], f"api/whatif?{question}")
    assert response.status == status
    text = msgspec.json.decode(body)["error"]
    assert text.startswith(error)
    assert "\n" not in text


@pytest.mark.parametrize("path", ["explanation?pod=x/y", "rejections?node=zz"])
def test_an_unknown_name_is_refused(subject: RunSubject, path: str) -> None:
    response, body = fetched([subject], f"api/{path}")
    assert response.status == 404
    assert msgspec.json.decode(body)["error"].startswith("no ")
