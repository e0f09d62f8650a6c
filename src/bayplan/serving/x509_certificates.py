"""X.509 certificates: the names in one, and a self-signed one.

A module of its own, because the library takes a tenth of a second to import and few schedulers need
it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

#: The certificate is backdated, because clocks differ, and lasts longer than a process.
_BACKDATED, _VALID = timedelta(days=1), timedelta(days=3650)


def certified_names(pem: bytes) -> list[str]:
    """The common name and alternative DNS names of a certificate. Raises ValueError."""
    certificate = x509.load_pem_x509_certificate(pem)
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    names = [str(attribute.value) for attribute in common]
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return names
    return [*names, *extension.value.get_values_for_type(x509.DNSName)]


def self_signed(host: str, epoch_seconds: float) -> bytes:
    """A new key and its certificate for ``host``, as PEM."""
    now = datetime.fromtimestamp(epoch_seconds, tz=UTC)
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
