"""A JSON schema of the configuration with all plugins and their args, for editors.

The schema refuses unknown fields, wrong types, values out of range, plugins that do not exist, and
plugins at extension points that they do not implement. It cannot express conditions on two fields.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

from msgspec.json import schema_components

from bayplan.config.feature_gates import (
    ALIASES,
    STAGE_SWITCHES,
    every_gate_of,
)
from bayplan.config.kubernetes_versions import NEWEST
from bayplan.config.schema import API_VERSION, KIND, KubeSchedulerConfiguration
from bayplan.config.upstream import REMOVED_PLUGINS, UPSTREAM_PLUGINS
from bayplan.config.validation import ALL_PLUGINS, LABEL_SEPARATOR
from bayplan.framework.plugin import PluginArgs
from bayplan.framework.profile import may_be_enabled_at
from bayplan.plugins.registry import Registry

Schema = dict[str, Any]


def json_schema(registry: Registry) -> Schema:
    """The schema of a configuration file (JSON Schema, draft 2020-12)."""
    args_types: dict[str, type[PluginArgs]] = {}
    for name in registry.names:
        plugin = registry.find(name)
        if plugin is not None and plugin.args_type is not None:
            args_types[name] = plugin.args_type
    types = [KubeSchedulerConfiguration, *args_types.values()]
    (whole, *args), components = schema_components(types, ref_template="#/$defs/{name}")
    parts = cast("dict[str, Schema]", components)
    for part in parts.values():
        if "properties" in part:
            part["additionalProperties"] = False
    root = parts["KubeSchedulerConfiguration"]
    root["required"] = ["apiVersion", "kind"]
    root["properties"] |= {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        "featureGates": _gates(),
    }
    parts["Plugins"]["properties"] = {
        point: _plugin_set(point, registry) for point in parts["Plugins"]["properties"]
    }
    parts["PluginConfig"] = _plugin_config(registry, dict(zip(args_types, args, strict=True)))
    schema = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": schema, "title": KIND, **whole, "$defs": parts}


def _gates() -> Schema:
    gates: dict[str, Schema] = {}
    for name, gate in sorted(every_gate_of(NEWEST).items()):
        default = "on" if gate.default else "off"
        gates[name] = {
            **({"const": gate.default} if gate.is_locked else {"type": "boolean"}),
            "description": f"{gate.stage}, {default} by default",
        }
    gates |= {name: gates[meant] for name, meant in ALIASES.items()}
    gates |= {
        name: {"type": "boolean", "description": f"all {stage} gates that are not named"}
        for name, stage in STAGE_SWITCHES.items()
    }
    return {"type": "object", "properties": gates, "additionalProperties": False}


def _plugin_set(point: str, registry: Registry) -> Schema:
    able = [
        name
        for name in registry.names
        if (plugin := registry.find(name)) is not None
        and (point == "multiPoint" or may_be_enabled_at(point, plugin))
    ]
    names = {"enabled": able, "disabled": [*_all_names(registry), *REMOVED_PLUGINS]}
    extra = {"enabled": (), "disabled": (ALL_PLUGINS,)}
    lists = {
        key: {
            "type": "array",
            "items": {
                "allOf": [{"$ref": "#/$defs/PluginEntry"}],
                "properties": {"name": _name(names[key], extra[key])},
                "required": ["name"],
            },
        }
        for key in ("enabled", "disabled")
    }
    return {"type": "object", "properties": lists, "additionalProperties": False}


def _plugin_config(registry: Registry, args: dict[str, Schema]) -> Schema:
    """The schema of pluginConfig: the args depend on the name. Upstream plugins that Bayplan lacks
    may have any args."""
    no_args = {key: {"type": "string"} for key in ("apiVersion", "kind")}
    takes_none = {"properties": no_args, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"name": _name(_all_names(registry), ()), "args": {"type": "object"}},
        "required": ["name"],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"name": {"pattern": f"^{name}(?:$|{LABEL_SEPARATOR})"}}},
                "then": {"properties": {"args": args.get(name, takes_none)}},
            }
            for name in registry.names
        ],
    }


def _all_names(registry: Registry) -> list[str]:
    return sorted({*registry.names, *UPSTREAM_PLUGINS})


def _name(plugins: Iterable[str], extra: Iterable[str]) -> Schema:
    """One of the names, with or without a label. The names are listed, so that an editor can
    complete them."""
    names = sorted(plugins)
    labelled = f"^(?:{'|'.join(map(re.escape, names))}){LABEL_SEPARATOR}[^{LABEL_SEPARATOR}]+$"
    choices: list[Schema] = [{"enum": [*extra, *names]}]
    return {"type": "string", "anyOf": [*choices, {"pattern": labelled}] if names else choices}
