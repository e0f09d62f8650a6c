"""Compares each decision of a scheduler with the objects that were delivered to it until then.

A decision is wrong if the delivered objects, together with the scheduler's own placements, do not
allow it. A change in the API that was not delivered yet does not count. So the check has no
tolerance: a watch that lags, or a binding whose outcome is unknown, excuses nothing. A pod counts
on its node from the decision on, until the journal says that its binding failed. A pod whose
binding the API acknowledged counts in any case.

The other conditions of a binding are checked when the API server carries it out: its volumes are
bound, and its devices are allocated to this pod and to no other pod that the scheduler knew of.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import final

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from bayplan.api.pod_groups import COSCHEDULING_LABEL
from bayplan.framework.status import EXTENDER_NAME
from bayplan.journal import AttemptRecord, BindingRecord, GroupRecord, Record
from tests.sim.brute_force import (
    NODE,
    POD,
    Content,
    Key,
    Picture,
    Placed,
    is_terminating,
    key_of,
    labels_of,
    ports,
    resources,
    selects_node,
    uid_of,
)
from tests.sim.brute_force_preemption import eviction_on, priority_of
from tests.sim.brute_force_storage import (
    Device,
    allocated_devices,
    claim_keys,
    device_claim_names,
    why_not,
)
from tests.sim.delivered import DeliveringPort
from tests.sim.drawn_plugin import RAISING
from tests.sim.invariants import Findings

_VICTIM_COUNT = re.compile(r"preempting ([0-9]+) victims")
#: What rejects nodes by rules that the brute force does not have.
_FOREIGN = frozenset((EXTENDER_NAME, RAISING))


@dataclass(frozen=True, slots=True)
class Decision:
    """The node of a pod, and the claims and devices that the scheduler knew at the decision."""

    node: Content
    #: The uid of each claim that the pod names, by kind and key.
    claim_uids: dict[tuple[str, Key], str]
    #: Devices that are allocated to claims, by the uid of the claim.
    allocated: dict[str, set[Device]]
    #: Pods that the scheduler had placed itself.
    assumed_uids: frozenset[str]

    @property
    def node_name(self) -> str:
        return self.node["metadata"]["name"]


@final
class DecisionChecker:
    """A journal sink, for one scheduler."""

    def __init__(
        self, port: DeliveringPort, findings: Findings, answers: dict[str, frozenset[str]]
    ) -> None:
        """``answers``: the uid of a pod → the nodes that the extender's last answer left."""
        self._port = port
        self._findings = findings
        self._answers = answers
        #: Kinds that must be listed before the first decision.
        self.kinds: frozenset[str] = frozenset()
        #: The last one of each pod, by uid.
        self.decisions: dict[str, Decision] = {}
        #: Uid of a pod → all nodes that the scheduler chose for it.
        self._chosen_nodes: dict[str, set[str]] = defaultdict(set)
        self.count = 0
        #: Node → the highest priority of a pod that evicts others there.
        self._preemptors: dict[str, int] = {}
        #: Nodes whose state in the scheduler may differ from the picture: with nominated pods, or
        #: with assumed pods that were deleted meanwhile.
        self.unclear_nodes: Callable[[Picture], Collection[str]] = lambda _: ()
        #: Uid of a pod → the node that the scheduler nominated it to, "" for none.
        self.nominated_node: Callable[[str], str] = lambda _: ""
        #: Whether a Filter raised since the last attempt.
        self._filter_has_raised = False

    def note_raising_filter(self) -> None:
        self._filter_has_raised = True

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord):
            if record.result in ("scheduled", "waiting"):
                self._decided(record)
            else:
                self._preempts(record)
                self._check_rejection(record)
            self._filter_has_raised = False
        elif isinstance(record, BindingRecord) and record.result == "failed":
            self._port.assumed.pop(record.uid, None)
        elif isinstance(record, GroupRecord) and record.result == "given back":
            for uid, placed in list(self._port.assumed.items()):
                namespace, _ = key_of(placed.pod)
                name = labels_of(placed.pod).get(COSCHEDULING_LABEL)
                if f"{namespace}/{name}" == record.group:
                    del self._port.assumed[uid]

    def _decided(self, record: AttemptRecord) -> None:
        namespace, _, name = record.pod.partition("/")
        pod = self._port.content(POD, (namespace, name))
        if pod is None or uid_of(pod) != record.uid:
            self._findings.fail(
                "pod exists", f"{record.pod} is placed on {record.node} and was deleted"
            )
            return
        self._check(pod, record)
        self.count += 1
        self.decisions[record.uid] = self._decision(pod, record.node)
        self._chosen_nodes[record.uid].add(record.node)
        self._port.assumed[record.uid] = Placed(pod, record.node)

    def _preempts(self, record: AttemptRecord) -> None:
        namespace, _, name = record.pod.partition("/")
        pod = self._port.content(POD, (namespace, name))
        if pod is not None:
            # A resize evicts pods of the node that the pod is on.
            node_name = record.nominated_node or pod["spec"].get("nodeName") or ""
            before = self._preemptors.get(node_name, priority_of(pod))
            self._preemptors[node_name] = max(before, priority_of(pod))

    # ---- rejections and preemption ----------------------------------------------------------

    def _check_rejection(self, record: AttemptRecord) -> None:
        """An attempt found no node: no node takes the pod, and victims were chosen as they must
        be. Raises Violation."""
        namespace, _, name = record.pod.partition("/")
        pod = self._port.content(POD, (namespace, name))
        is_ordinary = (
            record.result == "unschedulable"
            and not self._filter_has_raised
            and not any(each.plugin in _FOREIGN for each in record.rejections)
            and pod is not None
            and uid_of(pod) == record.uid
            and not pod["spec"].get("nodeName")
            and not is_terminating(pod)
            and not labels_of(pod).get(COSCHEDULING_LABEL)
            and not named_claims(pod)
        )
        if not is_ordinary:
            return
        assert pod is not None
        picture = self._port.picture()
        unclear = self.unclear_nodes(picture)
        answer = self._answers.get(record.uid)
        names = [
            each
            for each in picture.node_names()
            if each not in unclear and (answer is None or each in answer)
        ]
        for node_name in names:
            if not why_not(picture, pod, node_name):
                text = f"at {record.at_seconds:g} s {record.pod} is rejected by {node_name}"
                self._findings.fail("rejected", f"{text}, which takes it: {record.message}")
        if record.nominated_node in names:
            self._check_eviction(record, pod, picture, names)

    def _check_eviction(
        self, record: AttemptRecord, pod: Content, picture: Picture, names: Sequence[str]
    ) -> None:
        """The chosen node violates no more budgets than another one."""
        has_group = {
            each.node_name
            for each in picture.placed.values()
            if labels_of(each.pod).get(COSCHEDULING_LABEL)
        }
        evictions = {
            name: eviction
            for name in names
            if name not in has_group and (eviction := eviction_on(picture, pod, name)) is not None
        }
        chosen = evictions.get(record.nominated_node)
        if chosen is None:
            return
        match = _VICTIM_COUNT.search(record.message)
        assert match is not None, record.message
        if int(match[1]) > chosen.victim_count_max:
            text = f"at {record.at_seconds:g} s {record.pod} evicts {match[1]} pods of"
            enough = f"{record.nominated_node}, and {chosen.victim_count_max} are enough"
            self._findings.fail("reprieved", f"{text} {enough}")
        least = min(each.violation_count_max for each in evictions.values())
        if chosen.violation_count_min > least:
            text = f"at {record.at_seconds:g} s {record.pod} evicts pods of {record.nominated_node}"
            counts = (
                f"{chosen.violation_count_min} evictions violate budgets, elsewhere {least} would"
            )
            self._findings.fail("budgets", f"{text}: {counts}")

    def evicted(self, victim: Content) -> None:
        """The scheduler deletes a pod. Raises Violation."""
        placed = self._port.picture().placed.get(uid_of(victim))
        if placed is None:
            return
        # After the choice of the victim, another program may bind it elsewhere, or its binding
        # may fail and it is placed again. kube-scheduler deletes it in these cases, too
        # (executor.go, PreemptPod).
        names = {placed.node_name, *self._chosen_nodes[uid_of(victim)]}
        highest = max((self._preemptors[n] for n in names & self._preemptors.keys()), default=None)
        if highest is None or priority_of(victim) >= highest:
            text = f"{_name(victim)} of priority {priority_of(victim)} is evicted from"
            self._findings.fail("victims", f"{text} {placed.node_name} for priority {highest}")

    def _check(self, pod: Content, record: AttemptRecord) -> None:
        where = f"at {record.at_seconds:g} s {record.pod} is placed on {record.node}"
        unlisted = self.kinds - self._port.listed
        if unlisted:
            kinds = ", ".join(sorted(unlisted))
            self._findings.fail("all listed", f"{where} before these were listed: {kinds}")
        picture = self._port.picture()
        if record.uid in picture.placed:
            before = picture.placed[record.uid].node_name
            self._findings.fail("placed once", f"{where} and stands on {before}")
        why = why_not(picture, pod, record.node)
        if why:
            self._findings.fail(why.partition(":")[0], f"{where}: {why}")
        self._check_nominated(pod, record, picture)
        if record.node not in self._answers.get(record.uid, {record.node}):
            self._findings.fail("extender", f"{where}: the extender did not leave this node")

    def _check_nominated(self, pod: Content, record: AttemptRecord, picture: Picture) -> None:
        """The pod leaves amounts and ports for pods that are nominated to the node.

        As upstream, a plugin that PreFilter skips for the pod is not asked about nominated pods,
        whatever their anti-affinity says. NodeResourcesFit and NodePorts miss nothing so.
        """
        if labels_of(pod).get(COSCHEDULING_LABEL):
            return
        ahead = picture
        for other in picture.kind(POD).values():
            if (
                self.nominated_node(uid_of(other)) == record.node
                and uid_of(other) != record.uid
                and uid_of(other) not in picture.placed
                and priority_of(other) >= priority_of(pod)
            ):
                ahead = ahead.with_pod(other, record.node)
        why = "" if ahead is picture else why_not(ahead, pod, record.node)
        if why.partition(":")[0] in (resources.__name__, ports.__name__):
            text = f"at {record.at_seconds:g} s {record.pod} is placed on {record.node}"
            self._findings.fail("nominated", f"{text}, with the nominated pods: {why}")

    def _decision(self, pod: Content, node_name: str) -> Decision:
        picture = self._port.picture()
        node = picture.node(node_name)
        assert node is not None
        claims = picture.kind(RESOURCE_CLAIM).values()
        return Decision(
            node,
            {
                each: uid_of(claim)
                for each in named_claims(pod)
                if (claim := picture.kind(each[0]).get(each[1])) is not None
            },
            {uid_of(claim): allocated_devices(claim) for claim in claims},
            frozenset(self._port.assumed),
        )


def named_claims(pod: Content) -> list[tuple[str, Key]]:
    """Claims to volumes and to devices, by kind and key."""
    namespace = key_of(pod)[0]
    return [
        *((PERSISTENT_VOLUME_CLAIM, key) for key in claim_keys(pod)),
        *((RESOURCE_CLAIM, (namespace, name)) for name in device_claim_names(pod) if name),
    ]


@final
class WriteChecker:
    """An observer of the API server: bindings and allocations, when they are carried out.

    A binding may come from a scheduler that is already stopped.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: The checkers of all schedulers, the newest first.
        self.checkers: list[DecisionChecker] = []
        #: Pods that another program binds.
        self.foreign_uids: set[str] = set()
        self._objects: dict[tuple[str, Key], Content] = {}
        self._node_versions: defaultdict[str, list[Content]] = defaultdict(list)
        #: Claim's uid → the number of schedulers at the last deallocation of its devices.
        self._released: dict[str, int] = {}
        self.count = 0

    def observe(self, before: StoredObject | None, after: StoredObject | None) -> None:
        changed = after or before
        assert changed is not None
        kind, key = changed.key.kind, (changed.key.namespace, changed.key.name)
        if after is None:
            self._objects.pop((kind, key), None)
            return
        old = None if before is None else before.content
        self._objects[kind, key] = after.content
        if kind == NODE:
            self._node_versions[after.key.name].append(after.content)
        if kind == POD and old is not None:
            self._see_pod(old, after.content)
        elif kind == RESOURCE_CLAIM and old is not None:
            self._see_allocation(old, after.content)

    # ---- bindings ---------------------------------------------------------------------------

    def _see_pod(self, before: Content, pod: Content) -> None:
        old, new = (each["spec"].get("nodeName") for each in (before, pod))
        if old and old != new:
            self._findings.fail("bound once", f"{_name(pod)} was bound to {old} and then to {new}")
        if old or not new or uid_of(pod) in self.foreign_uids:
            return
        self.count += 1
        decision = self._decision([uid_of(pod)], new)
        if decision is None:
            text = f"{_name(pod)} is bound to {new}, which no scheduler chose"
            self._findings.fail("chosen node", text)
        else:
            self._check_claims(pod, decision)

    def _decision(self, uids: Iterable[str], node_name: str = "") -> Decision | None:
        """The newest decision that chose the node for one of these pods."""
        for uid in uids:
            for checker in self.checkers:
                decision = checker.decisions.get(uid)
                if decision is not None and node_name in ("", decision.node_name):
                    return decision
        return None

    def _check_claims(self, pod: Content, decision: Decision) -> None:
        """A claim that was replaced after the decision is not checked."""
        for kind, key in named_claims(pod):
            claim = self._objects.get((kind, key))
            if claim is None or decision.claim_uids.get((kind, key)) != uid_of(claim):
                continue
            if kind == RESOURCE_CLAIM:
                why = self._why_not_allocated(claim, pod, decision)
            else:
                why = self._why_not_bound(claim, decision)
            if why is not None:
                invariant, text = why
                where = f"{_name(pod)} is bound to {decision.node_name}"
                self._findings.fail(invariant, f"{where}: claim {key[1]} {text}")

    def _why_not_bound(self, claim: Content, decision: Decision) -> tuple[str, str] | None:
        """The invariant that is violated, and a text."""
        name = claim["spec"].get("volumeName")
        if not name:
            return "volume bound", "has no volume"
        volume = self._objects.get((PERSISTENT_VOLUME, ("", name)))
        required = ((volume or {}).get("spec", {}).get("nodeAffinity") or {}).get("required")
        # A volume is provisioned for the current version of the node, and the node may change
        # before the pod is bound.
        nodes = (decision.node, *self._nodes_since(decision.node))
        if required is None or any(selects_node(required, each) for each in nodes):
            return None
        return "bound volume in reach", f"has volume {name} out of the node's reach"

    def _nodes_since(self, node: Content) -> list[Content]:
        """The later versions of the node, also after it was replaced under its name."""
        version = int(node["metadata"]["resourceVersion"])
        versions = self._node_versions[node["metadata"]["name"]]
        return [each for each in versions if int(each["metadata"]["resourceVersion"]) > version]

    def _why_not_allocated(
        self, claim: Content, pod: Content, decision: Decision
    ) -> tuple[str, str] | None:
        status = claim.get("status") or {}
        if not status.get("allocation"):
            if self._is_released_since(claim, decision):
                return None
            return "devices allocated", "has no devices"
        users = {each.get("uid") for each in status.get("reservedFor") or ()}
        if uid_of(pod) not in users:
            return "devices reserved", "is not reserved for the pod"
        selector = status["allocation"].get("nodeSelector")
        if not selector or selects_node(selector, decision.node):
            return None
        return "allocated devices in reach", "has devices out of the node's reach"

    def _is_released_since(self, claim: Content, decision: Decision) -> bool:
        """Whether another scheduler deallocated the devices after the decision's scheduler stopped.

        The binding was in flight at that time. kube-scheduler's leaders have the same race: the
        later one sees a claim that is reserved for a pending pod alone (dynamicresources.go,
        PostFilter).
        """
        count = self._released.get(uid_of(claim), 0)
        earlier = self.checkers[len(self.checkers) - count + 1 :]
        return any(decision is each for one in earlier for each in one.decisions.values())

    # ---- devices ----------------------------------------------------------------------------

    def _see_allocation(self, before: Content, claim: Content) -> None:
        devices = allocated_devices(claim)
        if not devices and allocated_devices(before):
            self._released[uid_of(claim)] = len(self.checkers)
        if not devices or allocated_devices(before) == devices:
            return
        decision = self._decision(_users(claim))
        for (kind, _), other in self._objects.items():
            if kind != RESOURCE_CLAIM or uid_of(other) == uid_of(claim):
                continue
            shared = allocated_devices(other) & devices
            if shared and (decision is None or _knew_of(decision, other, shared)):
                what = ", ".join("/".join(each) for each in sorted(shared))
                text = f"{_name(claim)} is given {what}, which {_name(other)} has"
                self._findings.fail("devices exclusive", text)


def _knew_of(decision: Decision, claim: Content, devices: set[Device]) -> bool:
    """Whether the allocation was delivered to the scheduler, or made by it, before the decision."""
    if decision.allocated.get(uid_of(claim), set()) & devices:
        return True
    return bool(decision.assumed_uids & set(_users(claim)))


def _users(claim: Content) -> list[str]:
    return [each.get("uid") or "" for each in (claim.get("status") or {}).get("reservedFor") or ()]


def _name(content: Content) -> str:
    return "/".join(key_of(content))
