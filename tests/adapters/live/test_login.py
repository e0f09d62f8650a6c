"""What a login means for TLS."""

import ssl
from pathlib import Path

import pytest

from bayplan.adapters.live.login import Login, ssl_context
from tests.adapters.live.pems import certificate_and_key


def test_plain_http_has_no_tls() -> None:
    assert ssl_context(Login(server="http://x")) is None


def test_only_the_given_authority_is_trusted() -> None:
    certificate, _ = certificate_and_key()
    context = ssl_context(Login(server="https://x", ca="Ümlaut\n".encode() + certificate))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509"] == 1


def test_verification_can_be_switched_off() -> None:
    context = ssl_context(Login(server="https://x", is_verified=False))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_client_certificate_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ssl_context(Login(server="https://x", certificate=certificate_and_key())) is not None
    with pytest.raises(ssl.SSLError):
        ssl_context(Login(server="https://x", certificate=(b"no", b"PEM")))
    assert list(tmp_path.iterdir()) == []
