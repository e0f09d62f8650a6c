"""The command line for tests: commands in this process or in another, and their inputs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from bayplan.cli import cli

#: What the installed script runs.
_SCRIPT = "from bayplan.cli import main; main()"


def bayplan(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run a command in this process. Unexpected exceptions are raised, not converted to output."""
    result = CliRunner().invoke(cli, [*map(str, arguments)], input=stdin, prog_name="bayplan")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*arguments: str | Path, stdin: bytes = b"") -> str:
    """Standard output of a command that must succeed."""
    result = bayplan(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refusal(*arguments: str | Path, stdin: bytes = b"") -> list[str]:
    """Lines on standard error of a command that must be refused, without their prefix."""
    result = bayplan(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    lines = result.stderr.splitlines()
    assert all(line.startswith("bayplan: ") for line in lines), lines
    return [line.removeprefix("bayplan: ") for line in lines]


def process(
    *arguments: str | Path, python: tuple[str, ...] = (), **options: Any
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a process of its own; ``env``: additional environment variables.

    ``script``: Python code to run in place of the command.
    """
    script = options.pop("script", _SCRIPT)
    env = {**os.environ, **options.pop("env", {})}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, *python, "-c", script, *map(str, arguments)]
    return subprocess.run(command, env=env, check=False, timeout=100, **streams)


def write_objects(path: Path, *values: Any) -> Path:
    """Write a file of objects; a plain text is written unchanged."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    path.write_text("\n---\n".join(texts))
    return path


def profile(**sets: Any) -> dict[str, Any]:
    """A configuration of one profile with these plugins enabled besides the default ones:
    ``filter=["Mine"]``."""
    plugins = {point: {"enabled": [{"name": n} for n in names]} for point, names in sets.items()}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }


#: What kubeadm v1.37 writes into /etc/kubernetes/manifests/kube-scheduler.yaml.
KUBEADM_ARGUMENTS = (
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
)


def configuration(folder: Path, **profile: Any) -> Path:
    """A file with a configuration of one profile."""
    path = folder / "scheduler.yaml"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(yaml.safe_dump({**head, "profiles": [profile]}))
    return path
