"""PodTopologySpread: spreads matching pods evenly over zones, racks or nodes.

- `plugin`: the extension points, and the events that make a rejected pod worth a retry;
- `constraints`: the constraints of a pod, compiled once per shape, and the default constraints;
- `eligibility`: the nodes that a constraint counts;
- `filtering`, `scoring`: the counts per domain, and what follows from them.

The state keeps the number of matching pods on each node as a column. So the count of a domain is
one `bincount` over the label ids of the nodes, and no pod is read. A *slot* is an index per domain
of one topology key: 0 for nodes without the label, otherwise 1 + the id of the label's value.
"""

from bayplan.plugins.pod_topology_spread.constraints import PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
