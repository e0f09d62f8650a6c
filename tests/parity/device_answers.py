"""Devices that a pod's claims get, and claims that are deallocated for the pod.

What is recorded of an allocation is everything: devices, configuration, where it can be used. The
claim that the scheduler makes itself for extended resources is not recorded. After each pod the
allocations of all pods so far are recorded, if they are not written yet. kube-scheduler draws the
id of a share at random, so the ids are not compared. Amounts are compared by value.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.api.quantity import nanos
from bayplan.framework.handle import Write
from bayplan.plugins.dynamic_resources.extended import IN_MEMORY_NAME
from bayplan.testing.clusters import SampleCluster
from bayplan.testing.state_checks import SamplePort
from tests.parity.question import PodQuestion

Json = dict[str, Any]


def compare_allocations(question: PodQuestion, cluster: SampleCluster) -> None:
    """Compare the allocation of each claim after Reserve."""
    expected: Json = question.expected.get("allocations") or {}
    actual = {
        claim.key: msgspec.json.decode(msgspec.json.encode(claim.allocation))
        for claim in cluster.cluster.devices.resource_claims.in_flight.values()
        if claim.metadata.name != IN_MEMORY_NAME
    }
    question.sheet.compare_entries("allocations", _comparable(expected), _comparable(actual), ())


def _comparable(allocations: Json) -> Json:
    return {
        claim: {**allocation, "devices": _comparable_devices(allocation["devices"])}
        for claim, allocation in allocations.items()
    }


def _comparable_devices(devices: Json) -> Json:
    """The devices of an allocation without the ids of shares, and with plain amounts."""
    results = [
        {name: value for name, value in result.items() if name != "shareID"}
        for result in devices.get("results") or ()
    ]
    for result in results:
        if "consumedCapacity" in result:
            consumed = result["consumedCapacity"].items()
            result["consumedCapacity"] = {name: nanos(amount) for name, amount in consumed}
    return {**devices, "results": results}


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
