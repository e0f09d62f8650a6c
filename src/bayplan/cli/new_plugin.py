"""`bayplan plugins new`: a package with a plugin that works, to begin from.

Its files are templates in which a few names stand with a dollar sign; all else is as it is written.
"""

import keyword
import re
import sys
from pathlib import Path
from string import Template

import click

from bayplan.cli.console import put
from bayplan.cli.problems import fail, refusals
from bayplan.plugins.registry import default_registry
from bayplan.problems import wrong

_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_PLUGIN = '''"""$name: among nodes that fit, the one that runs the fewest pods."""

from typing import final

from bayplan import CycleState, NodeInfo, PluginArgs, PodInfo, ScalarScorePlugin


class ${name}Args(PluginArgs, frozen=True):
    """What a configuration may say, under pluginConfig."""

    points_per_pod: int = 10


@final
class $name(ScalarScorePlugin):
    """100 for an empty node, and ``points_per_pod`` less for each pod that is there."""

    name = "$name"
    args_type = ${name}Args

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return max(0, 100 - self.args.points_per_pod * len(node.pods))
'''

_TEST = '''"""$name keeps the promises of a plugin, and prefers what it says."""

from $module import $name

from bayplan import CycleState
from bayplan.testing import check_plugin, cluster, node, plugin, pod


def scores(args: object = None) -> list[int]:
    """Of an empty node, and of one that runs two pods."""
    found = cluster([node("empty"), node("busy")], [pod(f"p{i}").on_node("busy") for i in range(2)])
    instance = plugin($name, args, cluster=found)
    nodes = found.lend().nodes
    return [instance.score_node(CycleState(), pod(), info) for info in nodes.infos()]


def test_it_keeps_to_the_contract() -> None:
    check_plugin($name)


def test_fewer_pods_are_better() -> None:
    assert scores() == [100, 80]


def test_a_pod_counts_as_much_as_the_configuration_says() -> None:
    assert scores({"pointsPerPod": 60}) == [100, 0]
'''

_PYPROJECT = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "$package"
version = "0.1.0"
description = "A plugin for Bayplan"
requires-python = ">=3.11"
dependencies = ["bayplan"]

# Where the package is installed, Bayplan knows the plugin by this.
[project.entry-points."bayplan.plugins"]
$name = "$module:$name"

[tool.hatch.build.targets.wheel]
include = ["$module.py"]
"""

_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    score: {enabled: [{name: $name, weight: 100}]}
  pluginConfig:
  - {name: $name, args: {pointsPerPod: 10}}
"""

_SCENARIO = """# Two nodes, one with two pods on it. The three pods that come go to the other one.
apiVersion: bayplan.dev/v1alpha1
kind: Scenario
metadata: {name: $package}
spec:
  events:
  - at: 0s
    create:
    - &node
      apiVersion: v1
      kind: Node
      metadata: {name: quiet}
      status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
    - {<<: *node, metadata: {name: busy}}
    - &running
      apiVersion: v1
      kind: Pod
      metadata: {name: a}
      spec: {nodeName: busy, containers: [{name: main, image: x}]}
    - {<<: *running, metadata: {name: b}}
  - at: 1s
    create:
    - &coming
      apiVersion: v1
      kind: Pod
      metadata: {name: c}
      spec: {containers: [{name: main, image: x}]}
    - {<<: *coming, metadata: {name: d}}
    - {<<: *coming, metadata: {name: e}}
"""

#: File → template; names of files have the same names in them.
_FILES = {
    "$module.py": _PLUGIN,
    "test_$module.py": _TEST,
    "pyproject.toml": _PYPROJECT,
    "config.yaml": _CONFIG,
    "scenario.yaml": _SCENARIO,
}


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option("--out", metavar="DIR", help="left out: a folder called after it, here")
def new_command(name: str, out: str | None) -> None:
    """Write a package with a plugin called NAME: it works, is tested, and is yours to change."""
    with refusals():
        known = default_registry([]).names
    if not _CLASS_NAME.fullmatch(name):
        fail(str(wrong("NAME", name, "a name as classes have it, such as PreferQuietNodes")))
    if name in known:
        fail(f"NAME: there is a plugin {name} already; `bayplan plugins` lists them")
    module = _module_of(name)
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "bayplan":
        fail(str(wrong("NAME", name, f"another one: {module} is a word of Python")))
    folder = Path(out or module)
    words = {"name": name, "module": module, "package": module.replace("_", "-")}
    try:
        _write(folder, words)
    except OSError as problem:
        fail(f"{folder}: cannot be written: {problem.strerror}")
    put(_what_now(folder, module).encode())


def _module_of(name: str) -> str:
    """PreferQuietNodes: prefer_quiet_nodes."""
    return _WORD_BEGINS.sub("_", name).lower()


def _write(folder: Path, words: dict[str, str]) -> None:
    """Nothing that is there already is written over. Raises OSError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fail(f"{folder}: is there already; name another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _FILES.items():
        file = folder / Template(name).substitute(words)
        file.write_text(Template(text).substitute(words), encoding="utf-8")


def _what_now(folder: Path, module: str) -> str:
    return (
        f"{folder} has a plugin, its test, a configuration and a scenario. Try it:\n\n"
        f"    bayplan simulate {folder / 'scenario.yaml'} --plugin {folder / module}.py"
        f" --config {folder / 'config.yaml'}\n"
        f"    cd {folder} && pytest\n\n"
        f"Once it is installed (pip install {_as_path(folder)}), --plugin is no longer wanted.\n"
    )


def _as_path(folder: Path) -> str:
    """As pip takes it for a folder, and not for the name of a package."""
    return str(folder) if folder.is_absolute() else f"./{folder}"
