"""Causes: the rejected nodes by plugin and reason, each with the objects and amounts behind it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, final

from bayplan.answers.amounts import amount_text, counted, short_text
from bayplan.answers.names import (
    first_in_natural_order,
    in_natural_order,
    listed_names,
    natural_key,
)
from bayplan.api.objects import NAMESPACE, NODE, POD, Pod, PodAffinityTerm
from bayplan.api.pod_requests import PODS
from bayplan.api.selectors import NodeTerm, Selector, SelectorError, label_selector, node_term
from bayplan.explain.device_details import device_details
from bayplan.explain.diagnosis import NodeDiagnosis, pods_by_labels, pods_by_node
from bayplan.explain.explanation import Cause, NodeDistance, members_text
from bayplan.explain.fixes import rule_edits
from bayplan.explain.fixes.edits import plain
from bayplan.explain.volume_details import (
    conflict_details,
    limit_details,
    volume_details,
    zone_details,
)
from bayplan.framework.status import Code
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.dynamic_resources import DynamicResources
from bayplan.plugins.inter_pod_affinity.domain_rules import REFUSED_BY_PLACED
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_fit import TOO_MANY_PODS, NodeResourcesFit, insufficient
from bayplan.plugins.node_volume_limits import NodeVolumeLimits
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone
from bayplan.state.pod_groups import GroupState, group_key_of
from bayplan.state.pods import PodInfo

_EXAMPLES_MAX = 5
_DETAILS_MAX = 12
_DOMAINS_MAX = 12


@final
@dataclass(slots=True)
class _Group:
    """The nodes of one cause."""

    nodes: list[str] = field(default_factory=list[str])
    is_preemptible: bool = False


def causes_of(model: ClusterModel, diagnosis: NodeDiagnosis) -> tuple[Cause, ...]:
    """The causes. Those that reject the most nodes come first."""
    attempt = diagnosis.attempt
    group = model.scheduler.pod_groups.of(attempt.pod)
    if attempt.result == "gated" and not attempt.gating_plugin and group is not None:
        return (_incomplete(model, group),)
    if attempt.result == "gated":
        reason = attempt.gating_message or attempt.message
        details = _details(model, diagnosis, attempt.gating_plugin, ())
        return (Cause(plugin=attempt.gating_plugin, reason=reason, details=details),)
    if diagnosis.whole is not None:
        status = diagnosis.whole
        details = _details(model, diagnosis, status.plugin, ())
        return (Cause(plugin=status.plugin, reason=status.message, details=details),)
    if attempt.result == "error" and attempt.record is not None:
        plugin, nodes = attempt.record.plugin, tuple(diagnosis.rejected)
        details = _details(model, diagnosis, plugin, nodes)
        return (Cause(plugin=plugin, reason=attempt.message, details=details),)
    groups: dict[tuple[str, str], _Group] = defaultdict(_Group)
    for node, status in diagnosis.rejected.items():
        for reason in status.reasons or ("",):
            group = groups[status.plugin, reason]
            group.nodes.append(node)
            group.is_preemptible |= status.code is Code.UNSCHEDULABLE
    causes = [
        Cause(
            plugin=plugin,
            reason=reason,
            nodes=len(group.nodes),
            nearest=_nearest(diagnosis, plugin, reason, group.nodes),
            examples=tuple(first_in_natural_order(group.nodes, _EXAMPLES_MAX)),
            details=_details(model, diagnosis, plugin, group.nodes, reason=reason),
            is_preemptible=group.is_preemptible,
        )
        for (plugin, reason), group in groups.items()
    ]
    return tuple(sorted(causes, key=lambda cause: (-cause.nodes, cause.plugin, cause.reason)))


def saturated_and_excluded(diagnosis: NodeDiagnosis) -> tuple[int, int]:
    """The number of nodes that are full, and of nodes that the pod may not use whatever is free."""
    codes = Counter(status.code for status in diagnosis.rejected.values())
    return codes[Code.UNSCHEDULABLE], codes[Code.UNSCHEDULABLE_AND_UNRESOLVABLE]


# ---- groups -------------------------------------------------------------------------------------


def _incomplete(model: ClusterModel, group: GroupState) -> Cause:
    """The cause for a group that is not tried because its object or members are missing."""
    return Cause(plugin="", reason=group.message, details=tuple(_members(model, group)))


def _members(model: ClusterModel, group: GroupState) -> Iterator[str]:
    """Lines about members that exist, and about pods that look like members but are none."""
    key, kinds = group.key, model.scheduler.pod_groups.kinds
    if group.group is None:
        yield f"the object of PodGroup {key} ({key.api_group}) does not exist"
    members: list[str] = []
    strangers: list[str] = []
    for pod in model.objects(POD):
        if not isinstance(pod, Pod) or (pod.metadata.namespace or "") != key.namespace:
            continue
        if group_key_of(pod, kinds) == key:
            where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
            members.append(f"{pod.metadata.name}{where}")
            continue
        for label, value in sorted((pod.metadata.labels or {}).items()):
            if value == key.name and "group" in label:
                strangers.append(f"{pod.metadata.name} ({label}={value})")
    if group.group is not None:
        exist = members_text(len(members), group.min_member)
        yield f"{exist}: {listed_names(members) or 'no pod'}"
    for stranger in strangers:
        yield f"{stranger} is no member: no known kind of group has this label"


# ---- distances ----------------------------------------------------------------------------------


def _nearest(
    diagnosis: NodeDiagnosis, plugin: str, reason: str, nodes: Sequence[str]
) -> NodeDistance | None:
    """The node that lacks the least of the resource."""
    if plugin != NodeResourcesFit.name:
        return None
    resource = _resource_of(diagnosis, reason)
    if resource is None:
        return None
    nearest, amount = diagnosis.amounts.least_lacking(resource, nodes)
    if resource == PODS:
        return NodeDistance(node=nearest, distance="has room for no more pod")
    return NodeDistance(node=nearest, distance=f"lacks {short_text(resource, amount)}")


def _resource_of(diagnosis: NodeDiagnosis, reason: str) -> str | None:
    """The resource that a reason names; None: it names none that the pod requests."""
    if reason == TOO_MANY_PODS:
        return PODS
    requests = (*diagnosis.pod.requests, PODS)
    return next((name for name in requests if reason == insufficient(name)), None)


# ---- details ------------------------------------------------------------------------------------


def _details(
    model: ClusterModel,
    diagnosis: NodeDiagnosis,
    plugin: str,
    nodes: Sequence[str],
    *,
    reason: str = "",
) -> tuple[str, ...]:
    pod = diagnosis.pod
    name = plugin.partition("/")[0]
    lines: Iterator[str] = iter(())
    if name == TaintToleration.name:
        lines = _taints(model, pod, nodes)
    elif name == NodeAffinity.name:
        lines = _node_rules(model, pod)
    elif name == PodTopologySpread.name:
        lines = _spreading(model, pod)
    elif name == InterPodAffinity.name and reason == REFUSED_BY_PLACED:
        lines = _repelling(model, pod, nodes)
    elif name == InterPodAffinity.name:
        lines = _affinity(model, pod)
    elif not name:
        lines = _missing_nodes(model, pod)
    elif name == NodePorts.name:
        lines = _ports(model, diagnosis, nodes)
    elif name == NodeResourcesFit.name:
        lines = _holders(model, diagnosis, nodes, reason)
    elif name == NodeVolumeLimits.name:
        lines = chain(limit_details(diagnosis, nodes), volume_details(model, pod, nodes))
    elif name == VolumeRestrictions.name:
        lines = conflict_details(model, pod, nodes)
    elif name == VolumeZone.name:
        lines = chain(volume_details(model, pod, nodes), zone_details(model, nodes))
    elif name == VolumeBinding.name:
        lines = volume_details(model, pod, nodes)
    elif name == DynamicResources.name:
        lines = device_details(model, pod, nodes)
    listed = list(lines)
    if len(listed) > _DETAILS_MAX:
        listed[_DETAILS_MAX - 1 :] = [f"and {len(listed) - _DETAILS_MAX + 1} more"]
    return tuple(listed)


def _holders(
    model: ClusterModel, diagnosis: NodeDiagnosis, nodes: Sequence[str], reason: str
) -> Iterator[str]:
    """Lines about pods that are nominated to a node, and about pods that are being deleted and hold
    their room until they are gone. Only nodes that have enough of the resource without them are
    named: elsewhere these pods are not the reason."""
    resource = _resource_of(diagnosis, reason)
    leaving = model.once(_terminating_by_node)
    terminating: list[str] = []
    for node in in_natural_order((leaving.keys() | diagnosis.nominated.keys()).intersection(nodes)):
        nominated, gone = diagnosis.nominated.get(node, ()), leaving.get(node, ())
        held = sum(_amount_of(pod, resource) for pod in (*nominated, *gone))
        if resource is not None and held < diagnosis.amounts.lacking_on(node).get(resource, 1):
            continue
        for pod in nominated:
            holds = f"holds {_room_of(pod, diagnosis.pod)} there"
            yield f"{pod.key} (priority {pod.priority}) is nominated to {node} and {holds}"
        for pod in gone:
            room = _room_of(pod, diagnosis.pod)
            terminating.append(f"{pod.key} on {node} is terminating and holds {room}")
    yield from terminating


def _amount_of(pod: PodInfo, resource: str | None) -> int:
    """How much of a resource a pod holds; of the number of pods, one."""
    return 1 if resource == PODS or resource is None else pod.requests.get(resource, 0)


def _terminating_by_node(model: ClusterModel) -> dict[str, list[PodInfo]]:
    """The placed pods that are being deleted, by node. Visits every pod."""
    leaving: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in model.scheduler.cache.pods():
        if pod.is_terminating:
            leaving[pod.node_name].append(pod)
    return leaving


def _room_of(pod: PodInfo, waiting: PodInfo) -> str:
    """What a pod requests of the resources that the waiting pod requests."""
    amounts = {name: pod.requests.get(name, 0) for name in waiting.requests}
    parts = [f"{amount_text(name, amount)} {name}" for name, amount in amounts.items() if amount]
    return ", ".join(parts) or "a place"


def _taints(model: ClusterModel, pod: PodInfo, nodes: Sequence[str]) -> Iterator[str]:
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for node in rule_edits.nodes_of(model, in_natural_order(nodes)):
        for taint in rule_edits.untolerated(pod, node):
            text = rule_edits.taint_text(taint)
            counts[text] += 1
            examples.setdefault(text, node.metadata.name)
    for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{text} on {counted(count, 'node')}, for example {examples[text]}"


def _node_rules(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    nodes = list(model.objects(NODE))
    labels, counts = pod.spec.node_selector or {}, rule_edits.node_label_counts(model)
    for key, value in sorted(labels.items()):
        values = counts.get(key, {})
        count = values.get(value, 0)
        hint = (
            f"; {key} is {_some(in_natural_order(values))} elsewhere"
            if values and not count
            else ""
        )
        yield f"node selector {key}={value} matches {count:,} of {len(nodes):,} nodes{hint}"
    terms = list(_required_terms(pod))
    if len(terms) > 1:
        yield f"node affinity: a node must match one of {len(terms)} terms"
    for term, text in terms:
        count = sum(term.matches(n.metadata.labels or {}, n.metadata.name) for n in nodes)
        name = "node affinity" if len(terms) == 1 else "  term"
        yield f"{name} {text} matches {count:,} of {len(nodes):,} nodes"


def _some(values: Sequence[str]) -> str:
    shown = ", ".join(values[:_EXAMPLES_MAX])
    return shown if len(values) <= _EXAMPLES_MAX else f"{shown}, …"


def _required_terms(pod: PodInfo) -> Iterator[tuple[NodeTerm, str]]:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    for term in (required.node_selector_terms or ()) if required is not None else ():
        yield node_term(term), rule_edits.term_text(plain(term))


def _domains(
    model: ClusterModel, key: str, selector: Any, namespaces: frozenset[str]
) -> dict[str, int]:
    """Domain → the number of placed pods that match."""
    counts: dict[str, int] = {}
    domain_of: dict[str, str] = {}
    for node in model.objects(NODE):
        domain = (node.metadata.labels or {}).get(key)
        if domain is not None:
            counts.setdefault(domain, 0)
            domain_of[node.metadata.name] = domain
    for equal in model.once(pods_by_labels):
        if equal.namespace in namespaces and selector.matches(equal.labels):
            for name, count in equal.counts.items():
                domain = domain_of.get(name)
                if domain is not None:
                    counts[domain] += count
    return counts


def _listed_domains(counts: Mapping[str, int]) -> str:
    order = sorted(counts.items(), key=lambda item: (item[1], natural_key(item[0])))
    shown = ", ".join(f"{domain}: {count}" for domain, count in order[:_DOMAINS_MAX])
    return shown + (f", … ({len(counts)} domains)" if len(counts) > _DOMAINS_MAX else "")


def _spreading(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    for constraint in pod.spec.topology_spread_constraints or ():
        if constraint.when_unsatisfiable != "DoNotSchedule":
            continue
        try:
            selector = label_selector(constraint.label_selector)
        except SelectorError:
            continue
        counts = _domains(model, constraint.topology_key, selector, frozenset((pod.namespace,)))
        text = rule_edits.selector_text(plain(constraint.label_selector))
        yield (
            f"maxSkew {constraint.max_skew} over {constraint.topology_key}: pods with {text} per "
            f"domain: {_listed_domains(counts) or 'no node has the label'}"
        )


def _affinity(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    affinity = pod.spec.affinity
    rules = (
        ("affinity", affinity.pod_affinity if affinity is not None else None),
        ("anti-affinity", affinity.pod_anti_affinity if affinity is not None else None),
    )
    for what, rule in rules:
        for term in (rule.required or ()) if rule is not None else ():
            try:
                namespaces = _namespaces(model, term, pod.namespace)
                selector = label_selector(term.label_selector)
            except SelectorError:
                continue
            counts = _domains(model, term.topology_key, selector, namespaces)
            occupied = {domain: count for domain, count in counts.items() if count}
            text = rule_edits.selector_text(plain(term.label_selector))
            where = _listed_domains(occupied) or "no such pod is placed"
            if what == "affinity" and not occupied:
                where += _elsewhere(model, selector, namespaces)
            yield (
                f"required {what} to {text} over {term.topology_key}: {len(occupied)} of "
                f"{len(counts)} domains have such pods: {where}"
            )


def _namespaces(model: ClusterModel, term: PodAffinityTerm, own: str) -> frozenset[str]:
    """The namespaces of a term of a pod in the namespace ``own``. Raises SelectorError."""
    if term.namespace_selector is None:
        return frozenset(term.namespaces or (own,))
    selector = label_selector(term.namespace_selector)
    selected = (
        each.metadata.name
        for each in model.objects(NAMESPACE)
        if selector.matches(each.metadata.labels or {})
    )
    return frozenset((*(term.namespaces or ()), *selected))


def _elsewhere(model: ClusterModel, selector: Selector, namespaces: frozenset[str]) -> str:
    """The pods that a term would select in other namespaces."""
    placed = (pod for pods in pods_by_node(model).values() for pod in pods)
    other = [p for p in placed if p.namespace not in namespaces and selector.matches(p.labels)]
    if not other:
        return ""
    example = min(pod.key for pod in other)
    are = "1 is" if len(other) == 1 else f"{len(other):,} are"
    names = listed_names(in_natural_order(namespaces))
    return f" in namespace {names}; {are} elsewhere, for example {example}"


def _repelling(model: ClusterModel, pod: PodInfo, nodes: Sequence[str]) -> Iterator[str]:
    """The placed pods whose required anti-affinity keeps the pod from the nodes."""
    labels_of = {
        node.metadata.name: node.metadata.labels or {} for node in rule_edits.nodes_of(model, nodes)
    }
    placed = pods_by_node(model)
    for on in in_natural_order(placed):
        for other in placed[on]:
            affinity = other.spec.affinity
            rule = affinity.pod_anti_affinity if affinity is not None else None
            for term in (rule.required or ()) if rule is not None else ():
                if not _selects(model, term, other, pod):
                    continue
                host = model.get(NODE, "", on)
                own_labels = {} if host is None else host.metadata.labels or {}
                domain = own_labels.get(term.topology_key)
                kept = [n for n, own in labels_of.items() if own.get(term.topology_key) == domain]
                if domain is not None and kept:
                    text = rule_edits.selector_text(plain(term.label_selector))
                    yield (
                        f"{other.key} on {on} has the required anti-affinity to {text} over"
                        f" {term.topology_key}"
                    )


def _selects(model: ClusterModel, term: PodAffinityTerm, other: PodInfo, pod: PodInfo) -> bool:
    try:
        selector = label_selector(term.label_selector)
        namespaces = _namespaces(model, term, other.namespace)
    except SelectorError:
        return False
    return pod.namespace in namespaces and selector.matches(pod.labels)


def _missing_nodes(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    """The nodes that the pod names and that do not exist."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    for term in (required.node_selector_terms or ()) if required is not None else ():
        fields = (each for each in term.match_fields or () if each.operator == "In")
        for name in (value for each in fields for value in each.values or ()):
            if model.get(NODE, "", name) is None:
                yield f"the pod is for node {name}, which does not exist"


def _ports(model: ClusterModel, diagnosis: NodeDiagnosis, nodes: Sequence[str]) -> Iterator[str]:
    wanted = {port for _, _, port in _host_ports(diagnosis.pod)}
    placed = pods_by_node(model)
    for node in in_natural_order(nodes):
        for other in (*placed.get(node, ()), *diagnosis.nominated.get(node, ())):
            taken = sorted(wanted & {port for _, _, port in _host_ports(other)})
            if taken:
                verb = "uses" if other.node_name else "is nominated, and will use"
                yield f"{other.key} {verb} port {', '.join(map(str, taken))} on {node}"


def _host_ports(pod: PodInfo) -> Iterator[tuple[str, str, int]]:
    for container in pod.spec.containers or ():
        for port in container.ports or ():
            number = port.host_port or (port.container_port if pod.spec.host_network else 0)
            if number:
                yield port.host_ip or "", port.protocol or "", number
