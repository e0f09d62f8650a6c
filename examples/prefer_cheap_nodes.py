"""PreferCheapNodes: place pods where an hour costs the least.

A policy node by node, as one would write it in Go. Nodes say their price in a label, in dollars per
hour; whatever brings nodes into the cluster knows it. Try it:

    bayplan simulate examples/prefer_cheap_nodes.scenario.yaml \\
        --plugin examples/prefer_cheap_nodes.py --config examples/prefer_cheap_nodes.config.yaml
"""

from collections.abc import Hashable
from typing import final

from bayplan import (
    Caching,
    CycleState,
    Facet,
    NodeInfo,
    Normalizer,
    PodInfo,
    ScalarScorePlugin,
    SignPlugin,
)

PRICE = "example.com/dollars-per-hour"
#: A node that costs next to nothing must not make all others look alike.
HOURS_MAX = 1_000_000


@final
class PreferCheapNodes(ScalarScorePlugin, SignPlugin):
    """Half the price, twice the score; a node that says no price comes last."""

    name = "PreferCheapNodes"
    caching = Caching(facets=Facet.LABELS)
    normalizer = Normalizer.MAX

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How many hours a thousand dollars buy."""
        dollars_per_hour = _number(node.labels.get(PRICE, ""))
        return min(int(1000 / dollars_per_hour), HOURS_MAX) if dollars_per_hour > 0 else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """All pods alike: the price of a node is the same for each."""
        return ()


def _number(text: str) -> float:
    """0 for what is no number."""
    try:
        return float(text)
    except ValueError:
        return 0.0
