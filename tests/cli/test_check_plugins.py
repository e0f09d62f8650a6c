"""`bayplan plugins test`: each plugin of a file passes, or is named with its broken promise."""

import json
from pathlib import Path

from bayplan.framework.runtime import PERMIT_RESULT
from tests.cli.command_line import bayplan

PLUGINS = """
from bayplan import Code, PermitPlugin, PluginArgs, ReservePlugin, ScalarScorePlugin, Status


class SteadyArgs(PluginArgs):
    points: int


class Steady(ScalarScorePlugin[SteadyArgs]):
    name = "Steady"

    def score_node(self, state, pod, node):
        return self.args.points


class Waits(PermitPlugin):
    name = "Waits"

    def permit(self, state, pod, node_name):
        return Status(Code.WAIT)


class Divides(ReservePlugin):
    name = "Divides"

    def reserve(self, state, pod, node_name):
        return 1 / 0

    def unreserve(self, state, pod, node_name): ...
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {enabled: [{name: Steady}]}}
  pluginConfig: [{name: Steady, args: {points: 7}}]
"""


def test_each_plugin_of_a_file_has_a_line_and_a_failure_ends_with_exit_code_1(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS)
    (tmp_path / "config.yaml").write_text(CONFIG)
    result = bayplan("plugins", "test", tmp_path / "mine.py", "--config", tmp_path / "config.yaml")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "passed  Steady (score)",
        "        keeps the contract in 30 clusters; its results are not cached",
        "FAILED  Waits (permit)",
        f"        permit returned Status(Code.WAIT); wanted {PERMIT_RESULT}, at mine.py:19",
        "FAILED  Divides (reserve)",
        "        reserve raised ZeroDivisionError: division by zero (mine.py:27)",
    ]


def test_the_report_as_json_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGINS)
    result = bayplan("plugins", "test", tmp_path / "mine.py", "-o", "json")
    steady, waits, divides = json.loads(result.stdout)["checks"]
    assert (steady["plugin"], steady["passed"], steady["extensionPoints"]) == (
        "Steady",
        False,
        ["score"],
    )
    assert "points" in steady["message"]
    assert not waits["passed"]
    assert not divides["passed"]
