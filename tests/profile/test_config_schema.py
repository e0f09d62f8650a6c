"""The JSON schema for editors accepts and refuses what the program accepts and refuses."""

import re
from typing import Any

import pytest

from bayplan.plugins.registry import Registry
from bayplan.profile.config_schema import json_schema
from tests.engine.plugin_kit import HEAD, Both, Gate, Rack, profile, registry

REGISTRY = registry(Both, Gate, Rack)
SCHEMA = json_schema(REGISTRY)
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def fits(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    """The part of JSON Schema that the schema uses. An unknown keyword fails the test."""
    return all(KEYWORDS[word](value, schema, whole) for word in schema)


def _ref(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    return fits(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole)


def _type(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    if isinstance(value, bool):
        return schema["type"] == "boolean"
    return isinstance(value, TYPES[schema["type"]])


def _properties(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    parts = schema["properties"]
    return not isinstance(value, dict) or all(
        fits(part, parts[name], whole) for name, part in value.items() if name in parts
    )


def _additional(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    further = schema["additionalProperties"]
    names = set(value) - set(schema.get("properties", ())) if isinstance(value, dict) else set()
    return not names if further is False else all(fits(value[n], further, whole) for n in names)


def _pattern(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    return not isinstance(value, str) or re.search(schema["pattern"], value) is not None


def _condition(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    return not fits(value, schema["if"], whole) or fits(value, schema["then"], whole)


def _accepted(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> bool:
    return True


KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("$schema", "$defs", "title", "description", "default", "then"), _accepted),
    "contentEncoding": _accepted,
    "$ref": _ref,
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "pattern": _pattern,
    "if": _condition,
    "const": lambda value, schema, whole: value == schema["const"],
    "enum": lambda value, schema, whole: value in schema["enum"],
    "required": lambda value, schema, whole: set(schema["required"]) <= set(value),
    "items": lambda value, schema, whole: all(fits(v, schema["items"], whole) for v in value),
    "minimum": lambda value, schema, whole: value >= schema["minimum"],
    "maximum": lambda value, schema, whole: value <= schema["maximum"],
    "anyOf": lambda value, schema, whole: any(fits(value, s, whole) for s in schema["anyOf"]),
    "allOf": lambda value, schema, whole: all(fits(value, s, whole) for s in schema["allOf"]),
}


def accepts(value: Any, schema: dict[str, Any] = SCHEMA) -> bool:
    return fits(value, schema, schema)


def test_instances_and_gates_are_accepted() -> None:
    some = profile(["Both/a", "Gate"], {"Gate/b": {"key": "b"}, "Both": {}, "VolumeBinding": {}})
    some["plugins"]["score"] = {"disabled": [{"name": "*"}, {"name": "EBSLimits"}]}
    gates = {"SchedulerOpportunisticBatching": False, "AllAlpha": True, "NodeSwap": True}
    assert accepts({**HEAD, "profiles": [some], "featureGates": gates})


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({}, id="neither apiVersion nor kind"),
        pytest.param({**HEAD, "apiVersion": "v1"}, id="another version"),
        pytest.param({**HEAD, "percentageOfNodeToScore": 5}, id="an unknown field"),
        pytest.param({**HEAD, "percentageOfNodesToScore": 101}, id="a value out of range"),
        pytest.param({**HEAD, "parallelism": "1"}, id="a wrong type"),
        pytest.param(
            {**HEAD, "leaderElection": {"leaseDuration": "5"}}, id="a value that is not a duration"
        ),
        pytest.param({**HEAD, "featureGates": {"Foo": True}}, id="an unknown gate"),
        pytest.param(
            {**HEAD, "featureGates": {"DynamicResourceAllocation": False}}, id="a locked gate"
        ),
    ],
)
def test_the_schema_refuses_what_the_program_refuses(value: Any) -> None:
    assert not accepts(value)


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(profile(["Bth"]), id="an unknown plugin"),
        pytest.param(profile(["DefaultPreemption"]), id="a plugin that is not implemented"),
        pytest.param(
            profile(score={"enabled": [{"name": "Gate"}]}), id="a plugin at a wrong extension point"
        ),
        pytest.param(profile(score={"enabled": [{"name": "*"}]}), id="all plugins enabled"),
        pytest.param(profile(score={"enabled": [{}]}), id="a plugin without a name"),
        pytest.param(
            profile(score={"disabled": [{"name": "Bth"}]}), id="a misspelled name in disabled"
        ),
        pytest.param(profile(scor={}), id="an unknown extension point"),
        pytest.param(profile(["Both"], {"Bth": {}}), id="args of an unknown plugin"),
        pytest.param(profile(["Gate"], {"Gate": {"kye": 1}}), id="an unknown arg"),
        pytest.param(profile(["Gate"], {"Gate/a": {"limit": "x"}}), id="an arg of a wrong type"),
        pytest.param(profile(["Rack"], {"Rack": {}}), id="an arg that is missing"),
        pytest.param(profile(["Both"], {"Both": {"a": 1}}), id="args of a plugin without any"),
    ],
)
def test_plugins_and_their_args_are_checked(some: dict[str, Any]) -> None:
    assert not accepts({**HEAD, "profiles": [some]})


def test_every_type_of_a_part_is_strict() -> None:
    for name, part in json_schema(Registry())["$defs"].items():
        if "properties" in part:
            assert part["additionalProperties"] is False, name
