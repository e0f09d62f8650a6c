"""Refusals of a real API server as the exceptions of `bayplan.ports`.

The message is the server's own sentence, which names user, verb, resource and object. If the server
did not answer itself, the request is put in front of the message.
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
#: Longer messages are cut. A refusal of an object with many faults has some thousand characters.
_MESSAGE_LENGTH_MAX = 4_000

T = TypeVar("T")


class LoginError(Exception):
    """There is no login, or it is invalid. One line."""


class UnreachableError(ApiError):
    """No server answered, and the request had no effect."""

    def __init__(self, message: str) -> None:
        super().__init__(503, "ServiceUnavailable", message)


class UnreadableAnswerError(UnreachableError):
    """A success status with a body that is no API object: probably a proxy answered."""


class UntrustedServerError(UnreachableError):
    """The server's certificate is not trusted. A retry would end the same way."""

    def __init__(self, request: str, server: str, problem: Exception) -> None:
        super().__init__(
            f"{request}: the certificate of {server} is not trusted: {problem}; check the "
            f"kubeconfig's certificate-authority, and tls-server-name where the names differ"
        )


class WatchStalledError(WatchDroppedError):
    """The server does not answer a watch, or sends nothing more."""


class AccessDeniedError(ApiError):
    """401 or 403: the credentials are not accepted, or the user lacks a right."""


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: tuple[_Cause, ...] | None = None


class ApiStatus(msgspec.Struct):
    """The API's Status object, which a refusal carries."""

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
    """The message for an unreadable answer, with a possible cause."""
    return (
        f"{request}: found an answer that is not an API server's ({problem}): "
        f"{bytes(body)[:_SHOWN_BYTES]!r}; is a proxy or a load balancer in between?"
    )


def refusal(code: int, body: bytes, request: str) -> ApiError:
    """The exception for an answer that is no success; ``request``: `GET /api/v1/nodes`."""
    return of_status(code, _status(code, body, request), request)


def of_status(code: int, status: ApiStatus, request: str) -> ApiError:
    """The exception for a Status object."""
    message = _shortened(status.message or "") or f"{request}: HTTP {code}"
    if code == NOT_FOUND:
        return NotFoundError(message)
    if code == GONE:
        return GoneError(message)
    # AlreadyExists is a 409, too, but a retry does not help.
    if code == CONFLICT and status.reason != "AlreadyExists":
        return ConflictError(message)
    reason = status.reason or "Unknown"
    if code == UNAUTHORIZED:
        return AccessDeniedError(code, reason, _unauthorized(request))
    if code == FORBIDDEN and " cannot " in message:
        return AccessDeniedError(code, reason, message)
    return ApiError(code, reason, message)


def _shortened(text: str) -> str:
    """A message of the server, which may be of any length."""
    if len(text) <= _MESSAGE_LENGTH_MAX:
        return text
    return f"{text[:_MESSAGE_LENGTH_MAX]}… ({len(text):,} characters)"


def _unauthorized(request: str) -> str:
    return (
        f"{request}: the API server does not accept our credentials (401 Unauthorized); check the "
        f"token, certificate or exec plugin of the kubeconfig, or the ServiceAccount of the pod"
    )


def _status(code: int, body: bytes, request: str) -> ApiStatus:
    """The Status object of a body. For other bodies, as proxies send, the start of the text."""
    try:
        return msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        text = " ".join(body[:_MESSAGE_LENGTH_MAX].decode(errors="replace").split())[:200]
        return ApiStatus(message=f"{request}: HTTP {code}: {text}" if text else None)


#: Parts of the server's message for a wrong uid in a patch, a deletion and a binding.
_OTHER_UID = ("metadata.uid: Invalid value", "the UID in the precondition", "UID in precondition")


def is_uid_mismatch(problem: ApiError) -> bool:
    """Whether the server refused because the object of that name has another uid."""
    is_refused = problem.code in (CONFLICT, INVALID)
    return is_refused and any(words in str(problem) for words in _OTHER_UID)
