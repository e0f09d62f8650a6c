"""TLS towards an extender, as upstream's tlsConfig has it.

Whom to trust: the given CA and nobody else; without one, anybody where enableHTTPS or insecure
says so, else the system's CAs. Upstream: makeTransport in extender.go, and client-go's
TLSConfigFor.
"""

import ssl
import tempfile
from pathlib import Path

from bayplan.config.problems import ConfigError
from bayplan.config.schema import Extender, ExtenderTLSConfig
from bayplan.problems import Problem


def ssl_context(path: str, entry: Extender) -> ssl.SSLContext:
    """``path``: where the entry stands in the configuration. Raises ConfigError."""
    given = entry.tls_config or ExtenderTLSConfig()
    has_ca = bool(given.ca_file or given.ca_data)
    if given.insecure and has_ca:
        wanted = "wanted one of them: what is not checked needs no CA"
        raise ConfigError([Problem(f"{path}.tlsConfig", "found insecure and a CA", wanted)])
    try:
        context = _trusting(given) if has_ca else ssl.create_default_context()
        # Clusters' own certificates lack extensions that Python 3.13 asks for and Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if given.insecure or (entry.enable_https and not has_ca):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _show_certificate(context, given)
    except (OSError, ssl.SSLError, ValueError) as problem:
        named = [f for f in (given.ca_file, given.cert_file, given.key_file) if f]
        said = getattr(problem, "strerror", None) or str(problem)
        found = f"{', '.join(named)}: {said}" if named else said
        raise ConfigError([Problem(f"{path}.tlsConfig", found)]) from None
    return context


def _trusting(given: ExtenderTLSConfig) -> ssl.SSLContext:
    """Data counts before a file."""
    data = given.ca_data.decode("ascii") if given.ca_data else None
    file = None if data else given.ca_file
    return ssl.create_default_context(cafile=file, cadata=data)


def _show_certificate(context: ssl.SSLContext, given: ExtenderTLSConfig) -> None:
    has_certificate = given.cert_data or given.cert_file
    has_key = given.key_data or given.key_file
    if not has_certificate and not has_key:
        return
    if not (has_certificate and has_key):
        raise ValueError("found a client certificate without its key, or a key alone; wanted both")
    # OpenSSL reads certificates from files only.
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        context.load_cert_chain(
            _as_file(given.cert_data, given.cert_file, Path(folder, "cert.pem")),
            _as_file(given.key_data, given.key_file, Path(folder, "key.pem")),
        )


def _as_file(data: bytes, file: str, place: Path) -> str:
    if not data:
        return file
    place.touch(mode=0o600)
    place.write_bytes(data)
    return str(place)
