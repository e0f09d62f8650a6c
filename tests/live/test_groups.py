"""Pod groups of each kind against a real API server, under no more rights than are computed.

The scheduler is a process of its own, so that it can be killed, and logs in as a ServiceAccount
that may do what `bayplan config rbac` prints.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.api.pod_groups import COSCHEDULING_LABEL, MING_LABEL
from bayplan.ports import ApiError
from tests.cli.command_line import answer
from tests.deploy.rendering import DEPLOY
from tests.live.conftest import UPSTREAM_GROUPS
from tests.live.control_plane import ControlPlane
from tests.live.kubelet import node
from tests.live.mirror import Object
from tests.live.processes import (
    SchedulerProcess,
    apply,
    config_file,
    kubeconfig_with,
    replicas,
    service_account_token,
)
from tests.live.world import World, play, pod

pytestmark = pytest.mark.timeout(400)

X_K8S = "scheduling.x-k8s.io/v1alpha1"
MING = "scheduling.ming.io/v1"
LABELS = {X_K8S: COSCHEDULING_LABEL, MING: MING_LABEL}
VERSIONS = (X_K8S, MING, UPSTREAM_GROUPS)
every_version = pytest.mark.parametrize("version", VERSIONS)

STATUS_SECONDS = 60.0
POLL_SECONDS = 0.1
FAST = {"qps": 5000, "burst": 5000}


class Gangs:
    """A world with groups of one API version, and a scheduler for them."""

    def __init__(self, world: World, version: str, folder: Path) -> None:
        self.world, self.version, self._folder = world, version, folder
        #: Of the scheduler: this test's own.
        self.name = world.namespace
        self._kubeconfig = ""

    async def begin(self, *, forbidden: str = "") -> None:
        """Kinds, and a ServiceAccount with its role. ``forbidden``: a resource it leaves out."""
        crds = sorted((DEPLOY / "crds").glob("*.yaml"))
        await apply(self.world.client, [yaml.safe_load(crd.read_text()) for crd in crds])
        path = f"/api/v1/namespaces/{self.name}/serviceaccounts"
        await self.world.client.request("POST", path, {"metadata": {"name": self.name}})
        await apply(self.world.client, await self._roles(forbidden))
        token = await service_account_token(self.world.client, self.name, self.name)
        model = self.world.control_plane.kubeconfig("admin")
        self._kubeconfig = kubeconfig_with(token, model, f"kubeconfig-{self.name}")
        await self._until_offered()

    async def _roles(self, forbidden: str) -> list[Object]:
        """As they are printed for people."""
        config = config_file(self._folder / "config.yaml", self._config({}))
        names = ("--name", "--namespace", "--service-account")
        options = [part for name in names for part in (name, self.name)]
        printed = await asyncio.to_thread(answer, "config", "rbac", config, *options)
        role, binding, *_ = yaml.safe_load_all(printed)
        role["rules"] = [rule for rule in role["rules"] if forbidden not in rule["resources"]]
        return [role, binding]

    async def _until_offered(self) -> None:
        """A new kind takes a moment to be served."""
        async with asyncio.timeout(STATUS_SECONDS):
            for version in VERSIONS:
                while not await self._is_offered(version):
                    await asyncio.sleep(POLL_SECONDS)

    async def _is_offered(self, version: str) -> bool:
        with suppress(ApiError):
            await self.world.client.get(f"/apis/{version}/podgroups")
            return True
        return False

    def _config(self, connection: dict[str, int]) -> dict[str, Any]:
        return {
            "profiles": [{"schedulerName": self.name}],
            "leaderElection": {"leaderElect": False},
            "clientConnection": connection,
        }

    @asynccontextmanager
    async def scheduler(self, **connection: int) -> AsyncGenerator[SchedulerProcess]:
        """One at work, until the block ends."""
        number = sum(1 for _ in self._folder.iterdir())
        file = self._folder / f"config-{number}.yaml"
        config = config_file(file, self._config(connection or FAST))
        arguments = ["run", f"--kubeconfig={self._kubeconfig}", f"--config={config}"]
        log = self._folder / f"log-{number}"
        one = SchedulerProcess(self.name, [*arguments, "--secure-port=0", "--v=4"], log)
        with replicas(one):
            yield one
            assert "Traceback" not in one.said, one.said[-3000:]

    # ---- groups ---------------------------------------------------------------------------

    async def add_group(self, name: str, minimum: int) -> None:
        spec: Object = {"minMember": minimum}
        if self.version not in LABELS:
            spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        content = {"metadata": {"name": name}, "spec": spec}
        kind = {"apiVersion": self.version, "kind": "PodGroup"}
        await self.world.client.request("POST", self._path(), {**kind, **content})

    async def add_members(self, group: str, *names: str, cpu: int = 1) -> None:
        await self.world.add_pods(*(self._member(group, name, cpu) for name in names))

    def _member(self, group: str, name: str, cpu: int) -> Object:
        options: dict[str, Any] = {"cpu": cpu, "scheduler": self.name}
        if self.version in LABELS:
            return pod(name, labels={LABELS[self.version]: group}, **options)
        return pod(name, spec={"schedulingGroup": {"podGroupName": group}}, **options)

    async def until_status(self, name: str, is_so: Callable[[Object], bool]) -> None:
        """Until the group's status, as the API has it, is as wanted."""
        status: Object = {}
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                while not is_so(status):
                    await asyncio.sleep(POLL_SECONDS)
                    found = await self.world.client.get(self._path(name))
                    status = found.get("status", {})
        except TimeoutError:
            raise AssertionError(f"group {name} stands otherwise: {status}") from None

    def _path(self, name: str = "") -> str:
        path = f"/apis/{self.version}/namespaces/{self.world.namespace}/podgroups"
        return f"{path}/{name}" if name else path

    def is_running(self, count: int) -> Callable[[Object], bool]:
        """How a group stands of which so many run."""
        if self.version not in LABELS:
            return lambda status: _condition(status).get("status") == "True"
        wanted = {"phase": "Running", "scheduled": count, "running": count}
        return lambda status: wanted.items() <= status.items() and "scheduleStartTime" in status

    def is_pending(self, why: str) -> Callable[[Object], bool]:
        if self.version not in LABELS:
            return lambda status: (
                _condition(status).get("status") == "False"
                and why in _condition(status).get("message", "")
            )
        return lambda status: status.get("phase") == "Pending" and not status.get("scheduled")


def _condition(status: Object) -> Object:
    name = "PodGroupInitiallyScheduled"
    return next((c for c in status.get("conditions", ()) if c["type"] == name), {})


# ---- tests ---------------------------------------------------------------------------------


@every_version
def test_a_group_is_bound_as_one_or_not_at_all(
    group_plane: ControlPlane, tmp_path: Path, version: str
) -> None:
    async def story(world: World) -> None:
        gangs = Gangs(world, version, tmp_path)
        await gangs.begin()
        await world.add_nodes(node("n1", cpu=2), node("n2", cpu=1))
        async with gangs.scheduler() as one:
            await gangs.add_group("late", 3)
            await gangs.add_members("late", "a", "b")
            await world.until_unschedulable("a", "b")
            text = f"group {world.namespace}/late: 2 of 3 members are here"
            await world.until(lambda: text in world.condition("a")["message"], text)
            await gangs.until_status("late", gangs.is_pending(text))
            await gangs.add_members("late", "c")
            await world.until_bound("a", "b", "c")
            await gangs.until_status("late", gangs.is_running(3))
            # The next one does not fit, but for one member.
            await world.add_nodes(node("n3", cpu=1))
            await gangs.add_group("big", 3)
            await gangs.add_members("big", "x", "y", "z")
            text = f"group {world.namespace}/big: 1 of 3 members fit; the 2nd, "
            await world.until(lambda: text in world.condition("x").get("message", ""), text)
            await gangs.until_status("big", gangs.is_pending(text))
            # Nothing is held: who comes later takes the room.
            await world.add_pods(pod("later", cpu=1, scheduler=gangs.name))
            await world.until_bound("later")
            assert set(world.bound()) == {"a", "b", "c", "later"}
            await world.add_nodes(node("n4", cpu=3))
            await world.until_bound("x", "y", "z")
            await gangs.until_status("big", gangs.is_running(3))
            assert "Rights are missing" not in one.said
            assert "Pod groups are not" not in one.said
            assert "forbidden" not in one.said

    play(group_plane, story)


@every_version
def test_a_scheduler_killed_between_the_bindings_of_a_gang_is_followed(
    group_plane: ControlPlane, tmp_path: Path, version: str
) -> None:
    names = [f"p{number}" for number in range(30)]

    async def story(world: World) -> None:
        gangs = Gangs(world, version, tmp_path)
        await gangs.begin()
        await world.add_nodes(*(node(f"n{number}", cpu=10) for number in range(3)))
        await gangs.add_group("gang", len(names))
        await gangs.add_members("gang", *names)
        # So slow that some of the bindings are seen before others are sent.
        async with gangs.scheduler(qps=4, burst=40) as one:
            await world.until(lambda: bool(world.bound()), "the first are bound")
            one.end(signal.SIGKILL)
        assert 0 < len(world.bound()) < len(names)
        async with gangs.scheduler():
            await world.until_bound(*names)
            await gangs.until_status("gang", gangs.is_running(len(names)))
        # That none was bound twice is checked at every test's end.
        assert set(world.bound()) == set(names)

    play(group_plane, story)


def test_what_its_role_lacks_for_groups_is_told_and_pods_are_placed(
    group_plane: ControlPlane, tmp_path: Path
) -> None:
    async def story(world: World) -> None:
        gangs = Gangs(world, X_K8S, tmp_path)
        await gangs.begin(forbidden="podgroups/status")
        await world.add_nodes(node("n1", cpu=2))
        async with gangs.scheduler() as one:
            await gangs.add_group("g", 2)
            await gangs.add_members("g", "a", "b")
            await world.until_bound("a", "b")
            wanted = 'cannot patch resource \\"podgroups/status\\" in API group \\"{}\\"'
            for group in ("scheduling.x-k8s.io", "scheduling.ming.io", "scheduling.k8s.io"):
                await asyncio.to_thread(one.wait_until_said, wanted.format(group))

    play(group_plane, story)
