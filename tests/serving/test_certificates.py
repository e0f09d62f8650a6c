"""The certificates of the endpoints."""

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from bayplan.serving.certificates import (
    CIPHER_SUITES,
    CertificateError,
    TlsSettings,
    apply_tls_settings,
    directory_context,
    self_signed_context,
    server_context,
    trust_client_authorities,
    trust_clients,
)
from bayplan.serving.x509_certificates import self_signed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_SECONDS = NOW.timestamp()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "scheduler.example.com"])
def test_a_self_signed_certificate_names_its_host(host: str) -> None:
    pem = self_signed(host, NOW_SECONDS)
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert host in [str(name.value) for name in names]
    assert certificate.not_valid_before_utc.timestamp() < NOW_SECONDS
    assert self_signed_context(host, NOW_SECONDS).minimum_version == ssl.TLSVersion.TLSv1_2


def test_the_configured_certificate_is_read_from_files(tmp_path: Path) -> None:
    pem = self_signed("localhost", NOW_SECONDS)
    both = tmp_path / "tls.pem"
    both.write_bytes(pem)
    assert server_context(str(both), str(both)).minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_an_unusable_certificate_is_refused_with_its_files(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "tls.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError, match=r"--tls-cert-file .*tls\.crt, --tls-private-key"):
        server_context(str(file), str(file))


def test_a_client_may_present_a_certificate_of_the_configured_authorities(tmp_path: Path) -> None:
    context = self_signed_context("localhost", NOW_SECONDS)
    authorities = tmp_path / "ca.crt"
    authorities.write_bytes(self_signed("ca", NOW_SECONDS))
    trust_clients(context, str(authorities))
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert context.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_unreadable_authorities_are_refused_with_their_file(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError, match=r"--client-ca-file .*ca\.crt: "):
        trust_clients(self_signed_context("localhost", NOW_SECONDS), str(file))


def test_the_authorities_of_the_cluster_are_read_from_text() -> None:
    context = self_signed_context("localhost", NOW_SECONDS)
    pem = self_signed("ca", NOW_SECONDS).decode()
    trust_client_authorities(context, pem[pem.index("-----BEGIN CERTIFICATE") :])
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert context.cert_store_stats()["x509"] == 1
    with pytest.raises(CertificateError, match="authorities of client certificates"):
        trust_client_authorities(context, "no certificate")


# ---- versions, suites, names -----------------------------------------------------------------


def agreed(
    context: ssl.SSLContext, version: ssl.TLSVersion, name: str = "localhost"
) -> tuple[str, str, bytes]:
    """The version, suite and certificate of a handshake with a client of at most this version."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = version
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(one, other, server_hostname=name)
    serving = context.wrap_bio(other, one, server_side=True)
    for _ in range(10):
        for side in (asking, serving):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    cipher, result = asking.cipher(), asking.version()
    assert cipher is not None
    assert result is not None
    return result, cipher[0], asking.getpeercert(binary_form=True) or b""


def context_with(**settings: Any) -> ssl.SSLContext:
    context = self_signed_context("localhost", NOW_SECONDS)
    apply_tls_settings(context, TlsSettings(**settings))
    return context


def test_the_minimum_tls_version_is_configured_by_a_flag() -> None:
    assert agreed(context_with(), ssl.TLSVersion.TLSv1_2)[0] == "TLSv1.2"
    strict = context_with(version_min="VersionTLS13")
    assert agreed(strict, ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        agreed(strict, ssl.TLSVersion.TLSv1_2)
    assert context_with(version_min="VersionTLS10").minimum_version == ssl.TLSVersion.TLSv1


def test_cipher_suites_have_gos_names() -> None:
    suites = ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256")
    result = agreed(context_with(cipher_suites=suites), ssl.TLSVersion.TLSv1_2)
    assert result[1] == "ECDHE-ECDSA-CHACHA20-POLY1305"
    # The suites of TLS 1.3 cannot be switched off.
    assert agreed(context_with(cipher_suites=suites), ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        agreed(context_with(cipher_suites=suites[:1]), ssl.TLSVersion.TLSv1_2)


def test_suites_unknown_to_openssl_are_refused_if_none_remains() -> None:
    with pytest.raises(CertificateError, match="--tls-cipher-suites TLS_RSA_WITH_RC4_128_SHA: "):
        context_with(cipher_suites=("TLS_RSA_WITH_RC4_128_SHA",))


def test_every_suite_has_a_distinct_name_in_openssl() -> None:
    names = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    names.set_ciphers("ALL:@SECLEVEL=0")
    supported = {suite["name"] for suite in names.get_ciphers()}
    old = {name for name in CIPHER_SUITES.values() if "RC4" in name or "DES" in name}
    assert {name for name in CIPHER_SUITES.values() if name} - old <= supported


def pair(folder: Path, host: str) -> tuple[str, bytes]:
    """ "CERT,KEY" and the certificate."""
    pem = self_signed(host, NOW_SECONDS)
    file = folder / f"{host.replace('*', 'any')}.pem"
    file.write_bytes(pem)
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERT") :])
    return f"{file},{file}", certificate.public_bytes(Encoding.DER)


def test_a_client_gets_the_certificate_for_the_requested_name(tmp_path: Path) -> None:
    wild, wild_certificate = pair(tmp_path, "*.example.com")
    one, one_certificate = pair(tmp_path, "one.example.org")
    context = context_with(named_pairs=(f"{wild}:*.example.com,other", one))

    def presented(name: str) -> bytes:
        return agreed(context, ssl.TLSVersion.TLSv1_3, name)[2]

    assert presented("a.example.com") == presented("OTHER") == wild_certificate
    assert presented("one.example.org") == one_certificate
    assert presented("a.b.example.com") not in (wild_certificate, one_certificate)


@pytest.mark.parametrize("text", ["a", ",b", "a,", "nowhere.crt,nowhere.key:x"])
def test_an_unusable_named_pair_is_refused(text: str) -> None:
    with pytest.raises(CertificateError, match="--tls-sni-cert-key"):
        context_with(named_pairs=(text,))


def test_a_pair_is_created_in_its_folder_once(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    first = directory_context(str(folder), "localhost", NOW_SECONDS)
    certificate, key = (folder / f"kube-scheduler.{ending}" for ending in ("crt", "key"))
    assert (key.stat().st_mode & 0o777, b"PRIVATE" in certificate.read_bytes()) == (0o600, False)
    second = directory_context(str(folder), "localhost", NOW_SECONDS + 1)
    version = ssl.TLSVersion.TLSv1_3
    assert agreed(first, version)[2] == agreed(second, version)[2]
    key.unlink()
    with pytest.raises(CertificateError, match=r"--cert-dir .*: wanted both "):
        directory_context(str(folder), "localhost", NOW_SECONDS)
