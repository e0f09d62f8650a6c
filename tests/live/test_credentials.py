"""The user that a real API server sees, for each form of credentials."""

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.adapters.live.client import ApiClient, open_client
from tests.live.control_plane import LOOPBACK, ControlPlane, token
from tests.live.world import UNLIMITED, World, scenario

EXEC_VERSION = "client.authentication.k8s.io/v1"


async def user_name(client: ApiClient) -> str:
    """The name of the user that the server authenticates."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    body = await client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    return msgspec.json.decode(body)["status"]["userInfo"]["username"]


def exec_user(statuses: Path) -> dict[str, Any]:
    """A user whose exec plugin prints the first line of a file, and removes that line unless it is
    the last one."""
    code = (
        f"import json, pathlib; f = pathlib.Path({str(statuses)!r}); "
        f"first, *later = f.read_text().splitlines(); "
        f"f.write_text(chr(10).join(later or [first])); "
        f"print(json.dumps(dict(apiVersion={EXEC_VERSION!r}, kind='ExecCredential', "
        f"status=json.loads(first))))"
    )
    return {"exec": {"apiVersion": EXEC_VERSION, "command": sys.executable, "args": ["-c", code]}}


def with_token_file(control_plane: ControlPlane, folder: Path) -> dict[str, Any]:
    (folder / "token").write_text(token("scheduler") + "\n")
    return {"tokenFile": str(folder / "token")}


def with_certificate(control_plane: ControlPlane, folder: Path) -> dict[str, Any]:
    certificate, key = control_plane.client_certificate("scheduler")
    return {"client-certificate": str(certificate), "client-key": str(key)}


def with_certificate_data(control_plane: ControlPlane, folder: Path) -> dict[str, Any]:
    pair = control_plane.client_certificate("scheduler")
    data = [base64.b64encode(path.read_bytes()).decode() for path in pair]
    return {"client-certificate-data": data[0], "client-key-data": data[1]}


def with_plugin(control_plane: ControlPlane, folder: Path) -> dict[str, Any]:
    """The plugin's first token is refused, although it has not expired."""
    fresh = {"expirationTimestamp": "2999-01-01T00:00:00Z"}
    lines = (json.dumps({"token": each, **fresh}) for each in ("stale", token("scheduler")))
    (folder / "statuses").write_text("\n".join(lines))
    return exec_user(folder / "statuses")


def with_certificate_plugin(control_plane: ControlPlane, folder: Path) -> dict[str, Any]:
    certificate, key = (path.read_text() for path in control_plane.client_certificate("scheduler"))
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    (folder / "statuses").write_text(json.dumps(status))
    return exec_user(folder / "statuses")


@pytest.mark.parametrize(
    "user",
    [
        with_token_file,
        with_certificate,
        with_certificate_data,
        with_plugin,
        with_certificate_plugin,
    ],
)
async def test_a_kubeconfig_determines_the_user(
    control_plane: ControlPlane,
    tmp_path: Path,
    user: Callable[[ControlPlane, Path], dict[str, Any]],
) -> None:
    name = user.__name__.replace("_", "-")
    kubeconfig = control_plane.kubeconfig_with(name, user(control_plane, tmp_path))
    async with open_client(kubeconfig, UNLIMITED) as client:
        assert await user_name(client) == "scheduler"


@scenario()
async def test_a_pod_uses_its_service_account_and_its_token_is_read_again(
    world: World, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayplan.adapters.live.credentials.SERVICE_ACCOUNT", tmp_path)
    (tmp_path / "ca.crt").write_bytes(control_plane.authority.read_bytes())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", LOOPBACK)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(control_plane.port))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bayplan"}}
    path = world.path("serviceaccounts")
    await world.client.request("POST", path, account)
    calls = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    body = await world.client.request("POST", f"{path}/bayplan/token", calls)
    (tmp_path / "token").write_text("expired")
    async with open_client(None, UNLIMITED) as client:
        (tmp_path / "token").write_text(msgspec.json.decode(body)["status"]["token"])
        who = f"system:serviceaccount:{world.namespace}:bayplan"
        assert await user_name(client) == who
