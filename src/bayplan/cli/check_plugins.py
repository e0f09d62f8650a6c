"""`bayplan plugins test`: check_plugin for each plugin of a file, as a report."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, final

import click
from rich.console import RenderableType
from rich.text import Text

from bayplan.answers.document import Answer, Rows, Value
from bayplan.answers.formats import OutputFormat
from bayplan.cli.configuration import read_config
from bayplan.cli.console import show_answer
from bayplan.cli.epilogs import examples
from bayplan.cli.options import config_option, output_option
from bayplan.cli.problems import read_bytes, refusals
from bayplan.cli.streams import EXIT_FAILED
from bayplan.config.loading import SchedulerConfig
from bayplan.framework.plugin import Plugin
from bayplan.framework.profile import extension_points_of
from bayplan.framework.validation import line_of
from bayplan.lazy_loader import load
from bayplan.plugins.registry import Registry


class PluginCheck(Value, frozen=True, kw_only=True):
    """What the checks of one plugin came to."""

    plugin: str
    extension_points: tuple[str, ...]
    passed: bool
    #: The clusters in which it was checked; 0: a check failed.
    clusters: int = 0
    #: The promise that is broken, and its correction; "": none is.
    message: str = ""
    #: Whether results may be cached: the plugin signs pods.
    cached: bool = False


@final
class PluginChecks(Answer, frozen=True, kw_only=True):
    """The answer of `bayplan plugins test`."""

    kind: Literal["PluginChecks"] = "PluginChecks"
    field_of_list: ClassVar[str] = "checks"
    checks: tuple[PluginCheck, ...]

    def parts(self, *, is_wide: bool = False) -> list[RenderableType]:
        """Two lines for each plugin."""
        return [line for check in self.checks for line in _lines(check)]

    def rows(self) -> Rows:
        """The plugins."""
        rows = ((c.plugin, c.passed, c.clusters, c.cached, c.message) for c in self.checks)
        return Rows(("plugin", "passed", "clusters", "cached", "message"), rows)


@click.command(
    "test", epilog=examples("bayplan plugins test my_policy.py", "bayplan plugins test a.py b.py")
)
@click.argument("files", nargs=-1, required=True, metavar="FILE.py...")
@config_option("Configuration that has the arguments of the plugins. Default: their defaults")
@output_option()
def test_command(files: tuple[str, ...], config_path: str | None, output: OutputFormat) -> None:
    """Check that the plugins of files keep the contract of a plugin.

    The checks draw clusters and pods, and name each promise that does not hold with its correction;
    bayplan.testing.check_plugin is the same in a test. The exit code is 1 if a check fails.
    """
    with refusals():
        args = _args_of(read_config(config_path, "")) if config_path is not None else {}
        registry, names = Registry(), list[str]()
        for file in files:
            read_bytes(file)
            names += registry.load_file(file)
    plugins = [plugin for name in names if (plugin := registry.find(name)) is not None]
    checks = [_check(plugin, args.get(plugin.name)) for plugin in plugins]
    show_answer(PluginChecks(checks=tuple(checks)), output)
    sys.exit(0 if all(check.passed for check in checks) else EXIT_FAILED)


def _args_of(config: SchedulerConfig) -> Mapping[str, Any]:
    """Plugin → the arguments of its first instance in the configuration."""
    args: dict[str, Any] = {}
    for profile in config.spec.profiles:
        for each in profile.plugin_config:
            args.setdefault(each.name.partition("/")[0], each.args)
    return args


def _check(plugin: type[Plugin], args: Any) -> PluginCheck:
    testing = load("bayplan.testing")
    points = tuple(extension_points_of(plugin))
    try:
        report = testing.check_plugin(plugin, args)
    except testing.CheckFailed as problem:
        message = str(problem).removeprefix(f"{plugin.name}: ")
    except Exception as problem:  # noqa: BLE001 - the report names the plugin
        message = f"{type(problem).__name__}: {problem}{line_of(problem)}"
    else:
        is_cached = plugin.caching is not None
        return PluginCheck(
            plugin=plugin.name,
            extension_points=points,
            passed=True,
            clusters=report.clusters,
            cached=is_cached,
        )
    return PluginCheck(plugin=plugin.name, extension_points=points, passed=False, message=message)


def _lines(check: PluginCheck) -> Iterator[Text]:
    points = ", ".join(check.extension_points)
    result = "passed" if check.passed else "FAILED"
    yield Text(f"{result}  {check.plugin} ({points})", style="bold")
    if check.passed:
        caching = "its results are cached" if check.cached else "its results are not cached"
        text = f"keeps the contract in {check.clusters} clusters; {caching}"
    else:
        text = check.message
    for line in text.splitlines():
        yield Text(f"        {line}")
