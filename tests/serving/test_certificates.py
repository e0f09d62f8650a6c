"""What endpoints are served with."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from bayplan.serving import certificates
from bayplan.serving.certificates import (
    CertificateError,
    self_signed_context,
    server_context,
    trust_clients,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_SECONDS = NOW.timestamp()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "scheduler.example.com"])
def test_a_certificate_of_our_own_names_its_host(host: str) -> None:
    pem = certificates._self_signed(host, NOW)
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert host in [str(name.value) for name in names]
    assert certificate.not_valid_before_utc.timestamp() < NOW_SECONDS
    assert self_signed_context(host, NOW_SECONDS).minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_given_one_is_read_from_files(tmp_path: Path) -> None:
    pem = certificates._self_signed("localhost", NOW)
    both = tmp_path / "tls.pem"
    both.write_bytes(pem)
    assert server_context(str(both), str(both)).minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_one_that_cannot_be_used_is_refused_with_its_files(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "tls.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError, match=r"--tls-cert-file .*tls\.crt, --tls-private-key"):
        server_context(str(file), str(file))


def test_a_client_may_show_a_certificate_of_the_given_authorities(tmp_path: Path) -> None:
    context = self_signed_context("localhost", NOW_SECONDS)
    authorities = tmp_path / "ca.crt"
    authorities.write_bytes(certificates._self_signed("ca", NOW))
    trust_clients(context, str(authorities))
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert context.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_authorities_that_cannot_be_read_are_refused_with_their_file(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError, match=r"--client-ca-file .*ca\.crt: "):
        trust_clients(self_signed_context("localhost", NOW_SECONDS), str(file))
