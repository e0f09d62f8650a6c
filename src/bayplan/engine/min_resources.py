"""minResources of a group: a floor for what all nodes together have free, or its members hold.

Checked when the members have found their nodes, and never in place of that: resources may be free
in sum and fit nobody.
"""

from collections import Counter

from bayplan.api.objects import Pod
from bayplan.api.pod_requests import CPU, amounts
from bayplan.api.quantity import QuantityError
from bayplan.engine.group_cycle import GroupPass
from bayplan.state.pod_groups import GroupState
from bayplan.state.pods import PodInfo, pod_info
from bayplan.state.snapshot import Snapshot


def lacking(state: GroupState, snapshot: Snapshot, found: GroupPass) -> list[str]:
    """Resources of which there is too little, each with what is wanted and what there is."""
    wanted = state.group.min_resources if state.group is not None else None
    if not wanted:
        return []
    try:
        floor = amounts(wanted)
    except QuantityError as problem:
        return [f"spec.minResources: {problem}"]
    nodes = snapshot.nodes
    held = Counter[str]()
    for pod in (*state.assigned(), *(one.pod for one in found.fitted)):
        held.update(_requests(pod))
    problems: list[str] = []
    for name, amount in sorted(floor.items()):
        free = int((nodes.allocatable(name) - nodes.requested(name)).clip(0).sum())
        if free + held[name] < amount:
            told = f"wanted {_written(name, amount)}, found {_written(name, free + held[name])}"
            problems.append(f"{name} ({told})")
    return problems


def _written(resource: str, amount: int) -> str:
    """As in a manifest: cpu in cores, or thousandths of one."""
    if resource != CPU:
        return str(amount)
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def _requests(pod: Pod | PodInfo) -> "dict[str, int]":
    compiled = pod_info(pod) if isinstance(pod, Pod) else pod
    return dict(compiled.requests)
