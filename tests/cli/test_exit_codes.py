"""The commands obey the table of exit codes in docs/output.md."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli import cli
from tests.cli.command_line import bayplan, profile, write_objects
from tests.kit.manifests import node, pod
from tests.whatif.clusters import deployment

_TABLE = Path(__file__).parents[2] / "docs" / "output.md"
#: (exit code, command) → arguments. `{name}` is a file of the sandbox.
CASES = {
    (1, "why"): "default/large {cluster}",
    (1, "fit"): "-f {large} {empty}",
    (1, "simulate"): "{cluster} --config {failing_config} --plugin {failing}",
    (1, "compare"): "{run_a} {run_b}",
    (1, "config check"): "{composed} --for kube-scheduler",
    (1, "upgrade"): "{cluster} --from 1.37 --to 1.34 --feature-gates DRADerivedAttributes=true",
    (4, "why"): "deployment/nothing {cluster}",
    (4, "fit"): "-f {nothing} {cluster}",
    (4, "headroom"): "-f {foreign} {cluster}",
    (3, "why"): "default/a",
    (3, "fit"): "-f {large}",
    (3, "headroom"): "-f {large}",
    (3, "whatif"): "--drain-each",
    (3, "upgrade"): "--to 1.36",
    (3, "ui"): "",
    (3, "shadow"): "--for 1s",
    (3, "capture"): "",
    (3, "run"): "",
    (3, "serve-extender"): "--port 0",
}
#: Rows that need a server, a signal, or long: the tests that see the exit code.
ELSEWHERE = {
    (1, "bench"): "tests/cli/test_bench.py",
    (1, "run"): "tests/cli/test_run.py",
    (1, "serve-extender"): "tests/cli/test_serve_extender.py",
    (3, "webhook"): "tests/cli/test_webhook.py",
}
#: Commands that answer with "yes", whatever it is, end with 0.
YES = {
    "why": "default/a {cluster}",
    "fit": "-f {small} {empty}",
    "headroom": "-f {small} {cluster}",
    "whatif": "{cluster} --drain-each",
    "simulate": "{cluster}",
    "compare": "{run_a} {run_a}",
    "plugins": "",
    "schema": "fit",
}


def rows() -> Iterator[tuple[int, str]]:
    """(exit code, command) of the table; "all" stands for every command."""
    for code, commands in re.findall(r"^\| (\d+) \|.*\| ([^|]*) \|$", _TABLE.read_text(), re.M):
        for command in commands.split(", "):
            yield int(code), command.strip("`")


def composed() -> dict[str, Any]:
    """A configuration with a source of scores, which kube-scheduler does not have."""
    config = profile(score=["Invert/a"])
    args = [{"name": "Invert/a", "args": {"scoreFrom": "ImageLocality"}}]
    config["profiles"][0]["pluginConfig"] = args
    return config


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("exit")
    large = pod("large", cpu="64")
    small = pod("small", cpu="1")
    nothing = deployment("nothing", 0, "1")
    files = {
        "cluster": [node("n1"), node("n2"), pod("a"), large, nothing],
        "empty": [node("n1"), node("n2")],
        "large": [large],
        "small": [small],
        "nothing": [deployment("none", 0, "1")],
        "foreign": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}],
        "failing_config": [profile(filter=["Failing"])],
        "composed": [composed()],
    }
    paths = {name: write_objects(folder / f"{name}.yaml", *each) for name, each in files.items()}
    paths["failing"] = folder / "failing.py"
    paths["failing"].write_text(
        "from bayplan import FilterPlugin\n\n\nclass Failing(FilterPlugin):\n"
        "    name = 'Failing'\n\n"
        "    def filter(self, state, pod, nodes, feasible):\n        raise ValueError('x')\n"
    )
    for name, seed in (("run_a", "1"), ("run_b", "2")):
        paths[name] = folder / name
        bayplan("simulate", paths["cluster"], "--seed", seed, "--out", paths[name])
    return paths


def test_every_row_of_the_table_is_tried() -> None:
    named = {(code, command) for code, command in rows() if command != "all"}
    assert named == {*CASES, *ELSEWHERE}
    assert {code for code, command in rows() if command == "all"} == {0, 1, 2, 130}


@pytest.mark.parametrize(("code", "command"), CASES)
def test_a_command_ends_with_the_code_of_the_table(
    code: int,
    command: str,
    sandbox: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    arguments = CASES[code, command].format(**sandbox).split()
    result = bayplan(*command.split(), *arguments)
    assert result.exit_code == code, result.output


@pytest.mark.parametrize("command", ["why", "fit", "headroom", "whatif", "upgrade", "ui"])
def test_without_a_kubeconfig_a_command_says_that_files_would_do(
    command: str, sandbox: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    result = bayplan(command, *CASES[3, command].format(**sandbox).split())
    assert "or name the files of a cluster" in result.output


@pytest.mark.parametrize("command", YES)
def test_a_command_that_answers_ends_with_0(command: str, sandbox: dict[str, Path]) -> None:
    result = bayplan(command, *YES[command].format(**sandbox).split())
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", sorted(cli.list_commands(None)))  # type: ignore[arg-type]
def test_a_wrong_option_ends_every_command_with_2(command: str) -> None:
    assert bayplan(command, "--no-such-option").exit_code == 2
