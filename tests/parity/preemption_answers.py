"""The results of DefaultPreemption: candidates, the best of them, and victims.

kube-scheduler takes one of several equal candidates by chance, the record has the first by name,
and here one is drawn. The drawn candidate must be among the recorded best; its results are then
compared as if it were the recorded one.

One deviation is intended: upstream has the host ports of a node as a set, so that a port which two
pods of the node use (which no kubelet allows) is free as soon as one of them is evicted.
"""

from collections import Counter
from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption import DefaultPreemption
from tests.parity.answers import status_as_json
from tests.parity.question import PodQuestion

Json = dict[str, Any]

PORT_USED_TWICE = "a port that two pods use stays taken when one is evicted"
_BY_NODE = ("candidates", "nodeStatuses")

FIELDS = frozenset(
    (
        "bestCandidates",
        "candidates",
        "clearedNominations",
        "nodeStatuses",
        "numPDBViolations",
        "victims",
        "victimsInOrder",
    )
)


def compare_preemption(question: PodQuestion, cycle: Cycle) -> None:
    """Compare all records of preemption besides PostFilter's answer. No pod is evicted."""
    recorded: Json = question.expected.get("postFilter") or {}
    expected = {name: recorded[name] for name in FIELDS if name in recorded}
    plugins = question.profile.plugins.post_filter
    plugin = next((p for p in plugins if isinstance(p, DefaultPreemption)), None)
    actual = {} if plugin is None else _actual_results(question, cycle, plugin, recorded)
    for name in _BY_NODE if nodes_with_shared_ports(question) else ():
        _leave_out(question, name, expected, actual)
    for name in sorted({*expected, *actual}):
        question.sheet.compare(f"postFilter.{name}", expected.get(name), actual.get(name))


def _actual_results(
    question: PodQuestion, cycle: Cycle, plugin: DefaultPreemption, recorded: Json
) -> Json:
    """The results in the format of the record, about the recorded node."""
    if recorded.get("plugin") == "DynamicResources" and recorded.get("code") == "Error":
        return {}  # the error ended PostFilter
    statuses, nodes = cycle.node_to_status(), question.snapshot.nodes
    if plugin.why_not_eligible(question.pod, statuses) is not None:
        return {}
    findings = plugin.find(cycle.state, question.pod, statuses.codes(nodes))
    actual: Json = {}
    failed = {
        name: status_as_json(status, plugin=True)
        for name, status in sorted(findings.statuses().items())
    }
    if failed:
        actual["nodeStatuses"] = failed
    batch = findings.candidates
    if batch is None:
        return actual
    names = [nodes.name(position) for position in batch.positions.tolist()]
    victims = {name: batch.victims(index) for index, name in enumerate(names)}
    actual["candidates"] = {name: _victims_as_json(victims[name]) for name in sorted(names)}
    actual["bestCandidates"] = sorted(names[index] for index in batch.costs.cheapest().tolist())
    chosen = recorded.get("nominatedNode") or ""
    if chosen in victims:
        in_order = [pod.key for pod in victims[chosen].pods]
        actual["victimsInOrder"] = in_order
        actual["victims"] = sorted(in_order)
        actual["numPDBViolations"] = victims[chosen].pdb_violation_count
        cleared = plugin.handle.nominator.nominated_pods_for_node(chosen)
        outranked = [pod.key for pod in cleared if pod.priority < question.pod.priority]
        if outranked:
            actual["clearedNominations"] = sorted(outranked)
    return actual


def nodes_with_shared_ports(question: PodQuestion) -> set[str]:
    """Nodes where two pods use the same host port, if the pod requests any host port."""
    if not question.pod.shape.host_ports:
        return set()
    names: set[str] = set()
    for node in question.snapshot.nodes.infos():
        port_counts = Counter(port for pod in node.pods for port in pod.shape.host_ports)
        if any(count > 1 for count in port_counts.values()):
            names.add(node.name)
    return names


def _leave_out(question: PodQuestion, name: str, expected: Json, actual: Json) -> None:
    """Exclude results about nodes with shared ports if they differ."""
    one, other = expected.get(name) or {}, actual.get(name) or {}
    for node in sorted(nodes_with_shared_ports(question)):
        if one.get(node) == other.get(node):
            continue
        question.sheet.deviates(f"postFilter.{name}", PORT_USED_TWICE)
        for entries, results in ((expected, one), (actual, other)):
            left = {key: value for key, value in results.items() if key != node}
            entries[name] = left or None


def _victims_as_json(victims: Victims) -> Json:
    keys = [pod.key for pod in victims.pods]
    return {"victims": keys, "numPDBViolations": victims.pdb_violation_count}


def as_recorded(text: str | None, actual: str | None, recorded: Json) -> str | None:
    """The text about the drawn node, with the name of the recorded one if both are best."""
    chosen: str | None = recorded.get("nominatedNode")
    best: list[str] = recorded.get("bestCandidates") or []
    if not text or not chosen or actual == chosen or actual not in best:
        return text
    return text.replace(f"on node {actual},", f"on node {chosen},")
