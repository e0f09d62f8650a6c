"""`bayplan plugins new`: write a package with a working plugin as a starting point.

The files are templates. Only names with a dollar sign are replaced.
"""

import keyword
import re
import shlex
import sys
from pathlib import Path
from string import Template

import click

from bayplan.cli.problems import refusals
from bayplan.cli.streams import fail, put
from bayplan.plugins.registry import default_registry
from bayplan.problems import wrong

_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_PLUGIN = '''"""$name: prefer the feasible node with the fewest pods."""

from typing import final

from bayplan import CycleState, NodeInfo, PluginArgs, PodInfo, ScalarScorePlugin


class ${name}Args(PluginArgs, frozen=True):
    """The arguments of the plugin in pluginConfig."""

    points_per_pod: int = 10


@final
class $name(ScalarScorePlugin[${name}Args]):
    """100 for an empty node, minus ``points_per_pod`` for each pod on the node."""

    name = "$name"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return max(0, 100 - self.args.points_per_pod * len(node.pods))
'''

_TEST = '''"""$name keeps the contract of a plugin and prefers nodes with fewer pods."""

from $module import $name

from bayplan import CycleState
from bayplan.testing import check_plugin, cluster, node, plugin, pod


def scores(args: object = None) -> list[int]:
    """The scores of an empty node and of a node with two pods."""
    busy = [pod(f"p{i}").on_node("busy") for i in range(2)]
    nodes_and_pods = cluster([node("empty"), node("busy")], busy)
    instance = plugin($name, args, cluster=nodes_and_pods)
    nodes = nodes_and_pods.lend().nodes
    return [instance.score_node(CycleState(), pod(), info) for info in nodes.infos()]


def test_it_keeps_to_the_contract() -> None:
    check_plugin($name)


def test_fewer_pods_are_better() -> None:
    assert scores() == [100, 80]


def test_a_pod_counts_as_much_as_the_configuration_says() -> None:
    assert scores({"pointsPerPod": 60}) == [100, 0]
'''

_README = """# $name

A plugin for Bayplan, the Kubernetes scheduler in Python: it prefers the feasible node with the
fewest pods.

| file | what it is |
| --- | --- |
| `$module.py` | the plugin: `score_node` rates a node, `${name}Args` has its arguments |
| `test_$module.py` | its tests; `check_plugin` checks the contract of a plugin |
| `config.yaml` | a scheduler configuration that enables the plugin, with its arguments |
| `scenario.yaml` | two nodes and a few pods to try it on |
| `pyproject.toml` | the package; its entry point makes the plugin known to Bayplan |

Try a change in three steps:

    bayplan plugins test $module.py
    bayplan simulate scenario.yaml --plugin $module.py --config config.yaml --out run
    bayplan why c --run run

The first checks the contract and names the promise that is broken, the second places the pods
and records the run, and the third says why pod `c` is on its node, with the score of every
plugin.

On your own cluster's objects, without changing anything in it:

    bayplan capture --output cluster.yaml
    bayplan simulate cluster.yaml --plugin $module.py --config config.yaml

After `pip install .` Bayplan finds the plugin by its entry point, and `--plugin` is no longer
needed. To run it as a scheduler in the cluster, install the package into the image and give
`config.yaml` to `bayplan run --config`.

`bayplan plugins` lists all plugins with their arguments. The guide for authors is
`docs/plugins.md` in Bayplan's repository: extension points, the accessors of `NodeView`, events
and hints, caching.
"""

_PYPROJECT = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "$package"
version = "0.1.0"
description = "A plugin for Bayplan"
requires-python = ">=3.11"
dependencies = ["bayplan"]

# Bayplan finds the plugin by this entry point if the package is installed.
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

_SCENARIO = """# Two nodes, one of them with two pods. Three new pods are placed on the other node.
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

#: File → template; the names of the files are templates, too.
_FILES = {
    "README.md": _README,
    "$module.py": _PLUGIN,
    "test_$module.py": _TEST,
    "pyproject.toml": _PYPROJECT,
    "config.yaml": _CONFIG,
    "scenario.yaml": _SCENARIO,
}


@click.command("new")
@click.argument("name", metavar="NAME")
@click.option(
    "--out", metavar="DIR", help="Folder to write. Default: a new folder with the plugin's name"
)
def new_command(name: str, out: str | None) -> None:
    """Write a package with a working, tested plugin called NAME, as a starting point."""
    with refusals():
        plugin_names = default_registry([]).names
    if not _CLASS_NAME.fullmatch(name):
        fail(str(wrong("NAME", name, "a class name such as PreferQuietNodes")))
    if name in plugin_names:
        fail(f"NAME: a plugin {name} exists already; `bayplan plugins` lists all plugins")
    module = _module_of(name)
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "bayplan":
        fail(str(wrong("NAME", name, f"another name: {module} is a keyword or a module of Python")))
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
    """Never overwrites existing files. Raises OSError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fail(f"{folder}: exists already; name another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _FILES.items():
        file = folder / Template(name).substitute(words)
        file.write_text(Template(text).substitute(words), encoding="utf-8")


def _what_now(folder: Path, module: str) -> str:
    plugin, scenario, config = (
        shlex.quote(str(folder / name)) for name in (f"{module}.py", "scenario.yaml", "config.yaml")
    )
    return (
        f"{folder} has a plugin, its test, a configuration, a scenario and a README. "
        f"Try the plugin:\n\n"
        f"    bayplan plugins test {plugin}\n"
        f"    bayplan simulate {scenario} --plugin {plugin} --config {config}\n"
        f"    pytest {shlex.quote(str(folder))}        # after pip install pytest\n\n"
        f"After pip install {shlex.quote(_as_path(folder))}, you do not need --plugin any more.\n"
    )


def _as_path(folder: Path) -> str:
    """The folder in a form that pip does not take for the name of a package."""
    return str(folder) if folder.is_absolute() else f"./{folder}"
