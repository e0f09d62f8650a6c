"""The plain kind of kubeconfig: one file, a token, a token file or a client certificate.

It is read here because kubernetes_asyncio, which reads every kind, costs a third of a second and
39 MB (docs/decisions/0006). What is anything but plain is left to it: exec plugins, auth
providers, passwords, impersonation, files joined, and whatever makes no sense, about which it
complains.
"""

import base64
import binascii
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from bayplan.adapters.live.login import Login

# libyaml's where it was built in; the loaders differ in speed only.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Cluster(Struct, rename="kebab", forbid_unknown_fields=True):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: object = None


class _User(Struct, rename="kebab", forbid_unknown_fields=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""


class _Context(Struct):
    cluster: str
    user: str


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


def plain_login(path: Path) -> Login | None:
    """None: it is not of the plain kind. Raises OSError where a file that it names is missing."""
    try:
        file = msgspec.convert(yaml.load(path.read_bytes(), _Loader), _File)
        named = {each.name: each.context for each in reversed(file.contexts)}
        context = named[file.current_context]
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


def _login(cluster: _Cluster, user: _User, folder: Path) -> Login:
    """Paths count from the kubeconfig; what is given as data wins."""
    ca = _content(cluster.certificate_authority_data, cluster.certificate_authority, folder)
    token = user.token or (_content("", user.token_file, folder) or b"").decode().strip()
    certificate = _content(user.client_certificate_data, user.client_certificate, folder)
    key = _content(user.client_key_data, user.client_key, folder) or certificate
    return Login(
        server=cluster.server.rstrip("/"),
        authorization=f"Bearer {token}" if token else "",
        ca=ca,
        certificate=(certificate, key) if certificate and key else None,
        is_verified=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or None,
    )


def _content(data: str, path: str, folder: Path) -> bytes | None:
    if data:
        return base64.b64decode(data, validate=True)
    return (folder / path).read_bytes() if path else None
