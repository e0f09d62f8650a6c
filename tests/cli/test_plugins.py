"""`bayplan plugins`."""

import json
from pathlib import Path

from bayplan.plugins.registry import in_tree_plugins
from tests.cli.command_line import answer, profile, refusal, write_objects

MINE = """
from bayplan import PluginArgs, ScalarFilterPlugin

class MineArgs(PluginArgs):
    limit: int = 10

class Mine(ScalarFilterPlugin):
    name = "Mine"
    args_type = MineArgs
    scope = "cluster"

    def filter_node(self, state, pod, node): ...
"""


def paragraph(text: str, name: str) -> list[str]:
    """The lines about one plugin, with single spaces."""
    [block] = [part for part in text.split("\n\n") if part.startswith(f"{name}\n")]
    return [" ".join(line.split()) for line in block.splitlines()[1:]]


def test_every_plugin_has_a_paragraph() -> None:
    text = answer("plugins")
    for plugin in in_tree_plugins():
        assert paragraph(text, plugin.name)


def test_a_paragraph_names_package_points_and_events() -> None:
    assert paragraph(answer("plugins"), "InterPodAffinity") == [
        "at preFilter, filter, preScore, score",
        "args {hardPodAffinityWeight: 1, ignorePreferredTermsOfExistingPods: false}",
        (
            "woken by AssignedPodAdd|Delete|UpdatePodLabel, TargetPodUpdatePodLabel, "
            "NodeAdd|UpdateNodeLabel"
        ),
        "scope cluster, signed",
    ]


def test_a_plugin_of_a_file_names_its_file(tmp_path: Path) -> None:
    plugin = write_objects(tmp_path / "mine.py", MINE)
    lines = paragraph(answer("plugins", "--plugin", plugin), "Mine")
    assert lines[0] == f"from {plugin}"
    assert "args {limit: 10}" in lines
    assert lines[-1] == "scope cluster, not signed"


def test_a_configuration_shows_its_instances(tmp_path: Path) -> None:
    config = profile(score=["ImageLocality/second"])
    file = write_objects(tmp_path / "c.yaml", config)
    text = answer("plugins", "--config", file)
    assert "profiles default-scheduler" in paragraph(text, "ImageLocality/second")
    assert "profiles default-scheduler" in paragraph(text, "NodeName")


def test_json_is_one_row_per_plugin() -> None:
    rows = {row["name"]: row for row in json.loads(answer("plugins", "-o", "json"))["plugins"]}
    assert rows["NodeName"]["extensionPoints"] == ["preFilter", "filter"]
    assert rows["TopologyPlacementGenerator"]["extensionPoints"] == ["placementGenerate"]


def test_an_invalid_configuration_is_refused(tmp_path: Path) -> None:
    file = write_objects(tmp_path / "c.yaml", profile(score=["Ghost"]))
    [line] = refusal("plugins", "--config", file)
    assert line.startswith(f"{file}: profiles[0].plugins.score.enabled[0].name: no plugin")
