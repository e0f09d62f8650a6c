"""Claims of devices beside kube-controller-manager, with the gates of groups: which claims it makes
for pods and groups, and when it releases them, is what a simulation does with the same objects.

Both take the same steps, and after each step the objects are compared: names, labels, annotations,
finalizers, owners, contents, devices and users of claims, and what pods and groups report.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bayplan.adapters.live.client import MERGE_PATCH
from bayplan.adapters.live.discovery import Discovery
from bayplan.api.device_objects import (
    DEVICE_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)
from bayplan.api.objects import POD
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.objects.keys import object_key
from bayplan.ports import NotFoundError
from tests.kit.group_claims import GATES
from tests.live.conftest import UPSTREAM_GROUPS, running_controllers, started
from tests.live.control_plane import ControlPlane
from tests.live.gangs import Gangs
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.world import World, scenario, small_pod
from tests.scenarios.world import PROFILE
from tests.scenarios.world import World as SimulatedWorld
from tests.scenarios.world import play as simulate

pytestmark = pytest.mark.timeout(400)

GROUP = f"{UPSTREAM_GROUPS} PodGroup"
CONTROLLERS = (
    "resourceclaim-controller",
    "podgroup-protection-controller",
    "garbage-collector-controller",
)
AGREE_SECONDS = 60.0
POLL_SECONDS = 0.2

#: The claim that members share, and a claim that each of them has for itself.
SHARED = {"name": "gpu", "resourceClaimTemplateName": "one"}
OWN = {"name": "own", "resourceClaimTemplateName": "one"}
BY_NAME = {"name": "by-name", "resourceClaimName": "external"}
IN_GROUP = {"schedulingGroup": {"podGroupName": "g"}}


class Step(NamedTuple):
    """What happens: one of the words, and what it is about."""

    verb: str
    kind: str
    content: Object


def create(kind: str, name: str, spec: Object, **meta: Any) -> Step:
    return Step("create", kind, {"metadata": {"name": name, **meta}, "spec": spec})


def devices_of(node: str, *names: str) -> Step:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": name} for name in names]
    spec = {"driver": "d.test", "nodeName": node, "pool": pool, "devices": devices}
    return create(RESOURCE_SLICE, node, spec)


def add_pod(name: str, *claims: Object, **spec: Any) -> Step:
    fields = {"terminationGracePeriodSeconds": 0, "resourceClaims": list(claims), **spec}
    return Step("create", POD, small_pod(name, spec=fields))


def delete(kind: str, name: str) -> Step:
    return Step("delete", kind, {"metadata": {"name": name}})


def lose(owner: str) -> Step:
    """Delete the claims that were made for a pod or a group, by accident."""
    return Step("lose", RESOURCE_CLAIM, {"metadata": {"name": owner}})


def end(name: str) -> Step:
    return Step("end", POD, {"metadata": {"name": name}})


_REQUESTS = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
_TEMPLATE_META = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
NODES = ("n1", "n2")
STEPS: dict[str, list[Step]] = {
    "the group gets its claim": [
        create(DEVICE_CLASS, "gpu", {}),
        devices_of("n1", "x", "y", "z"),
        devices_of("n2", "x"),
        create(
            RESOURCE_CLAIM_TEMPLATE,
            "one",
            {"metadata": _TEMPLATE_META, "spec": {"devices": _REQUESTS}},
        ),
        create(
            GROUP,
            "g",
            {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [SHARED]},
        ),
    ],
    "the members share it": [add_pod(name, SHARED, OWN, **IN_GROUP) for name in ("a", "b")],
    "a member comes with its node": [add_pod("c", SHARED, nodeName="n1", **IN_GROUP)],
    "a pod uses a claim by its name": [
        create(RESOURCE_CLAIM, "external", {"devices": _REQUESTS}),
        add_pod("d", BY_NAME),
    ],
    "another one comes with its node": [add_pod("e", BY_NAME, nodeName="n2")],
    "a pod that fits nowhere gets its claim": [add_pod("f", OWN, nodeSelector={"no": "node"})],
    "the claim of that pod is deleted": [lose("f")],
    "a member ends": [end("a")],
    "the group is deleted while members run": [delete(GROUP, "g")],
    "its last members are gone": [delete(POD, "b"), end("c")],
    "the named claim has no users": [delete(POD, "d"), end("e")],
    "what is left goes": [delete(POD, name) for name in ("a", "c", "e", "f")],
}


# ---- what is compared -----------------------------------------------------------------------


def view(pods: Iterable[Object], groups: Iterable[Object], claims: Iterable[Object]) -> Object:
    """What claims, pods and groups say of one another. A claim with a generated name is called
    after its owner and its entry."""
    pods, groups, claims = list(pods), list(groups), list(claims)
    names = {one["metadata"]["name"]: _called(one) for one in claims}
    owners = {one["metadata"]["uid"]: one["metadata"]["name"] for one in (*pods, *groups)}
    return {
        "claims": {_called(one): _claim_view(one, owners) for one in claims},
        "pods": {one["metadata"]["name"]: _user_view(one, names) for one in pods},
        "groups": {one["metadata"]["name"]: _user_view(one, names) for one in groups},
    }


def _called(claim: Object) -> str:
    meta = claim["metadata"]
    for owner in meta.get("ownerReferences", ()):
        entry = meta["annotations"]["resource.kubernetes.io/pod-claim-name"]
        return f"{owner['kind']} {owner['name']}: {entry}"
    return meta["name"]


def _claim_view(claim: Object, owners: dict[str, str]) -> Object:
    meta, status = claim["metadata"], claim.get("status", {})
    prefix = meta.get("generateName", "")
    allocation = status.get("allocation") or {}
    return {
        "prefix": prefix,
        "suffix length": len(meta["name"].removeprefix(prefix)) if prefix else None,
        "labels": meta.get("labels"),
        "annotations": meta.get("annotations"),
        "finalizers": meta.get("finalizers"),
        "owners": [
            {**owner, "uid": owners.get(owner["uid"], "gone")}
            for owner in meta.get("ownerReferences", ())
        ],
        "is leaving": "deletionTimestamp" in meta,
        "spec": claim["spec"],
        "devices": [
            (one["request"], one["driver"], one["pool"])
            for one in (allocation.get("devices") or {}).get("results", ())
        ],
        "selector": allocation.get("nodeSelector"),
        "users": sorted(
            (user.get("apiGroup", ""), user["resource"], user["name"], owners.get(user["uid"], ""))
            for user in status.get("reservedFor") or ()
        ),
    }


def _user_view(user: Object, names: dict[str, str]) -> Object:
    made = user.get("status", {}).get("resourceClaimStatuses") or ()
    return {
        "node": user["spec"].get("nodeName"),
        "finalizers": user["metadata"].get("finalizers"),
        "is leaving": "deletionTimestamp" in user["metadata"],
        # The claim of a pod that has ended is gone.
        "claims": {one["name"]: names.get(one["resourceClaimName"], "gone") for one in made},
    }


# ---- the simulation -------------------------------------------------------------------------


def simulated_views() -> dict[str, Object]:
    """The objects after each step, in a simulation."""
    views: dict[str, Object] = {}

    async def scene(world: SimulatedWorld) -> None:
        for name in NODES:
            world.cluster.create(ready_node(name))
        for about, steps in STEPS.items():
            for step in steps:
                _simulate(world, step)
            await world.until(world.now + 5)
            of_kind = [[o.content for o in world.cluster.objects(k)] for k in _COMPARED]
            views[about] = view(*of_kind)

    version = KubernetesVersion.V1_37
    simulate(scene, profile={"plugins": {}}, gates=GATES, kubernetes=version)
    return views


_COMPARED = (POD, GROUP, RESOURCE_CLAIM)


def _simulate(world: SimulatedWorld, step: Step) -> None:
    key = object_key(step.kind, "default", step.content["metadata"]["name"])
    if step.verb == "create":
        world.cluster.create(_whole(step, "default", PROFILE))
    elif step.verb == "end":
        world.cluster.end_pod(key)
    elif step.verb == "lose":
        for stored in world.cluster.objects(RESOURCE_CLAIM):
            if _is_made_for(stored.content, key.name):
                world.cluster.delete(stored.key)
    else:
        world.cluster.delete(key)


def _is_made_for(claim: Object, owner_name: str) -> bool:
    owners = claim["metadata"].get("ownerReferences", ())
    return any(owner["name"] == owner_name for owner in owners)


def _whole(step: Step, namespace: str, scheduler: str) -> Object:
    api_version, _, kind = step.kind.partition(" ")
    content = json.loads(json.dumps(step.content))
    if step.kind not in (DEVICE_CLASS, RESOURCE_SLICE):
        content["metadata"]["namespace"] = namespace
    if step.kind == POD:
        content["spec"]["schedulerName"] = scheduler
    return {**content, "apiVersion": api_version, "kind": kind}


# ---- the cluster ----------------------------------------------------------------------------


class _Cluster:
    """The API of a real cluster, and the views of its objects."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._discovery = Discovery(world.client)

    async def _path(self, kind: str, name: str = "") -> str:
        await self._discovery.discover((kind,))
        resource = self._discovery.resource(kind)
        assert resource is not None, kind
        return resource.path(self._world.namespace, name)

    async def perform(self, step: Step, scheduler: str) -> None:
        client, name = self._world.client, step.content["metadata"]["name"]
        if step.verb == "create":
            content = _whole(step, self._world.namespace, scheduler)
            await client.request("POST", await self._path(step.kind), content)
        elif step.verb == "end":
            status = {"status": {"phase": "Succeeded"}}
            path = f"{await self._path(step.kind, name)}/status"
            await client.request("PATCH", path, status, media_type=MERGE_PATCH)
        elif step.verb == "lose":
            claims = (await client.get(await self._path(RESOURCE_CLAIM)))["items"]
            for claim in claims:
                if _is_made_for(claim, name):
                    await self._lose(await self._path(RESOURCE_CLAIM, claim["metadata"]["name"]))
        else:
            await client.request("DELETE", await self._path(step.kind, name))

    async def _lose(self, path: str) -> None:
        await self._world.client.request("DELETE", path)
        with suppress(NotFoundError):
            while await self._world.client.get(path):
                await asyncio.sleep(POLL_SECONDS)

    async def view(self) -> Object:
        paths = [await self._path(kind) for kind in _COMPARED]
        lists = [(await self._world.client.get(path))["items"] for path in paths]
        return view(*lists)

    async def until_view(self, expected: Object, about: str) -> None:
        """Wait until the objects are as expected, and stay so."""
        actual: Object = {}
        try:
            async with asyncio.timeout(AGREE_SECONDS):
                agreed_count = 0
                while agreed_count < 3:
                    await asyncio.sleep(POLL_SECONDS)
                    actual = await self.view()
                    agreed_count = agreed_count + 1 if actual == expected else 0
        except TimeoutError:
            assert actual == expected, about
            raise


@pytest.fixture(scope="module")
def claim_plane() -> Iterator[ControlPlane]:
    """A control plane with groups and their claims."""
    yield from started(f"--feature-gates={_FLAG}", f"--runtime-config={UPSTREAM_GROUPS}=true")


_FLAG = ",".join(f"{name}={str(value).lower()}" for name, value in GATES.items())


@pytest.fixture
def claim_controllers(claim_plane: ControlPlane) -> Iterator[None]:
    yield from running_controllers(claim_plane, CONTROLLERS, f"--feature-gates={_FLAG}")


@pytest.mark.usefixtures("claim_controllers")
@scenario("claim_plane")
async def test_claims_of_groups_and_pods_are_those_of_a_simulation(
    world: World, tmp_path: Path
) -> None:
    expected = await asyncio.to_thread(simulated_views)

    gangs, cluster = Gangs(world, UPSTREAM_GROUPS, tmp_path, GATES), _Cluster(world)
    await gangs.begin()
    await world.add_nodes(*map(ready_node, NODES))
    async with gangs.scheduler() as one:
        for about, steps in STEPS.items():
            for step in steps:
                await cluster.perform(step, gangs.name)
            await cluster.until_view(expected[about], about)
        assert "Rights are missing" not in one.output
        assert "forbidden" not in one.output
    last = expected["what is left goes"]
    assert (list(last["claims"]), last["pods"], last["groups"]) == (["external"], {}, {})
