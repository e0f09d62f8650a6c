"""Nodes with amounts and pods with requests, also drawn ones; amounts are whole numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from bayplan.api.objects import NODE, POD, Node, Pod, decode
from bayplan.state.cache import Cache
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, pod_info

#: cpu in millicores, everything else in units.
Amounts = Mapping[str, int]

GPU, NIC, HUGE = "example.com/gpu", "other.io/nic", "hugepages-2Mi"
RESOURCES: tuple[str, ...] = ("cpu", "memory", "ephemeral-storage", GPU, NIC, HUGE)
#: The default requests of a container in scores.
UNSET = {"cpu": 100, "memory": 200 * 1024 * 1024}


def quantities(amounts: Amounts) -> dict[str, Any]:
    return {name: f"{n}m" if name == "cpu" else n for name, n in amounts.items()}


def node_offering(offered: Amounts, *, name: str = "n0", pods: int = 110) -> Node:
    allocatable = {**quantities(offered), "pods": pods}
    node = decode(NODE, {"metadata": {"name": name}, "status": {"allocatable": allocatable}})
    assert isinstance(node, Node)
    return node


def container(amounts: Amounts | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": quantities(amounts or {})}, **fields}


def pod_of_containers(
    name: str = "p", containers: Sequence[Amounts] = ({},), on: str | None = None, **spec: Any
) -> PodInfo:
    """A pod of containers with these requests, and further fields of its spec."""
    own = {"nodeName": on, "containers": [container(each) for each in containers], **spec}
    pod = decode(POD, {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": own})
    assert isinstance(pod, Pod)
    return pod_info(pod)


@dataclass(frozen=True)
class Place:
    """A drawn node: its allocatable amounts, and the containers of each pod on it."""

    offered: Amounts
    pods: int = 110
    running: Sequence[Sequence[Amounts]] = field(default_factory=tuple)

    def used(self, name: str, unset: Amounts | None = None) -> int:
        """The sum of the pods' requests; ``unset``: the request of a container without one."""
        return sum(total(containers, name, unset) for containers in self.running)


def total(containers: Sequence[Amounts], name: str, unset: Amounts | None = None) -> int:
    return sum(each.get(name, (unset or {}).get(name, 0)) for each in containers)


def lent(places: Sequence[Place]) -> NodeView:
    """Nodes n0, n1 … on loan to a cycle."""
    cache = Cache()
    for row, place in enumerate(places):
        cache.add_node(node_offering(place.offered, name=f"n{row}", pods=place.pods))
        for number, containers in enumerate(place.running):
            cache.add_pod(pod_of_containers(f"{row}-{number}", containers, on=f"n{row}"))
    return cache.lend().nodes


# ---- drawing -------------------------------------------------------------------------------

SMALL = st.integers(0, 6)
#: Amounts around the default requests, and where float64 cannot represent 100 times the amount.
LARGE = st.sampled_from([0, 1, 99, 100, 250, 1000, 2**28, 2**28 + 1, 10**10, 2**46 - 1, 2**47 + 3])
#: Totals of which the amounts above are shares.
ROOM = st.sampled_from([0, 1, 700, 1000, 4001, 2**29, 3 * 2**29, 10**10, 2**46, 2**47 + 3])


def amounts(number: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, int]]:
    """Draws the requests of a container."""
    return st.dictionaries(st.sampled_from(RESOURCES), number, max_size=4)


def pods(number: st.SearchStrategy[int]) -> st.SearchStrategy[list[dict[str, int]]]:
    """Draws the containers of one pod."""
    return st.lists(amounts(number), min_size=1, max_size=2)


def clusters(
    number: st.SearchStrategy[int], room: st.SearchStrategy[int]
) -> st.SearchStrategy[list[Place]]:
    """Draws nodes that offer ``room`` of some resources, or of all."""
    some = st.fixed_dictionaries({}, optional=dict.fromkeys(RESOURCES, room))
    whole = st.fixed_dictionaries(dict.fromkeys(RESOURCES, room))
    running = st.lists(pods(number), max_size=2)
    place = st.builds(Place, some | whole, st.integers(0, 3), running)
    return st.lists(place, min_size=1, max_size=6)


#: Rows of a cluster; rows that it does not have are ignored.
POSITIONS = st.lists(st.integers(0, 5), unique=True, max_size=4)
