"""Impersonation: requests that an API server treats as another user's.

A kubeconfig's user may say `as`, `as-uid`, `as-groups` and `as-user-extra`. The client then sends
them as headers, and the API server checks that the credential may act for that user. Upstream:
client-go, transport/round_trippers.go (impersonatingRoundTripper) and
tools/clientcmd/validation.go.

A request without these headers would have all rights of the credential. So a value that cannot be
a header is an error, and never left out.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bayplan.adapters.live.errors import LoginError
from bayplan.problems import shown

#: Header lines: name, value.
Headers = tuple[tuple[str, str], ...]

#: What net/http refuses in a value: control characters other than a tab.
_NO_VALUE = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
#: What client-go writes as %XX in the name of a header.
_NO_NAME = re.compile(rb"[^!#$&'*+\-.0-9A-Z^_`a-z|~]")


class Impersonation(Struct, rename="kebab", kw_only=True):
    """The fields of a kubeconfig's user."""

    user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None

    def headers(self) -> Headers:
        """Raises LoginError: a value cannot be a header, or there is no user."""
        if not self.user:
            if self.as_uid or self.as_groups or self.as_user_extra:
                raise LoginError("found as-uid, as-groups or as-user-extra, wanted as, too")
            return ()
        headers = tuple((name, _value(field, text)) for field, name, text in self._lines())
        if not headers[0][1]:
            raise LoginError("as: found only spaces, wanted a user name")
        return headers

    def _lines(self) -> Iterator[tuple[str, str, str]]:
        """(field, header, value)."""
        yield "as", "Impersonate-User", self.user
        if self.as_uid:
            yield "as-uid", "Impersonate-Uid", self.as_uid
        for group in self.as_groups or ():
            yield "as-groups", "Impersonate-Group", group
        for key, values in (self.as_user_extra or {}).items():
            name = _NO_NAME.sub(lambda match: b"%%%02X" % match[0][0], key.encode(errors="replace"))
            for value in values:
                yield "as-user-extra", f"Impersonate-Extra-{name.decode()}", value


def impersonation_headers(user: Any) -> Headers:
    """The headers that the content of a kubeconfig's user asks for.

    Raises LoginError, msgspec.ValidationError.
    """
    return msgspec.convert(user, Impersonation).headers()


def _value(field: str, text: str) -> str:
    if _NO_VALUE.search(text):
        raise LoginError(f"{field}: found {shown(text)}, which cannot be a header of a request")
    return text.strip(" \t")
