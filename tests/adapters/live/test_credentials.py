"""Credentials for the API server."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import certifi
import msgspec
import pytest

from bayplan.adapters.live.credentials import (
    RENEWAL_SECONDS,
    Credentials,
    CredentialsError,
    load_credentials,
)
from bayplan.clock import ManualClock
from tests.kit.api_server import kubeconfig

SERVER = "http://localhost:1"


def exec_user(folder: Path, token: str, expires: str) -> dict[str, object]:
    """A user whose exec plugin counts how often it ran in the file `runs`."""
    status = {"token": token, "expirationTimestamp": expires}
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    output = msgspec.json.encode(answer).decode()
    code = f"open({str(folder / 'runs')!r}, 'a').write('.'); print({output!r})"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-c", code]}}


async def renewed(credentials: Credentials, clock: ManualClock) -> str | None:
    """The header one minute later."""
    clock.advance_to(clock.now() + RENEWAL_SECONDS + 1)
    credentials.authorization()
    await credentials.settle()
    return credentials.authorization()


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    clock = ManualClock()
    path = kubeconfig(tmp_path, SERVER, {"tokenFile": "token"})
    credentials = await load_credentials(path, clock)
    assert credentials.authorization() == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert credentials.authorization() == "Bearer one"
    assert await renewed(credentials, clock) == "Bearer two"


@pytest.mark.parametrize(
    ("expires", "runs"),
    [("2999-01-01T00:00:00Z", 1), ("2020-01-01T00:00:00Z", 2)],
    ids=["a valid token is reused", "an expired token is renewed"],
)
def test_an_exec_plugin_runs_when_its_token_expires(
    tmp_path: Path, expires: str, runs: int
) -> None:
    async def main() -> None:
        clock = ManualClock()
        path = kubeconfig(tmp_path, SERVER, exec_user(tmp_path, "short", expires))
        credentials = await load_credentials(path, clock)
        assert await renewed(credentials, clock) == "Bearer short"

    asyncio.run(main())
    assert (tmp_path / "runs").read_text() == "." * runs


def test_a_refused_token_is_reloaded_regardless_of_its_expiry(tmp_path: Path) -> None:
    async def main() -> None:
        user = exec_user(tmp_path, "long", "2999-01-01T00:00:00Z")
        credentials = await load_credentials(kubeconfig(tmp_path, SERVER, user), ManualClock())
        await asyncio.gather(credentials.after_refusal(), credentials.after_refusal())

    asyncio.run(main())
    assert (tmp_path / "runs").read_text() == ".."


def test_a_failed_renewal_keeps_the_old_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        (tmp_path / "token").write_text("one")
        clock = ManualClock()
        path = kubeconfig(tmp_path, SERVER, {"tokenFile": "token"})
        credentials = await load_credentials(path, clock)
        (tmp_path / "token").unlink()
        assert await renewed(credentials, clock) == "Bearer one"

    asyncio.run(main())
    assert "credentials not renewed from kubeconfig" in caplog.text


async def test_the_token_of_a_pod_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_text(ca_certificate())
    monkeypatch.setattr("bayplan.adapters.live.credentials.SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    clock = ManualClock()
    credentials = await load_credentials(None, clock)
    assert credentials.server == "https://10.0.0.1:443"
    assert credentials.authorization() == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert await renewed(credentials, clock) == "Bearer two"


def ca_certificate() -> str:
    """Any certificate that OpenSSL reads."""
    return Path(certifi.where()).read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("{", "ParserError"),
        ("", "TypeError"),
        ("{}", "Expected key current-context"),
        ("just text", "TypeError"),
        ("[" * 100_000, "nested more than 200 deep"),
        ('{"a":' * 100_000, "nested more than 200 deep"),
        ("- " * 100_000, "nested more than 200 deep"),
        ("\t\ta: b", "ScannerError"),
        ("\0", "ReaderError"),
    ],
)
def test_an_invalid_kubeconfig_is_reported_in_one_sentence(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CredentialsError, match=message) as error:
        asyncio.run(load_credentials(str(path), ManualClock()))
    assert f"kubeconfig {path}: cannot be used" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pod_without_a_token_gets_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(CredentialsError, match="automountServiceAccountToken"):
        asyncio.run(load_credentials(None, ManualClock()))


def test_the_proxy_of_the_environment_is_used_unless_no_proxy_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    path = kubeconfig(tmp_path, "http://cluster.example:80")
    for bypassed, proxy in (("", "http://proxy:3128"), ("cluster.example", None)):
        monkeypatch.setenv("no_proxy", bypassed)
        assert asyncio.run(load_credentials(path, ManualClock())).proxy == proxy


def test_master_overrides_the_server_of_the_kubeconfig(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://cluster.example:80", {"token": "t"})
    result = asyncio.run(load_credentials(path, ManualClock(), "http://other.example:81/"))
    assert (result.server, result.authorization()) == ("http://other.example:81", "Bearer t")


def test_master_without_a_kubeconfig_has_no_credentials() -> None:
    result = asyncio.run(load_credentials(None, ManualClock(), "http://other.example:81"))
    assert (result.server, result.authorization()) == ("http://other.example:81", "")


def test_an_invalid_master_url_is_refused() -> None:
    with pytest.raises(CredentialsError, match=r"at other: .* server: found 'other', wanted a URL"):
        asyncio.run(load_credentials(None, ManualClock(), "other"))


@pytest.mark.parametrize(
    "server",
    [
        *("", "ftp://x", "127.0.0.1:6443", "https://", "https://[::1", "https://u:p@h:1"),
        *(
            "https://h:99999",
            "https://h:x",
            "https://h :1",
            "https://h:1/a\r\nX: y",
            "https://h\0b",
        ),
        f"https://{'a' * 300}",
    ],
)
async def test_a_server_is_a_url(tmp_path: Path, server: str) -> None:
    with pytest.raises(CredentialsError, match=r"server: found .*, wanted a URL such as") as error:
        await load_credentials(kubeconfig(tmp_path, server), ManualClock())
    assert str(error.value).isprintable()
    assert "u:p" not in str(error.value)


@pytest.mark.parametrize("name", ["a" * 300, "a..b", ".x", "a\0b", "a b"])
async def test_a_name_of_the_server_is_a_host_name(tmp_path: Path, name: str) -> None:
    path = Path(kubeconfig(tmp_path, "https://h:1"))
    content = msgspec.json.decode(path.read_bytes())
    content["clusters"][0]["cluster"]["tls-server-name"] = name
    path.write_bytes(msgspec.json.encode(content))
    with pytest.raises(CredentialsError, match=r"tls-server-name: found .*, wanted a name such as"):
        await load_credentials(str(path), ManualClock())


async def test_a_scheme_may_be_in_upper_case(tmp_path: Path) -> None:
    credentials = await load_credentials(kubeconfig(tmp_path, "HTTPS://h:1"), ManualClock())
    assert credentials.server == "https://h:1"
    assert credentials.ssl_context is not None


@pytest.mark.parametrize("proxy", ["::::", "socks5://h:1", "http://u:p@h:x"])
async def test_a_proxy_is_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(CredentialsError, match=r"proxy: found .*, wanted a URL such as") as error:
        await load_credentials(kubeconfig(tmp_path, "https://h:1"), ManualClock())
    assert "u:p" not in str(error.value)


async def test_a_proxy_of_the_environment_needs_no_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "10.0.0.1:3128")
    credentials = await load_credentials(kubeconfig(tmp_path, "https://h:1"), ManualClock())
    assert credentials.proxy == "http://10.0.0.1:3128"


def test_a_plain_kubeconfig_needs_no_library(tmp_path: Path) -> None:
    """The import of the library takes longer than the whole start without it."""
    path = kubeconfig(tmp_path, SERVER)
    code = (
        "import asyncio, sys; from bayplan.adapters.live.client import open_client\n"
        "async def main():\n"
        f"    async with open_client({path!r}): pass\n"
        "asyncio.run(main()); print('kubernetes_asyncio' in sys.modules)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == "False"


@pytest.mark.parametrize("field", ["tokenFile", "client-certificate"])
def test_a_credential_that_is_no_regular_file_is_refused(tmp_path: Path, field: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, kind in (("fifo", "a FIFO"), ("/dev/zero", "a device"), (".", "a folder")):
        path = kubeconfig(tmp_path, SERVER, {field: name})
        with pytest.raises(CredentialsError, match=f"found {kind}, wanted a regular file"):
            asyncio.run(load_credentials(path, ManualClock()))
