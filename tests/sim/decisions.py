"""Every decision of a scheduler, held against what it had been told at that moment.

A decision is wrong where the objects that were delivered, together with the pods that the scheduler
itself has placed and not given up, do not admit it. What changed in the API and was not delivered
yet is nobody's fault. So there is no tolerance, and nothing is excused: neither a watch that lags
nor a binding whose outcome is unknown. A pod counts on its node from the decision on, until the
journal says that its binding failed; one that the API acknowledged counts in any case.

What a binding needs besides is checked when the API server carries it out: its volumes are bound,
its devices are allocated to it and to nobody else that the scheduler knew of.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from bayplan.adapters.embedded.object_store import Stored
from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.api.objects import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from bayplan.journal import AttemptRecord, BindingRecord, Record
from bayplan.sim.world.checkers import InvariantBroken
from tests.sim.brute_force import (
    NODE,
    POD,
    Content,
    Key,
    Placed,
    key_of,
    selects_node,
    uid_of,
)
from tests.sim.brute_force_storage import (
    Device,
    allocated_devices,
    claim_keys,
    device_claim_names,
    why_not,
)
from tests.sim.delivered import DeliveringPort


@final
class Findings:
    """What is wrong with a run. The first is kept: whoever is called when a checker raises, a
    plugin for instance, may take the exception for a failure of its own."""

    def __init__(self) -> None:
        self.first: InvariantBroken | None = None

    def fail(self, text: str) -> None:
        """Raises InvariantBroken."""
        problem = InvariantBroken(text)
        self.first = self.first or problem
        raise problem

    def raise_first(self) -> None:
        """Raises InvariantBroken, if anything is wrong."""
        if self.first is not None:
            raise self.first


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a pod is to go, and what of its claims the scheduler knew then."""

    node: Content
    #: The uid of each claim that the pod names, by kind and key.
    claim_uids: dict[tuple[str, Key], str]
    #: Devices that others have, by the uid of their claim.
    taken: dict[str, set[Device]]
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
        """``answers``: by pod's uid, the nodes that the extender left when it was asked last."""
        self._port = port
        self._findings = findings
        self._answers = answers
        #: Kinds that must be listed before the first decision.
        self.kinds: frozenset[str] = frozenset()
        #: The last one of each pod, by uid.
        self.decisions: dict[str, Decision] = {}
        self.count = 0

    def write(self, record: Record) -> None:
        if isinstance(record, AttemptRecord) and record.result in ("scheduled", "waiting"):
            self._decided(record)
        elif isinstance(record, BindingRecord) and record.result == "failed":
            self._port.assumed.pop(record.uid, None)

    def _decided(self, record: AttemptRecord) -> None:
        namespace, _, name = record.pod.partition("/")
        pod = self._port.content(POD, (namespace, name))
        if pod is None or uid_of(pod) != record.uid:
            self._findings.fail(f"{record.pod} is placed on {record.node} and was deleted")
            return
        self._check(pod, record)
        self.count += 1
        self.decisions[record.uid] = self._decision(pod, record.node)
        self._port.assumed[record.uid] = Placed(pod, record.node)

    def _check(self, pod: Content, record: AttemptRecord) -> None:
        where = f"at {record.at_seconds:g} s {record.pod} is placed on {record.node}"
        unlisted = self.kinds - self._port.listed
        if unlisted:
            self._findings.fail(f"{where} before these were listed: {', '.join(sorted(unlisted))}")
        picture = self._port.picture()
        if record.uid in picture.placed:
            before = picture.placed[record.uid].node_name
            self._findings.fail(f"{where} and stands on {before}")
        why = why_not(picture, pod, record.node)
        if why:
            self._findings.fail(f"{where}: {why}")
        if record.node not in self._answers.get(record.uid, {record.node}):
            self._findings.fail(f"{where}: the extender did not leave this node")

    def _decision(self, pod: Content, node_name: str) -> Decision:
        picture = self._port.picture()
        node = picture.node(node_name)
        assert node is not None
        claims = picture.kind(RESOURCE_CLAIM).values()
        return Decision(
            node,
            {
                each: uid_of(found)
                for each in named_claims(pod)
                if (found := picture.kind(each[0]).get(each[1])) is not None
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

    A binding may come from a scheduler that has stopped since.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: Of all schedulers that there were, the newest first.
        self.checkers: list[DecisionChecker] = []
        #: Pods that another program binds.
        self.foreign_uids: set[str] = set()
        self._objects: dict[tuple[str, Key], Content] = {}
        self.count = 0

    def observe(self, before: Stored | None, after: Stored | None) -> None:
        changed = after or before
        assert changed is not None
        kind, key = changed.key.kind, (changed.key.namespace, changed.key.name)
        if after is None:
            self._objects.pop((kind, key), None)
            return
        old = None if before is None else before.content
        self._objects[kind, key] = after.content
        if kind == POD and old is not None:
            self._see_pod(old, after.content)
        elif kind == RESOURCE_CLAIM and old is not None:
            self._see_allocation(old, after.content)

    # ---- bindings ---------------------------------------------------------------------------

    def _see_pod(self, before: Content, pod: Content) -> None:
        old, new = (each["spec"].get("nodeName") for each in (before, pod))
        if old and old != new:
            self._findings.fail(f"{_name(pod)} was bound to {old} and then to {new}")
        if old or not new or uid_of(pod) in self.foreign_uids:
            return
        self.count += 1
        decision = self._decision([uid_of(pod)], new)
        if decision is None:
            self._findings.fail(f"{_name(pod)} is bound to {new}, which no scheduler chose")
        else:
            self._check_claims(pod, decision)

    def _decision(self, uids: Iterable[str], node_name: str = "") -> Decision | None:
        """The newest that chose the node for one of these pods."""
        for uid in uids:
            for checker in self.checkers:
                found = checker.decisions.get(uid)
                if found is not None and node_name in ("", found.node_name):
                    return found
        return None

    def _check_claims(self, pod: Content, decision: Decision) -> None:
        """A claim that was replaced since is not the one that the scheduler meant."""
        for kind, key in named_claims(pod):
            claim = self._objects.get((kind, key))
            if claim is None or decision.claim_uids.get((kind, key)) != uid_of(claim):
                continue
            if kind == RESOURCE_CLAIM:
                why = self._why_not_allocated(claim, pod, decision)
            else:
                why = self._why_not_bound(claim, decision)
            if why:
                where = f"{_name(pod)} is bound to {decision.node_name}"
                self._findings.fail(f"{where}: claim {key[1]} {why}")

    def _why_not_bound(self, claim: Content, decision: Decision) -> str:
        name = claim["spec"].get("volumeName")
        if not name:
            return "has no volume"
        volume = self._objects.get((PERSISTENT_VOLUME, ("", name)))
        required = ((volume or {}).get("spec", {}).get("nodeAffinity") or {}).get("required")
        # The node may have changed since. A volume is made for the node as it is then.
        nodes = (decision.node, self._objects.get((NODE, ("", decision.node_name))))
        if required is None or any(selects_node(required, each) for each in nodes if each):
            return ""
        return f"has volume {name} out of the node's reach"

    def _why_not_allocated(self, claim: Content, pod: Content, decision: Decision) -> str:
        status = claim.get("status") or {}
        if not status.get("allocation"):
            return "has no devices"
        users = {each.get("uid") for each in status.get("reservedFor") or ()}
        if uid_of(pod) not in users:
            return "is not reserved for the pod"
        selector = status["allocation"].get("nodeSelector")
        is_within_reach = not selector or selects_node(selector, decision.node)
        return "" if is_within_reach else "has devices out of the node's reach"

    # ---- devices ----------------------------------------------------------------------------

    def _see_allocation(self, before: Content, claim: Content) -> None:
        devices = allocated_devices(claim)
        if not devices or allocated_devices(before) == devices:
            return
        decision = self._decision(_users(claim))
        for (kind, _), other in self._objects.items():
            if kind != RESOURCE_CLAIM or uid_of(other) == uid_of(claim):
                continue
            shared = allocated_devices(other) & devices
            if shared and (decision is None or _knew_of(decision, other, shared)):
                what = ", ".join("/".join(each) for each in sorted(shared))
                self._findings.fail(f"{_name(claim)} is given {what}, which {_name(other)} has")


def _knew_of(decision: Decision, claim: Content, devices: set[Device]) -> bool:
    """Whether the scheduler had been told of an allocation, or had made it itself."""
    if decision.taken.get(uid_of(claim), set()) & devices:
        return True
    return bool(decision.assumed_uids & set(_users(claim)))


def _users(claim: Content) -> list[str]:
    return [each.get("uid") or "" for each in (claim.get("status") or {}).get("reservedFor") or ()]


def _name(content: Content) -> str:
    return "/".join(key_of(content))
