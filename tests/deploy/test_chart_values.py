"""Every value of the chart is documented, in the schema, and in the README."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.chart_readme import README, VALUES, values, with_table
from tests.deploy.rendering import CHART, CHART_CRDS, CRDS

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEXT = VALUES.read_text(encoding="utf-8")
DEFAULTS: dict[str, Any] = yaml.safe_load(TEXT)
WHOLE_SETS = sorted((CHART / "ci").glob("*-values.yaml"))


def properties(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The paths of all values that the schema names, down to those without properties."""
    while "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]]
    inner = schema.get("properties", {})
    if not inner:
        yield prefix.removesuffix(".")
    for name, part in inner.items():
        # A configuration has a schema of its own: `bayplan config check`.
        if name == "config":
            yield f"{prefix}{name}"
        else:
            yield from properties(part, f"{prefix}{name}.")


def merged(base: Any, override: Any) -> Any:
    """The values after an override, as Helm merges them."""
    if not isinstance(base, dict) or not isinstance(override, dict):
        return override
    old: dict[str, Any] = base
    new: dict[str, Any] = override
    return old | {key: merged(old.get(key), value) for key, value in new.items()}


def errors(override: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft7Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(merged(DEFAULTS, override))]


def test_every_value_has_a_comment() -> None:
    assert [value.path for value in values(TEXT) if not value.description] == []
    assert len(values(TEXT)) > 60


def test_the_schema_and_the_values_name_the_same_paths() -> None:
    # `global` is Helm's own: a parent chart sets it.
    assert {*properties(SCHEMA)} - {"global"} == {value.path for value in values(TEXT)}


def test_the_table_of_the_readme_is_made_from_the_values() -> None:
    readme = README.read_text(encoding="utf-8")
    assert readme == with_table(readme, TEXT), "run `make manifests`"


def test_a_value_without_a_comment_has_no_description() -> None:
    (first, second, third) = values("# a heading\na: 1\n# -- one\n# two\nb: {c: 2}\nd:\n  e: x\n")
    assert (first.path, first.default, first.description) == ("a", "1", "")
    assert (second.path, second.default, second.description) == ("b", "{c: 2}", "one two")
    assert (third.path, third.default, third.description) == ("d.e", "x", "")


@pytest.mark.parametrize("path", WHOLE_SETS, ids=lambda path: path.stem)
def test_the_complete_sets_of_values_are_valid(path: Any) -> None:
    assert not errors(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert len(WHOLE_SETS) == 2


@pytest.mark.parametrize(
    "override",
    [
        {"unknown": 1},
        {"image": {"digest": "latest"}},
        {"replicas": 2, "leaderElection": {"enabled": False}},
        {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
        {"podDisruptionBudget": {"maxUnavailable": 0}},
        {"config": {"leaderElection": {}}},
        {"plugins": {"files": {"not-a-module.py": ""}}},
        {"extraArgs": "--one"},
    ],
    ids="-".join,
)
def test_invalid_values_are_refused(override: dict[str, Any]) -> None:
    assert errors(override)


def test_the_definitions_of_the_chart_are_those_of_the_repository() -> None:
    own = {path.name: path.read_bytes() for path in CHART_CRDS.iterdir()}
    assert own == {path.name: path.read_bytes() for path in CRDS.iterdir()}, "run `make manifests`"
