"""A profile's score graph as somebody looks at it."""

from bayplan.profile.plugin_table import ScoreEdge, profile_graphs
from tests.engine.plugin_kit import KNOWN, config, profile, reads


def test_a_graph_tells_who_counts_and_who_reads_whom() -> None:
    args = {"Mean": {"scoreFrom": ["Invert/a", "Both"]}, "Invert/a": reads("Both")}
    keys = {"enabled": [{"name": "Both"}]}
    [found] = profile_graphs(config(profile(["Mean"], args, tieBreak=keys)), KNOWN)
    assert (found.added, found.tie_break) == ((("Mean", 1),), ("Both",))
    assert found.read_only == ("Invert/a",)
    assert set(found.edges) == {
        ScoreEdge("Invert/a", "Mean", False),
        ScoreEdge("Both", "Mean", False),
        ScoreEdge("Both", "Invert/a", False),
    }
    assert found.sources_of("Mean") == ["Invert/a", "Both"]
    roles = [found.role(name) for name in found.names]
    assert roles == ["weight 1", "tie-break key 1", "read only"]
