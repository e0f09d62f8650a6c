"""Which kinds the API server offers."""

import pytest

from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.api.objects import NODE, POD, REPLICA_SET
from tests.adapters.live.clients import talking_to
from tests.kit.api_server import FakeApiServer


async def test_a_kind_is_found_with_its_path_and_scope() -> None:
    async with talking_to(FakeApiServer()) as client:
        discovery = Discovery(client)
        await discovery.discover([POD, NODE])
        assert discovery.resource(POD) == Resource(POD, "", "pods", is_namespaced=True)
        assert discovery.resource(NODE) == Resource(NODE, "", "nodes", is_namespaced=False)


async def test_a_missing_group_is_no_error_and_is_requested_once() -> None:
    server = FakeApiServer()
    async with talking_to(server) as client:
        discovery = Discovery(client)
        for _ in range(2):
            await discovery.discover([REPLICA_SET, "apps/v1 Other"])
        assert discovery.resource(REPLICA_SET) is None
    assert server.lines == ["GET /apis/apps/v1"]


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (Resource(POD, "", "pods", is_namespaced=True), (), "/api/v1/pods"),
        (
            Resource(POD, "", "pods", is_namespaced=True),
            ("n s", "p/q", "status"),
            "/api/v1/namespaces/n%20s/pods/p%2Fq/status",
        ),
        (Resource(NODE, "", "nodes", is_namespaced=False), ("ignored", "n1"), "/api/v1/nodes/n1"),
        (
            Resource(REPLICA_SET, "apps", "replicasets", is_namespaced=True),
            ("x",),
            "/apis/apps/v1/namespaces/x/replicasets",
        ),
    ],
)
def test_paths_have_the_form_of_the_api(
    resource: Resource, arguments: tuple[str, ...], path: str
) -> None:
    assert resource.path(*arguments) == path
