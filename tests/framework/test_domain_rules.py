"""Which plugins of the tree have domain rules."""

from bayplan.framework.domain_rules import DomainPlugin
from bayplan.framework.plugin import FilterPlugin, ScorePlugin
from bayplan.plugins.registry import in_tree_plugins

#: They read objects, claims or devices of the whole cluster, or other plugins' scores.
NOT_BY_COUNTS = {
    "DynamicResources",
    "TopologyScorer",
    "VolumeBinding",
    "VolumeRestrictions",
}


def test_each_plugin_that_looks_across_nodes_by_counts_has_domain_rules() -> None:
    across = {
        plugin.name
        for plugin in in_tree_plugins()
        if plugin.scope == "cluster" and issubclass(plugin, FilterPlugin | ScorePlugin)
    }
    with_rules = {plugin.name for plugin in in_tree_plugins() if issubclass(plugin, DomainPlugin)}
    assert with_rules == {"PodTopologySpread", "InterPodAffinity"}
    assert across - with_rules <= NOT_BY_COUNTS, across - with_rules
