"""InterPodAffinity: near the pods that a pod wants, away from those it does not, and vice versa.

`plugin` says when what is asked; the rest is beneath it:

- `terms`: what a pod's own terms ask for, compiled once per shape;
- `counts`: amounts by topology domain;
- `hints`: what makes a rejected pod worth another attempt.

Near and away are said of topology domains: the nodes that share a label's value. So everything is
a count by domain. A pod's own terms count pods through the counters that the state keeps for each
set of pods in use; what placed pods say about it is counted through their distinct terms, of which
an index finds those that mean this pod. No pod is looked at here, and no node. Pods that are being
deleted count like any other. Upstream: plugins/interpodaffinity.
"""

from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
