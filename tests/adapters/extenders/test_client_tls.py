"""How the client verifies the identity of an extender."""

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.extenders.client import ExtenderUnreachable, HttpSender, Request, ssl_context
from bayplan.clock import RealClock
from bayplan.config import ConfigError
from bayplan.config.decoding import decode
from bayplan.config.schema import Extender
from bayplan.serving import certificates
from bayplan.serving.x509_certificates import self_signed
from tests.adapters.extenders.server import extender


@pytest.fixture(name="pem")
def _pem(tmp_path: Path) -> Path:
    """The key and the self-signed certificate of localhost."""
    file = tmp_path / "both.pem"
    file.write_bytes(self_signed("127.0.0.1", RealClock().epoch_seconds()))
    return file


def entry(url: str = "https://127.0.0.1:1", **fields: Any) -> Extender:
    result, problems = decode({"urlPrefix": url, "filterVerb": "filter", **fields}, Extender, "")
    assert result is not None, problems
    return result


def response(pem: Path, *, server_name: str = "", mutual: bool = False, **fields: Any) -> str:
    """The answer of an extender with that certificate, or the message if there is none."""
    tls = certificates.server_context(str(pem), str(pem))
    if mutual:
        tls.load_verify_locations(str(pem))
        tls.verify_mode = ssl.CERT_REQUIRED

    async def main(url: str) -> str:
        sender = HttpSender(ssl_context("extenders[0]", entry(url, **fields)), server_name)
        try:
            _, body = await sender.send(Request(f"{url}/filter", b"{}", 5.0))
            return body.decode()
        except ExtenderUnreachable as problem:
            return str(problem)
        finally:
            await sender.close()

    with extender({"filter": {"fine": True}}, tls) as server:
        return asyncio.run(main(server.url))


FINE = '{"fine":true}'


def test_a_ca_from_a_file_is_trusted(pem: Path) -> None:
    assert response(pem, enableHTTPS=True, tlsConfig={"caFile": str(pem)}) == FINE


def test_a_ca_from_the_configuration_is_trusted(pem: Path) -> None:
    data = base64.b64encode(pem.read_bytes()).decode()
    assert response(pem, tlsConfig={"caData": data, "caFile": "nowhere"}) == FINE


def test_without_a_ca_enable_https_trusts_any_certificate(pem: Path) -> None:
    """As in upstream's makeTransport."""
    assert response(pem, enableHTTPS=True) == FINE
    assert response(pem, tlsConfig={"insecure": True}) == FINE


def test_without_tls_settings_the_system_store_is_used(pem: Path) -> None:
    message = response(pem)
    assert message.startswith('Post "https://127.0.0.1:')
    assert message.endswith(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )


def test_the_certificate_must_name_the_requested_host(pem: Path) -> None:
    trusted: dict[str, Any] = {"tlsConfig": {"caFile": str(pem)}}
    assert response(pem, server_name="localhost", **trusted) == FINE
    message = response(pem, server_name="scheduler.example.com", **trusted)
    assert "tls: failed to verify certificate: " in message
    assert "scheduler.example.com" in message


def test_a_client_certificate_is_presented(pem: Path) -> None:
    files = {"certFile": str(pem), "keyFile": str(pem)}
    assert response(pem, mutual=True, tlsConfig={"caFile": str(pem), **files}) == FINE
    data = base64.b64encode(pem.read_bytes()).decode()
    data_fields = {"certData": data, "keyData": data}
    assert response(pem, mutual=True, tlsConfig={"caFile": str(pem), **data_fields}) == FINE
    assert response(pem, mutual=True, tlsConfig={"caFile": str(pem)}).startswith('Post "https')


@pytest.mark.parametrize(
    ("tls_config", "message"),
    [
        (
            {"insecure": True, "caFile": "ca.crt"},
            "found insecure and a CA; wanted one of them: what is not checked needs no CA",
        ),
        ({"caFile": "no/ca.crt"}, "no/ca.crt: No such file or directory"),
        (
            {"certFile": "tls.crt"},
            "tls.crt: found a client certificate without its key, or a key alone; wanted both",
        ),
        ({"certFile": "no.crt", "keyFile": "no.key"}, "no.crt, no.key: No such file or directory"),
        ({"caData": base64.b64encode(b"no certificate").decode()}, ""),
    ],
)
def test_invalid_tls_settings_are_refused_with_the_path(
    tls_config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        ssl_context("extenders[1]", entry(tlsConfig=tls_config))
    assert str(raised.value).startswith("extenders[1].tlsConfig: ")
    assert message in str(raised.value)
