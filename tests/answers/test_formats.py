"""What each format writes of an answer."""

import json
from typing import ClassVar, Literal

import pytest
import yaml
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.document import Answer, Rows, Value, schema_of
from bayplan.answers.formats import FORMATS, output_format, written
from bayplan.answers.table import BLANK, Table, number_columns
from bayplan.problems import BadInputError


class Place(Value, frozen=True, kw_only=True):
    pod_name: str
    node: str = ""


class Places(Answer, frozen=True, kw_only=True):
    kind: Literal["Places"] = "Places"
    field_of_list: ClassVar[str] = "places"
    places: tuple[Place, ...]
    reasons: dict[str, list[str]] = {}

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        table = Table("pod", *number_columns("node"))
        for place in self.places:
            table.add_row(place.pod_name, place.node)
        command = Text("kubectl get pods", no_wrap=True)
        return [Text("2 pods", style="bold"), BLANK, table, Text("  1. a step"), command]

    def rows(self) -> Rows:
        return Rows(("pod", "node"), ((one.pod_name, one.node) for one in self.places))


PLACES = Places(
    places=(Place(pod_name="a/=1+1", node="n1"), Place(pod_name="a/|<b>@me", node="n2")),
    reasons={"gone": ["a", "b", "c"]},
)


def text(name: str) -> str:
    return written(PLACES, output_format(name)).decode()


def test_json_and_yaml_are_the_same_document() -> None:
    document = json.loads(text("json"))
    assert document == yaml.safe_load(text("yaml"))
    assert list(document)[:2] == ["apiVersion", "kind"]
    assert document["places"][0] == {"podName": "a/=1+1", "node": "n1"}


def test_csv_is_the_list_and_name_its_first_column() -> None:
    assert text("csv") == "pod,node\na/=1+1,n1\na/|<b>@me,n2\n"
    assert text("name") == "a/=1+1\na/|<b>@me\n"


def test_a_path_may_name_the_fields_of_the_schema_only() -> None:
    assert text("jsonpath={.places[*].node}") == "n1 n2"
    assert text("jsonpath={.reasons.gone[1]}") == "b"
    with pytest.raises(BadInputError, match="there is no field pods; the fields are apiVersion"):
        text("jsonpath={.pods}")


def test_markdown_escapes_what_has_a_meaning_and_mentions_nobody() -> None:
    assert text("markdown") == (
        "**2 pods**  \n\n"
        "| pod | node |\n| --- | --: |\n"
        "| a/=1+1 | n1 |\n"
        "| a/\\|\\<b\\>@\u200bme | n2 |\n\n"
        "- 1\\. a step\n```sh\nkubectl get pods\n```\n"
    )


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            "xml",
            'found "xml", wanted text, wide, json, yaml, csv, name, markdown or jsonpath=TEMPLATE',
        ),
        ("jsno", 'did you mean "json"?'),
        ("json={.kind}", 'found "json={.kind}", wanted'),
        ("jsonpath", "found no template"),
        ("", "found nothing, wanted"),
    ],
)
def test_a_wrong_format_is_refused_with_those_that_exist(value: str, problem: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        output_format(value)
    assert problem in str(refusal.value)


def test_a_page_has_a_part_of_the_list_and_no_longer_list_than_that() -> None:
    page, total = PLACES.page(1, 1, further_max=1)
    assert total == 2
    assert [one.node for one in page.places] == ["n2"]
    assert page.reasons == {"gone": ["a"]}
    assert PLACES.page(9, 1)[0].places == ()


def test_every_answer_of_the_product_has_a_schema_with_its_kind_and_version() -> None:
    schema = schema_of(Places)
    properties = schema["$defs"]["Places"]["properties"]
    assert schema["title"] == "Places"
    assert properties["kind"] == {"const": "Places"}
    assert properties["apiVersion"] == {"const": "bayplan.dev/v1alpha1"}
    assert set(FORMATS) >= {"text", "wide", "json", "yaml", "csv", "name", "jsonpath"}
