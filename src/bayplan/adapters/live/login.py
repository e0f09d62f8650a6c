"""What a kubeconfig or a pod says about the API server and about us, whoever has read it."""

import contextlib
import ssl
from dataclasses import dataclass

from bayplan.adapters.live.pem_files import as_file

_HTTPS = "https"


class LoginError(Exception):
    """There is none, or it makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Where the API server is, how it is trusted, and how it knows us."""

    server: str
    #: The Authorization header, "" without one.
    authorization: str = ""
    #: Whose certificates are trusted, as PEM; None: whom the system trusts.
    ca: bytes | None = None
    #: Our certificate and its key, as PEM.
    certificate: tuple[bytes, bytes] | None = None
    is_verified: bool = True
    #: Whose certificate is wanted, where that is not the URL's host.
    server_name: str | None = None
    proxy: str | None = None


def ssl_context(login: Login) -> ssl.SSLContext | None:
    """None for plain HTTP. Raises ssl.SSLError."""
    if not login.server.startswith(_HTTPS):
        return None
    # Comments between certificates may be in any language.
    ca = None if login.ca is None else login.ca.decode("ascii", "ignore")
    context = ssl.create_default_context(cadata=ca)
    # Clusters' own certificates lack extensions that Python 3.13 asks for and Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not login.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if login.certificate is not None:
        load_certificate(context, login.certificate)
    return context


def load_certificate(context: ssl.SSLContext, certificate: tuple[bytes, bytes]) -> None:
    """New connections use this certificate."""
    with contextlib.ExitStack() as stack:
        context.load_cert_chain(*(stack.enter_context(as_file(part)) for part in certificate))
