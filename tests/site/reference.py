"""The reference pages, made from the program: commands, schemas, metrics, plugins, docstrings."""

import inspect
import json
from collections.abc import Iterable, Iterator
from typing import Any

import click
import msgspec

import bayplan
from bayplan import testing
from bayplan.cli.entry import cli
from bayplan.comparison.report import ComparisonAnswer
from bayplan.explain.explanation import Explanation
from bayplan.plugins.registry import Registry
from bayplan.profile.config_schema import json_schema
from bayplan.profile.plugin_table import plugin_table
from bayplan.shadow.report import ShadowReport
from bayplan.sim.decisions import Decisions
from bayplan.sim.output.result import SimulationResult
from bayplan.whatif.all_pending import PendingPods
from bayplan.whatif.comparison import WhatIfAnswer
from bayplan.whatif.drain_each import DepartureReport
from bayplan.whatif.fit import Fit
from bayplan.whatif.headroom import Headroom
from tests.deploy.monitoring import families

Schema = dict[str, Any]

#: Command → the type of its answer with -o json.
JSON_ANSWERS: dict[str, Any] = {
    "simulate": SimulationResult,
    "fit": Fit,
    "headroom": Headroom,
    "why": Explanation,
    "why --all-pending": PendingPods,
    "why --run": Decisions,
    "whatif": WhatIfAnswer,
    "whatif --drain-each": DepartureReport,
    "compare": ComparisonAnswer,
    "shadow": ShadowReport,
}


def pages() -> dict[str, str]:
    """Page of the site → Markdown."""
    return {
        "reference/command-line.md": _command_line(),
        "reference/configuration.md": _configuration(),
        "reference/plugins.md": _plugins(),
        "reference/plugin-api.md": _plugin_api(),
        "reference/testing-api.md": _testing_api(),
        "reference/metrics.md": _metrics(),
        "reference/json.md": _json(),
    }


# ---- commands ------------------------------------------------------------------------------


def _command_line() -> str:
    head = "# Command line\n\nEvery command and option, as `--help` prints them.\n"
    return "\n".join([head, *_command(cli, None, "bayplan", level=1)])


def _command(
    command: click.Command, parent: click.Context | None, name: str, level: int
) -> Iterator[str]:
    """The section of a command, and those of its subcommands."""
    context = click.Context(command, info_name=name, parent=parent)
    if parent is not None:
        yield f"{'#' * level} {context.command_path}\n"
    yield f"{_plain(inspect.cleandoc(command.help or ''))}\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"    {usage}\n"
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(_code(option), _plain(text)) for option, text in filter(None, records)]
    yield _table(("option", "meaning"), rows)
    examples = (command.epilog or "").partition("Examples:\n")[2]
    if examples:
        lines = "\n".join(f"    {line.strip()}" for line in examples.splitlines())
        yield f"Examples:\n\n{lines}\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            subcommand = command.get_command(context, inner)
            assert subcommand is not None, inner
            yield from _command(subcommand, context, inner, level + 1)


# ---- schemas -------------------------------------------------------------------------------


def _configuration() -> str:
    head = (
        "# Configuration\n\n"
        "The fields of a `KubeSchedulerConfiguration` (`kubescheduler.config.k8s.io/v1`) with "
        "their defaults. `bayplan config schema` prints the same as a JSON schema, for editors; "
        "`bayplan config check` prints the effective configuration, or every error.\n"
    )
    parts: dict[str, Schema] = json_schema(Registry())["$defs"]
    first = "KubeSchedulerConfiguration"
    return "\n".join([head, *_sections({first: parts.pop(first), **parts})])


def _json() -> str:
    head = (
        "# JSON answers\n\n"
        "Fields of the answers with `-o json`. Later versions may add fields "
        "([versions](../versions.md)).\n"
    )
    (*answers,), parts = msgspec.json.schema_components(
        JSON_ANSWERS.values(), ref_template="#/$defs/{name}"
    )
    rows = [
        (_code(f"bayplan {command} -o json"), _type(answer))
        for command, answer in zip(JSON_ANSWERS, answers, strict=True)
    ]
    return "\n".join([head, _table(("command", "answer"), rows), *_sections(parts)])


def _sections(parts: dict[str, Schema]) -> Iterator[str]:
    for name, part in parts.items():
        yield f"## {name}\n"
        if "description" in part:
            yield f"{_plain(part['description'])}\n"
        yield _field_table(part)


def _field_table(part: Schema) -> str:
    rows = [
        (
            f"`{name}`",
            _type(field),
            f"`{json.dumps(field['default'])}`" if "default" in field else "",
            _plain(field.get("description", "")),
        )
        for name, field in part.get("properties", {}).items()
    ]
    return _table(("field", "type", "default", "meaning"), rows) if rows else f"{_type(part)}\n"


def _type(field: Schema) -> str:
    """A type in words. A reference links to its section."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "anyOf" in field or "oneOf" in field:
        return " or ".join(dict.fromkeys(map(_type, field.get("anyOf") or field["oneOf"])))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items') or {})}"
    inner = field.get("additionalProperties")
    if field.get("type") == "object" and isinstance(inner, dict) and inner:
        return f"map of {_type(inner)}"
    return str(field.get("type", "any"))


# ---- plugins -------------------------------------------------------------------------------


def _plugins() -> str:
    head = (
        "# Plugins\n\n"
        "The plugins of the package, as `bayplan plugins` lists them. A *row* plugin answers for "
        "each node by that node alone; its results are reused "
        "([reuse of results](../batching.md)).\n"
    )
    blocks = [head]
    for row in plugin_table(Registry()):
        rows = [
            ("extension points", ", ".join(row.extension_points)),
            ("arguments", _code(json.dumps(row.args)) if row.args else ""),
            ("events that wake its pods", ", ".join(map(_code, row.events))),
            ("scope", f"{row.scope}, {'signed' if row.is_signed else 'not signed'}"),
            ("note", row.note),
        ]
        blocks += [f"## {row.name}\n", _table(("", ""), [pair for pair in rows if pair[1]])]
    return "\n".join(blocks)


def _plugin_api() -> str:
    head = (
        "# Plugin API\n\n"
        "The names that `bayplan` exports. [Writing plugins](../plugins.md) explains how they work "
        "together.\n"
    )
    names: dict[str, list[str]] = {}
    for name in bayplan.__all__:
        value = getattr(bayplan, name)
        module = getattr(value, "__module__", None)
        # Type aliases, such as those of arrays, have no docstring of their own.
        if module is not None and module.startswith("bayplan.") and inspect.getdoc(value):
            names.setdefault(module, []).append(name)
    return "\n".join([head, *_documented(names)])


def _testing_api() -> str:
    head = "# Testing API\n\nThe names that `bayplan.testing` exports, for tests of your plugins.\n"
    names: dict[str, list[str]] = {}
    for name in testing.__all__:
        names.setdefault(getattr(testing, name).__module__, []).append(name)
    return "\n".join([head, *_documented(names)])


def _documented(names: dict[str, list[str]]) -> Iterator[str]:
    for module in sorted(names):
        yield f"## {module}\n"
        for name in names[module]:
            yield f"::: {module}.{name}\n"


# ---- metrics -------------------------------------------------------------------------------


def _metrics() -> str:
    head = (
        "# Metrics\n\n"
        "The metrics of `bayplan run` at `/metrics`. Names and labels of `scheduler_` are those of "
        "kube-scheduler. [Operating Bayplan](../operations.md#metrics-to-watch) says which of them "
        "to watch.\n"
    )
    rows = [
        (
            _code(f"{family.name}_total" if family.type == "counter" else family.name),
            family.type,
            ", ".join(map(_code, getattr(family, "_labelnames", ()))),
            _plain(family.documentation),
        )
        for family in sorted(families(), key=lambda family: family.name)
    ]
    return "\n".join([head, _table(("metric", "type", "labels", "meaning"), rows)])


# ---- Markdown ------------------------------------------------------------------------------


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(text) for text in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    """The text on one line. In code, a pipe is not escaped: the escape would be visible."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [part.replace("|", "&#124;") for part in parts[::2]]
    return "`".join(parts)


def _code(text: str) -> str:
    return f"`{text}`"


def _plain(text: str) -> str:
    """The text of a docstring with single backticks and escaped HTML."""
    return text.replace("``", "`").replace("<", "&lt;")
