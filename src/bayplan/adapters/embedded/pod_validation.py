"""Validation of pod specs, as far as scheduling is concerned, and of quantities.

Fields that no scheduler reads (images, probes, security) are not checked: an input is refused if it
would lead to a wrong decision, not because it is incomplete. Upstream: ValidatePodSpec and the
functions that it calls, pkg/apis/core/validation/validation.go.

One rule differs from upstream on purpose: upstream refuses a request without a limit for a resource
that cannot be overcommitted, such as a GPU. Here such a request is accepted.
"""

from collections.abc import Iterator
from fractions import Fraction

import msgspec

from bayplan.adapters.embedded import field_validation as selectors
from bayplan.adapters.embedded.field_validation import (
    DNS_SUBDOMAIN,
    LABEL_KEY,
    LABEL_VALUE,
    is_dns_label,
    is_dns_subdomain,
    label_key,
    label_selector,
    one_of,
)
from bayplan.api.objects import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Affinity,
    Container,
    ContainerPort,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Quantities,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from bayplan.api.pod_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    amounts,
    is_extended,
    is_native,
    is_pod_level,
    requested,
)
from bayplan.api.quantity import Quantity, QuantityError, parse
from bayplan.api.selectors import EXISTS, is_label_key, is_label_value
from bayplan.problems import Problem, joined, wrong

# ---- resources ------------------------------------------------------------------------------


QUANTITY = "a quantity such as 500m, 2 or 1Gi"
_CONTAINER_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_RESOURCES = (CPU, MEMORY)


def _expected(value: Quantity, resource: str) -> str | None:
    """The expected form of a refused quantity of a resource; None: the quantity is valid.

    A quantity is not negative. Resources that cannot be divided have whole quantities.
    """
    try:
        amount = parse(value)
    except (QuantityError, ArithmeticError):
        return QUANTITY
    if amount < 0:
        return "a quantity that is not negative"
    if resource.startswith(HUGEPAGES_PREFIX) and not _is_pages(amount, resource):
        return f"a multiple of {resource.removeprefix(HUGEPAGES_PREFIX)}"
    if amount.denominator != 1 and (resource == "pods" or is_extended(resource)):
        return "a whole number of them"
    return None


def _is_pages(amount: Fraction, resource: str) -> bool:
    """Whether an amount of huge pages is a multiple of the page size; False: no valid page size."""
    try:
        size = parse(resource.removeprefix(HUGEPAGES_PREFIX))
    except (QuantityError, ArithmeticError):
        return False
    return size > 0 and (amount / size).denominator == 1


def quantities(amounts: Quantities | None, path: str) -> Iterator[Problem]:
    """Check quantities of any resources, such as a node's."""
    for name, value in (amounts or {}).items():
        expected = _expected(value, name)
        if expected is not None:
            yield wrong(joined(path, name), value, expected)


def overhead(amounts: Quantities | None, path: str) -> Iterator[Problem]:
    yield from _amounts(amounts, path, of_pod=False)


def requirements(
    resources: ResourceRequirements | None, path: str, *, of_pod: bool = False
) -> Iterator[Problem]:
    """Check the requests and limits of a container, or of a whole pod."""
    if resources is None:
        return
    problems = [
        *_amounts(resources.limits, f"{path}.limits", of_pod=of_pod),
        *_amounts(resources.requests, f"{path}.requests", of_pod=of_pod),
    ]
    yield from problems
    if not problems:
        yield from _within_limits(resources, f"{path}.requests")


def _amounts(amounts: Quantities | None, path: str, *, of_pod: bool) -> Iterator[Problem]:
    for name, value in (amounts or {}).items():
        yield from _resource_name(name, path, of_pod=of_pod)
        expected = _expected(value, name)
        if expected is not None:
            yield wrong(joined(path, name), value, expected)


def _resource_name(name: str, path: str, *, of_pod: bool) -> Iterator[Problem]:
    if of_pod:
        if not is_pod_level(name):
            expected = f"{CPU}, {MEMORY} or {HUGEPAGES_PREFIX}…, as a pod may ask for as a whole"
            yield wrong(path, name, expected, _POD_RESOURCES)
    elif "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(HUGEPAGES_PREFIX):
            expected = f"{', '.join(_CONTAINER_RESOURCES)} or a name such as example.com/gpu"
            yield wrong(path, name, expected, _CONTAINER_RESOURCES)
    elif not is_label_key(name) or not (is_native(name) or is_extended(name)):
        yield wrong(path, name, "a resource's name such as example.com/gpu")


def _within_limits(resources: ResourceRequirements, path: str) -> Iterator[Problem]:
    limits = resources.limits or {}
    for name, value in (resources.requests or {}).items():
        if name not in limits:
            continue
        request, limit = parse(value), parse(limits[name])
        overcommits = is_native(name) and not name.startswith(HUGEPAGES_PREFIX)
        if request > limit:
            yield wrong(joined(path, name), value, f"at most its limit of {limits[name]}")
        elif request < limit and not overcommits:
            yield wrong(joined(path, name), value, f"exactly its limit of {limits[name]}")


# ---- pods -----------------------------------------------------------------------------------


EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
_TOLERATION_OPERATORS = ("Equal", EXISTS)
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_DO_NOT_SCHEDULE = "DoNotSchedule"
_WHEN_UNSATISFIABLE = (_DO_NOT_SCHEDULE, "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_PORT = "a port from 1 to 65535"
_WEIGHT = "a weight from 1 to 100"


def pod_spec(spec: PodSpec, path: str) -> Iterator[Problem]:
    """Everything that is wrong with the spec of a pod or of a pod template."""
    if not spec.containers:
        yield wrong(f"{path}.containers", None, "at least one container")
    names: set[str] = set()
    yield from _containers(spec.containers, names, f"{path}.containers")
    yield from _containers(spec.init_containers, names, f"{path}.initContainers")
    yield from _host_ports(spec, f"{path}.containers")
    yield from _pod_resources(spec, f"{path}.resources")
    yield from overhead(spec.overhead, f"{path}.overhead")
    yield from selectors.labels(spec.node_selector, f"{path}.nodeSelector")
    yield from _affinity(spec.affinity, f"{path}.affinity")
    for index, toleration in enumerate(spec.tolerations or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    yield from _spread(spec.topology_spread_constraints or (), path)
    yield from _gates(spec, f"{path}.schedulingGates")
    yield from _single_fields(spec, path)


def choice(value: str | None, path: str, choices: tuple[str, ...]) -> Iterator[Problem]:
    """Check a value of a closed set. The value may be absent."""
    if value and value not in choices:
        yield wrong(path, value, one_of(choices), choices)


def effect(value: str, path: str) -> Iterator[Problem]:
    """A taint's effect, which has to be there."""
    if value not in EFFECTS:
        yield wrong(path, value, one_of(EFFECTS), EFFECTS)


def _single_fields(spec: PodSpec, path: str) -> Iterator[Problem]:
    yield from choice(spec.restart_policy, f"{path}.restartPolicy", _RESTART_POLICIES)
    policy = spec.preemption_policy
    yield from choice(policy, f"{path}.preemptionPolicy", _PREEMPTION_POLICIES)
    names = {
        "nodeName": spec.node_name,
        "priorityClassName": spec.priority_class_name,
    }
    for field, name in names.items():
        if name and not is_dns_subdomain(name):
            yield wrong(f"{path}.{field}", name, DNS_SUBDOMAIN)
    if spec.priority is not None and not -(2**31) <= spec.priority < 2**31:
        yield wrong(f"{path}.priority", spec.priority, "a number of 32 bits")


def _gates(spec: PodSpec, path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, gate in enumerate(spec.scheduling_gates or ()):
        if not is_label_key(gate.name):
            yield wrong(f"{path}[{index}].name", gate.name, "a name such as example.com/quota")
        if gate.name in seen:
            yield wrong(f"{path}[{index}].name", gate.name, "each gate once")
        seen.add(gate.name)
    if spec.scheduling_gates and spec.node_name:
        yield wrong(path, [gate.name for gate in spec.scheduling_gates], "none on a placed pod")


# ---- containers -----------------------------------------------------------------------------


def _containers(
    containers: tuple[Container, ...] | None, seen: set[str], path: str
) -> Iterator[Problem]:
    """``seen``: the names of the pod's other containers. The names of ``containers`` are added."""
    for index, container in enumerate(containers or ()):
        where = f"{path}[{index}]"
        if container.name in seen:
            yield wrong(f"{where}.name", container.name, "a name of its own")
        if container.name:
            seen.add(container.name)
        yield from requirements(container.resources, f"{where}.resources")
        policy = container.restart_policy
        yield from choice(policy, f"{where}.restartPolicy", _RESTART_POLICIES)
        for number, port in enumerate(container.ports or ()):
            yield from _port(port, f"{where}.ports[{number}]")


def _pod_resources(spec: PodSpec, path: str) -> Iterator[Problem]:
    """Requests of the whole pod must cover the requests of its containers together."""
    problems = list(requirements(spec.resources, path, of_pod=True))
    yield from problems
    if spec.resources is None or problems:
        return
    try:
        bare = msgspec.structs.replace(spec, overhead=None)
        together = requested(Pod(spec=bare), pod_level=False)
        whole = {**amounts(spec.resources.limits), **amounts(spec.resources.requests)}
    except QuantityError:
        return  # a container's own quantity; `_containers` reports it
    for name, amount in together.items():
        if amount > whole.get(name, amount):
            unit = "m" if name == CPU else ""
            expected = f"at least the {amount}{unit} that its containers ask for"
            field = "requests" if name in (spec.resources.requests or {}) else "limits"
            yield wrong(f"{path}.{field}.{name}", f"{whole[name]}{unit}", expected)


def _port(port: ContainerPort, path: str) -> Iterator[Problem]:
    if port.container_port is None or not 1 <= port.container_port <= 65535:
        yield wrong(f"{path}.containerPort", port.container_port, _PORT)
    if port.host_port and not 1 <= port.host_port <= 65535:
        yield wrong(f"{path}.hostPort", port.host_port, _PORT)
    yield from choice(port.protocol, f"{path}.protocol", _PROTOCOLS)


def _host_ports(spec: PodSpec, path: str) -> Iterator[Problem]:
    """One pod cannot take a host's port twice."""
    seen: set[tuple[str, str, int]] = set()
    for index, container in enumerate(spec.containers or ()):
        for number, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            where = f"{path}[{index}].ports[{number}].hostPort"
            if spec.host_network and port.host_port != port.container_port:
                yield wrong(where, port.host_port, "the containerPort where hostNetwork is true")
            taken = (port.protocol or "TCP", port.host_ip or "", port.host_port)
            if taken in seen:
                yield wrong(where, port.host_port, "each host port once in a pod")
            seen.add(taken)


# ---- affinity -------------------------------------------------------------------------------


def _affinity(affinity: Affinity | None, path: str) -> Iterator[Problem]:
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        where = f"{path}.nodeAffinity"
        yield from selectors.node_selector(affinity.node_affinity.required, f"{where}.{_REQUIRED}")
        for index, term in enumerate(affinity.node_affinity.preferred or ()):
            place = f"{where}.{_PREFERRED}[{index}]"
            yield from _weight(term.weight, place)
            preference = f"{place}.preference"
            yield from selectors.node_term(term.preference, preference, checks_values=False)
    yield from _pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    yield from _pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _weight(weight: int, path: str) -> Iterator[Problem]:
    if not 1 <= weight <= 100:
        yield wrong(f"{path}.weight", weight, _WEIGHT)


def _pod_affinity(affinity: PodAffinity | None, path: str) -> Iterator[Problem]:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required or ()):
        yield from _pod_affinity_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.preferred or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(weighted.weight, place)
        yield from _pod_affinity_term(weighted.pod_affinity_term, f"{place}.podAffinityTerm")


def _pod_affinity_term(term: PodAffinityTerm, path: str) -> Iterator[Problem]:
    yield from label_key(term.topology_key, f"{path}.topologyKey")
    yield from label_selector(term.label_selector, f"{path}.labelSelector")
    yield from label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for index, namespace in enumerate(term.namespaces or ()):
        if not is_dns_label(namespace):
            yield wrong(f"{path}.namespaces[{index}]", namespace, selectors.DNS_LABEL)
    match, mismatch = term.match_label_keys or (), term.mismatch_label_keys or ()
    yield from _match_label_keys(match, term.label_selector, path)
    yield from _label_keys(mismatch, term.label_selector, f"{path}.mismatchLabelKeys")
    for index, key in enumerate(match):
        if key in mismatch:
            expected = "a key that is not in mismatchLabelKeys"
            yield wrong(f"{path}.matchLabelKeys[{index}]", key, expected)


def _match_label_keys(
    keys: tuple[str, ...], selector: LabelSelector | None, path: str
) -> Iterator[Problem]:
    """Check keys that are merged into the selector: matchLabels must not have them.

    matchExpressions may have them, because the merge adds them there.
    """
    where = f"{path}.matchLabelKeys"
    yield from _label_keys(keys, selector, where)
    match_labels = (selector.match_labels if selector is not None else None) or {}
    for index, key in enumerate(keys):
        if key in match_labels:
            yield wrong(f"{where}[{index}]", key, "a key that is not in labelSelector")


def _label_keys(
    keys: tuple[str, ...], selector: LabelSelector | None, path: str
) -> Iterator[Problem]:
    if keys and selector is None:
        yield wrong(path, keys, "nothing where there is no labelSelector")
    for index, key in enumerate(keys):
        if not is_label_key(key):
            yield wrong(f"{path}[{index}]", key, LABEL_KEY)


# ---- tolerations and spreading --------------------------------------------------------------


def _toleration(toleration: Toleration, path: str) -> Iterator[Problem]:
    operator = toleration.operator or ""
    if toleration.key and not is_label_key(toleration.key):
        yield wrong(f"{path}.key", toleration.key, LABEL_KEY)
    if operator and operator not in _TOLERATION_OPERATORS:
        expected = one_of(_TOLERATION_OPERATORS)
        yield wrong(f"{path}.operator", operator, expected, _TOLERATION_OPERATORS)
    elif operator == EXISTS and toleration.value:
        yield wrong(f"{path}.value", toleration.value, "no value for Exists")
    elif operator != EXISTS and not toleration.key:
        yield wrong(f"{path}.operator", operator, "Exists where there is no key")
    elif operator != EXISTS and not is_label_value(toleration.value or ""):
        yield wrong(f"{path}.value", toleration.value, LABEL_VALUE)
    yield from choice(toleration.effect, f"{path}.effect", EFFECTS)
    if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
        expected = f"{NO_EXECUTE} where there are tolerationSeconds"
        yield wrong(f"{path}.effect", toleration.effect, expected)


def _spread(constraints: tuple[TopologySpreadConstraint, ...], path: str) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        where = f"{path}.topologySpreadConstraints[{index}]"
        yield from _spread_constraint(one, where)
        pair = (one.topology_key, one.when_unsatisfiable)
        if pair in seen:
            yield wrong(where, " ".join(pair), "each topologyKey once per whenUnsatisfiable")
        seen.add(pair)


def _spread_constraint(one: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    if one.max_skew < 1:
        yield wrong(f"{path}.maxSkew", one.max_skew, "a number from 1 up")
    if not one.topology_key:
        yield wrong(f"{path}.topologyKey", None, LABEL_KEY)
    if one.when_unsatisfiable not in _WHEN_UNSATISFIABLE:
        expected = one_of(_WHEN_UNSATISFIABLE)
        value = one.when_unsatisfiable
        yield wrong(f"{path}.whenUnsatisfiable", value, expected, _WHEN_UNSATISFIABLE)
    if one.min_domains is not None and one.min_domains < 1:
        yield wrong(f"{path}.minDomains", one.min_domains, "a number from 1 up")
    if one.min_domains is not None and one.when_unsatisfiable != _DO_NOT_SCHEDULE:
        yield wrong(f"{path}.minDomains", one.min_domains, f"it with {_DO_NOT_SCHEDULE} only")
    yield from choice(one.node_affinity_policy, f"{path}.nodeAffinityPolicy", _POLICIES)
    yield from choice(one.node_taints_policy, f"{path}.nodeTaintsPolicy", _POLICIES)
    yield from label_selector(one.label_selector, f"{path}.labelSelector")
    yield from _match_label_keys(one.match_label_keys or (), one.label_selector, path)
