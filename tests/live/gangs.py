"""Pod groups of one API version in a world, and a scheduler for them.

The scheduler is a separate process, so that it can be killed, and logs in as a ServiceAccount with
the rights that `bayplan config rbac` prints.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from bayplan.api.composite_pod_groups import COMPOSITE_POD_GROUP
from bayplan.api.pod_groups import COSCHEDULING_LABEL, MING_LABEL
from bayplan.ports import ApiError
from tests.cli.command_line import answer
from tests.deploy.rendering import DEPLOY
from tests.live.conftest import UPSTREAM_GROUPS
from tests.live.mirror import Object
from tests.live.processes import (
    SchedulerProcess,
    apply,
    config_file,
    kubeconfig_with,
    replicas,
    service_account_token,
)
from tests.live.world import World, small_pod

X_K8S = "scheduling.x-k8s.io/v1alpha1"
MING = "scheduling.ming.io/v1"
LABELS = {X_K8S: COSCHEDULING_LABEL, MING: MING_LABEL}
VERSIONS = (X_K8S, MING, UPSTREAM_GROUPS)

STATUS_SECONDS = 60.0
POLL_SECONDS = 0.1
FAST = {"qps": 5000, "burst": 5000}
NO_GATES: Mapping[str, bool] = {}
#: A group below another one has to name a template, which need not exist.
_WORKLOAD = {"workloadName": "w", "templateName": "t"}


class Gangs:
    """A world with groups of one API version, and a scheduler for them."""

    def __init__(
        self, world: World, version: str, folder: Path, gates: Mapping[str, bool] = NO_GATES
    ) -> None:
        self.world, self.version, self._folder = world, version, folder
        self._gates = dict(gates)
        #: The scheduler's name, which no other test uses.
        self.name = world.namespace
        self._kubeconfig = ""

    async def begin(self, *, forbidden: str = "") -> None:
        """Create kinds, ServiceAccount and role. ``forbidden``: a resource that the role omits."""
        await apply(self.world.client, _definitions())
        path = f"/api/v1/namespaces/{self.name}/serviceaccounts"
        await self.world.client.request("POST", path, {"metadata": {"name": self.name}})
        await apply(self.world.client, await self._roles(forbidden))
        token = await service_account_token(self.world.client, self.name, self.name)
        model = self.world.control_plane.kubeconfig("admin")
        self._kubeconfig = kubeconfig_with(token, model, f"kubeconfig-{self.name}")
        await self._until_offered()

    async def offer(self) -> None:
        """Apply the custom resource definitions (again)."""
        await apply(self.world.client, _definitions())
        await self._until_offered()

    async def withdraw(self) -> None:
        """Delete the custom resource definition of this version's kind."""
        group = self.version.partition("/")[0]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.{group}"
        await self.world.client.request("DELETE", path)
        async with asyncio.timeout(STATUS_SECONDS):
            while await self._is_offered(self.version):
                await asyncio.sleep(POLL_SECONDS)

    async def _roles(self, forbidden: str) -> list[Object]:
        """The roles that `bayplan config rbac` prints."""
        config = config_file(self._folder / "config.yaml", self._config({}))
        names = ("--name", "--namespace", "--service-account")
        options = [part for name in names for part in (name, self.name)]
        printed = await asyncio.to_thread(answer, "config", "rbac", config, *options)
        role, binding, *_ = yaml.safe_load_all(printed)
        role["rules"] = [rule for rule in role["rules"] if forbidden not in rule["resources"]]
        return [role, binding]

    async def _until_offered(self) -> None:
        """Wait until the API server serves the new kinds."""
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
            "featureGates": self._gates,
        }

    @asynccontextmanager
    async def scheduler(self, **connection: int) -> AsyncGenerator[SchedulerProcess]:
        """A running scheduler, which ends with the block."""
        number = sum(1 for _ in self._folder.iterdir())
        file = self._folder / f"config-{number}.yaml"
        config = config_file(file, self._config(connection or FAST))
        arguments = ["run", f"--kubeconfig={self._kubeconfig}", f"--config={config}"]
        log = self._folder / f"log-{number}"
        one = SchedulerProcess(self.name, [*arguments, "--secure-port=0", "--v=4"], log)
        with replicas(one):
            yield one
            assert "Traceback" not in one.output, one.output[-3000:]

    # ---- groups ---------------------------------------------------------------------------

    async def add_group(
        self, name: str, minimum: int, priority_class: str = "", parent: str = ""
    ) -> None:
        """``priority_class``: that of the members, which a group of Kubernetes' kind names, too.
        ``parent``: the CompositePodGroup above; "" for none."""
        spec: Object = {"minMember": minimum}
        if self.version not in LABELS:
            spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
            if priority_class:
                spec["priorityClassName"] = priority_class
            if parent:
                spec |= {"parentCompositePodGroupName": parent, "workloadRef": _WORKLOAD}
        content = {"metadata": {"name": name}, "spec": spec}
        kind = {"apiVersion": self.version, "kind": "PodGroup"}
        await self.world.client.request("POST", self._path(), {**kind, **content})

    async def add_tree(self, name: str, minimum: int, parent: str = "", **spec: Any) -> None:
        """Create a CompositePodGroup. ``minimum``: of the groups below."""
        policy = {"gang": {"minGroupCount": minimum}}
        spec = {"schedulingPolicy": policy, "workloadRef": _WORKLOAD, **spec}
        if parent:
            spec["parentCompositePodGroupName"] = parent
        api_version, _, kind = COMPOSITE_POD_GROUP.partition(" ")
        content = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
        path = f"/apis/{api_version}/namespaces/{self.world.namespace}/compositepodgroups"
        await self.world.client.request("POST", path, {**content, "spec": spec})

    async def add_members(self, group: str, *names: str, cpu: int = 1, **spec: Any) -> None:
        await self.world.add_pods(*(self._member(group, name, cpu, spec) for name in names))

    def _member(self, group: str, name: str, cpu: int, spec: Object) -> Object:
        options: dict[str, Any] = {"cpu": cpu, "scheduler": self.name}
        if self.version in LABELS:
            return small_pod(name, labels={LABELS[self.version]: group}, spec=spec, **options)
        spec = {"schedulingGroup": {"podGroupName": group}, **spec}
        return small_pod(name, spec=spec, **options)

    async def until_status(self, name: str, is_so: Callable[[Object], bool]) -> None:
        """Wait until the group's status in the API fulfils the condition."""
        status: Object = {}
        try:
            async with asyncio.timeout(STATUS_SECONDS):
                while not is_so(status):
                    await asyncio.sleep(POLL_SECONDS)
                    group = await self.world.client.get(self._path(name))
                    status = group.get("status", {})
        except TimeoutError:
            raise AssertionError(f"group {name} has another status: {status}") from None

    def _path(self, name: str = "") -> str:
        path = f"/apis/{self.version}/namespaces/{self.world.namespace}/podgroups"
        return f"{path}/{name}" if name else path

    def is_running(self, count: int) -> Callable[[Object], bool]:
        """Whether the status is that of a group with `count` running members."""
        if self.version not in LABELS:
            return lambda status: _condition(status).get("status") == "True"
        expected = {"phase": "Running", "scheduled": count, "running": count}
        return lambda status: expected.items() <= status.items() and "scheduleStartTime" in status

    def is_assembling(self, status: Object) -> bool:
        """A group of Kubernetes' kind gets a condition only after an attempt."""
        if self.version not in LABELS:
            return not status.get("conditions")
        return status.get("phase") == "Pending"

    def is_pending(self, why: str) -> Callable[[Object], bool]:
        if self.version not in LABELS:
            return lambda status: (
                _condition(status).get("status") == "False"
                and why in _condition(status).get("message", "")
            )
        return lambda status: status.get("phase") == "Pending" and not status.get("scheduled")


def _definitions() -> list[Object]:
    crds = sorted((DEPLOY / "crds").glob("*.yaml"))
    return [yaml.safe_load(crd.read_text()) for crd in crds]


def _condition(status: Object) -> Object:
    name = "PodGroupInitiallyScheduled"
    return next((c for c in status.get("conditions", ()) if c["type"] == name), {})
