"""Validation of pod specs, in the order and the words of kube-apiserver, as far as scheduling and
admission are concerned.

Fields that no scheduler reads (images, probes, security) are not checked, and a container may lack
its name, as in the objects of tests. What a manifest of a file must have besides is in
sim/input/manifest_fields.py.
Upstream: ValidatePodSpec and the functions that it calls, pkg/apis/core/validation/validation.go.

A spec that a server has stored may lack what only a new spec must have (``is_new``): a limit of
each extended resource, volumes of all mounts, and so on. The rules of another version let it pass.
"""

import re
from collections.abc import Iterator, Sequence

from bayplan.adapters.embedded import field_errors
from bayplan.adapters.embedded.resource_validation import overhead, pod_resources, requirements
from bayplan.adapters.embedded.selector_validation import (
    label_selector,
    labels,
    node_selector,
    node_term,
)
from bayplan.api import objects
from bayplan.api.selectors import COMPARISONS, EXISTS, is_decimal, is_label_value
from bayplan.api.storage_objects import Volume
from bayplan.printable import quoted
from bayplan.problems import Problem

EFFECTS = (objects.NO_SCHEDULE, objects.PREFER_NO_SCHEDULE, objects.NO_EXECUTE)
_GO_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_TOLERATION_OPERATORS = ("Equal", EXISTS)
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_DO_NOT_SCHEDULE, _SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
_POLICIES = ("Honor", "Ignore")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_CONTAINER_RESTART_POLICIES = ("Always", "Never", "OnFailure")
NOT_A_PORT = "must be between 1 and 65535, inclusive"
_NOT_A_WEIGHT = "must be in the range 1-100"
_NOT_POSITIVE = "must be greater than zero"
_INT32_MAX = 2**31 - 1


def pod_spec(
    spec: objects.PodSpec, path: str, *, pod_name: str = "", is_new: bool = True
) -> Iterator[Problem]:
    """Everything that is wrong with the spec of a pod or of a pod template.

    ``pod_name``: "" in a template. ``is_new``: see the module.
    """
    volumes: set[str] | None = None
    if is_new:
        volumes = set()
        yield from _volumes(spec.volumes or (), volumes, pod_name, f"{path}.volumes")
    yield from _pod_claims(spec.resource_claims or (), f"{path}.resourceClaims")
    yield from _all_containers(spec, volumes, path)
    yield from pod_resources(spec, f"{path}.resources", is_new=is_new)
    yield from _host_network(spec, f"{path}.containers")
    yield from choice(spec.restart_policy, f"{path}.restartPolicy", _RESTART_POLICIES)
    yield from labels(spec.node_selector, f"{path}.nodeSelector")
    yield from _affinity(spec.affinity, f"{path}.affinity")
    yield from _gates(spec, f"{path}.schedulingGates")
    yield from _spread(spec.topology_spread_constraints or (), path)
    yield from _name(spec.node_name, f"{path}.nodeName")
    seconds = spec.active_deadline_seconds
    if seconds is not None and not 1 <= seconds <= _INT32_MAX:
        detail = f"must be between 1 and {_INT32_MAX}, inclusive"
        yield field_errors.invalid(f"{path}.activeDeadlineSeconds", seconds, detail)
    for index, each in enumerate(spec.tolerations or ()):
        yield from toleration(each, f"{path}.tolerations[{index}]")
    yield from _name(spec.priority_class_name, f"{path}.priorityClassName")
    if spec.runtime_class_name is not None:
        yield from field_errors.dns_subdomain(spec.runtime_class_name, f"{path}.runtimeClassName")
    policy = spec.preemption_policy
    yield from choice(policy, f"{path}.preemptionPolicy", objects.PREEMPTION_POLICIES)
    yield from overhead(spec.overhead, f"{path}.overhead", is_new=is_new)
    if spec.node_name and spec.scheduling_gates:
        detail = "cannot be set until all schedulingGates have been cleared"
        yield field_errors.forbidden(f"{path}.nodeName", detail)
    if spec.priority is not None and not -(2**31) <= spec.priority <= _INT32_MAX:
        yield field_errors.invalid(f"{path}.priority", spec.priority, "must be a number of 32 bits")


def choice(value: str | None, path: str, choices: Sequence[str]) -> Iterator[Problem]:
    """Check a value of a closed set. The value may be absent."""
    if value and value not in choices:
        yield field_errors.not_supported(path, value, choices)


def effect(value: str, path: str) -> Iterator[Problem]:
    """A taint's effect, which has to be there."""
    if not value:
        yield field_errors.required(path)
    elif value not in EFFECTS:
        yield field_errors.not_supported(path, value, EFFECTS)


def _name(name: str | None, path: str) -> Iterator[Problem]:
    if name:
        yield from field_errors.dns_subdomain(name, path)


def _gates(spec: objects.PodSpec, path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, gate in enumerate(spec.scheduling_gates or ()):
        yield from field_errors.qualified_name(gate.name, f"{path}[{index}]")
        if gate.name in seen:
            yield field_errors.duplicate(f"{path}[{index}]", gate.name)
        seen.add(gate.name)


# ---- volumes and claims ---------------------------------------------------------------------


def _volumes(
    volumes: tuple[Volume, ...], valid: set[str], pod_name: str, path: str
) -> Iterator[Problem]:
    """``valid``: gets the names of the volumes without problems: the others cannot be mounted."""
    made = {f"{pod_name}-{v.name}" for v in volumes if v.ephemeral is not None and pod_name}
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        problems = list(_volume(volume, where))
        if volume.name in valid:
            problems.append(field_errors.duplicate(f"{where}.name", volume.name))
        yield from problems
        if not problems:
            valid.add(volume.name)
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            place = f"{where}.persistentVolumeClaim.claimName"
            yield field_errors.invalid(place, claim.claim_name, detail)


def _volume(volume: Volume, path: str) -> Iterator[Problem]:
    claim = volume.persistent_volume_claim
    if claim is not None and not claim.claim_name:
        yield field_errors.required(f"{path}.persistentVolumeClaim.claimName")
    if volume.name:
        yield from field_errors.dns_label(volume.name, f"{path}.name")
    else:
        yield field_errors.required(f"{path}.name")


def _pod_claims(claims: tuple[objects.PodResourceClaim, ...], path: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if not claim.name:
            yield field_errors.required(f"{where}.name")
        elif claim.name in seen:
            yield field_errors.duplicate(f"{where}.name", claim.name)
        else:
            yield from field_errors.dns_label(claim.name, f"{where}.name")
        seen.add(claim.name)
        name, template = claim.resource_claim_name, claim.resource_claim_template_name
        if name is not None and template is not None:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            yield field_errors.invalid(where, _claim_value(claim), detail)
        if name is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield field_errors.invalid(where, _claim_value(claim), detail)
        if name is not None:
            yield from field_errors.dns_subdomain(name, f"{where}.resourceClaimName")
        if template is not None:
            yield from field_errors.dns_subdomain(template, f"{where}.resourceClaimTemplateName")


def _claim_value(claim: objects.PodResourceClaim) -> dict[str, str | None]:
    """A claim as upstream prints its internal type."""
    return {
        "Name": claim.name,
        "ResourceClaimName": claim.resource_claim_name,
        "ResourceClaimTemplateName": claim.resource_claim_template_name,
    }


# ---- containers -----------------------------------------------------------------------------


def _all_containers(
    spec: objects.PodSpec, volumes: set[str] | None, path: str
) -> Iterator[Problem]:
    """``volumes``: those that can be mounted; None: the spec is not new."""
    containers = spec.containers or ()
    if not containers:
        yield field_errors.required(f"{path}.containers")
    names: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{path}.containers[{index}]"
        yield from _container(container, spec, volumes, where)
        if container.name and container.name in names:
            yield field_errors.duplicate(f"{where}.name", container.name)
        names.add(container.name)
        yield from _restart_policy(container, where)
    yield from _host_ports(containers, f"{path}.containers")
    for index, container in enumerate(spec.init_containers or ()):
        where = f"{path}.initContainers[{index}]"
        yield from _container(container, spec, volumes, where)
        yield from _restart_policy(container, where)
        if container.name and container.name in names:
            yield field_errors.duplicate(f"{where}.name", container.name)
        names.add(container.name)
        # Upstream names the first init container, whichever it is.
        yield from _host_ports((container,), f"{path}.initContainers")


def _container(
    container: objects.Container, spec: objects.PodSpec, volumes: set[str] | None, path: str
) -> Iterator[Problem]:
    if container.name:
        yield from field_errors.dns_label(container.name, f"{path}.name")
    yield from _ports(container.ports or (), f"{path}.ports")
    if volumes is not None:
        yield from _mounts(container, volumes, f"{path}.volumeMounts")
        yield from _devices(container, volumes, f"{path}.volumeDevices")
    claims = frozenset(claim.name for claim in spec.resource_claims or () if claim.name)
    is_new = volumes is not None
    yield from requirements(container.resources, f"{path}.resources", claims, is_new=is_new)


def _mounts(container: objects.Container, volumes: set[str], path: str) -> Iterator[Problem]:
    devices: tuple[objects.VolumeDevice, ...] = container.volume_devices or ()
    names, paths = {each.name for each in devices}, {each.device_path for each in devices}
    seen: set[str] = set()
    mounts: tuple[objects.VolumeMount, ...] = container.volume_mounts or ()
    for index, mount in enumerate(mounts):
        where, mount_path = f"{path}[{index}]", mount.mount_path or ""
        if not mount.name:
            yield field_errors.required(f"{where}.name")
        if mount.name not in volumes:
            yield field_errors.not_found(f"{where}.name", mount.name)
        if not mount_path:
            yield field_errors.required(f"{where}.mountPath")
        if mount_path in seen:
            yield field_errors.invalid(f"{where}.mountPath", mount_path, "must be unique")
        seen.add(mount_path)
        if mount.name in names:
            detail = "must not already exist in volumeDevices"
            yield field_errors.invalid(f"{where}.name", mount.name, detail)
        if mount_path in paths:
            detail = "must not already exist as a path in volumeDevices"
            yield field_errors.invalid(f"{where}.mountPath", mount_path, detail)


def _devices(container: objects.Container, volumes: set[str], path: str) -> Iterator[Problem]:
    for index, device in enumerate(container.volume_devices or ()):
        if device.name and device.name not in volumes:
            yield field_errors.not_found(f"{path}[{index}].name", device.name)


def _restart_policy(container: objects.Container, path: str) -> Iterator[Problem]:
    policy = container.restart_policy
    yield from choice(policy, f"{path}.restartPolicy", _CONTAINER_RESTART_POLICIES)


def _ports(ports: tuple[objects.ContainerPort, ...], path: str) -> Iterator[Problem]:
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        number = port.container_port
        if not number:
            yield field_errors.required(f"{where}.containerPort")
        elif not 1 <= number <= 65535:
            yield field_errors.invalid(f"{where}.containerPort", number, NOT_A_PORT)
        if port.host_port and not 1 <= port.host_port <= 65535:
            yield field_errors.invalid(f"{where}.hostPort", port.host_port, NOT_A_PORT)
        yield from choice(port.protocol, f"{where}.protocol", _PROTOCOLS)


def _host_ports(containers: tuple[objects.Container, ...], path: str) -> Iterator[Problem]:
    """One pod cannot take a host's port twice."""
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            taken = f"{port.protocol or 'TCP'}/{port.host_ip or ''}/{port.host_port}"
            if taken in seen:
                yield field_errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", taken)
            seen.add(taken)


def _host_network(spec: objects.PodSpec, path: str) -> Iterator[Problem]:
    if not spec.host_network:
        return
    for index, container in enumerate(spec.containers or ()):
        for number, port in enumerate(container.ports or ()):
            if port.host_port and port.host_port != port.container_port:
                where = f"{path}[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield field_errors.invalid(where, port.host_port, detail)


# ---- affinity -------------------------------------------------------------------------------


def _affinity(affinity: objects.Affinity | None, path: str) -> Iterator[Problem]:
    if affinity is None:
        return
    if affinity.node_affinity is not None:
        where = f"{path}.nodeAffinity"
        yield from node_selector(affinity.node_affinity.required, f"{where}.{objects.REQUIRED}")
        for index, term in enumerate(affinity.node_affinity.preferred or ()):
            place = f"{where}.{objects.PREFERRED}[{index}]"
            yield from _weight(term.weight, place)
            yield from node_term(term.preference, f"{place}.preference", checks_values=False)
    yield from _pod_affinity(affinity.pod_affinity, f"{path}.podAffinity")
    yield from _pod_affinity(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _weight(weight: int, path: str) -> Iterator[Problem]:
    if not 1 <= weight <= 100:
        yield field_errors.invalid(f"{path}.weight", weight, _NOT_A_WEIGHT)


def _pod_affinity(affinity: objects.PodAffinity | None, path: str) -> Iterator[Problem]:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required or ()):
        yield from _pod_affinity_term(term, f"{path}.{objects.REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.preferred or ()):
        place = f"{path}.{objects.PREFERRED}[{index}]"
        yield from _weight(weighted.weight, place)
        yield from _pod_affinity_term(weighted.pod_affinity_term, f"{place}.podAffinityTerm")


def _pod_affinity_term(term: objects.PodAffinityTerm, path: str) -> Iterator[Problem]:
    yield from label_selector(term.label_selector, f"{path}.labelSelector")
    yield from label_selector(term.namespace_selector, f"{path}.namespaceSelector")
    for namespace in term.namespaces or ():
        yield from field_errors.dns_label(namespace, f"{path}.namespace")
    match, mismatch = term.match_label_keys or (), term.mismatch_label_keys or ()
    yield from _label_keys(match, mismatch, term.label_selector, path)
    if not term.topology_key:
        yield field_errors.required(f"{path}.topologyKey", "can not be empty")
    yield from field_errors.qualified_name(term.topology_key, f"{path}.topologyKey")


def _label_keys(
    match: tuple[str, ...],
    mismatch: tuple[str, ...],
    selector: objects.LabelSelector | None,
    path: str,
) -> Iterator[Problem]:
    """Check keys whose values are merged into the selector before."""
    for keys, field in ((match, "matchLabelKeys"), (mismatch, "mismatchLabelKeys")):
        if keys and selector is None:
            detail = "must not be specified when labelSelector is not set"
            yield field_errors.forbidden(f"{path}.{field}", detail)
        elif selector is not None:
            for index, key in enumerate(keys):
                yield from field_errors.qualified_name(key, f"{path}.{field}[{index}]")
    if selector is not None:
        positions = {key: index for index, key in enumerate(match)}
        selected = set(selector.match_labels or ())
        for one in selector.match_expressions or ():
            if one.key in positions and one.key in selected:
                detail = "exists in both matchLabelKeys and labelSelector"
                yield field_errors.invalid(f"{path}[{positions[one.key]}]", one.key, detail)
            selected.add(one.key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield field_errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


# ---- tolerations and spreading --------------------------------------------------------------


def toleration(one: objects.Toleration, path: str) -> Iterator[Problem]:
    """Check a toleration of a pod or of a RuntimeClass."""
    key, operator = one.key or "", one.operator or ""
    value = one.value or ""
    if key:
        yield from field_errors.qualified_name(key, f"{path}.key")
    elif operator != EXISTS:
        detail = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        yield field_errors.invalid(f"{path}.operator", operator, detail)
    if one.toleration_seconds is not None and one.effect != objects.NO_EXECUTE:
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield field_errors.invalid(f"{path}.effect", one.effect or "", detail)
    if operator in ("", "Equal"):
        if not is_label_value(value):
            yield field_errors.invalid(
                f"{path}.operator", value, ";".join(field_errors.label_value_faults(value))
            )
    elif operator == EXISTS:
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            yield field_errors.invalid(f"{path}.operator", value, detail)
    elif operator in COMPARISONS:
        yield from _number(value, f"{path}.value")
    else:
        yield field_errors.not_supported(f"{path}.operator", operator, _TOLERATION_OPERATORS)
    yield from choice(one.effect, f"{path}.effect", EFFECTS)


def _number(value: str, path: str) -> Iterator[Problem]:
    """A number that a toleration compares, as a kube-apiserver with the gate
    TaintTolerationComparisonOperators reads it."""
    if not value:
        yield field_errors.invalid(path, value, "must be non-empty")
    elif not is_decimal(value):
        yield field_errors.invalid(path, value, "must be a valid decimal integer in canonical form")
    parsing = f"strconv.ParseInt: parsing {quoted(value)}"
    if not _GO_INTEGER.fullmatch(value):
        yield field_errors.invalid(path, value, f"{parsing}: invalid syntax")
    elif not -(2**63) <= int(value) < 2**63:
        yield field_errors.invalid(path, value, f"{parsing}: value out of range")


def _spread(
    constraints: tuple[objects.TopologySpreadConstraint, ...], path: str
) -> Iterator[Problem]:
    for index, one in enumerate(constraints):
        where = f"{path}.topologySpreadConstraints[{index}]"
        pair = (one.topology_key, one.when_unsatisfiable)
        later = constraints[index + 1 :]
        is_repeated = any((c.topology_key, c.when_unsatisfiable) == pair for c in later)
        yield from _spread_constraint(one, where, is_repeated=is_repeated)


def _spread_constraint(
    one: objects.TopologySpreadConstraint, path: str, *, is_repeated: bool
) -> Iterator[Problem]:
    if one.max_skew < 1:
        yield field_errors.invalid(f"{path}.maxSkew", one.max_skew, _NOT_POSITIVE)
    if not one.topology_key:
        yield field_errors.required(f"{path}.topologyKey", "can not be empty")
    if one.when_unsatisfiable not in (_DO_NOT_SCHEDULE, _SCHEDULE_ANYWAY):
        actions = (_DO_NOT_SCHEDULE, _SCHEDULE_ANYWAY)
        yield field_errors.not_supported(
            f"{path}.whenUnsatisfiable", one.when_unsatisfiable, actions
        )
    if is_repeated:
        pair = f"{{{one.topology_key}, {one.when_unsatisfiable}}}"
        yield field_errors.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", pair)
    if one.min_domains is not None:
        if one.min_domains < 1:
            yield field_errors.invalid(f"{path}.minDomains", one.min_domains, _NOT_POSITIVE)
        if one.when_unsatisfiable != _DO_NOT_SCHEDULE:
            detail = f"can only use minDomains if whenUnsatisfiable={_DO_NOT_SCHEDULE}, not "
            yield field_errors.invalid(
                f"{path}.minDomains", one.min_domains, f"{detail}{one.when_unsatisfiable}"
            )
    yield from choice(one.node_affinity_policy, f"{path}.nodeAffinityPolicy", _POLICIES)
    yield from choice(one.node_taints_policy, f"{path}.nodeTaintsPolicy", _POLICIES)
    yield from _label_keys(one.match_label_keys or (), (), one.label_selector, path)
    yield from label_selector(one.label_selector, f"{path}.labelSelector")
