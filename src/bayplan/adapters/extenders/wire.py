"""The wire format of k8s.io/kube-scheduler/extender/v1: encodes questions, decodes answers.

The structs have no JSON names, so their fields are capitalized on the wire; the Kubernetes objects
inside have their usual names. As in Go, field names are read in any case, because many extenders
write them in lower case. Pods and nodes are sent whole, without managedFields.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from bayplan.adapters.embedded.versioned_store import WholeObjects
from bayplan.api.objects import NODE, POD
from bayplan.ports import AskExtender, ExtenderAnswer, ExtenderVerb, NamedVictims
from bayplan.state.pods import PodInfo

T = TypeVar("T")


class PodGoneError(Exception):
    """The pod of the question has been deleted."""


class NonsenseError(Exception):
    """An unreadable answer; the message names the problem."""


# ---- questions -----------------------------------------------------------------------------


def encoded(question: AskExtender, objects: WholeObjects, *, by_name: bool) -> bytes:
    """The body of a question. ``by_name``: the extender is nodeCacheCapable, so nodes and pods are
    sent as names. Raises PodGoneError."""
    if question.verb is ExtenderVerb.BIND:
        return msgspec.json.encode(_binding_args(question))
    pod = _whole_pod(question.pod, objects)
    if question.verb is ExtenderVerb.PREEMPT:
        return msgspec.json.encode(_preemption_args(question, pod, objects, by_name=by_name))
    if by_name:
        args = {"Pod": pod, "Nodes": None, "NodeNames": question.node_names}
    else:
        nodes = (objects.whole(NODE, "", name) for name in question.node_names)
        items = [Raw(node) for node in nodes if node is not None]
        args = {"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
    return msgspec.json.encode(args)


def _binding_args(question: AskExtender) -> dict[str, Any]:
    pod = question.pod
    return {
        "PodName": pod.name,
        "PodNamespace": pod.namespace,
        "PodUID": pod.uid,
        "Node": question.node_names[0],
    }


def _preemption_args(
    question: AskExtender, pod: Raw, objects: WholeObjects, *, by_name: bool
) -> dict[str, Any]:
    def meta(each: PodInfo) -> Any:
        return {"UID": each.uid}

    def whole(each: PodInfo) -> Any:
        return _whole_pod(each, objects)

    write = meta if by_name else whole
    victims = {
        name: {
            "Pods": [write(each) for each in node_victims.pods],
            "NumPDBViolations": node_victims.pdb_violation_count,
        }
        for name, node_victims in question.victims.items()
    }
    meant, other = ("Meta", "") if by_name else ("", "Meta")
    return {"Pod": pod, f"NodeNameTo{meant}Victims": victims, f"NodeNameTo{other}Victims": None}


def _whole_pod(pod: PodInfo, objects: WholeObjects) -> Raw:
    content = objects.whole(POD, pod.namespace, pod.name)
    if content is None:
        raise PodGoneError(f"pod {pod.key} is gone")
    return Raw(content)


# ---- answers -------------------------------------------------------------------------------


class _Meta(Struct, frozen=True):
    name: str = ""


class _Node(Struct, frozen=True):
    metadata: _Meta = _Meta()


class _NodeList(Struct, frozen=True):
    items: list[_Node] | None = None


def decoded(verb: ExtenderVerb, body: bytes, *, by_name: bool) -> ExtenderAnswer:
    """Decode an answer. Raises NonsenseError."""
    try:
        return _READERS[verb](body, by_name)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise NonsenseError(str(problem)) from None


def _filter_result(body: bytes, by_name: bool) -> ExtenderAnswer:
    """Upstream: HTTPExtender.Filter. Nodes in neither list are left out."""
    parts = _parts(body)
    error = _part(parts, "Error", str)
    if error:
        return ExtenderAnswer(error=error)
    names = _part(parts, "NodeNames", list[str]) if by_name else None
    if names is None:
        nodes = _part(parts, "Nodes", _NodeList)
        names = [node.metadata.name for node in (nodes and nodes.items) or ()]
    return ExtenderAnswer(
        node_names=frozenset(names),
        failed=_part(parts, "FailedNodes", dict[str, str]) or {},
        failed_and_unresolvable=_part(parts, "FailedAndUnresolvableNodes", dict[str, str]) or {},
    )


def _host_priorities(body: bytes, by_name: bool) -> ExtenderAnswer:
    items = msgspec.json.decode(body, type=list[dict[str, Any] | None] | None)
    return ExtenderAnswer(scores=tuple(_host_priority(item or {}) for item in items or ()))


def _host_priority(item: dict[str, Any]) -> tuple[str, int]:
    folded = _folded(item)
    host = msgspec.convert(folded.get("host") or "", str)
    return host, msgspec.convert(folded.get("score") or 0, int)


def _preemption_result(body: bytes, by_name: bool) -> ExtenderAnswer:
    victims = _part(_parts(body), "NodeNameToMetaVictims", dict[str, dict[str, Any] | None]) or {}
    return ExtenderAnswer(victims={name: _victims(each or {}) for name, each in victims.items()})


def _victims(written: Mapping[str, Any]) -> NamedVictims:
    parts = _folded(written)
    pods = msgspec.convert(parts.get("pods") or [], list[dict[str, Any]])
    uids = tuple(msgspec.convert(_folded(pod).get("uid", ""), str) for pod in pods)
    return NamedVictims(uids, msgspec.convert(parts.get("numpdbviolations") or 0, int))


def _binding_result(body: bytes, by_name: bool) -> ExtenderAnswer:
    return ExtenderAnswer(error=_part(_parts(body), "Error", str) or "")


_READERS: Mapping[ExtenderVerb, Callable[[bytes, bool], ExtenderAnswer]] = {
    ExtenderVerb.FILTER: _filter_result,
    ExtenderVerb.PRIORITIZE: _host_priorities,
    ExtenderVerb.PREEMPT: _preemption_result,
    ExtenderVerb.BIND: _binding_result,
}


def _parts(body: bytes) -> dict[str, Raw]:
    """Undecoded members by lower-case name."""
    return _folded(msgspec.json.decode(body, type=dict[str, Raw] | None) or {})


def _part(parts: Mapping[str, Raw], name: str, kind: type[T]) -> T | None:
    """One member, decoded; None if it is absent or null."""
    value = parts.get(name.lower())
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=kind | None)
    except msgspec.MsgspecError as problem:
        raise NonsenseError(f"{name}: {problem}") from None


def _folded(members: Mapping[str, T]) -> dict[str, T]:
    return {name.lower(): value for name, value in members.items()}
