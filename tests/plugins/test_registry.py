"""The origins of plugins, and the classes that may be plugins."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from pkgutil import iter_modules
from textwrap import dedent
from typing import Any, ClassVar, final

import pytest

import bayplan.plugins
from bayplan.config import ConfigError
from bayplan.config.decoding import decode
from bayplan.config.upstream import UPSTREAM_PLUGINS
from bayplan.framework.plugin import (
    EnqueueExtensions,
    FilterPlugin,
    Plugin,
    QueueSortPlugin,
    ScalarScorePlugin,
)
from bayplan.framework.profile import extension_points_of
from bayplan.plugins import registry as registry_module
from bayplan.plugins.registry import (
    ENTRY_POINT_GROUP,
    IN_TREE,
    Registry,
    default_registry,
    in_tree_plugins,
)

PLUGIN = """
    from typing import final

    from bayplan.framework.plugin import ScalarScorePlugin


    @final
    class {name}(ScalarScorePlugin):
        name = "{name}"

        def score_node(self, state, pod, node):
            return {score}
"""


@final
class Sort(QueueSortPlugin):
    name = "Sort"

    def key(self, queued: Any) -> Any:
        return 0


def refusal(act: Any, *args: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        act(*args)
    return str(caught.value)


def written(folder: Path, text: str, name: str = "my_policy.py") -> Path:
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8")
    return path


# ---- the table -----------------------------------------------------------------------------


def test_the_registry_has_in_tree_plugins_by_name() -> None:
    registry = Registry()
    assert registry.names == [plugin.name for plugin in in_tree_plugins()]
    assert registry.find("NodeName") in in_tree_plugins()
    assert registry.origin("NodeName") == IN_TREE
    assert registry.find("Nothing") is None


def test_a_plugin_of_the_tree_is_imported_when_it_is_first_needed() -> None:
    script = (
        "import sys; from bayplan.plugins.registry import Registry; registry = Registry()\n"
        "def loaded(): return sorted(m for m in sys.modules if m.startswith('bayplan.plugins.'))\n"
        "assert registry.names and registry.kinds and registry.origin('NodeName')\n"
        "print(*loaded()); registry.find('NodeName'); print(*loaded())"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    before, after = done.stdout.splitlines()
    assert before == "bayplan.plugins.registry"
    assert after == "bayplan.plugins.node_name bayplan.plugins.registry"


def test_the_kinds_are_those_of_all_plugins_whether_they_are_imported_or_not() -> None:
    registry = Registry()
    kinds = frozenset(kind for plugin in in_tree_plugins() for kind in plugin.kinds)
    assert registry.kinds == kinds
    assert registry.find("NodeName") is not None
    assert registry.kinds == kinds
    assert all(registry.find(name) for name in registry.names)
    assert registry.kinds == kinds


def test_no_plugin_of_the_tree_is_refused() -> None:
    assert Registry(in_tree_plugins()).names == Registry().names


def test_the_table_has_every_plugin_of_the_tree() -> None:
    folder = bayplan.plugins
    modules = [import_module(m.name) for m in iter_modules(folder.__path__, "bayplan.plugins.")]
    results = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Plugin) and hasattr(value, "name")
    }
    assert results == set(in_tree_plugins())


def test_the_table_follows_upstreams_order() -> None:
    names = [name for name in Registry().names if name in UPSTREAM_PLUGINS]
    assert names == [name for name in UPSTREAM_PLUGINS if name in names]


def test_the_plugins_that_ignore_resizes_are_those_of_upstream() -> None:
    """Upstream: schedule_one_test.go, TestScheduler_DeferredResizePluginSkipping."""
    ignoring = {plugin.name for plugin in in_tree_plugins() if plugin.ignores_resizes}
    assert ignoring & set(UPSTREAM_PLUGINS) == {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
    assert ignoring - set(UPSTREAM_PLUGINS) == {"Coscheduling"}


def test_every_plugin_of_the_tree_has_an_extension_point() -> None:
    assert all(extension_points_of(plugin) for plugin in in_tree_plugins())


# ---- one class -----------------------------------------------------------------------------


def test_a_class_is_added_by_its_name() -> None:
    registry = Registry([])
    registry.add(Sort, "elsewhere.py")
    assert registry.find("Sort") is Sort
    assert registry.origin("Sort") == "elsewhere.py"


def test_a_name_stands_for_one_plugin() -> None:
    registry = Registry([Sort])
    assert refusal(registry.add, Sort, "my.py") == (
        "my.py: Sort: there is a plugin Sort already (in tree)"
    )


class NoFilter(FilterPlugin):
    name = "NoFilter"


class Sorted(Sort):  # type: ignore[misc] # pyright: ignore[reportGeneralTypeIssues]
    name = "Sorted"


class Nameless(QueueSortPlugin):
    def key(self, queued: Any) -> Any:
        return 0


class Slashed(Nameless):
    name = "a/b"


class Star(Nameless):
    name = "*"


class Idle(Plugin, EnqueueExtensions):
    name = "Idle"

    def events_to_register(self) -> list[Any]:
        return []


class Sideways(ScalarScorePlugin):
    name = "Sideways"
    scope = "column"

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0


class Argued(ScalarScorePlugin):
    name = "Argued"
    args_type: ClassVar[Any] = dict

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return 0


NO_FILTER = "does not implement filter; write def filter(self, state, pod, nodes, feasible)"


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        pytest.param(NoFilter, NO_FILTER, id="a point that is not implemented"),
        pytest.param(Sorted, "a subclass of the plugin Sort; wrap it", id="an open class"),
        pytest.param(Nameless, "name is None; wanted a string", id="no name"),
        pytest.param(Slashed, "name is 'a/b'; wanted a string without", id="a name like a label"),
        pytest.param(Star, "name is '*'; wanted a string", id="the name of all plugins"),
        pytest.param(Idle, "no extension point; wanted one of preEnqueue", id="no extension point"),
        pytest.param(
            Sideways, 'scope is \'column\'; wanted "cluster" or "row"', id="an invalid scope"
        ),
        pytest.param(Argued, "wanted a subclass of PluginArgs", id="args of another kind"),
        pytest.param(Registry, "not a plugin", id="a class that is not a plugin"),
        pytest.param("Sort", "not a plugin", id="a value that is not a class"),
    ],
)
def test_a_class_that_cannot_be_a_plugin_is_refused(plugin: Any, message: str) -> None:
    fault = registry_module._fault_of(plugin)  # pyright: ignore[reportPrivateUsage]
    assert fault is not None
    assert message in fault
    if isinstance(plugin, type):
        assert fault in refusal(Registry([]).add, plugin)


# ---- files ---------------------------------------------------------------------------------


def test_a_file_brings_its_plugins_in_order(tmp_path: Path) -> None:
    text = dedent(PLUGIN.format(name="Second", score=2)) + dedent(PLUGIN.format(name="A", score=1))
    path = written(tmp_path, text)
    registry = Registry([])
    assert registry.load_file(path) == ["Second", "A"] == registry.names
    assert registry.origin("A") == str(path)


def test_imported_classes_are_not_plugins_of_a_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        from bayplan.framework.plugin import FilterPlugin, QueueSortPlugin
        from bayplan.plugins.node_name import NodeName

        class Oldest(QueueSortPlugin):
            name = "Oldest"
            def key(self, queued):
                return queued.timestamp_seconds
        """,
    )
    assert Registry([]).load_file(path) == ["Oldest"]


def test_an_abstract_class_with_subclasses_is_not_a_plugin_of_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        from bayplan.framework.plugin import QueueSortPlugin

        class ByTime(QueueSortPlugin):
            pass

        class Oldest(ByTime):
            name = "Oldest"
            def key(self, queued):
                return queued.timestamp_seconds
        """,
    )
    assert Registry([]).load_file(path) == ["Oldest"]


def test_args_of_a_file_are_decoded_by_their_annotations(tmp_path: Path) -> None:
    text = """
    from __future__ import annotations

    import msgspec

    from bayplan.framework.plugin import PluginArgs, QueueSortPlugin

    class Part(msgspec.Struct, frozen=True):
        key: str = "a"

    class Args(PluginArgs, frozen=True):
        part: Part = Part()

    class Oldest(QueueSortPlugin):
        name = "Oldest"
        args_type = Args
        def key(self, queued):
            return 0
    """
    registry = Registry([])
    for folder in ("one", "two"):  # two files with the same name
        (tmp_path / folder).mkdir()
    registry.load_file(written(tmp_path / "one", text))
    registry.load_file(written(tmp_path / "two", text.replace("Oldest", "Newest")))
    oldest, newest = registry.find("Oldest"), registry.find("Newest")
    assert oldest is not None and oldest.args_type is not None
    assert newest is not None and newest.args_type is not oldest.args_type
    args, problems = decode({"part": {"key": "b"}}, oldest.args_type, "")
    assert not problems
    assert args is not None and args.part.key == "b"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x = 1", "no plugin is defined here; wanted a class", id="no plugin"),
        pytest.param("x = (", "line 1: SyntaxError: '(' was never closed", id="a syntax error"),
        pytest.param("\n\n1 / 0", "line 3: ZeroDivisionError: division by zero", id="an exception"),
        pytest.param("import no_such_module", "line 1: ModuleNotFoundError", id="a failed import"),
        pytest.param(
            "from bayplan.framework.plugin import FilterPlugin\n"
            "class Mine(FilterPlugin):\n    name = 'Mine'",
            "Mine: does not implement filter",
            id="an unfinished plugin",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = written(tmp_path, text)
    assert refusal(Registry([]).load_file, path).startswith(f"{path}: {message}")


SCORE_NODE = "write def score_node(self, state, pod, node)"


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("def score_node(self, pod, node): ...", f"takes (self, pod, node); {SCORE_NODE}"),
        ("def score_node(self, a, b, c, d): ...", f"takes (self, a, b, c, d); {SCORE_NODE}"),
        ("def score_node(self, a, b, c, *, d): ...", f"takes (self, a, b, c, d); {SCORE_NODE}"),
        ("async def score_node(self, a, b, c): ...", f"is async; {SCORE_NODE}"),
    ],
)
def test_a_method_with_other_parameters_is_refused_with_its_line(
    tmp_path: Path, method: str, message: str
) -> None:
    text = (
        f"from bayplan import ScalarScorePlugin\n\n\nclass Mine(ScalarScorePlugin):\n    {method}\n"
    )
    path = written(tmp_path, text + "    name = 'Mine'\n")
    refused = refusal(Registry([]).load_file, path)
    assert refused == f"{path}: Mine: score_node {message}, at my_policy.py:5"


@pytest.mark.parametrize(
    "method",
    [
        "def score_node(self, a, b, c): ...",
        "def score_node(self, *arguments): ...",
        "def score_node(self, a, b, c, d=1, *, e=2): ...",
        "score_node = staticmethod(lambda a, b, c: 1)",
    ],
)
def test_a_method_with_compatible_parameters_is_accepted(tmp_path: Path, method: str) -> None:
    text = f"from bayplan import ScalarScorePlugin\nclass Mine(ScalarScorePlugin):\n    {method}\n"
    path = written(tmp_path, text + "    name = 'Mine'\n")
    assert Registry([]).load_file(path) == ["Mine"]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("def sign_pod(self): ...", "write def sign_pod(self, pod)"),
        ("def events_to_register(self, pod): ...", "write def events_to_register(self)"),
        ("def concerns(self): ...", "write def concerns(self, shape)"),
        ("def pre_bind(self, state, pod): ...", "write async def pre_bind(self, state, pod, "),
    ],
)
def test_every_method_of_the_contract_is_checked(tmp_path: Path, method: str, message: str) -> None:
    bases = "PreBindPlugin, EnqueueExtensions, SignPlugin"
    own = [f"def {name}: ..." for name in ("sign_pod(self, pod)", "events_to_register(self)")]
    own += ["async def pre_bind(self, state, pod, node_name, port): ...", method]
    lines = [f"from bayplan import {bases}", f"class Mine({bases}):", *(f"    {o}" for o in own)]
    path = written(tmp_path, "\n".join([*lines, "    name = 'Mine'"]))
    assert message in refusal(Registry([]).load_file, path)


@pytest.mark.parametrize("name", ["missing.py", "policy.txt"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    assert name in refusal(Registry([]).load_file, tmp_path / name)


def test_a_file_does_not_hide_a_module_with_the_same_name(tmp_path: Path) -> None:
    before = sys.modules["json"]
    Registry([]).load_file(written(tmp_path, PLUGIN.format(name="Json", score=1), "json.py"))
    assert sys.modules["json"] is before


# ---- packages ------------------------------------------------------------------------------


def offering(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Pretend that packages with these entry points are installed."""
    points = EntryPoints(EntryPoint(n, v, ENTRY_POINT_GROUP) for n, v in values.items())

    def installed(group: str) -> EntryPoints:
        return points.select(group=group)

    monkeypatch.setattr(registry_module, "entry_points", installed)


def test_installed_packages_provide_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    offering(monkeypatch, other="bayplan.plugins.priority_sort:PrioritySort")
    registry = Registry([])
    assert registry.load_entry_points() == ["PrioritySort"]
    assert registry.origin("PrioritySort") == (
        "entry point other = bayplan.plugins.priority_sort:PrioritySort"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:Mine", "ModuleNotFoundError"),
        ("bayplan.plugins.priority_sort:Mine", "AttributeError"),
        ("bayplan.plugins.priority_sort:QueueSortPlugin", "does not implement key"),
    ],
)
def test_a_package_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    offering(monkeypatch, mine=value)
    refused = refusal(Registry([]).load_entry_points)
    assert refused.startswith(f"entry point mine = {value}: ")
    assert message in refused


def test_the_default_registry_has_plugins_of_the_tree_and_of_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offering(monkeypatch)
    path = written(tmp_path, PLUGIN.format(name="Mine", score=1))
    assert default_registry([path]).names == [*Registry().names, "Mine"]
