"""The resources that placed pods use, computed from the API server's objects alone.

The scheduler's columns are not read, so that a bug in them is detected. Devices that stand for an
extended resource count as amounts of that resource (`DeviceSupply`). A pod requests a resource
under one name, whether its node or a device serves the request.

A peak is the most that was requested at any time, together with what the nodes offered at that
time. What they offer is constant between two changes of nodes or devices, so each new pod needs
only one comparison. Each such change ends a stretch, whose amounts are then compared with the
peaks.
"""

from collections import Counter, defaultdict
from typing import final

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_SLICE
from bayplan.api.objects import NODE, POD, Node, Pod
from bayplan.api.pod_requests import PODS, Amounts, amounts, requested, resize_report
from bayplan.sim.output.result import NodeUsage, Usage
from bayplan.state.device_supply import DeviceSupply

#: The kinds of objects that an Occupancy follows.
OCCUPANCY_KINDS = (NODE, POD, DEVICE_CLASS, RESOURCE_SLICE)

#: The number of containers whose requests are stored. When there are more, all of them are dropped.
_REQUESTS_MAX = 1000


@final
class Occupancy:
    """Observes the embedded API server, and counts used resources. Pods that have ended use
    none."""

    def __init__(self) -> None:
        #: Existing node → its allocatable resources, without devices.
        self.allocatable: dict[str, dict[str, int]] = {}
        self._nodes: dict[str, Node] = {}
        self._devices = DeviceSupply()
        #: Node, existing or not → the resources that its pods use.
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        #: Resources that each placed pod uses, including itself as one of ``pods``, by uid.
        self.taken: dict[str, dict[str, int]] = {}
        #: What the pods of existing nodes use, and the most that they have used since nodes changed
        #: last.
        self._total: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        #: What existing nodes offer, without devices.
        self._offered: Counter[str] = Counter()
        #: Resource → the most that was requested in earlier stretches, and what was offered then.
        self._peaks: dict[str, tuple[int, int]] = {}
        #: By the identity of the containers, which the pods of a template share: a pod with these
        #: containers, what the requests follow from, and the requests.
        self._requests: dict[int, tuple[Pod, tuple[object, ...], dict[str, int]]] = {}

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        if isinstance(changed.object, Node):
            self._node(changed.object, after is not None)
            return
        if not isinstance(changed.object, Pod):
            self._end_stretch()
            self._most = Counter(self._total)
            self._devices.change(changed.object, is_there=after is not None)
            return
        old = None if before is None else before.placed_pod
        new = None if after is None else after.placed_pod
        if old is not None:
            taken, name = self.taken.pop(old.metadata.uid or ""), old.spec.node_name or ""
            self.used[name].subtract(taken)
            if name in self._nodes:
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
            name = new.spec.node_name or ""
            used, total, most = self.used[name], self._total, self._most
            is_there = name in self._nodes
            for resource, amount in taken.items():
                # A look-up of a missing key costs a call in a Counter.
                used[resource] = used[resource] + amount if resource in used else amount
                if is_there:
                    sum_now = total[resource] + amount if resource in total else amount
                    total[resource] = sum_now
                    if resource not in most or sum_now > most[resource]:
                        most[resource] = sum_now

    def usage(self) -> tuple[Usage, ...]:
        """The usage of each resource that nodes offer, or offered at the peak, over all nodes that
        are there; sorted by name."""
        has = self._end_stretch()
        peaks = self._peaks
        return tuple(
            Usage(
                resource=resource,
                requested=self._total[resource],
                allocatable=has.get(resource, 0),
                peak=peak,
                peak_allocatable=peak_allocatable,
            )
            for resource in sorted({*has, *peaks})
            for peak, peak_allocatable in [peaks.get(resource, (0, has.get(resource, 0)))]
            if peak_allocatable
        )

    def node_usage(self) -> dict[str, NodeUsage]:
        """The usage of each existing node, in the order of their names."""
        self._devices.request(self._most)
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
        before = self.allocatable.get(name)
        now = amounts(node.status.allocatable) if is_there else None
        if now is not None and now == before:
            self._nodes[name] = node
            return
        if self._most:
            # Otherwise nothing was requested, for example while the first nodes are created.
            self._end_stretch()
        if before is not None:
            del self.allocatable[name], self._nodes[name]
            self._offered.subtract(before)
            self._total.subtract(self.used[name])
        if now is not None:
            self.allocatable[name], self._nodes[name] = now, node
            self._offered.update(now)
            if name in self.used:
                self._total.update(self.used[name])
        if self._total:
            self._most = Counter(self._total)

    def _end_stretch(self) -> Amounts:
        """Compare what was requested since nodes changed last with the peaks. Returns what the
        nodes offer, with devices."""
        self._devices.request(self._most)
        offered = self._devices.with_devices(self._offered, self._nodes.values())
        for resource, amount in self._most.items():
            has = offered.get(resource, 0)
            if has and amount >= self._peaks.get(resource, (1, 0))[0]:
                self._peaks[resource] = amount, has
        return offered

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
