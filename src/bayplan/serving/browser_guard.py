"""Requests that a browser sends for a foreign page.

A server on loopback that asks for no credentials is reachable from every page a user opens: by a
cross-origin request, or by DNS rebinding, where the page's own name suddenly means 127.0.0.1. Both
are told from the user's own requests by the headers Origin and Host.
"""

from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

#: The headers of a request → why it is refused; "": it is not.
Guard = Callable[[Mapping[str, str]], str]

_TEXT_LENGTH_MAX = 100


def refuse_foreign_names(headers: Mapping[str, str]) -> str:
    """For a server on loopback: Host, and Origin where there is one, must name this machine."""
    host, origin = headers.get("Host", ""), headers.get("Origin")
    if host and not _is_local(f"//{host}"):
        return _forbidden("Host", host)
    if origin is not None and not _is_local(origin):
        return _forbidden("Origin", origin)
    return ""


def refuse_pages(headers: Mapping[str, str]) -> str:
    """For a server that no page has any business with, under whatever name it is known."""
    origin = headers.get("Origin")
    return "" if origin is None else f"Forbidden: a page of {_shown(origin)} may not ask here"


def answer_everybody(headers: Mapping[str, str]) -> str:
    """For a server that asks for credentials which no browser sends by itself."""
    return ""


def is_loopback(name: str) -> bool:
    """Whether a host name or address is this machine's loopback."""
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _is_local(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _forbidden(header: str, text: str) -> str:
    return f"Forbidden: {header} is {_shown(text)}, wanted localhost or an address of loopback"


def _shown(text: str) -> str:
    return ascii(text[:_TEXT_LENGTH_MAX])
