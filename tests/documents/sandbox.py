"""A folder in which the excerpts of a document are tried out.

The folder has a cluster (nodes n1 to n8, in two zones and four racks), a StatefulSet and a
Deployment `web`, several configurations, and the examples. Excerpts are stored under the names
that the documents use: Python as `my_policy.py`, a configuration as `scheduler.yaml`, an
experiment as `experiment.yaml`, a scenario as `scenario.yaml`.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import yaml

from bayplan.cli import cli
from bayplan.cli.cluster_source import EXIT_UNREADABLE
from bayplan.comparison import RunMetric
from bayplan.comparison.experiment import read_experiment
from bayplan.config import load_config
from bayplan.framework.plugin import Plugin
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve
from bayplan.sim.input.errors import InputErrors
from tests.cli.command_line import answer, bayplan, write_objects
from tests.comparison.kit import configuration, node_with_cpu
from tests.documents.reading import ROOT, Excerpt

KIND = "KubeSchedulerConfiguration"
_HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": KIND}

#: Commands that need a cluster, or that run until they are stopped.
_OUTSIDE = {"run", "capture", "serve-extender", "shadow", "ui"}
#: Commands that read the cluster of kubectl if no files are named.
_QUESTIONS = {"fit", "headroom", "whatif", "why"}
#: Command → the exit code that means "no".
_EXIT_CODE_NO = {"fit": 1, "why": 1}
#: A word that the reader replaces.
_PLACEHOLDER = re.compile(r"[…$]|^(PATH|DIR|FILE|POD|NAME)$|^DIR/|\.csv$|^--address$")


class Sandbox:
    """``has_run``: the commands that have run unchanged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has_run: list[str] = []
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._plugins: list[type[Plugin]] = []
        for name in ("examples", "benchmarks", "deploy"):
            (folder / name).symlink_to(ROOT / name)
        _write_files(folder)

    def try_out(self, excerpt: Excerpt) -> None:
        """Run or check the excerpt. Raises AssertionError if it does not work as documented."""
        getattr(self, f"_{excerpt.kind}")(excerpt)

    # ---- kinds of excerpts --------------------------------------------------------------------

    def _python(self, excerpt: Excerpt) -> None:
        """The code runs, its plugins can be registered, its metrics have values, its tests pass."""
        code = excerpt.text.replace("0..9", "0..1")
        before = set(self._names)
        exec(compile(code, f"line {excerpt.line}", "exec"), self._names)
        new = [self._names[name] for name in self._names.keys() - before]
        (self.folder / "my_policy.py").write_text(excerpt.text)
        for one in new:
            if isinstance(one, type) and one.__module__ == "__main__":
                self._take(one)
            elif getattr(one, "__name__", "").startswith("test_"):
                one()

    def _take(self, one: type[Any]) -> None:
        if issubclass(one, Plugin):
            self._plugins.append(one)
            self.registry()
        elif issubclass(one, RunMetric):
            result: Any = None
            assert one().values(result).keys() == {one.name}

    def registry(self) -> Registry:
        registry = Registry()
        for plugin in self._plugins:
            registry.add(plugin)
        return registry

    def _yaml(self, excerpt: Excerpt) -> None:
        value = yaml.safe_load(excerpt.text)
        kind = value.get("kind")
        if "plugins" in value:
            value = {"profiles": [{"schedulerName": "default-scheduler", **value}]}
        if "profiles" in value:
            file = write_objects(self.folder / "scheduler.yaml", {**_HEADER, **value})
            resolve(load_config(file.read_bytes(), str(file)), self.registry())
        elif kind == "Experiment":
            file = write_objects(self.folder / "experiment.yaml", excerpt.text)
            errors = InputErrors()
            read_experiment(str(file), errors)
            errors.raise_if_any()
        elif kind == "Scenario":
            file = write_objects(self.folder / "scenario.yaml", excerpt.text)
            answer("simulate", file)

    def _command(self, excerpt: Excerpt) -> None:
        self._mention(excerpt)
        words = excerpt.words
        if words[0] in _OUTSIDE or any(map(_PLACEHOLDER.search, words)):
            return
        if words[0] == "bench":
            words = [*words, "--list"]
        if words[0] == "compare" and words[1].startswith("runs/"):
            for run in words[1:]:
                answer("simulate", "cluster.yaml", "workload.yaml", "--out", run)
        result = bayplan(*(word.replace("0..9", "0..1") for word in words))
        if words[0] in _QUESTIONS and result.exit_code == EXIT_UNREADABLE:
            return  # the command needs the cluster of kubectl
        assert result.exit_code == 0, f"line {excerpt.line}: {excerpt.text}\n{result.output}"
        self.has_run.append(excerpt.text)

    def _console(self, excerpt: Excerpt) -> None:
        """Each command prints the lines below it, apart from durations and digests."""
        for part in re.split(r"^\$ ", excerpt.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            self._mention(Excerpt("command", command, excerpt.line))
            result = bayplan(*shlex.split(command)[1:])
            # `fit` and `why` end with 1 if the answer is no.
            assert result.exit_code in (0, _EXIT_CODE_NO.get(command.split()[1], 0)), result.output
            printed = result.stdout
            assert steady(printed) == steady(expected), f"line {excerpt.line}: prints\n{printed}"
            self.has_run.append(command)

    def _mention(self, excerpt: Excerpt) -> None:
        """The command and its options exist."""
        command: click.Command = cli
        words = excerpt.words
        context = click.Context(cli)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            inner = command.get_command(context, words[0])
            assert inner is not None, f"line {excerpt.line}: {excerpt.text}: no such command"
            command, words = inner, words[1:]
        options = {name for one in command.get_params(context) for name in one.opts}
        for word in words:
            option = word.partition("=")[0]
            assert not option.startswith("-") or option in options, f"line {excerpt.line}: {option}"


def steady(printed: str) -> str:
    """The output without durations, digests and trailing blanks, which differ between runs."""
    timeless = re.sub(r" in [\d.]+ s: (.*), [\d,]+ per second", r": \1", printed)
    timeless = re.sub(r"digest [0-9a-f]+", "digest", timeless)
    return "\n".join(line.rstrip() for line in timeless.strip().splitlines())


def _write_files(folder: Path) -> None:
    write_objects(folder / "cluster.yaml", *(_node(number) for number in range(1, 9)))
    deployment = _workload("Deployment", "web", 2)
    write_objects(folder / "workload.yaml", _workload("StatefulSet", "web", 4), deployment)
    for name, strategy in (("a", "LeastAllocated"), ("b", "MostAllocated")):
        write_objects(folder / f"{name}.yaml", configuration(strategy))
    write_objects(folder / "packed.yaml", configuration("MostAllocated"))
    write_objects(folder / "scheduler.yaml", configuration("LeastAllocated"))


def _node(number: int) -> dict[str, Any]:
    content = node_with_cpu(f"n{number}")
    content["metadata"]["labels"] = {
        "topology.kubernetes.io/zone": f"z{number % 2}",
        "topology.example.com/rack": f"r{number % 4}",
    }
    return content


def _workload(kind: str, name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": f"{kind}-{name}"}
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
