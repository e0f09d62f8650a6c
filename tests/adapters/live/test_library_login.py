"""What kubernetes_asyncio reads becomes a login like any other."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.errors import LoginError
from bayplan.adapters.live.kubeconfig import Login
from bayplan.adapters.live.library_login import LibraryKubeconfig
from tests.kit.api_server import kubeconfig

SERVER = "http://localhost:1"


def login(folder: Path, user: dict[str, Any]) -> Login:
    return asyncio.run(LibraryKubeconfig([kubeconfig(folder, SERVER, user)]).load())


def test_a_password_becomes_a_header(tmp_path: Path) -> None:
    result = login(tmp_path, {"username": "u", "password": "p"})
    assert result == Login(server=SERVER, authorization="Basic dTpw")


def test_several_kubeconfig_files_are_merged(tmp_path: Path) -> None:
    first = Path(kubeconfig(tmp_path, SERVER, {"token": "abc"})).rename(tmp_path / "first")
    second = tmp_path / "second"
    second.write_text("apiVersion: v1\nkind: Config\n")
    result = asyncio.run(LibraryKubeconfig([str(first), str(second)]).load())
    assert result.authorization == "Bearer abc"


def test_an_invalid_kubeconfig_raises_a_login_error(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match="File does not exists"):
        asyncio.run(LibraryKubeconfig([with_ca(tmp_path, "nowhere")]).load())


def with_ca(folder: Path, name: str) -> str:
    path = kubeconfig(folder, "https://localhost:1")
    content = Path(path).read_text()
    Path(path).write_text(content.replace('"server"', f'"certificate-authority":"{name}","server"'))
    return path


def test_an_exec_plugin_is_logged_before_it_runs_without_its_arguments(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "of the plugin"},
    }
    plugin = tmp_path / "plugin.sh"
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o755)
    command = {"command": str(plugin), "args": ["secret"], "apiVersion": credential["apiVersion"]}
    caplog.set_level(logging.INFO, logger="bayplan")
    result = login(tmp_path, {"exec": {**command, "interactiveMode": "Never"}})
    assert result.authorization == "Bearer of the plugin"
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"runs the exec plugin of kubeconfig {tmp_path / 'kubeconfig'}: {plugin}"
