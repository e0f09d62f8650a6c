"""InterPodAffinity: places a pod near some pods and away from others, as its terms and theirs say.

- `plugin`: the extension points, and the events that make a rejected pod worth a retry;
- `terms`: the terms of a pod, compiled once per shape.

Near and away refer to topology domains: the nodes that share a label's value. So everything is a
count by domain. The terms of the pod count pods through counters that the state keeps for each set
of pods in use. The terms of placed pods are counted once per distinct term; an index finds those
that match this pod. No pod and no node is read here. Pods that are being deleted count like any
other. Upstream: plugins/interpodaffinity.
"""

from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
