"""A folder in which what a document shows can be tried: its files, and what it says of them.

There is a cluster (nodes n1 to n8, in two zones and four racks), a StatefulSet and a Deployment
`web`, several configurations, and the examples. Python becomes `my_policy.py`, a configuration
`scheduler.yaml`,
an experiment `experiment.yaml`, a scenario `scenario.yaml`, as the documents call them.
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
from tests.documents.reading import ROOT, Shown

KIND = "KubeSchedulerConfiguration"
_HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": KIND}

#: What wants a cluster, or a program that runs in one.
_OUTSIDE = {"run", "capture", "serve-extender", "shadow", "ui"}
#: Commands that read the cluster of kubectl unless they are given files.
_QUESTIONS = {"fit", "headroom", "whatif", "why"}
#: Commands whose exit code is an answer.
_NO = {"fit": 1, "why": 1}
#: Stands for something that the reader has.
_PLACEHOLDER = re.compile(r"[…$]|^(PATH|DIR|FILE|POD|NAME)$|^DIR/|\.csv$|^--address$")


class Sandbox:
    """``has_run``: commands that were run as they stand there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has_run: list[str] = []
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._plugins: list[type[Plugin]] = []
        for name in ("examples", "benchmarks", "deploy"):
            (folder / name).symlink_to(ROOT / name)
        _write_files(folder)

    def try_out(self, shown: Shown) -> None:
        """Fails where it does not do what a reader may expect of it."""
        getattr(self, f"_{shown.sort}")(shown)

    # ---- sorts of what is shown ---------------------------------------------------------------

    def _python(self, shown: Shown) -> None:
        """It runs, its plugins are plugins, its metrics count, and its tests pass."""
        code = shown.text.replace("0..9", "0..1")
        before = set(self._names)
        exec(compile(code, f"line {shown.line}", "exec"), self._names)
        new = [self._names[name] for name in self._names.keys() - before]
        (self.folder / "my_policy.py").write_text(shown.text)
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
        found = Registry()
        for plugin in self._plugins:
            found.add(plugin)
        return found

    def _yaml(self, shown: Shown) -> None:
        value = yaml.safe_load(shown.text)
        kind = value.get("kind")
        if "plugins" in value:
            value = {"profiles": [{"schedulerName": "default-scheduler", **value}]}
        if "profiles" in value:
            file = write_objects(self.folder / "scheduler.yaml", {**_HEADER, **value})
            resolve(load_config(file.read_bytes(), str(file)), self.registry())
        elif kind == "Experiment":
            file = write_objects(self.folder / "experiment.yaml", shown.text)
            errors = InputErrors()
            read_experiment(str(file), errors)
            errors.raise_if_any()
        elif kind == "Scenario":
            file = write_objects(self.folder / "scenario.yaml", shown.text)
            answer("simulate", file)

    def _command(self, shown: Shown) -> None:
        self._mention(shown)
        words = shown.words
        if words[0] in _OUTSIDE or any(map(_PLACEHOLDER.search, words)):
            return
        if words[0] == "bench":
            words = [*words, "--list"]
        if words[0] == "compare" and words[1].startswith("runs/"):
            for run in words[1:]:
                answer("simulate", "cluster.yaml", "workload.yaml", "--out", run)
        done = bayplan(*(word.replace("0..9", "0..1") for word in words))
        if words[0] in _QUESTIONS and done.exit_code == EXIT_UNREADABLE:
            return  # it wants the cluster of kubectl
        assert done.exit_code == 0, f"line {shown.line}: {shown.text}\n{done.output}"
        self.has_run.append(shown.text)

    def _console(self, shown: Shown) -> None:
        """Each command prints what stands below it, but for how long that took."""
        for part in re.split(r"^\$ ", shown.text, flags=re.MULTILINE)[1:]:
            command, _, wanted = part.partition("\n")
            self._mention(Shown("command", command, shown.line))
            done = bayplan(*shlex.split(command)[1:])
            # `fit` and `why` end with 1 where the answer is no.
            assert done.exit_code in (0, _NO.get(command.split()[1], 0)), done.output
            printed = done.stdout
            assert steady(printed) == steady(wanted), f"line {shown.line}: prints\n{printed}"
            self.has_run.append(command)

    def _mention(self, shown: Shown) -> None:
        """There is such a command, and it has such options."""
        command: click.Command = cli
        words = shown.words
        context = click.Context(cli)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            inner = command.get_command(context, words[0])
            assert inner is not None, f"line {shown.line}: {shown.text}: no such command"
            command, words = inner, words[1:]
        known = {name for one in command.get_params(context) for name in one.opts}
        for word in words:
            option = word.partition("=")[0]
            assert not option.startswith("-") or option in known, f"line {shown.line}: {option}"


def steady(printed: str) -> str:
    """Without what differs from one run to the next, and blanks at the end of lines."""
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
    found = node_with_cpu(f"n{number}")
    found["metadata"]["labels"] = {
        "topology.kubernetes.io/zone": f"z{number % 2}",
        "topology.example.com/rack": f"r{number % 4}",
    }
    return found


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
