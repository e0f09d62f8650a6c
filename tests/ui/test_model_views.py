"""The limits of the questions to the engine."""

import msgspec
import pytest

from bayplan.ui.model_views import MODEL_QUESTIONS, MODEL_TABLES
from bayplan.ui.subjects import ClusterSubject, RunSubject
from tests.ui.fetching import fetched, packed


def test_each_table_is_a_question() -> None:
    assert MODEL_TABLES.keys() <= MODEL_QUESTIONS.keys()


@pytest.mark.parametrize(
    ("question", "status", "error"),
    [
        ("", 400, "found no change, wanted one such as drain=NODE"),
        ("drain=zz", 404, "no node 'zz' in this run"),
        ("add=3", 400, "add: found '3', wanted NODE=COUNT, at most 2000 nodes"),
        ("add=a=9999", 400, "add: found 'a=9999', wanted NODE=COUNT, at most 2000 nodes"),
        ("add=a=1500,a=501", 400, "add: found 2001 nodes, wanted at most 2000"),
        ("add=zz=1", 404, "no node 'zz' in this run"),
        ("apply=!", 400, "apply: wanted a text as raw deflate in base64"),
        (f"apply={packed('kind: Pod')[:6]}", 400, "apply: the text is cut off"),
        (f"apply={packed('#' * (1 << 20) + '#')}", 400, "apply: found a longer text"),
        (f"apply={packed('a: [')}", 400, "the text, document 1, line 2: while parsing"),
        (f"config={packed('{}')}&drain=a", 400, "found a configuration and other changes"),
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
