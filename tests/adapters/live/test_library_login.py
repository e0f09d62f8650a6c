"""What kubernetes_asyncio reads becomes a login like any other."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.library_login import LibraryKubeconfig
from bayplan.adapters.live.login import Login, LoginError
from tests.adapters.live.serving import kubeconfig

SERVER = "http://localhost:1"


def login(folder: Path, user: dict[str, Any]) -> Login:
    return asyncio.run(LibraryKubeconfig([kubeconfig(folder, SERVER, user)]).load())


def test_a_password_is_a_header(tmp_path: Path) -> None:
    found = login(tmp_path, {"username": "u", "password": "p"})
    assert found == Login(server=SERVER, authorization="Basic dTpw")


def test_files_that_are_joined_are_one(tmp_path: Path) -> None:
    first = Path(kubeconfig(tmp_path, SERVER, {"token": "abc"})).rename(tmp_path / "first")
    second = tmp_path / "second"
    second.write_text("apiVersion: v1\nkind: Config\n")
    found = asyncio.run(LibraryKubeconfig([str(first), str(second)]).load())
    assert found.authorization == "Bearer abc"


def test_what_makes_no_sense_is_one_kind_of_error(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match="File does not exists"):
        asyncio.run(LibraryKubeconfig([with_ca(tmp_path, "nowhere")]).load())


def with_ca(folder: Path, name: str) -> str:
    path = kubeconfig(folder, "https://localhost:1")
    content = Path(path).read_text()
    Path(path).write_text(content.replace('"server"', f'"certificate-authority":"{name}","server"'))
    return path
