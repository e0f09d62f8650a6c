"""The certificate that endpoints are served with: a given one, or one made for this process.

As kube-scheduler does where none is given, a self-signed one is made: it keeps what is sent from
being read on the way, but proves to nobody who answers. Its key stays in memory.
"""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from bayplan.adapters.live.pem_files import as_file

#: Clocks differ; and the process is started anew before it has run out.
_BACKDATED, _VALID = timedelta(days=1), timedelta(days=3650)


class CertificateError(Exception):
    """A certificate that cannot be served with; the message names the files."""


def server_context(cert_file: str, key_file: str, client_ca_file: str = "") -> ssl.SSLContext:
    """TLS with a certificate from files. ``client_ca_file``: only those may ask who show a
    certificate of that authority. Raises CertificateError."""
    try:
        context = _context(cert_file, key_file)
        if client_ca_file:
            context.load_verify_locations(client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
    except (OSError, ssl.SSLError) as problem:
        said = getattr(problem, "strerror", None) or str(problem)
        text = f"--tls-cert-file {cert_file}, --tls-private-key-file {key_file}"
        text += f", --client-ca-file {client_ca_file}: {said}" if client_ca_file else f": {said}"
        raise CertificateError(text) from None


def self_signed_context(host: str, epoch_seconds: float) -> ssl.SSLContext:
    """TLS with a certificate for ``host``, made now."""
    with as_file(_self_signed(host, datetime.fromtimestamp(epoch_seconds, tz=UTC))) as path:
        return _context(path, path)


def trust_clients(context: ssl.SSLContext, ca_file: str) -> None:
    """Whoever shows a certificate must have it from one of these authorities; nobody has to.

    Raises CertificateError.
    """
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as problem:
        said = getattr(problem, "strerror", None) or str(problem)
        raise CertificateError(f"--client-ca-file {ca_file}: {said}") from None
    context.verify_mode = ssl.CERT_OPTIONAL


def _context(cert_file: str, key_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_file, key_file)
    return context


def _self_signed(host: str, now: datetime) -> bytes:
    """Key and certificate as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bayplan@{int(now.timestamp())}")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), *_names(host)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - _BACKDATED).not_valid_after(now + _VALID)
    builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key.private_bytes(*form) + certificate.public_bytes(Encoding.PEM)


def _names(host: str) -> Iterator[x509.GeneralName]:
    address: IPv4Address | IPv6Address
    try:
        address = ip_address(host)
    except ValueError:
        yield x509.DNSName(host)
    else:
        yield x509.IPAddress(address)
