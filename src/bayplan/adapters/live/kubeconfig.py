"""Login: how to reach and trust the API server, and the reader of plain kubeconfigs.

A plain kubeconfig is one file with a token, a token file or a client certificate. There are two
readers, because neither suffices: kubernetes_asyncio reads every kubeconfig but costs a third of a
second and 39 MB at start (docs/decisions/0006), and this module reads only the plain ones. All
others (exec plugins, auth providers such as OIDC, passwords, joined files, and
malformed files, for their error messages) go to `library_login`.

`as_file` gives OpenSSL certificates and keys as files without writing them to a disk.
"""

import base64
import binascii
import contextlib
import os
import ssl
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from bayplan.adapters.live.errors import LoginError
from bayplan.adapters.live.impersonation import Headers, Impersonation
from bayplan.regular_files import read_regular_file
from bayplan.yaml_documents import DEPTH_MAX, is_nested_too_deep

# ---- login ----------------------------------------------------------------------------------


_HTTPS = "https"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The address of the API server, its trusted certificates, and the client's credentials."""

    server: str
    #: The Authorization header, "" without one.
    authorization: str = ""
    #: The user that the requests are made for, if it is not the one of the credentials.
    impersonation: Headers = ()
    #: Trusted certificate authorities, as PEM; None: those of the system.
    ca: bytes | None = None
    #: The client certificate and its key, as PEM.
    certificate: tuple[bytes, bytes] | None = None
    is_verified: bool = True
    #: The name in the server's certificate, if not the URL's host.
    server_name: str | None = None
    proxy: str | None = None


def ssl_context(login: Login) -> ssl.SSLContext | None:
    """None for plain HTTP. Raises ssl.SSLError."""
    if not login.server.startswith(_HTTPS):
        return None
    # Comments between certificates may be in any language.
    ca = None if login.ca is None else login.ca.decode("ascii", "ignore")
    context = ssl.create_default_context(cadata=ca)
    # Certificates of clusters lack extensions that Python 3.13 requires and Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not login.is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if login.certificate is not None:
        load_certificate(context, login.certificate)
    return context


def load_certificate(context: ssl.SSLContext, certificate: tuple[bytes, bytes]) -> None:
    """Set the certificate for new connections."""
    with contextlib.ExitStack() as stack:
        context.load_cert_chain(*(stack.enter_context(as_file(part)) for part in certificate))


# ---- pem files ------------------------------------------------------------------------------


@contextlib.contextmanager
def as_file(content: bytes) -> Generator[str]:
    """A path that OpenSSL can read. On Linux it is in memory, so no disk is written."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


# ---- kubeconfig -----------------------------------------------------------------------------


# libyaml's where it was built in; the loaders differ in speed only.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: A kubeconfig with hundreds of clusters is a few MiB; a certificate and a token are a few KiB.
_FILE_BYTES_MAX = 64 << 20
_PART_BYTES_MAX = 4 << 20


def read_kubeconfig(path: Path) -> Any:
    """The content of a kubeconfig as plain values. Raises OSError, yaml.YAMLError, LoginError.

    The loaders recurse, so a file that is nested deeply would end the process.
    """
    content = read_regular_file(path, _FILE_BYTES_MAX)
    if is_nested_too_deep(content):
        raise LoginError(f"{path} is nested more than {DEPTH_MAX} deep")
    return yaml.load(content, _Loader)


class _Cluster(Struct, rename="kebab", forbid_unknown_fields=True):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: object = None


class _User(Impersonation, rename="kebab", forbid_unknown_fields=True, kw_only=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""


class _Context(Struct):
    cluster: str
    user: str
    namespace: str = ""


class _NamedCluster(Struct):
    name: str
    cluster: object


class _NamedUser(Struct):
    name: str
    user: object


class _NamedContext(Struct):
    name: str
    context: _Context


class _File(Struct, rename="kebab"):
    current_context: str
    clusters: list[_NamedCluster]
    users: list[_NamedUser]
    contexts: list[_NamedContext]


def plain_login(path: Path, context_name: str = "") -> Login | None:
    """The login of a plain kubeconfig; None for others. Raises OSError for a missing file,
    LoginError.

    ``context_name``: "" for the current context.
    """
    try:
        file = msgspec.convert(read_kubeconfig(path), _File)
        named = {each.name: each.context for each in reversed(file.contexts)}
        context = named[context_name or file.current_context]
        clusters = {each.name: each.cluster for each in reversed(file.clusters)}
        users = {each.name: each.user for each in reversed(file.users)}
        cluster = msgspec.convert(clusters[context.cluster], _Cluster)
        user = msgspec.convert(users[context.user], _User)
    except (msgspec.ValidationError, yaml.YAMLError, UnicodeDecodeError, KeyError):
        return None
    try:
        return _login(cluster, user, path.absolute().parent)
    except binascii.Error:
        return None


def namespace_of(path: Path, context_name: str = "") -> str:
    """The namespace of a context; "" if the file does not name one or is no plain kubeconfig."""
    try:
        file = msgspec.convert(read_kubeconfig(path), _File)
        named = {each.name: each.context for each in reversed(file.contexts)}
        return named[context_name or file.current_context].namespace
    except (
        *(OSError, msgspec.ValidationError, yaml.YAMLError),
        *(UnicodeDecodeError, KeyError, LoginError),
    ):
        return ""


def _login(cluster: _Cluster, user: _User, folder: Path) -> Login:
    """Paths are relative to the kubeconfig. Data fields win over paths.

    Raises OSError, LoginError, binascii.Error.
    """
    ca = _content(cluster.certificate_authority_data, cluster.certificate_authority, folder)
    token = user.token or (_content("", user.token_file, folder) or b"").decode().strip()
    certificate = _content(user.client_certificate_data, user.client_certificate, folder)
    key = _content(user.client_key_data, user.client_key, folder) or certificate
    return Login(
        server=cluster.server.rstrip("/"),
        authorization=f"Bearer {token}" if token else "",
        impersonation=user.headers(),
        ca=ca,
        certificate=(certificate, key) if certificate and key else None,
        is_verified=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or None,
    )


def _content(data: str, path: str, folder: Path) -> bytes | None:
    if data:
        return base64.b64decode(data, validate=True)
    return read_regular_file(folder / path, _PART_BYTES_MAX) if path else None
