"""Admission reviews: the request of an API server, and the answer, which always allows.

Upstream: k8s.io/api/admission/v1.
"""

from typing import Any, Final, final

import msgspec
from msgspec import Raw, Struct

_API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"
_CREATE: Final = "CREATE"


class UnreadableReviewError(Exception):
    """The body of a request is no AdmissionReview of admission.k8s.io/v1."""


class _Kind(Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        version = f"{self.group}/{self.version}" if self.group else self.version
        return f"{version} {self.kind}"


@final
class Review(Struct, frozen=True, rename="camel"):
    """One request."""

    uid: str
    kind: _Kind = _Kind()
    namespace: str = ""
    operation: str = ""
    #: A subresource, as pods/binding; "": the object itself.
    sub_resource: str = ""
    object: Raw = Raw(b"null")

    @property
    def is_creation(self) -> bool:
        """Whether an object is created, not changed, and no subresource of one."""
        return self.operation == _CREATE and not self.sub_resource

    def content(self) -> dict[str, Any]:
        """The object. Raises UnreadableReviewError."""
        try:
            return msgspec.json.decode(self.object, type=dict[str, Any])
        except msgspec.MsgspecError as problem:
            raise UnreadableReviewError(f"request.object: {problem}") from None


class _Document(Struct, rename="camel"):
    request: Review
    api_version: str = ""
    kind: str = ""


def read_review(body: bytes) -> Review:
    """Raises UnreadableReviewError."""
    try:
        document = msgspec.json.decode(body, type=_Document)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise UnreadableReviewError(str(problem)) from None
    if (document.api_version, document.kind) != (_API_VERSION, _KIND):
        raise UnreadableReviewError(f"wanted {_KIND} of {_API_VERSION}")
    return document.request


def answer_of(uid: str, warning: str = "") -> dict[str, Any]:
    """The answer to a request: it is allowed, with at most one warning."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if warning:
        response["warnings"] = [warning]
    return {"apiVersion": _API_VERSION, "kind": _KIND, "response": response}
