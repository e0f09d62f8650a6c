"""PodTopologySpread: spread the pods of one kind evenly over zones, racks, nodes.

`plugin` says when what is asked; the rest is beneath it:

- `args`: the constraints that pods without own ones get;
- `constraints`: what a pod is held to, compiled once per shape;
- `eligibility`: which nodes a constraint counts at all;
- `filtering`, `scoring`: the counts per domain and what follows from them;
- `hints`: what makes a rejected pod worth another attempt.

The one idea: how many matching pods are on each node is a column that the state keeps current, so
a domain's count is one `bincount` over the nodes' label ids; no pod is looked at. In all of it a
*slot* is an index per domain of one topology key: 0 for nodes without the label, else 1 + the id
of the label's value.
"""

from bayplan.plugins.pod_topology_spread.constraints import PodTopologySpreadArgs
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread", "PodTopologySpreadArgs"]
