"""Whether a pod may run on a node: a second implementation of kube-scheduler's Filter plugins.

Everything is computed from the JSON of API objects, one pod and one node at a time, in the plainest
way. This module imports nothing from the engine, the state or the plugins, so it does not share
their bugs. `brute_force_storage` has the rules about volumes and devices.

Upstream: pkg/scheduler/framework/plugins.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

Content = dict[str, Any]
#: (namespace, name)
Key = tuple[str, str]

NODE, POD = "v1 Node", "v1 Pod"
HOSTNAME = "kubernetes.io/hostname"
_UNSCHEDULABLE: Content = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_HARD_EFFECTS = ("NoSchedule", "NoExecute")
_ANY_ADDRESS = "0.0.0.0"


def key_of(content: Content) -> Key:
    meta = content["metadata"]
    return meta.get("namespace") or "", meta["name"]


def uid_of(content: Content) -> str:
    return content["metadata"]["uid"]


def labels_of(content: Content) -> Mapping[str, str]:
    return content["metadata"].get("labels") or {}


def is_terminating(content: Content) -> bool:
    return bool(content["metadata"].get("deletionTimestamp"))


def has_ended(pod: Content) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod and the name of its node."""

    pod: Content
    node_name: str


@dataclass
class Picture:
    """All objects at one moment, and which pods use resources of which nodes."""

    objects: Mapping[str, Mapping[Key, Content]]
    #: By uid.
    placed: dict[str, Placed] = field(default_factory=dict[str, Placed])

    @classmethod
    def of(
        cls, objects: Mapping[str, Mapping[Key, Content]], assumed: Mapping[str, Placed]
    ) -> "Picture":
        """``assumed``: pods that have a node which their objects do not have yet, by uid."""
        bound = {
            uid_of(pod): Placed(pod, pod["spec"]["nodeName"])
            for pod in objects.get(POD, {}).values()
            if pod["spec"].get("nodeName") and not has_ended(pod)
        }
        return cls(objects, {**assumed, **bound})

    def without(self, uids: Iterable[str]) -> "Picture":
        removed = set(uids)
        return Picture(
            self.objects, {uid: each for uid, each in self.placed.items() if uid not in removed}
        )

    def with_pod(self, pod: Content, node_name: str) -> "Picture":
        return Picture(self.objects, {**self.placed, uid_of(pod): Placed(pod, node_name)})

    def kind(self, kind: str) -> Mapping[Key, Content]:
        return self.objects.get(kind, {})

    def node(self, name: str) -> Content | None:
        return self.kind(NODE).get(("", name))

    def node_names(self) -> list[str]:
        return [name for _, name in self.kind(NODE)]

    def occupants(self, node_name: str) -> Iterator[Content]:
        return (each.pod for each in self.placed.values() if each.node_name == node_name)

    def pods_of_domain(self, topology_key: str, value: str) -> Iterator[Content]:
        """Pods on nodes that have this label."""
        for each in self.placed.values():
            node = self.node(each.node_name)
            if node is not None and labels_of(node).get(topology_key) == value:
                yield each.pod


#: Returns why a pod may not run on a node; "" if it may.
Rule = Callable[[Picture, Content, Content], str]


# ---- resources ----------------------------------------------------------------------------

_QUANTITY = re.compile(r"([0-9.]+)(m|k|M|G|Ki|Mi|Gi)?")
#: In thousandths.
_SCALES: Mapping[str | None, int] = {
    None: 1000,
    "m": 1,
    "k": 1000 * 1000,
    "M": 1000 * 1000**2,
    "G": 1000 * 1000**3,
    "Ki": 1000 * 1024,
    "Mi": 1000 * 1024**2,
    "Gi": 1000 * 1024**3,
}


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int:
    """A quantity in thousandths; exact for the quantities of the drawn worlds."""
    match = _QUANTITY.fullmatch(text)
    assert match is not None, f"a quantity that the checker does not read: {text}"
    return int(Fraction(match[1]) * _SCALES[match[2]])


def requests_of(pod: Content) -> Counter[str]:
    """Containers and sidecars together or the largest init container, and overhead.

    With a kubelet's report of a resize: the largest of requested, allocated and actuated. The
    requested amounts do not count if the kubelet reports that the resize is infeasible.
    """
    total = _requests_by(pod, _requests)
    statuses = {
        each["name"]: each for each in (pod.get("status") or {}).get("containerStatuses") or ()
    }
    if not any("allocatedResources" in each or "resources" in each for each in statuses.values()):
        return total

    def allocated(container: Content) -> Counter[str]:
        return _amounts(statuses[container["name"]].get("allocatedResources"))

    def actuated(container: Content) -> Counter[str]:
        return _requests(statuses[container["name"]])

    conditions = (pod.get("status") or {}).get("conditions") or ()
    pending = [each for each in conditions if each["type"] == "PodResizePending"]
    if pending and pending[0].get("reason") == "Infeasible":
        total = Counter()
    for reported in (_requests_by(pod, allocated), _requests_by(pod, actuated)):
        for name, amount in reported.items():
            total[name] = max(total[name], amount)
    return total


def _requests_by(pod: Content, requests_in: Callable[[Content], Counter[str]]) -> Counter[str]:
    spec = pod["spec"]
    total: Counter[str] = Counter()
    for container in spec.get("containers") or ():
        _add(total, requests_in(container))
    started: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        request = requests_in(container)
        if container.get("restartPolicy") == "Always":
            _add(total, request)
            _add(started, request)
            continue
        for name in {*request, *started}:
            largest[name] = max(largest[name], request[name] + started[name])
    for name, amount in largest.items():
        total[name] = max(total[name], amount)
    _add(total, _amounts(spec.get("overhead")))
    return total


def _requests(container: Content) -> Counter[str]:
    return _amounts((container.get("resources") or {}).get("requests"))


def _amounts(quantities: Mapping[str, str] | None) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for name, text in (quantities or {}).items():
        amounts[name] = thousandths(text)
    return amounts


def _add(total: Counter[str], more: Counter[str]) -> None:
    for name, amount in more.items():
        total[name] += amount


def resources(picture: Picture, pod: Content, node: Content) -> str:
    """NodeResourcesFit: every resource that the pod requests, and the number of pods."""
    name = node["metadata"]["name"]
    has = _amounts(node["status"].get("allocatable"))
    used: Counter[str] = Counter()
    pod_count = 1
    for occupant in picture.occupants(name):
        _add(used, requests_of(occupant))
        pod_count += 1
    if pod_count * 1000 > has["pods"]:
        return f"it would be pod {pod_count} of {has['pods'] // 1000}"
    for resource, amount in requests_of(pod).items():
        if amount and used[resource] + amount > has[resource]:
            numbers = (each / 1000 for each in (amount, used[resource], has[resource]))
            return "{}: asks {:g}, {:g} of {:g} are taken".format(resource, *numbers)
    return ""


# ---- ports --------------------------------------------------------------------------------


def ports(picture: Picture, pod: Content, node: Content) -> str:
    """NodePorts: no host port twice on one address; 0.0.0.0 means every address."""
    for occupant in picture.occupants(node["metadata"]["name"]):
        for protocol, port, address in _host_ports(occupant):
            for requested in _host_ports(pod):
                same = (protocol, port) == requested[:2]
                if same and (address == requested[2] or _ANY_ADDRESS in (address, requested[2])):
                    return f"host port {port}/{protocol} is taken by {'/'.join(key_of(occupant))}"
    return ""


def _host_ports(pod: Content) -> Iterator[tuple[str, int, str]]:
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                address = port.get("hostIP") or _ANY_ADDRESS
                yield port.get("protocol") or "TCP", port["hostPort"], address


# ---- the node itself ----------------------------------------------------------------------


def gates(picture: Picture, pod: Content, node: Content) -> str:
    """SchedulingGates: a pod with a gate is not scheduled."""
    return "the pod has scheduling gates" if pod["spec"].get("schedulingGates") else ""


def unschedulable(picture: Picture, pod: Content, node: Content) -> str:
    """NodeUnschedulable."""
    is_cordoned = (node.get("spec") or {}).get("unschedulable")
    return "the node is cordoned" if is_cordoned and not tolerates(pod, _UNSCHEDULABLE) else ""


def taints(picture: Picture, pod: Content, node: Content) -> str:
    """TaintToleration: every taint that is more than a preference."""
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint["effect"] in _HARD_EFFECTS and not tolerates(pod, taint):
            return f"the taint {taint['key']}:{taint['effect']} is not tolerated"
    return ""


def tolerates(pod: Content, taint: Content) -> bool:
    return any(_matches(each, taint) for each in pod["spec"].get("tolerations") or ())


def _matches(toleration: Content, taint: Content) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    is_named = bool(toleration.get("key"))
    return is_named and (toleration.get("value") or "") == (taint.get("value") or "")


def node_affinity(picture: Picture, pod: Content, node: Content) -> str:
    """NodeAffinity: nodeSelector, and the required terms."""
    return "" if takes_node(pod, node) else "node selector or required node affinity"


def takes_node(pod: Content, node: Content) -> bool:
    labels = labels_of(node)
    node_selector: Mapping[str, str] = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in node_selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or selects_node(required, node)


def selects_node(selector: Content, node: Content) -> bool:
    """A NodeSelector: one of its terms holds; a term without requirements does not."""
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in selector.get("nodeSelectorTerms") or ():
        by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if not by_label and not by_field:
            continue
        if all(holds(one, labels_of(node)) for one in by_label) and all(
            holds(one, fields) for one in by_field
        ):
            return True
    return False


def holds(requirement: Content, labels: Mapping[str, str]) -> bool:
    """One requirement of a label selector or of a node selector."""
    value, operator = labels.get(requirement["key"]), requirement["operator"]
    values: list[str] = requirement.get("values") or []
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    assert operator in ("Gt", "Lt"), operator
    if value is None or not value.isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def selects(selector: Content | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector: None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    exact: Mapping[str, str] = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in exact.items()) and all(
        holds(each, labels) for each in selector.get("matchExpressions") or ()
    )


# ---- other pods ---------------------------------------------------------------------------


def _terms(pod: Content, kind: str) -> list[Content]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def topology_keys(pod: Content, kind: str) -> list[str]:
    """The topology keys of a pod's required terms. ``kind``: podAffinity or podAntiAffinity."""
    return [term["topologyKey"] for term in _terms(pod, kind)]


def _term_selects(picture: Picture, owner: Content, term: Content, pod: Content) -> bool:
    """Whether a term of ``owner`` selects ``pod``."""
    namespace, names = key_of(pod)[0], term.get("namespaces") or []
    selector = term.get("namespaceSelector")
    if selector is None:
        is_in_namespaces = namespace in (names or [key_of(owner)[0]])
    else:
        namespace_object = picture.kind("v1 Namespace").get(("", namespace))
        labels = {} if namespace_object is None else labels_of(namespace_object)
        is_in_namespaces = namespace in names or selects(selector, labels)
    return is_in_namespaces and selects(term.get("labelSelector"), labels_of(pod))


def affinity(picture: Picture, pod: Content, node: Content) -> str:
    """InterPodAffinity: each term's domain has a pod that all terms select. The first pod whose
    terms select itself needs no other pod."""
    terms, labels = _terms(pod, "podAffinity"), labels_of(node)
    if not terms:
        return ""

    def all_terms_select(other: Content) -> bool:
        return all(_term_selects(picture, pod, term, other) for term in terms)

    keys = [term["topologyKey"] for term in terms]
    if any(key not in labels for key in keys):
        return "required pod affinity: the node lacks a topology key"
    if all(any(map(all_terms_select, picture.pods_of_domain(key, labels[key]))) for key in keys):
        return ""
    is_first = not any(
        all_terms_select(each.pod) and _has_any_key(picture, each.node_name, keys)
        for each in picture.placed.values()
    )
    return "" if is_first and all_terms_select(pod) else "required pod affinity"


def _has_any_key(picture: Picture, node_name: str, keys: Iterable[str]) -> bool:
    node = picture.node(node_name)
    return node is not None and any(key in labels_of(node) for key in keys)


def anti_affinity(picture: Picture, pod: Content, node: Content) -> str:
    """InterPodAffinity: no pod that the pod's terms select is in their domains."""
    labels = labels_of(node)
    for term in _terms(pod, "podAntiAffinity"):
        key = term["topologyKey"]
        for other in picture.pods_of_domain(key, labels[key]) if key in labels else ():
            if _term_selects(picture, pod, term, other):
                return f"required pod anti-affinity to {'/'.join(key_of(other))}"
    return ""


def anti_affinity_of_placed(picture: Picture, pod: Content, node: Content) -> str:
    """InterPodAffinity: a placed pod's terms do not exclude the pod from the node's domains."""
    labels = labels_of(node)
    for each in picture.placed.values():
        where = picture.node(each.node_name)
        for term in _terms(each.pod, "podAntiAffinity") if where is not None else ():
            key = term["topologyKey"]
            assert where is not None
            is_same = key in labels and labels_of(where).get(key) == labels[key]
            if is_same and _term_selects(picture, each.pod, term, pod):
                return f"required pod anti-affinity of {'/'.join(key_of(each.pod))}"
    return ""


def pods_excluded_by(picture: Picture, node_name: str, pods: Iterable[Content]) -> list[Content]:
    """The pods that an anti-affinity term of a pod on the node excludes from a domain."""
    occupants = list(picture.occupants(node_name))
    return [
        pod
        for pod in pods
        if any(
            _term_selects(picture, owner, term, pod)
            for owner in occupants
            for term in _terms(owner, "podAntiAffinity")
        )
    ]


def pods_drawn_to(picture: Picture, other: Content, pods: Iterable[Content]) -> list[Content]:
    """The pods whose affinity terms all select ``other``."""
    return [
        pod
        for pod in pods
        if (terms := _terms(pod, "podAffinity"))
        and all(_term_selects(picture, pod, term, other) for term in terms)
    ]


def pods_spread_over(other: Content, pods: Iterable[Content]) -> list[Content]:
    """The pods with a DoNotSchedule constraint that selects ``other``."""
    return [
        pod
        for pod in pods
        if key_of(pod)[0] == key_of(other)[0]
        and any(
            selects(constraint.get("labelSelector"), labels_of(other))
            for constraint in _hard_constraints(pod)
        )
    ]


def _hard_constraints(pod: Content) -> list[Content]:
    return [
        each
        for each in pod["spec"].get("topologySpreadConstraints") or ()
        if each["whenUnsatisfiable"] == "DoNotSchedule"
    ]


def spreading(picture: Picture, pod: Content, node: Content) -> str:
    """PodTopologySpread: every DoNotSchedule constraint."""
    constraints = _hard_constraints(pod)
    keys = [each["topologyKey"] for each in constraints]
    for constraint in constraints:
        why = _spreads(picture, pod, node, constraint, keys)
        if why:
            return why
    return ""


def _spreads(
    picture: Picture, pod: Content, node: Content, constraint: Content, keys: list[str]
) -> str:
    key, value = constraint["topologyKey"], labels_of(node).get(constraint["topologyKey"])
    if value is None:
        return f"spreading: the node has no label {key}"
    by_node: dict[str, list[Content]] = defaultdict(list)
    for each in picture.placed.values():
        by_node[each.node_name].append(each.pod)
    counts: dict[str, int] = {}
    for other in picture.kind(NODE).values():
        labels = labels_of(other)
        if any(name not in labels for name in keys) or not _is_counted(pod, other, constraint):
            continue
        selected = [
            each
            for each in by_node[other["metadata"]["name"]]
            if key_of(each)[0] == key_of(pod)[0]
            and not is_terminating(each)
            and selects(constraint.get("labelSelector"), labels_of(each))
        ]
        counts[labels[key]] = counts.get(labels[key], 0) + len(selected)
    least = min(counts.values(), default=0)
    if len(counts) < (constraint.get("minDomains") or 1):
        least = 0
    itself = selects(constraint.get("labelSelector"), labels_of(pod))
    skew = counts.get(value, 0) + itself - least
    limit = constraint["maxSkew"]
    return f"spreading over {key}: skew {skew} of {limit}" if skew > limit else ""


def _is_counted(pod: Content, node: Content, constraint: Content) -> bool:
    """Whether a node's pods count, by the two policies of a constraint."""
    if constraint.get("nodeAffinityPolicy") != "Ignore" and not takes_node(pod, node):
        return False
    if constraint.get("nodeTaintsPolicy") != "Honor":
        return True
    node_taints = (node.get("spec") or {}).get("taints") or ()
    return all(tolerates(pod, each) for each in node_taints if each["effect"] in _HARD_EFFECTS)


#: Cheap ones first.
RULES: tuple[Rule, ...] = (
    gates,
    unschedulable,
    taints,
    node_affinity,
    resources,
    ports,
    affinity,
    anti_affinity,
    anti_affinity_of_placed,
    spreading,
)
