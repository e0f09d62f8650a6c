"""How a real API server says no, as the exceptions of `bayplan.ports`.

The server's own sentence is kept: it names user, verb, resource and object. What was asked is put
in front where the server did not answer itself.
"""

from typing import TypeVar

import msgspec

from bayplan.ports import ApiError, ConflictError, GoneError, NotFoundError, WatchDroppedError

CONFLICT = 409
GONE = 410
NOT_FOUND = 404
INVALID = 422
TOO_MANY_REQUESTS = 429
UNAUTHORIZED = 401
FORBIDDEN = 403
SERVER_ERRORS = 500
_SHOWN_BYTES = 80

T = TypeVar("T")


class UnreachableError(ApiError):
    """No server answered, and nothing was carried out."""

    def __init__(self, message: str) -> None:
        super().__init__(503, "ServiceUnavailable", message)


class UnreadableAnswerError(UnreachableError):
    """A success in words that no API server uses: something else answered in its place."""


class UntrustedServerError(UnreachableError):
    """The server's certificate is not trusted: to try again ends the same way."""

    def __init__(self, request: str, server: str, problem: Exception) -> None:
        super().__init__(
            f"{request}: the certificate of {server} is not trusted: {problem}; check the "
            f"kubeconfig's certificate-authority, and tls-server-name where the names differ"
        )


class WatchStalledError(WatchDroppedError):
    """The server accepted a watch and does not answer, or sends nothing any more."""


class AccessDeniedError(ApiError):
    """401 or 403: the server does not know us, or we may not do this."""


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: tuple[_Cause, ...] | None = None


class Status(msgspec.Struct):
    """What the server answers in place of an object."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


def read_answer(body: bytes, kind: type[T], request: str) -> T:
    """The JSON of a successful answer. Raises UnreadableAnswerError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise UnreadableAnswerError(unreadable(request, body, problem)) from None


def unreadable(request: str, body: bytes, problem: Exception) -> str:
    """What was found in place of an API server's answer, and what may be the cause."""
    return (
        f"{request}: found an answer that is not an API server's ({problem}): "
        f"{body[:_SHOWN_BYTES]!r}; is a proxy or a load balancer in between?"
    )


def refusal(code: int, body: bytes, request: str) -> ApiError:
    """The exception for an answer that is no success; ``request``: `GET /api/v1/nodes`."""
    return of_status(code, _status(body), request)


def of_status(code: int, status: Status, request: str) -> ApiError:
    """The exception for a Status object."""
    message = status.message or f"{request}: HTTP {code}"
    if code == NOT_FOUND:
        return NotFoundError(message)
    if code == GONE:
        return GoneError(message)
    # A name that is taken is a conflict too, but not one that goes away by itself.
    if code == CONFLICT and status.reason != "AlreadyExists":
        return ConflictError(message)
    reason = status.reason or "Unknown"
    if code == UNAUTHORIZED:
        return AccessDeniedError(code, reason, _unauthorized(request))
    if code == FORBIDDEN and " cannot " in message:
        return AccessDeniedError(code, reason, message)
    return ApiError(code, reason, message)


def _unauthorized(request: str) -> str:
    return (
        f"{request}: the API server does not accept our credentials (401 Unauthorized); check the "
        f"token, certificate or exec plugin of the kubeconfig, or the ServiceAccount of the pod"
    )


def _status(body: bytes) -> Status:
    """Proxies and load balancers answer in other words: then the beginning of their text."""
    try:
        return msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = " ".join(body.decode(errors="replace").split())[:200]
        return Status(message=text or None)


#: How the server says it at a patch, a deletion and a binding.
_OTHER_UID = ("metadata.uid: Invalid value", "the UID in the precondition", "UID in precondition")


def is_uid_mismatch(problem: ApiError) -> bool:
    """Whether the object of that name is another one by now."""
    is_refused = problem.code in (CONFLICT, INVALID)
    return is_refused and any(words in str(problem) for words in _OTHER_UID)
