"""`bayplan schema`: answers match their schemas."""

import json
import re
from pathlib import Path

import msgspec
import pytest

import bayplan as bayplan_package
from bayplan.answers.document import schema_of
from bayplan.cli.schema import ANSWERS, NAMES
from bayplan.explain.explanation import Explanation
from tests.cli.command_line import answer, bayplan, write_objects
from tests.kit.manifests import node, pod


def test_every_answer_of_the_code_has_a_schema() -> None:
    bases = re.compile(r"^class (\w+)\(Answer, ", re.MULTILINE)
    files = Path(bayplan_package.__file__).parent.rglob("*.py")
    answers = {name for file in files for name in bases.findall(file.read_text(encoding="utf-8"))}
    assert answers == {place.partition(":")[2] for place in ANSWERS.values()}


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_json(name: str) -> None:
    schema = json.loads(answer("schema", name))
    assert schema["$schema"].startswith("https://json-schema.org")


def test_an_unknown_name_is_refused() -> None:
    assert bayplan("schema", "nothing").exit_code == 2


def test_an_answer_has_the_fields_of_its_schema(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "in.yaml", node("n1"), pod("p", cpu="64"))
    value = json.loads(bayplan("why", "p", file, "-o", "json").stdout)
    properties = schema_of(Explanation)["$defs"]["Explanation"]["properties"]
    assert list(value) == list(properties)
    # The answer decodes strictly into the type from which the schema was made.
    assert msgspec.convert(value, Explanation).fixes
