"""The templates for CI: their steps run in a clean folder, with the built wheel."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.release.environments import clean_environment
from tests.release.packages import ROOT

#: The machine may be busy while environments and packages are built.
pytestmark = pytest.mark.timeout(600)

CI = ROOT / "deploy" / "ci"
ACTION: dict[str, Any] = yaml.safe_load((CI / "github" / "action.yml").read_text())
JOB: dict[str, Any] = yaml.safe_load((CI / "gitlab" / "bayplan.gitlab-ci.yml").read_text())[
    ".bayplan"
]
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: "1"}}}}}}]}}
"""
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n"


class Outcome(NamedTuple):
    """What a pipeline came to."""

    exit_code: int
    report: str


def bash(folder: Path, script: str, **env: str) -> int:
    """Run a script as the runners do."""
    path = folder / "step.sh"
    path.write_text(script)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(path)]
    done = subprocess.run(command, cwd=folder, env={**clean_environment(), **env}, check=False)
    return done.returncode


def on_github(folder: Path, python: Path, inputs: Mapping[str, str]) -> Outcome:
    """The steps of the action after the installation."""
    (folder / "bayplan").symlink_to(python.parents[1])
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    runner = {"RUNNER_TEMP": str(folder), **{name: str(path) for name, path in files.items()}}
    _, check, _, gate = ACTION["runs"]["steps"]
    env = {name: inputs.get(name.lower(), "") for name in check["env"]}
    assert bash(folder, check["run"], **runner, **env) == 0
    pairs = (line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    outputs = dict(pairs)
    report = Path(outputs["report"]).read_text()
    assert files["GITHUB_STEP_SUMMARY"].read_text() == report
    return Outcome(bash(folder, gate["run"], **runner, CODE=outputs["exit-code"]), report)


def on_gitlab(folder: Path, python: Path, inputs: Mapping[str, str]) -> Outcome:
    """The script of the job."""
    (folder / ".bayplan").symlink_to(python.parents[1])
    env = {f"BAYPLAN_{name.upper()}": value for name, value in inputs.items()}
    code = bash(folder, "\n".join(JOB["script"]), **env)
    allowed = JOB["allow_failure"]["exit_codes"]
    return Outcome(0 if code in allowed else code, (folder / "bayplan-report.md").read_text())


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """A clean checkout with a capture and manifests of a change."""
    (tmp_path / "cluster.yaml").write_text(NODE)
    (tmp_path / "manifests").mkdir()
    return tmp_path


@pytest.mark.parametrize("pipeline", [on_github, on_gitlab])
@pytest.mark.parametrize(
    ("manifest", "exit_code", "text"),
    [
        (DEPLOYMENT.format(replicas=4), 0, "4 pods fit into cluster.yaml"),
        (DEPLOYMENT.format(replicas=5), 1, "4 of 5 pods fit into cluster.yaml"),
        (SETTINGS, 0, "nothing was judged"),
        (
            "kind: [",
            2,
            "**bayplan fit has no answer**\n\n    bayplan: manifests/web.yaml, document 1",
        ),
        ("a: b", 2, "**bayplan fit has no answer**\n\n    bayplan: manifests: found no objects"),
    ],
    ids=["fits", "does not fit", "has no pods", "is broken", "has no objects"],
)
def test_the_exit_code_is_the_gate_and_the_report_is_markdown(
    folder: Path, python: Path, pipeline: Any, manifest: str, exit_code: int, text: str
) -> None:
    (folder / "manifests" / "web.yaml").write_text(manifest)
    inputs = {"manifests": "manifests", "cluster": "cluster.yaml"}
    outcome = pipeline(folder, python, inputs)
    assert outcome.exit_code == exit_code
    assert text in outcome.report
    if exit_code < 2 and manifest != SETTINGS:
        assert "| " in outcome.report
        assert outcome.report.count("**") >= 4
    assert len(outcome.report) < 65_536


def test_an_input_is_never_a_part_of_a_script() -> None:
    """An expression in a script would run what a branch or a file is called."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
