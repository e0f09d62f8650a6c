"""The resources that placed pods use, computed from the API server's objects alone.

The scheduler's columns are not read, so that a bug in them is detected. Devices that stand for an
extended resource count as amounts of that resource (`DeviceSupply`). A pod requests a resource
under one name, whether its node or a device serves the request.
"""

from collections import Counter, defaultdict
from typing import final

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_SLICE
from bayplan.api.objects import NODE, POD, Node, Pod
from bayplan.api.pod_requests import PODS, amounts, requested, resize_report
from bayplan.sim.output.result import NodeUsage, Usage
from bayplan.state.device_supply import DeviceSupply

#: The kinds of objects that an Occupancy follows.
OCCUPANCY_KINDS = (NODE, POD, DEVICE_CLASS, RESOURCE_SLICE)

#: Containers whose requests are stored; when there are more, all are dropped.
_REQUESTS_MAX = 1000


@final
class Occupancy:
    """An observer of the embedded API server: used resources. Pods that have ended use none."""

    def __init__(self) -> None:
        #: Existing node → its allocatable resources, without devices.
        self.allocatable: dict[str, dict[str, int]] = {}
        self._nodes: dict[str, Node] = {}
        self._devices = DeviceSupply()
        #: Node, existing or not → the resources that its pods use.
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        #: Resources that each placed pod uses, including itself as one of ``pods``, by uid.
        self.taken: dict[str, dict[str, int]] = {}
        self._total: Counter[str] = Counter()
        self._peak: Counter[str] = Counter()
        #: By the identity of the containers, which the pods of a template share: a pod with them,
        #: what the requests follow from, and the requests.
        self._requests: dict[int, tuple[Pod, tuple[object, ...], dict[str, int]]] = {}

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Node):
            self._node(changed.object, after is not None)
            return
        if not isinstance(changed.object, Pod):
            self._devices.change(changed.object, is_there=after is not None)
            return
        old = None if before is None else before.placed_pod
        new = None if after is None else after.placed_pod
        if old is not None:
            taken = self.taken.pop(old.metadata.uid or "")
            self.used[old.spec.node_name or ""].subtract(taken)
            self._total.subtract(taken)
        if new is not None:
            spec, computed = new.spec, self._requests.get(id(new.spec.containers))
            if (
                computed is not None
                and new.status is computed[0].status
                and spec.containers is computed[0].spec.containers
                and spec.init_containers is computed[0].spec.init_containers
                and spec.overhead is computed[0].spec.overhead
                and spec.resources is computed[0].spec.resources
            ):
                taken = computed[2]
            else:
                taken = self._requests_of(new)
            self.taken[new.metadata.uid or ""] = taken
            used, total, peak = self.used[new.spec.node_name or ""], self._total, self._peak
            for resource, amount in taken.items():
                # A missing count of a Counter costs a call.
                used[resource] = used[resource] + amount if resource in used else amount
                sum_now = total[resource] + amount if resource in total else amount
                total[resource] = sum_now
                if resource not in peak or sum_now > peak[resource]:
                    peak[resource] = sum_now

    def usage(self) -> tuple[Usage, ...]:
        """The usage of each resource of the nodes, over all nodes that are there; sorted by
        name."""
        self._devices.request(self._peak)
        has = self._devices.total(self._nodes.values())
        requests: Counter[str] = Counter()
        for name in self._nodes:
            requests.update(self.used[name])
        return tuple(
            Usage(
                resource=resource,
                requested=requests[resource],
                peak=self._peak[resource],
                allocatable=has[resource],
            )
            for resource in sorted(has)
            if has[resource]
        )

    def node_usage(self) -> dict[str, NodeUsage]:
        """The usage of each existing node, in the order of their names."""
        self._devices.request(self._peak)
        return {name: self._usage_of(self._nodes[name]) for name in sorted(self._nodes)}

    def _usage_of(self, node: Node) -> NodeUsage:
        allocatable, used = self._devices.offered(node), self.used[node.metadata.name]
        return NodeUsage(
            pods=used[PODS],
            requested={name: used[name] for name in sorted(allocatable) if name != PODS},
            allocatable={name: allocatable[name] for name in sorted(allocatable)},
        )

    def _node(self, node: Node, is_there: bool) -> None:
        name = node.metadata.name
        self.allocatable.pop(name, None)
        self._nodes.pop(name, None)
        if is_there:
            self.allocatable[name] = amounts(node.status.allocatable)
            self._nodes[name] = node

    def _requests_of(self, pod: Pod) -> dict[str, int]:
        """The resources that a pod uses."""
        spec, report = pod.spec, resize_report(pod.status)
        parts = (spec.containers, spec.init_containers, spec.overhead, spec.resources, report)
        computed = self._requests.get(id(spec.containers))
        if computed is not None and computed[1] == parts:
            requests = computed[2]
        else:
            requests = {**requested(pod), PODS: 1}
            if len(self._requests) >= _REQUESTS_MAX:
                self._requests.clear()
        # The parts hold the containers, so that no other containers get their identity.
        self._requests[id(spec.containers)] = pod, parts, requests
        return requests
