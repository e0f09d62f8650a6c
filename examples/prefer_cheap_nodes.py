"""PreferCheapNodes: place pods where an hour costs the least.

A policy node by node, as in Go. A label has the price of the node in dollars per hour; the tool
that creates nodes sets the label. Try it:

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
#: A limit: next to a node that costs almost nothing, all other scores would be 0.
HOURS_MAX = 1_000_000


@final
class PreferCheapNodes(ScalarScorePlugin, SignPlugin):
    """Half the price, twice the score; a node without a price gets 0."""

    name = "PreferCheapNodes"
    caching = Caching(facets=Facet.LABELS)
    normalizer = Normalizer.MAX

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How many hours a thousand dollars buy."""
        dollars_per_hour = _number(node.labels.get(PRICE, ""))
        return min(int(1000 / dollars_per_hour), HOURS_MAX) if dollars_per_hour > 0 else 0

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """One signature for all pods: the price of a node does not depend on the pod."""
        return ()


def _number(text: str) -> float:
    """The number in a text; 0 if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return 0.0
