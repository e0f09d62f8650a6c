"""A scheduler with a ServiceAccount that has only the computed rights."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cli.command_line import answer
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


class Account:
    """A scheduler that logs in as a ServiceAccount with the rights that `config rbac` prints."""

    def __init__(self, world: World, folder: Path, **config: Any) -> None:
        """``config``: further fields of the configuration."""
        self.world, self.name, self._folder = world, world.namespace, folder
        self._fields = config
        self._kubeconfig = ""

    async def begin(self, *, forbidden: str = "") -> None:
        """Create the ServiceAccount and its role. ``forbidden``: a resource that the role omits."""
        client = self.world.client
        path = f"/api/v1/namespaces/{self.name}/serviceaccounts"
        await client.request("POST", path, {"metadata": {"name": self.name}})
        names = ("--name", "--namespace", "--service-account")
        options = [part for name in names for part in (name, self.name)]
        printed = await asyncio.to_thread(answer, "config", "rbac", self._config(), *options)
        role, binding, *_ = yaml.safe_load_all(printed)
        role["rules"] = [rule for rule in role["rules"] if forbidden not in rule["resources"]]
        await apply(client, [role, binding])
        token = await service_account_token(client, self.name, self.name)
        model = self.world.control_plane.kubeconfig("admin")
        self._kubeconfig = kubeconfig_with(token, model, f"kubeconfig-{self.name}")

    def _config(self) -> str:
        content: Object = {
            "profiles": [{"schedulerName": self.name}],
            "leaderElection": {"leaderElect": False},
            **self._fields,
        }
        return config_file(self._folder / "config.yaml", content)

    @asynccontextmanager
    async def scheduler(self) -> AsyncGenerator[SchedulerProcess]:
        """A running scheduler, which ends with the block."""
        arguments = ["run", f"--kubeconfig={self._kubeconfig}", f"--config={self._config()}"]
        log = self._folder / "log"
        one = SchedulerProcess(self.name, [*arguments, "--secure-port=0", "--v=4"], log)
        with replicas(one):
            yield one
            assert "Traceback" not in one.output, one.output[-3000:]

    def pod(self, name: str, **spec: Any) -> Object:
        return small_pod(name, scheduler=self.name, spec=spec)
