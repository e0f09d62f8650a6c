"""`bayplan config`."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cli.command_line import answer, bayplan, profile, refusal, write_objects

MINE = """
from bayplan import PluginArgs, ScalarScorePlugin

class MineArgs(PluginArgs):
    label: str = "cost"

class Mine(ScalarScorePlugin):
    name = "Mine"
    args_type = MineArgs

    def score_node(self, state, pod, node):
        print("never part of the answer")
        return 0

print("nor this")
"""


def test_a_valid_configuration_is_printed_completely_and_can_be_read_again(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "c.yaml", profile())
    whole = answer("config", "check", file)
    effective = yaml.safe_load(whole)
    assert effective["profiles"][0]["plugins"]["queueSort"] == {
        "enabled": [{"name": "PrioritySort"}]
    }
    again = write_objects(tmp_path / "again.yaml", whole)
    assert answer("config", "check", again) == whole


def test_all_problems_of_a_configuration_are_reported(tmp_path: Path) -> None:
    config = {**profile(score=["NodeResourceFit"]), "podMaxBackoffSecond": 3}
    file = write_objects(tmp_path / "c.yaml", config)
    assert refusal("config", "check", file) == [
        f'{file}: podMaxBackoffSecond: unknown field; did you mean "podMaxBackoffSeconds"?',
        (
            f"{file}: profiles[0].plugins.score.enabled[0].name: "
            'no plugin "NodeResourceFit"; did you mean "NodeResourcesFit"?'
        ),
    ]


def test_settings_without_effect_are_reported_on_standard_error(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "c.yaml", {**profile(), "parallelism": 4})
    result = bayplan("config", "check", file)
    assert result.exit_code == 0
    reason = "all nodes are evaluated in one array operation"
    expected = f"bayplan: {file}: parallelism: 4 has no effect: {reason}"
    assert expected in result.stderr.splitlines()


def test_standard_input_has_its_name() -> None:
    assert refusal("config", "check", "-", stdin=b"\xff") == ["standard input: line 1: not UTF-8"]
    assert "profiles" in answer("config", "check", "-", stdin=json.dumps(profile()).encode())


def test_feature_gates_of_the_command_line_apply(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "c.yaml", profile())
    gates = yaml.safe_load(
        answer("config", "check", file, "--feature-gates", "GenericWorkload=true")
    )
    assert gates["featureGates"]["GenericWorkload"] is True


def test_plugins_of_files_are_checked_with_the_configuration(tmp_path: Path) -> None:
    plugin = write_objects(tmp_path / "mine.py", MINE)
    file = write_objects(tmp_path / "c.yaml", profile(score=["Mine"]))
    effective = yaml.safe_load(answer("config", "check", file, "--plugin", plugin))
    args = {one["name"]: one["args"] for one in effective["profiles"][0]["pluginConfig"]}
    assert args["Mine"]["label"] == "cost"


def test_the_schema_is_json_and_includes_plugins_of_files(tmp_path: Path) -> None:
    plugin = write_objects(tmp_path / "mine.py", MINE)
    assert "Mine" not in answer("config", "schema")
    schema = json.loads(answer("config", "schema", "--plugin", plugin))
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "Mine" in json.dumps(schema)


def test_an_invalid_plugin_file_is_refused(tmp_path: Path) -> None:
    broken = write_objects(tmp_path / "broken.py", "from bayplan import (\n")
    [line] = refusal("config", "schema", "--plugin", broken)
    assert line.startswith(f"{broken}: line 1: SyntaxError: ")


# ---- score graphs ---------------------------------------------------------------------------


def composed() -> dict[str, Any]:
    config = profile(score=["Invert/a"])
    [only] = config["profiles"]
    only.setdefault("pluginConfig", []).append(
        {"name": "Invert/a", "args": {"scoreFrom": "ImageLocality"}}
    )
    return config


def test_the_score_graph_is_drawn(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "c.yaml", composed())
    assert "ImageLocality → Invert/a" in answer("config", "graph", file)
    assert answer("config", "graph", file, "-o", "dot").startswith("digraph")
    assert answer("config", "graph", file, "-o", "svg").startswith("<svg")


def test_the_effective_configuration_has_the_sources_and_can_be_read_again(tmp_path: Path) -> None:
    whole = answer("config", "check", write_objects(tmp_path / "c.yaml", composed()))
    assert answer("config", "check", write_objects(tmp_path / "again.yaml", whole)) == whole


def test_fields_unknown_to_kube_scheduler_are_listed(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "c.yaml", composed())
    result = bayplan("config", "check", file, "--for", "kube-scheduler")
    assert result.exit_code == 1
    [line] = result.stdout.splitlines()
    assert line.endswith("Invert/a: kube-scheduler has no such plugin")
    good = write_objects(tmp_path / "good.yaml", profile())
    assert answer("config", "check", good, "--for", "kube-scheduler") == (
        "kube-scheduler understands this configuration\n"
    )
