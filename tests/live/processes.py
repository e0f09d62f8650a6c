"""Schedulers as separate processes: `bayplan run`, as a container starts it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.discovery import Discovery
from tests.live.mirror import Object

_SCRIPT = "from bayplan.cli import main; main()"
READY_SECONDS = 120.0
POLL_SECONDS = 0.05
APPLY = "application/apply-patch+yaml"


class SchedulerProcess:
    """A process of one replica, and its output."""

    def __init__(
        self, name: str, arguments: Sequence[str], log: Path, script: str = _SCRIPT, **env: str
    ) -> None:
        """``script``: Python code in place of `bayplan`."""
        self.name = name
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", script, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **env},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until_printed(self, *texts: str) -> None:
        """Wait for one of these texts. Raises AssertionError with the log if the process ends."""
        self.wait_until(lambda: any(text in self.output for text in texts), f"printed {texts}")

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Raises AssertionError with the output if the process ends first, or after
        `READY_SECONDS`."""
        deadline = time.monotonic() + READY_SECONDS
        while not is_so():
            ended = self._process.poll()
            assert ended is None, f"{self.name} ended with {ended}:\n{self.output[-3000:]}"
            assert time.monotonic() < deadline, f"{self.name} never {what}:\n{self.output}"
            time.sleep(POLL_SECONDS)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    @property
    def exit_code_now(self) -> int | None:
        """None while the process runs."""
        return self._process.poll()

    def exit_code(self) -> int:
        """Wait until the process ends by itself. Returns the exit code."""
        return self._process.wait(timeout=READY_SECONDS)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and wait. Returns the exit code."""
        if self._process.poll() is None:
            self.send(number)
        return self._process.wait(timeout=READY_SECONDS)


@contextlib.contextmanager
def replicas(*processes: SchedulerProcess) -> Iterator[None]:
    """Kill all processes at the end of the block."""
    try:
        yield
    finally:
        for process in processes:
            process.end(signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


def config_file(path: Path, content: Mapping[str, Any]) -> str:
    """A configuration; JSON is YAML."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(json.dumps({**kind, **content}))
    return str(path)


def kubeconfig_with(token: str, model: str, name: str) -> str:
    """Write a copy of the kubeconfig ``model`` with a token in place of its credentials. The copy
    is in the folder of ``model``, because it names files there."""
    content = json.loads(Path(model).read_text())
    content["users"][0]["user"] = {"token": token}
    path = Path(model).with_name(name)
    path.touch(mode=0o600)
    path.write_text(json.dumps(content))
    return str(path)


async def apply(client: ApiClient, manifests: Sequence[Object]) -> None:
    """Apply the manifests, as `kubectl apply --server-side` does."""
    discovery = Discovery(client)
    for manifest in manifests:
        kind = f"{manifest['apiVersion']} {manifest['kind']}"
        await discovery.discover((kind,))
        resource = discovery.resource(kind)
        assert resource is not None, f"the API server does not have {kind}"
        meta = manifest["metadata"]
        path = resource.path(meta.get("namespace", ""), meta["name"])
        query = "fieldManager=bayplan-tests&force=true&fieldValidation=Strict"
        await client.request("PATCH", f"{path}?{query}", manifest, media_type=APPLY)


async def service_account_token(client: ApiClient, namespace: str, name: str) -> str:
    """Request a token, as the kubelet does."""
    content = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    answer = json.loads(await client.request("POST", path, content))
    return answer["status"]["token"]
