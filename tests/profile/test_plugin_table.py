"""Rows about plugins and instances, and the score graph of a profile."""

from typing import Any

import pytest

from bayplan.config import ConfigError
from bayplan.config.upstream import UPSTREAM_PLUGINS
from bayplan.plugins.registry import IN_TREE, Registry
from bayplan.profile.plugin_table import (
    PluginRow,
    ScoreEdge,
    plugin_table,
    profile_graphs,
)
from tests.engine.plugin_kit import REGISTRY as GRAPH_PLUGINS
from tests.engine.plugin_kit import (
    Both,
    Gate,
    NoEvents,
    Rack,
    Talkative,
    config,
    profile,
    reads,
    registry,
)

REGISTRY = registry(Both, Gate, Rack, Talkative, NoEvents)


def row(name: str, *profiles: dict[str, Any]) -> PluginRow:
    rows = plugin_table(REGISTRY, config(*profiles) if profiles else None)
    [plugin_row] = [row for row in rows if row.name == name]
    return plugin_row


def test_a_row_describes_a_plugin() -> None:
    assert row("Gate") == PluginRow(
        name="Gate",
        origin=IN_TREE,
        extension_points=("filter",),
        args={"key": "a", "limit": 3},
        events=("NodeAdd",),
        scope="row",
        is_signed=False,
    )
    assert row("Both").is_signed
    assert row("Both").args is None
    assert row("Both").extension_points == ("filter", "score")


@pytest.mark.parametrize(
    ("name", "message"),
    [("NoEvents", "events depend on how it is configured: cannot think of any")],
)
def test_events_that_cannot_be_read_have_a_reason(name: str, message: str) -> None:
    assert row(name).events == ()
    assert row(name).note == message


def test_rows_follow_the_default_profile_and_then_the_registry() -> None:
    rows = [row.name for row in plugin_table(REGISTRY)]
    assert rows == ["Sort", "Binder", *REGISTRY.names[2:]]
    in_tree = plugin_table(Registry())
    assert [row.name for row in in_tree][: len(UPSTREAM_PLUGINS)] == list(UPSTREAM_PLUGINS)
    assert {row.name for row in in_tree} == set(Registry().names)


def test_every_in_tree_plugin_has_a_row() -> None:
    assert not [row for row in plugin_table(Registry()) if row.note]


def test_instances_have_rows_of_their_own() -> None:
    profiles = [
        profile(["Gate", "Gate/b"], {"Gate/b": {"limit": 9}}) | {"schedulerName": "x"},
        profile(["Gate"]) | {"schedulerName": "y"},
    ]
    rows = plugin_table(REGISTRY, config(*profiles))
    results = [row for row in rows if row.name.startswith("Gate")]
    assert [(row.name, row.profiles) for row in results] == [
        ("Gate", ("x", "y")),
        ("Gate/b", ("x",)),
    ]
    assert results[1].args == {"key": "a", "limit": 9}
    assert row("Both", *profiles).profiles == ()


def test_a_refused_configuration_has_no_table() -> None:
    with pytest.raises(ConfigError):
        plugin_table(REGISTRY, config(profile(["Nobody"])))


# ---- score graph ----------------------------------------------------------------------------


def test_a_graph_has_the_weights_and_the_readers() -> None:
    args = {"Mean": {"scoreFrom": ["Invert/a", "Both"]}, "Invert/a": reads("Both")}
    keys = {"enabled": [{"name": "Both"}]}
    [result] = profile_graphs(config(profile(["Mean"], args, tieBreak=keys)), GRAPH_PLUGINS)
    assert (result.added, result.tie_break) == ((("Mean", 1),), ("Both",))
    assert result.read_only == ("Invert/a",)
    assert set(result.edges) == {
        ScoreEdge("Invert/a", "Mean", False),
        ScoreEdge("Both", "Mean", False),
        ScoreEdge("Both", "Invert/a", False),
    }
    assert result.sources_of("Mean") == ["Invert/a", "Both"]
    roles = [result.role(name) for name in result.names]
    assert roles == ["weight 1", "tie-break key 1", "read only"]
