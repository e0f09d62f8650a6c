"""Devices that a pod's claims get, and claims that are deallocated for the pod.

What is recorded of an allocation is everything: devices, configuration, where it can be used. The
claim that the scheduler makes itself for extended resources is not recorded.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.framework.cycle_state import CycleState
from bayplan.plugins.dynamic_resources import DynamicResources
from bayplan.plugins.dynamic_resources.filtering import Attempt
from bayplan.profile.handle import Write
from bayplan.testing.clusters import SampleCluster
from bayplan.testing.state_checks import SamplePort
from tests.parity.question import PodQuestion

Json = dict[str, Any]


def compare_allocations(question: PodQuestion, state: CycleState) -> None:
    """Compare the allocation of each claim after Reserve."""
    if DynamicResources.name in question.missing.plugins:
        return
    expected: Json = question.expected.get("allocations") or {}
    question.sheet.compare_entries("allocations", expected, _allocations(state), ())


def _allocations(state: CycleState) -> Json:
    attempt = state.get(DynamicResources.name)
    if not isinstance(attempt, Attempt):
        return {}
    return {
        attempt.claims[index].key: msgspec.json.decode(msgspec.json.encode(allocation))
        for index, allocation in attempt.reserved.items()
        if not attempt.is_special(index)
    }


def claim_updates(cluster: SampleCluster) -> list[str]:
    """The claims that PostFilter updates, in the format of the record; writes the updates."""
    before = _claims(cluster)
    asyncio.run(_written([write for _, write in cluster.writes], cluster))
    cluster.writes.clear()
    return [
        f"{name} allocated={_lower(claim.allocation is not None)} "
        f"reserved={len(claim.status.reserved_for or ())}"
        for name, claim in _claims(cluster).items()
        if claim.status != before[name].status
    ]


async def _written(writes: list[Write], cluster: SampleCluster) -> None:
    for write in writes:
        await write(SamplePort(cluster.store))


def _claims(cluster: SampleCluster) -> Mapping[str, ResourceClaim]:
    return {claim.key: claim for claim in cluster.objects(RESOURCE_CLAIM).list()}


def _lower(value: bool) -> str:
    return str(value).lower()
