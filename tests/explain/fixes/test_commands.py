"""Commands survive a shell, and no name in them is taken for an option, a file or a URL."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan.api.objects import DEPLOYMENT, JOB, NODE, POD, decode
from bayplan.config import SchedulerConfig
from bayplan.explain.explainer import explain_pod
from bayplan.explain.fixes.commands import (
    annotation_command,
    creation_command,
    deletion_command,
    label_command,
    optional,
    patch_command,
    replacement_command,
    scale_command,
    taint_removal_command,
    uncordon_command,
)
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.testing import node

HOSTILE = (
    "--all",
    "-f",
    "-A",
    "--server=https://evil.example",
    "-fhttps://evil.example/x.yaml",
    "https://evil.example/x.yaml",
    "a/b",
    "pod/other",
    "$(touch pwned)",
    "`touch pwned`",
    "a'; touch pwned; '",
    'a"b',
    "a\nb",
    "a b",
    "a\x1b[2Jb",
    "ä",
    "\u202eb",
    "A",
    "a-",
    ".",
    "",
    "*",
    "~",
    "#",
)
TRICKY = ("0", "true", "a.b-c.d", "x" * 63, "null", "e", "f")
#: Options of kubectl that the commands use, with the number of their values when they are separate.
OPTIONS = {"-n": 1, "-p": 1, "-o": 1, "-f": 1}
PATCH = ({"op": "replace", "path": "/spec/x~1y", "value": 'it\'s "$(x)" \u202e\n'},)


def key(name: str, kind: str = DEPLOYMENT, namespace: str = "default") -> ObjectKey:
    return ObjectKey(kind, "" if kind == NODE else namespace, name)


def commands_for(name: str) -> list[str]:
    """All kinds of commands for an object of this name; none for a name that is not safe."""
    makers: list[Callable[[], str]] = [
        lambda: patch_command(key(name), PATCH),
        lambda: replacement_command(key(name, JOB), PATCH),
        lambda: deletion_command(key(name, POD)),
        lambda: scale_command(key(name), 2),
        lambda: annotation_command(key(name, POD), "example.com/cost", -1000),
        lambda: uncordon_command(name),
        lambda: taint_removal_command(name, [("example.com/gpu", "NoSchedule")]),
        lambda: label_command(name, {"disk": "ssd", "empty": ""}),
    ]
    return [command for make in makers for command in optional(make)]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], list[list[str]]]:
    """Runs a command in a real shell with a kubectl that notes its arguments."""
    program = tmp_path / "kubectl"
    log = tmp_path / "log"
    log.mkdir()
    # The programs of a pipe run at the same time, so each has a file of its own.
    lines = ["#!/bin/sh", 'printf "%s\\0" "$@" > "$LOG/$$"', "cat > /dev/null", ""]
    program.write_text("\n".join(lines))
    program.chmod(0o755)

    def run(command: str) -> list[list[str]]:
        for earlier in log.iterdir():
            earlier.unlink()
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log)}
        subprocess.run(
            ["sh", "-c", command], env=env, cwd=tmp_path, check=True, stdin=subprocess.DEVNULL
        )
        assert not (tmp_path / "pwned").exists()
        return [call.read_text().split("\0")[:-1] for call in log.iterdir()]

    return run


def positionals(arguments: Sequence[str]) -> list[str]:
    """The arguments that pflag takes for no option. Raises AssertionError for an option that no
    command has."""
    result: list[str] = []
    left = list(arguments)
    while left:
        each = left.pop(0)
        if each in OPTIONS:
            assert left.pop(0) != "" or each == "-p"
        elif each.startswith("--"):
            name = each.partition("=")[0]
            assert name in ("--type", "--replicas", "--overwrite", "--local", "--force"), each
        else:
            assert not each.startswith("-"), each
            result.append(each)
    return result


@pytest.mark.parametrize("name", HOSTILE)
def test_no_command_names_an_object_that_kubernetes_would_not_accept(name: str) -> None:
    assert commands_for(name) == []
    assert optional(lambda: deletion_command(key("a", POD, namespace=name))) == ()


@pytest.mark.parametrize("taint", [("--all", "NoSchedule"), ("a b", "NoSchedule"), ("a", "-x")])
def test_no_command_names_a_taint_that_kubernetes_would_not_accept(taint: tuple[str, str]) -> None:
    assert optional(lambda: taint_removal_command("n1", [taint])) == ()
    assert optional(lambda: label_command("n1", {taint[0]: taint[1]})) == ()


@pytest.mark.parametrize("name", TRICKY)
def test_every_name_that_kubernetes_accepts_is_an_argument_of_its_own(
    name: str, shell: Callable[[str], list[list[str]]]
) -> None:
    commands = commands_for(name)
    assert len(commands) == 8
    for command in commands:
        assert command.isascii()
        assert command.isprintable()
        for verb, *arguments in shell(command):
            named = positionals(arguments)
            if verb not in ("replace",) and "--local" not in arguments:
                assert (named[1] if verb == "taint" else named[0].partition("/")[2]) == name
            if "-p" in arguments:
                assert json.loads(arguments[arguments.index("-p") + 1]) == list(PATCH)
            if "-f" in arguments:
                assert arguments[arguments.index("-f") + 1] == "-"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=st.text(max_size=12))
def test_a_manifest_reaches_kubectl_as_it_is(
    value: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": value}
    command = creation_command([content])
    assert command.isascii()
    assert command.isprintable()
    assert command.endswith(" | kubectl create -f -")
    folder = tmp_path_factory.mktemp("shell")
    printed = subprocess.run(
        ["sh", "-c", command.removesuffix(" | kubectl create -f -")],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    assert json.loads(printed.stdout) == content


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_owner_reference_reaches_no_command(name: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u"}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}

    def pod(pod_name: str, node_name: str, owners: list[dict[str, Any]]) -> Any:
        meta = {
            "name": pod_name,
            "namespace": "default",
            "uid": pod_name,
            "ownerReferences": owners,
        }
        spec = {"containers": [container], "nodeName": node_name}
        return decode(POD, {"metadata": meta, "spec": spec})

    owners = [{**owner, "controller": True}]
    pods = (pod("a", "n1", owners), pod("b", "n1", owners), pod("p", "", owners), pod("q", "", []))
    objects = ClusterPicture(store_of({NODE: (node("n1", cpu="2"),), POD: pods}))
    model = ClusterModel(objects, SchedulerConfig(), default_registry(()))
    for waiting in ("default/p", "default/q"):
        for fix in explain_pod(model, waiting).fixes:
            assert not name or name not in " ".join(fix.commands)
            assert not [c for c in fix.commands if "replicaset" in c or "deployment" in c]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_accepts_the_form_of_every_command(tmp_path: Path) -> None:
    """Nothing answers at the address: a command that kubectl understands fails to connect."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "current-context": "c",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    env = {**os.environ, "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    for command in commands_for("web"):
        first = command.partition(" | ")[0]
        result = subprocess.run(
            ["sh", "-c", first], env=env, capture_output=True, text=True, check=False
        )
        assert result.returncode
        assert "127.0.0.1:1" in result.stderr, (command, result.stderr)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_patches_an_object_that_is_to_be_replaced(tmp_path: Path) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"x/y": 1}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    patch = ({"op": "replace", "path": "/spec/x~1y", "value": 2},)
    _, local, _ = replacement_command(key("a", JOB), patch).split(" | ")
    result = subprocess.run(
        ["sh", "-c", f"{local} < {tmp_path / 'job.json'}"],
        env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(result.stdout)["spec"] == {"x/y": 2}
