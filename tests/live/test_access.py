"""The rights of the scheduler, and the kinds that the server offers."""

import logging

import pytest

from bayplan.adapters.live.access import denial, missing_rights
from bayplan.adapters.live.client import open_client
from bayplan.adapters.live.cluster import open_cluster
from bayplan.adapters.live.errors import AccessDeniedError
from bayplan.api.objects import NODE, POD
from tests.live.control_plane import ControlPlane
from tests.live.world import UNLIMITED, World, scenario, scheduler_rights

pytestmark = pytest.mark.timeout(400)


@scenario()
async def test_a_missing_right_is_one_error_that_names_verb_and_resource(
    world: World, control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    kubeconfig = control_plane.kubeconfig("stranger")
    async with open_client(kubeconfig, UNLIMITED) as client, open_cluster(client) as cluster:
        for _ in range(3):
            with pytest.raises(AccessDeniedError):
                await cluster.list(NODE)
        needed = await scheduler_rights(world.client)
        assert await missing_rights(client, needed) == needed
        assert 'create resource "pods/binding" in API group ""' in denial(needed)
    [message] = caplog.messages
    assert message == (
        'cannot list v1 Node: nodes is forbidden: User "stranger" cannot list resource "nodes" '
        'in API group "" at the cluster scope'
    )


@scenario()
async def test_a_group_that_the_server_lacks_is_not_offered(world: World) -> None:
    async with open_cluster(world.client) as cluster:
        kinds = [POD, NODE, "resource.k8s.io/v1 ResourceClaim", "example.com/v1 Wish"]
        await cluster.discover(kinds)
        assert [cluster.offers(kind) for kind in kinds] == [True, True, True, False]
