"""Objects by name, and one of them as YAML."""

import pytest

from bayplan.ui.object_answers import ObjectPage, ObjectRow, ObjectText, object_text
from bayplan.ui.subjects import ClusterSubject, RunSubject
from bayplan.yaml_documents import load_documents
from tests.ui.example_cluster import CLUSTER
from tests.ui.fetching import answer_of, ready


def test_the_yaml_of_an_object_is_its_content_without_managed_fields(
    cluster: ClusterSubject,
) -> None:
    answer = answer_of(cluster, "object?kind=Deployment&name=default/web", ObjectText).value
    (content,) = (document.value for document in load_documents(answer.yaml, "answer"))
    (written,) = (d.value for d in load_documents(CLUSTER, "") if d.value["kind"] == "Deployment")
    assert content["spec"]["template"]["spec"] == written["spec"]["template"]["spec"]
    assert (content["apiVersion"], content["kind"]) == ("apps/v1", "Deployment")
    assert "managedFields" not in answer.yaml
    assert "manager: kubectl" in answer.managed_fields
    assert (answer.kind, answer.is_partial) == ("apps/v1 Deployment", False)


def test_an_object_names_its_owners(cluster: ClusterSubject) -> None:
    answer = answer_of(cluster, "object?kind=v1+Pod&name=default/db-0", ObjectText).value
    assert answer.owners == (ObjectRow(kind="StatefulSet", name="default/db"),)


def test_a_pod_of_a_run_is_as_it_was_at_the_moment(subject: RunSubject) -> None:
    line = subject.timeline
    change = int(line.placements.start[-1])
    pod = line.pods[int(line.placements.pod[-1])].name
    texts = [
        answer_of(subject, f"object?kind=Pod&name={pod}&at={at}", ObjectText).value.yaml
        for at in (change - 1, change)
    ]
    assert ["nodeName:" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("kind", "name", "problem"),
    [
        ("Secret", "default/password", "the page shows no Secrets"),
        ("v1 Secret", "default/password", "the page shows no Secrets"),
        ("Pod", "default/nope", "there is no Pod default/nope at this moment, or it was not read"),
        ("", "", "there is no object  at this moment, or it was not read"),
    ],
)
def test_a_secret_and_what_is_not_there_are_refused(
    cluster: ClusterSubject, kind: str, name: str, problem: str
) -> None:
    answer = ready(lambda: object_text(cluster, 0, kind, name))
    assert (answer.phase, answer.problem) == ("failed", problem)


def test_objects_are_searched_by_name_and_secrets_are_not_there(cluster: ClusterSubject) -> None:
    page = answer_of(cluster, "objects?search=DB&limit=5", ObjectPage).value
    assert page.rows == (ObjectRow(kind="Pod", name="default/db-0"),)
    assert answer_of(cluster, "objects?search=passw", ObjectPage).total == 0
