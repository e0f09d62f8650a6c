"""A folder in which what a document shows can be tried: its files, and what it says of them.

There is a cluster (nodes n1 to n8, in two zones and four racks; a pod that fits nowhere), a
StatefulSet and a Deployment `web`, several configurations, and the examples. Python becomes
`my_policy.py`, a configuration `scheduler.yaml`, an experiment `experiment.yaml`, a scenario
`scenario.yaml`, values of the chart `values.yaml`, as the documents call them. Ten seeds are run as
two. How each command is tried stands in `trials.py`.
"""

import contextlib
import importlib.util
import itertools
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import click
import yaml

from bayplan.api.field_tables import unknown_fields
from bayplan.api.objects import POD
from bayplan.cli import cli
from bayplan.cli.headroom_metrics import HeadroomMetrics
from bayplan.comparison import RunMetric
from bayplan.comparison.experiment import read_experiment
from bayplan.config import load_config
from bayplan.framework.plugin import Plugin
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import resolve
from bayplan.sim.input.errors import InputErrors
from tests.cli.command_line import answer, bayplan, write_objects
from tests.comparison.kit import configuration, node_with_cpu, pod_with_cpu
from tests.documents.reading import ROOT, Excerpt
from tests.documents.trials import PRINTED, SCRIPTS, Trial, trial_of
from tests.live.processes import SchedulerProcess, free_port, replicas
from tests.perf.kit import case, op, write_cases

KIND = "KubeSchedulerConfiguration"
_NODES_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
_PODS_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
_HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": KIND}

#: Commands of a console whose exit code is an answer.
_NO = {"fit": (1, 4), "why": (1,)}


class Sandbox:
    """``ran``: commands that were run, by their text in the document; ``has_cluster``: those
    that need one are run, too."""

    has_cluster = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._plugins: list[type[Plugin]] = []
        for name in ("examples", "benchmarks", "deploy", "tests"):
            (folder / name).symlink_to(ROOT / name)
        _write_files(folder)

    def try_out(self, excerpt: Excerpt) -> None:
        """Fails where it does not do what a reader may expect of it."""
        getattr(self, f"_{excerpt.kind}")(excerpt)

    # ---- kinds of excerpts --------------------------------------------------------------------

    def _python(self, excerpt: Excerpt) -> None:
        """It runs, its plugins are plugins, its metrics count, and its tests pass."""
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
        """A configuration, or a part of one, is accepted; other documents do what they say."""
        value: dict[str, Any] = yaml.safe_load(excerpt.text)
        if value.keys() & {"plugins", "pluginConfig"}:
            value = {"profiles": [{"schedulerName": "default-scheduler", **value}]}
        kind: str = value.get("kind", "")
        if value.keys() & {"profiles", "extenders", "podGroups"}:
            file = write_objects(self.folder / "scheduler.yaml", {**_HEADER, **value})
            resolve(load_config(file.read_bytes(), str(file)), self.registry())
        elif kind:
            self._document(kind, excerpt)
        elif "image" in value:
            write_objects(self.folder / "values.yaml", excerpt.text)
        elif "spec" in value:
            self._pod(value, excerpt.line)
        elif "groups" in value:
            _check_alerts(value["groups"])
        elif "jobs" in value:
            steps = [step for job in value["jobs"].values() for step in job["steps"]]
            runs = [step.get("run", "") for step in steps]
            for line in re.findall(r"^bayplan .*", "\n".join(runs), re.MULTILINE):
                self._mention(Excerpt("mention", line, excerpt.line))
        else:
            template = yaml.safe_load((ROOT / "deploy/ci/gitlab/bayplan.gitlab-ci.yml").read_text())
            job: dict[str, Any] = value["capacity"]
            assert job["variables"].keys() <= template[job["extends"]]["variables"].keys()

    def _document(self, kind: str, excerpt: Excerpt) -> None:
        """One of Bayplan's own kinds, or a group of pods."""
        if kind == "PodGroup":
            file = write_objects(self.folder / "group.yaml", excerpt.text)
            assert "ignored" not in answer("simulate", file), f"line {excerpt.line}"
            return
        assert kind in ("Experiment", "Scenario", "WhatIf"), f"line {excerpt.line}: {kind}"
        file = write_objects(self.folder / f"{kind.lower()}.yaml", excerpt.text)
        if kind == "Experiment":
            errors = InputErrors()
            read_experiment(str(file), errors)
            errors.raise_if_any()
        elif kind == "Scenario":
            answer("simulate", file)
        else:
            answer("whatif", "examples/questions/cluster.yaml", "-f", file)

    def _pod(self, value: dict[str, Any], line: int) -> None:
        """A part of a pod has fields of pods; its command is one of ours."""
        assert unknown_fields(POD, value) == [], f"line {line}"
        for container in value["spec"].get("containers", ()):
            self._mention(Excerpt("mention", shlex.join(container["command"]), line))

    def _command(self, excerpt: Excerpt) -> None:
        self._mention(excerpt)
        trial = trial_of(excerpt)
        if self.has_cluster or not trial.cluster:
            self.run(excerpt, trial)

    def run(self, excerpt: Excerpt, trial: Trial, **values: str) -> None:
        """Run a command as its trial says; ``values``: what stands for `{address}`."""
        line = trial.command or excerpt.command
        port = free_port()
        words = [os.path.expanduser(word) for word in Excerpt("command", line, 0).words]
        words = [word.format(port=port, **values) for word in words]
        self._simulate_runs(words)
        if trial.url:
            url = trial.url.format(port=port)
            exit_code, printed = self.serve(words, url)
        else:
            done = bayplan(*(word.replace("0..9", "0..1") for word in words))
            exit_code, printed = done.exit_code, done.output
        place = f"line {excerpt.line}: {excerpt.text}\n{printed}"
        assert exit_code == trial.exit_code, place
        assert re.search(trial.prints, printed), place
        self.ran.append(excerpt.command)

    def _simulate_runs(self, words: list[str]) -> None:
        """The runs that a command reads and no command has written."""
        pairs = itertools.pairwise(["", *words])
        for run in [word for before, word in pairs if before != "--out"]:
            if run.startswith("runs/") and not (self.folder / run).exists():
                answer("simulate", "cluster.yaml", "workload.yaml", "--out", run)

    def serve(self, words: list[str], url: str) -> tuple[int, str]:
        """Start a program, wait until ``url`` answers, end it with SIGTERM. Returns its exit code
        and its output."""
        process = SchedulerProcess(words[0], words, self.folder / "log")
        with replicas(process):
            if url == PRINTED:
                process.wait_until_printed("http://")
                match = re.search(r"http://\S+", process.output)
                assert match is not None, process.output
                url = match[0]
            self.until_answered(process, url)
            exit_code = process.end()
        assert "Traceback" not in process.output, process.output
        return exit_code, process.output

    def until_answered(self, process: SchedulerProcess, url: str) -> None:
        """Until the page is there."""
        process.wait_until(lambda: page(url) is not None, url)

    def _other(self, excerpt: Excerpt) -> None:
        """A script runs; the files and modules that another program gets exist."""
        if excerpt.command in SCRIPTS:
            _, *words = shlex.split(SCRIPTS[excerpt.command].command)
            words, (_, file) = words[:-2], words[-2:]
            done = subprocess.run([sys.executable, *words], capture_output=True, check=True)
            (self.folder / file).write_bytes(done.stdout)
            self.ran.append(excerpt.command)
            return
        for word in shlex.split(excerpt.command):
            if word.startswith(("deploy/", "examples/", "tests/")):
                assert (self.folder / word).exists(), f"line {excerpt.line}: {word}"
            elif word.startswith("benchmarks."):
                assert importlib.util.find_spec(word), f"line {excerpt.line}: {word}"

    def _console(self, excerpt: Excerpt) -> None:
        """Each command prints the lines below it, except for durations."""
        for part in re.split(r"^\$ ", excerpt.text, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            self._mention(Excerpt("command", command, excerpt.line))
            done = bayplan(*shlex.split(command)[1:])
            # `fit` and `why` end with 1 where the answer is no, and `fit` with 4 without an answer.
            assert done.exit_code in (0, *_NO.get(command.split()[1], ())), done.output
            printed = done.stdout
            assert steady(printed) == steady(expected), f"line {excerpt.line}: prints\n{printed}"
            self.ran.append(command)

    def _mention(self, excerpt: Excerpt) -> None:
        """There is such a command, and it has such options."""
        command: click.Command = cli
        words = excerpt.words
        context = click.Context(cli)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            inner = command.get_command(context, words[0])
            assert inner is not None, f"line {excerpt.line}: {excerpt.text}: no such command"
            command, words = inner, words[1:]
        options = {
            name for one in command.get_params(context) for name in (*one.opts, *one.secondary_opts)
        }
        for word in words:
            option = word.partition("=")[0]
            assert not option.startswith("-") or option in options, f"line {excerpt.line}: {option}"


def _check_alerts(groups: list[dict[str, Any]]) -> None:
    """Their metrics exist."""
    collected = list(HeadroomMetrics().registry.collect())
    metrics = {sample.name for one in collected for sample in one.samples}
    metrics |= {one.name for one in collected}
    for rule in groups[0]["rules"]:
        names = set(re.findall(r"bayplan_\w+", rule["expr"]))
        assert names, rule
        assert names <= metrics, names - metrics


def page(url: str) -> str | None:
    """Its text; None: it is not there, or not ready."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:
        return response.read().decode()
    return None


def steady(printed: str) -> str:
    """Without what differs from one run to the next, and blanks at the end of lines."""
    timeless = re.sub(r" in [\d.]+ s: (.*), [\d,]+ per second", r": \1", printed)
    timeless = re.sub(r"digest [0-9a-f]+", "digest", timeless)
    return "\n".join(line.rstrip() for line in timeless.strip().splitlines())


def _write_files(folder: Path) -> None:
    waiting = pod_with_cpu("waiting", 100)
    nodes = [_node(number) for number in range(1, 9)]
    write_objects(folder / "cluster.yaml", *nodes, waiting)
    write_objects(folder / "workload.yaml", workload("StatefulSet", 4), workload("Deployment", 2))
    for name in ("job", "shapes"):
        (folder / f"{name}.yaml").symlink_to(ROOT / "examples" / "questions" / f"{name}.yaml")
    for name, strategy in (("a", "LeastAllocated"), ("b", "MostAllocated")):
        write_objects(folder / f"{name}.yaml", configuration(strategy))
    write_objects(folder / "packed.yaml", configuration("MostAllocated"))
    write_objects(folder / "scheduler.yaml", configuration("LeastAllocated"))
    (folder / "token").write_text("a-token-of-a-test")
    _write_traces(folder)
    _write_upstream(folder / "upstream" / "affinity")


def _write_traces(folder: Path) -> None:
    """Two of the form of the openb trace."""
    nodes = [f"t{number},96000,786432,8,G2" for number in range(20)]
    (folder / "nodes.csv").write_text("\n".join([_NODES_HEADER, *nodes, ""]))
    pods = [f"p{number},4000,1024,1,500" for number in range(20)]
    (folder / "pods.csv").write_text("\n".join([_PODS_HEADER, *pods, ""]))


def _write_upstream(folder: Path) -> None:
    """A folder like those of scheduler_perf."""
    folder.mkdir(parents=True)
    operations = op("createNodes", count=2), op("createPods", count=5, collectMetrics=True)
    small = {**case(*operations), "workloads": [{"name": "small", "labels": ["short"]}]}
    write_cases(folder, small)


def _node(number: int) -> dict[str, Any]:
    node = node_with_cpu(f"n{number}")
    node["metadata"]["labels"] = {
        "topology.kubernetes.io/zone": f"z{number % 2}",
        "topology.example.com/rack": f"r{number % 4}",
    }
    return node


def workload(kind: str, replicas: int, name: str = "web") -> dict[str, Any]:
    """Pods of one core in the namespace default."""
    labels = {"app": f"{kind}-{name}".lower()}
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
