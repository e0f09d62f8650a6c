"""Converts a result of the search into the allocation that the claim's status stores.

Upstream: the second half of Allocate, and createNodeSelector.
"""

from collections.abc import Sequence

import msgspec

from bayplan.api.device_objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from bayplan.api.object_meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from bayplan.api.selectors import NODE_NAME_FIELD
from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour
from bayplan.plugins.dynamic_resources import capacity
from bayplan.plugins.dynamic_resources.pools import AllocationError
from bayplan.plugins.dynamic_resources.requests import (
    Alternative,
    AssignedDevice,
    ClaimSearch,
)
from bayplan.rng import stable_hash

FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"

Requirements = tuple[LabelSelectorRequirement, ...]


def allocation(
    claim: ResourceClaim,
    search: ClaimSearch,
    assigned: Sequence[AssignedDevice],
    node_name: str,
    *,
    behaviour: Behaviour = NEWEST_BEHAVIOUR,
) -> AllocationResult:
    """The allocation of a claim on a node. Raises AllocationError."""
    results = tuple(_result(each, claim.uid, index) for index, each in enumerate(assigned))
    if not behaviour.results_have_tolerations:
        results = tuple(msgspec.structs.replace(each, tolerations=None) for each in results)
    config = _configuration(claim, search, is_unnamed=behaviour.config_for_all_is_unnamed)
    devices = DeviceAllocationResult(results=results, config=config or None)
    return AllocationResult(devices=devices, node_selector=_node_selector(assigned, node_name))


def _result(assigned: AssignedDevice, claim_uid: str, index: int) -> DeviceRequestAllocationResult:
    device = assigned.candidate.device
    return DeviceRequestAllocationResult(
        request=assigned.request.full_name,
        driver=assigned.candidate.id.driver,
        pool=assigned.candidate.id.pool,
        device=assigned.candidate.id.device,
        admin_access=True if assigned.request.admin_access else None,
        tolerations=tuple(assigned.request.tolerations) or None,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None if assigned.share is None else _share_id(claim_uid, index),
        consumed_capacity=capacity.written(assigned.share) if assigned.share else None,
        skip_node_operations=assigned.skip_node_operations,
    )


def _share_id(claim_uid: str, index: int) -> str:
    """The id that distinguishes the shares of a device. It is a uuid, and it is equal in every
    repetition of a run."""
    text = f"{claim_uid}/{index}"
    digits = f"{stable_hash(text):016x}{stable_hash('share/' + text):016x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


# ---- configuration -------------------------------------------------------------------------


def _configuration(
    claim: ResourceClaim, search: ClaimSearch, *, is_unnamed: bool
) -> tuple[DeviceAllocationConfiguration, ...]:
    """The configurations of an allocation: first those of the classes, then those of the claim
    itself.

    A configuration that applies to every request names no request. Before 1.37 (not
    ``is_unnamed``), it occurs once for each request and names that request.
    """
    chosen = [each[index] for each, index in zip(search.requests, search.chosen, strict=True)]
    if not is_unnamed:
        own = [c for c in _of_claim(claim, chosen) for _ in range(_meant_count(c, chosen))]
        return (*_of_classes(chosen), *own)
    configurations = [*_of_classes(chosen), *_of_claim(claim, chosen)]
    return tuple(_meant_for_all(each, chosen) for each in configurations)


def _of_classes(chosen: Sequence[Alternative]) -> list[DeviceAllocationConfiguration]:
    """The configurations of each class, once for all the requests that name the class."""
    names: dict[str, list[str]] = {}
    for each in chosen:
        names.setdefault(each.device_class.metadata.name, []).append(each.request.full_name)
    classes = {each.device_class.metadata.name: each.device_class for each in chosen}
    return [
        DeviceAllocationConfiguration(
            source=FROM_CLASS, requests=tuple(names[name]), opaque=config.opaque
        )
        for name, device_class in classes.items()
        for config in device_class.spec.config or ()
    ]


def _of_claim(
    claim: ResourceClaim, chosen: Sequence[Alternative]
) -> list[DeviceAllocationConfiguration]:
    """The configurations of the claim. One without requests applies to all requests, and one that
    names only alternatives that were not chosen applies to none."""
    mine = {name for each in chosen for name in _names(each)}
    return [
        DeviceAllocationConfiguration(
            source=FROM_CLAIM, requests=config.requests, opaque=config.opaque
        )
        for config in claim.spec.devices.config or ()
        if not config.requests or mine.intersection(config.requests)
    ]


def _meant_for_all(
    config: DeviceAllocationConfiguration, chosen: Sequence[Alternative]
) -> DeviceAllocationConfiguration:
    requests = config.requests or ()
    if not requests or all(_names(each).intersection(requests) for each in chosen):
        return DeviceAllocationConfiguration(source=config.source, opaque=config.opaque)
    return config


def _meant_count(config: DeviceAllocationConfiguration, chosen: Sequence[Alternative]) -> int:
    """The number of requests that a configuration names; 1 if it names none."""
    requests = config.requests or ()
    return sum(bool(_names(each).intersection(requests)) for each in chosen) if requests else 1


def _names(alternative: Alternative) -> set[str]:
    return {alternative.request.parent_or_own_name, alternative.request.full_name}


# ---- where it can be used ------------------------------------------------------------------


def _node_selector(assigned: Sequence[AssignedDevice], node_name: str) -> NodeSelector | None:
    """The selector of the nodes that can use the allocation. If a device is local to this node,
    that is this node alone; otherwise the nodes that all slices allow. None: all nodes."""
    fields: list[LabelSelectorRequirement] = []
    labels: list[LabelSelectorRequirement] = []
    for each in assigned:
        device, spec = each.candidate.device, each.candidate.slice.spec
        place = device if spec.per_device_node_selection else spec
        if place.node_name is not None or device.binds_to_node:
            name = LabelSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
        terms = (place.node_selector and place.node_selector.node_selector_terms) or ()
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(term.match_fields or (), fields)
            _add_new(term.match_expressions or (), labels)
    if not fields and not labels:
        return None
    term = NodeSelectorTerm(
        match_expressions=tuple(labels) or None, match_fields=tuple(fields) or None
    )
    return NodeSelector(node_selector_terms=(term,))


def _add_new(these: Requirements, requirements: list[LabelSelectorRequirement]) -> None:
    for each in these:
        if not any(_are_equal(each, other) for other in requirements):
            requirements.append(each)


def _are_equal(one: LabelSelectorRequirement, other: LabelSelectorRequirement) -> bool:
    return (
        one.key == other.key
        and one.operator == other.operator
        and set(one.values or ()) == set(other.values or ())
    )
