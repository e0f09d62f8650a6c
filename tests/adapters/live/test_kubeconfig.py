"""Plain kubeconfig files, the TLS settings of a login, and contents as files."""

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.adapters.live.kubeconfig import Login, as_file, plain_login, ssl_context
from tests.adapters.live.pems import certificate_and_key

# ---- kubeconfig -----------------------------------------------------------------------------


def written(folder: Path, user: Any, cluster: Any = None, **fields: Any) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://x:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "other", "context": {"cluster": "c", "user": "missing"}},
            {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}},
        ],
        "current-context": "x",
        **fields,
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_token_and_ca_are_read(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority-data": data("PEM"),
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:3128",
        "insecure-skip-tls-verify": True,
    }
    assert plain_login(written(tmp_path, {"token": "abc"}, cluster)) == Login(
        server="https://x:6443",
        authorization="Bearer abc",
        ca=b"PEM",
        server_name="kubernetes",
        proxy="http://proxy:3128",
        is_verified=False,
    )


def test_relative_paths_start_at_the_folder_of_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("token", "crt", "key"):
        (tmp_path / name).write_text(name + "\n")
    user = {"tokenFile": "token", "client-certificate": "crt", "client-key": str(tmp_path / "key")}
    login = plain_login(written(tmp_path, user))
    assert login is not None
    assert login.authorization == "Bearer token"
    assert login.certificate == (b"crt\n", b"key\n")


def test_inline_data_overrides_files(tmp_path: Path) -> None:
    user = {"token": "given", "tokenFile": "/nowhere"}
    (tmp_path / "crt").write_text("file")
    user |= {"client-certificate": "crt", "client-certificate-data": data("both")}
    login = plain_login(written(tmp_path, user))
    assert login is not None
    assert login.authorization == "Bearer given"
    assert login.certificate == (b"both", b"both")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plain_login(written(tmp_path, {"tokenFile": "nowhere"}))


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {"command": "aws"}},
        {"auth-provider": {"name": "oidc"}},
        {"username": "u", "password": "p"},
        {"token": 7},
        {"client-certificate-data": "!"},
        None,
    ],
)
def test_other_login_methods_are_left_to_the_library(tmp_path: Path, user: Any) -> None:
    assert plain_login(written(tmp_path, user)) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"current-context": "nowhere"},
        {"current-context": "other"},
        {"contexts": None},
        {"clusters": [{"name": "d", "cluster": {"server": "https://x"}}]},
        {"clusters": [{"name": "c", "cluster": {"server": "https://x", "surprise": 1}}]},
    ],
)
def test_invalid_fields_are_left_to_the_library(tmp_path: Path, fields: Any) -> None:
    assert plain_login(written(tmp_path, {"token": "abc"}, **fields)) is None


@pytest.mark.parametrize("text", ["", "{", "just text", "\xff"])
def test_an_invalid_kubeconfig_is_left_to_the_library(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(text.encode("latin-1"))
    assert plain_login(path) is None


# ---- login ----------------------------------------------------------------------------------


def test_plain_http_has_no_tls() -> None:
    assert ssl_context(Login(server="http://x")) is None


def test_only_the_given_ca_is_trusted() -> None:
    certificate, _ = certificate_and_key()
    context = ssl_context(Login(server="https://x", ca="Ümlaut\n".encode() + certificate))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509"] == 1


def test_verification_can_be_switched_off() -> None:
    context = ssl_context(Login(server="https://x", is_verified=False))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_client_certificate_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ssl_context(Login(server="https://x", certificate=certificate_and_key())) is not None
    with pytest.raises(ssl.SSLError):
        ssl_context(Login(server="https://x", certificate=(b"no", b"PEM")))
    assert list(tmp_path.iterdir()) == []


# ---- pem files ------------------------------------------------------------------------------


def test_content_is_readable_under_its_path_inside_the_block() -> None:
    with as_file(b"content") as path:
        assert Path(path).read_bytes() == b"content"
    assert not Path(path).exists()


def test_without_memfd_the_content_is_in_a_temporary_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    with as_file(b"content") as path:
        assert Path(path).read_bytes() == b"content"
    assert not Path(path).exists()
