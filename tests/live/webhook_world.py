"""`bayplan webhook` as an API server calls it: a process, its registration, and warnings."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, final

import aiohttp

from bayplan.adapters.live.client import ApiClient
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig
from bayplan.plugins.registry import default_registry
from bayplan.serving.rbac import Names, following_manifests
from bayplan.serving.x509_certificates import self_signed
from bayplan.webhook.judgement import FURTHER_KINDS
from tests.live.beside import Cluster
from tests.live.control_plane import LOOPBACK, ControlPlane, token
from tests.live.mirror import Object
from tests.live.processes import SchedulerProcess, apply, free_port

#: The user of the webhook.
USER = "scheduler"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/bayplan"
_RULES = [
    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]},
    {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "resources": ["deployments", "statefulsets", "daemonsets", "replicasets"],
    },
    {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs", "cronjobs"]},
]


@final
class Webhook:
    """A process of `bayplan webhook` that the API server calls."""

    def __init__(self, plane: ControlPlane, folder: Path, *arguments: str) -> None:
        pem = self_signed(LOOPBACK, RealClock().epoch_seconds())
        mark = pem.index(b"-----BEGIN CERTIFICATE")
        self.certificate = pem[mark:]
        certificate, key = folder / "tls.crt", folder / "tls.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(pem[:mark])
        self.port = free_port()
        flags = ("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key))
        self._arguments = (
            *("webhook", "--kubeconfig", plane.kubeconfig(USER), "--port", str(self.port)),
            *(*flags, *arguments),
        )
        self._log = folder / "webhook.log"

    def start(self) -> SchedulerProcess:
        """The process, before it has read the cluster."""
        return SchedulerProcess("webhook", self._arguments, self._log)

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    def registration(self) -> Object:
        """What the API server is told."""
        bundle = base64.b64encode(self.certificate).decode()
        webhook = {
            "name": "webhook.bayplan.example",
            "clientConfig": {"url": f"{self.url}/validate", "caBundle": bundle},
            "rules": [{**rule, "operations": ["CREATE"], "scope": "*"} for rule in _RULES],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": 1,
            "admissionReviewVersions": ["v1"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "bayplan"},
            "webhooks": [webhook],
        }


async def grant(client: ApiClient) -> None:
    """Let the user of the webhook do what `bayplan config rbac --webhook` prints."""
    role, binding = following_manifests(
        SchedulerConfig(), default_registry(()), Names("webhook"), FURTHER_KINDS
    )
    subject = {"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    await apply(client, [role, {**binding, "subjects": [subject]}])


@final
class Creator:
    """Creates objects and reads the warnings of the API server."""

    def __init__(self, session: aiohttp.ClientSession, plane: ControlPlane, client: ApiClient):
        self._session = session
        self._plane = plane
        self._cluster = Cluster(client)

    async def create(self, content: Object, *, dry_run: bool = False) -> list[str]:
        """The warnings that mention a node. Raises AssertionError if the creation is refused."""
        path = (await self._cluster.path(content)).rpartition("/")[0]
        query = "?dryRun=All" if dry_run else ""
        url = f"https://{LOOPBACK}:{self._plane.port}{path}{query}"
        async with self._session.post(url, data=json.dumps(content)) as answer:
            body = await answer.read()
            assert answer.status in (201, 202), body
            texts = [value.partition(" ")[2].partition(" ")[2] for value in _warnings(answer)]
        return [text.strip('"').replace('\\"', '"') for text in texts if " node" in text]


def _warnings(answer: aiohttp.ClientResponse) -> list[str]:
    return answer.headers.getall("Warning", [])


@asynccontextmanager
async def creator(plane: ControlPlane, client: ApiClient) -> AsyncGenerator[Creator]:
    headers = {"Authorization": f"Bearer {token('admin')}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(ssl=plane.client_ssl_context())
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        yield Creator(session, plane, client)


@asynccontextmanager
async def registered(
    webhook: Webhook, client: ApiClient, creating: Creator
) -> AsyncGenerator[None]:
    """The API server calls the webhook as long as the block."""
    await apply(client, [webhook.registration()])
    try:
        await _until_called(creating)
        yield
    finally:
        await client.request("DELETE", REGISTRATION)


async def _until_called(creating: Creator) -> None:
    """Wait until a creation that no node can hold has a warning."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000000"}}}
    probe: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"containers": [container]},
    }
    async with asyncio.timeout(60.0):
        while not await creating.create(probe, dry_run=True):
            await asyncio.sleep(0.1)


async def metrics(webhook: Webhook) -> dict[str, float]:
    """The samples of /metrics."""
    trusted = ssl.create_default_context(cadata=webhook.certificate.decode())
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{webhook.url}/metrics", ssl=trusted) as answer,
    ):
        lines = (await answer.text()).splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}
