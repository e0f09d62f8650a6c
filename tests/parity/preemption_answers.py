"""What DefaultPreemption found: candidates, the best of them, and who must leave.

kube-scheduler takes one of several equal candidates by chance, the record has the first by name,
and here one is drawn. Whichever it is must be among the recorded best; what is told of it is then
compared as if it were the recorded one.

One deviation is meant: upstream keeps the host ports of a node as a set, so that a port which two
pods of the node hold (no kubelet lets that happen) is free as soon as one of them leaves.
"""

from collections import Counter
from typing import Any

from bayplan.engine.cycle import Cycle
from bayplan.framework.preemption import Victims
from bayplan.plugins.default_preemption import DefaultPreemption
from tests.parity.answers import status_as_json
from tests.parity.question import PodQuestion

Json = dict[str, Any]

PORT_HELD_TWICE = "a port that two pods hold stays taken when one leaves"
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
    """Everything that is recorded besides what PostFilter answered. Nothing is evicted."""
    recorded: Json = question.wanted.get("postFilter") or {}
    wanted = {name: recorded[name] for name in FIELDS if name in recorded}
    plugins = question.profile.plugins.post_filter
    plugin = next((p for p in plugins if isinstance(p, DefaultPreemption)), None)
    found = {} if plugin is None else _found(question, cycle, plugin, recorded)
    for name in _BY_NODE if held_twice(question) else ():
        _leave_out(question, name, wanted, found)
    for name in sorted({*wanted, *found}):
        question.sheet.compare(f"postFilter.{name}", wanted.get(name), found.get(name))


def _found(question: PodQuestion, cycle: Cycle, plugin: DefaultPreemption, recorded: Json) -> Json:
    """In the words of the record, about the node that was recorded."""
    if recorded.get("plugin") == "DynamicResources" and recorded.get("code") == "Error":
        return {}  # it ended PostFilter
    statuses, nodes = cycle.node_to_status(), question.snapshot.nodes
    if plugin.why_not_eligible(question.pod, statuses) is not None:
        return {}
    findings = plugin.find(cycle.state, question.pod, statuses.codes(nodes))
    found: Json = {}
    failed = {
        name: status_as_json(status, plugin=True)
        for name, status in sorted(findings.statuses().items())
    }
    if failed:
        found["nodeStatuses"] = failed
    batch = findings.candidates
    if batch is None:
        return found
    names = [nodes.name(position) for position in batch.positions.tolist()]
    victims = {name: batch.victims(index) for index, name in enumerate(names)}
    found["candidates"] = {name: _victims_as_json(victims[name]) for name in sorted(names)}
    found["bestCandidates"] = sorted(names[index] for index in batch.costs.cheapest().tolist())
    chosen = recorded.get("nominatedNode") or ""
    if chosen in victims:
        in_order = [pod.key for pod in victims[chosen].pods]
        found["victimsInOrder"] = in_order
        found["victims"] = sorted(in_order)
        found["numPDBViolations"] = victims[chosen].pdb_violation_count
        cleared = plugin.handle.nominator.nominated_pods_for_node(chosen)
        outranked = [pod.key for pod in cleared if pod.priority < question.pod.priority]
        if outranked:
            found["clearedNominations"] = sorted(outranked)
    return found


def held_twice(question: PodQuestion) -> set[str]:
    """Nodes where two pods hold the same host port, if the pod wants any."""
    if not question.pod.shape.host_ports:
        return set()
    found: set[str] = set()
    for node in question.snapshot.nodes.infos():
        held = Counter(port for pod in node.pods for port in pod.shape.host_ports)
        if any(count > 1 for count in held.values()):
            found.add(node.name)
    return found


def _leave_out(question: PodQuestion, name: str, wanted: Json, found: Json) -> None:
    """What is said of such a node is compared only if it is the same."""
    one, other = wanted.get(name) or {}, found.get(name) or {}
    for node in sorted(held_twice(question)):
        if one.get(node) == other.get(node):
            continue
        question.sheet.deviates(f"postFilter.{name}", PORT_HELD_TWICE)
        for entries, said in ((wanted, one), (found, other)):
            left = {key: value for key, value in said.items() if key != node}
            entries[name] = left or None


def _victims_as_json(victims: Victims) -> Json:
    keys = [pod.key for pod in victims.pods]
    return {"victims": keys, "numPDBViolations": victims.pdb_violation_count}


def as_recorded(text: str | None, found: str | None, recorded: Json) -> str | None:
    """What was said about the node that was drawn, as of the recorded one, if both are best."""
    chosen: str | None = recorded.get("nominatedNode")
    best: list[str] = recorded.get("bestCandidates") or []
    if not text or not chosen or found == chosen or found not in best:
        return text
    return text.replace(f"on node {found},", f"on node {chosen},")
