"""The port of a sample cluster writes into it."""

import asyncio
from typing import cast

from bayplan.api.device_objects import RESOURCE_CLAIM, ResourceClaim
from bayplan.testing import SampleCluster, pod
from bayplan.testing.sample_port import SamplePort
from tests.plugins.devices_kit import claim, put


def test_objects_are_read_patched_created_and_deleted() -> None:
    cluster = SampleCluster()
    put(cluster.store, claim("c"))
    port = SamplePort(cluster.store)

    async def story() -> None:
        patch = {"metadata": {"finalizers": ["f"]}}
        patched = await port.patch(RESOURCE_CLAIM, "default", "c", patch)
        assert cast(ResourceClaim, patched).metadata.finalizers == ("f",)
        assert await port.read(RESOURCE_CLAIM, "default", "c") == patched
        content = {"metadata": {"namespace": "default", "generateName": "d-"}}
        created = await port.create_object(RESOURCE_CLAIM, content)
        assert created.metadata.name
        await port.delete_object(RESOURCE_CLAIM, "default", "c", "uid-c")

    asyncio.run(story())
    assert [found.metadata.name for found in cluster.objects(RESOURCE_CLAIM).list()] == ["created"]


def test_a_bound_pod_is_read_back_where_it_is() -> None:
    port = SamplePort(SampleCluster().store)

    async def story() -> str | None:
        await port.bind(pod("p"), "n1")
        return (await port.get_pod("default", "p")).spec.node_name

    assert asyncio.run(story()) == "n1"
