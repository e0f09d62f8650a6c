"""The certificates of the endpoints: those of files, or one made for this process.

As in kube-scheduler, a self-signed certificate is made if none is given. It encrypts the connection
but does not prove the server's identity. Its key stays in memory.
"""

import ssl
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bayplan.adapters.live.kubeconfig import as_file
from bayplan.lazy_loader import load
from bayplan.problems import BadInputError

#: Loaded when first needed. Plain HTTP and certificates whose names the command line gives need
#: neither.
_SELF_SIGNED = "bayplan.serving.x509_certificates:self_signed"
_CERTIFIED_NAMES = "bayplan.serving.x509_certificates:certified_names"

#: Upstream: component-base/cli/flag/ciphersuites_flag.go.
TLS_VERSIONS: Mapping[str, ssl.TLSVersion] = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

#: Go's name → OpenSSL's name; "": a suite of TLS 1.3, which is always on. Upstream: crypto/tls.
CIPHER_SUITES: Mapping[str, str] = {
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
}


class CertificateError(BadInputError):
    """A certificate is unusable. The message names the files."""


def server_context(cert_file: str, key_file: str, client_ca_file: str = "") -> ssl.SSLContext:
    """TLS with a certificate from files. ``client_ca_file``: callers must present a certificate of
    this authority. Raises CertificateError."""
    try:
        context = _context(cert_file, key_file)
        if client_ca_file:
            context.load_verify_locations(client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
    except (OSError, ssl.SSLError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        text = f"--tls-cert-file {cert_file}, --tls-private-key-file {key_file}"
        text += (
            f", --client-ca-file {client_ca_file}: {reason}" if client_ca_file else f": {reason}"
        )
        raise CertificateError(text) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Settings of TLS besides the certificate, with Go's names."""

    #: One of `TLS_VERSIONS`; "": TLS 1.2.
    version_min: str = ""
    #: Names of `CIPHER_SUITES`. Suites of TLS 1.3 are always on, as in Go. (): OpenSSL's defaults.
    cipher_suites: tuple[str, ...] = ()
    #: Further certificates as "CERT,KEY" or "CERT,KEY:name,*.name", for the host names that callers
    #: ask for.
    named_pairs: tuple[str, ...] = ()


def apply_tls_settings(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Raises CertificateError."""
    if settings.version_min:
        with warnings.catch_warnings():
            # Python warns of TLS 1.0 and 1.1; the operator asked for them.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = TLS_VERSIONS[settings.version_min]
    if settings.cipher_suites:
        _restrict(context, settings.cipher_suites)
    if settings.named_pairs:
        # A connection takes only the certificate from the context that is chosen by name.
        pairs = tuple(_named_pair(text) for text in settings.named_pairs)
        context.sni_callback = partial(_choose, pairs)


def _restrict(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    """Raises CertificateError."""
    names = [name for suite in suites if (name := CIPHER_SUITES[suite])]
    if not names:
        # As in Go, a list with suites of TLS 1.3 only disables TLS 1.2.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        expected = "wanted at least one that this OpenSSL offers for TLS 1.2"
        raise CertificateError(f"--tls-cipher-suites {','.join(suites)}: {expected}") from None


def directory_context(folder: str, host: str, epoch_seconds: float) -> ssl.SSLContext:
    """TLS with the certificate and key of a folder. If the folder has none, a pair for ``host`` is
    made there.

    Upstream: --cert-dir, SecureServingOptions.MaybeDefaultWithSelfSignedCerts. Raises
    CertificateError.
    """
    certificate, key = (Path(folder) / f"kube-scheduler.{ending}" for ending in ("crt", "key"))
    try:
        if certificate.exists() != key.exists():
            raise CertificateError(f"--cert-dir {folder}: wanted both {certificate} and {key}")
        if not certificate.exists():
            pem = load(_SELF_SIGNED)(host, epoch_seconds)
            mark = pem.index(b"-----BEGIN CERTIFICATE")
            Path(folder).mkdir(parents=True, exist_ok=True)
            key.touch(mode=0o600)
            key.write_bytes(pem[:mark])
            certificate.write_bytes(pem[mark:])
    except OSError as problem:
        raise CertificateError(f"--cert-dir {folder}: {problem.strerror}") from None
    return server_context(str(certificate), str(key))


def self_signed_context(host: str, epoch_seconds: float) -> ssl.SSLContext:
    """TLS with a certificate for ``host``, made now."""
    with as_file(load(_SELF_SIGNED)(host, epoch_seconds)) as path:
        return _context(path, path)


def trust_client_authorities(context: ssl.SSLContext, pem: str) -> None:
    """As `trust_clients`, with the certificates of the authorities in place of a file. Raises
    CertificateError."""
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as problem:
        text = f"the cluster's authorities of client certificates: {problem}"
        raise CertificateError(text) from None
    context.verify_mode = ssl.CERT_OPTIONAL


def trust_clients(context: ssl.SSLContext, ca_file: str) -> None:
    """Accept client certificates of these authorities. A caller may connect without a certificate.

    Raises CertificateError.
    """
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise CertificateError(f"--client-ca-file {ca_file}: {reason}") from None
    context.verify_mode = ssl.CERT_OPTIONAL


@dataclass(frozen=True, slots=True)
class _NamedPair:
    """A certificate for some host names, in lower case."""

    names: tuple[str, ...]
    context: ssl.SSLContext

    def fits(self, name: str) -> bool:
        """A wildcard stands for one label."""
        return name in self.names or f"*.{name.partition('.')[2]}" in self.names


def _named_pair(text: str) -> _NamedPair:
    """From "CERT,KEY[:names]"; without names, those of the certificate. Raises CertificateError."""
    files, _, names = text.partition(":")
    certificate, comma, key = files.partition(",")
    if not comma or not certificate or not key:
        raise CertificateError(f"--tls-sni-cert-key {text}: wanted CERT,KEY or CERT,KEY:NAME,NAME")
    try:
        context = _context(certificate, key)
        pem = b"" if names else Path(certificate).read_bytes()
        patterns = names.split(",") if names else load(_CERTIFIED_NAMES)(pem)
    except (OSError, ssl.SSLError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise CertificateError(f"--tls-sni-cert-key {text}: {reason}") from None
    return _NamedPair(tuple(name.strip().lower() for name in patterns), context)


def _choose(
    pairs: tuple[_NamedPair, ...], connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext
) -> None:
    """Use the first certificate for the host name that the caller asks for."""
    for pair in pairs:
        if name and pair.fits(name.lower()):
            connection.context = pair.context
            return


def _context(cert_file: str, key_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_file, key_file)
    return context
