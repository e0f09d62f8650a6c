"""Refusals of the API server become exceptions."""

import msgspec
import pytest

from bayplan.adapters.live.errors import AccessDeniedError, is_uid_mismatch, refusal
from bayplan.ports import ApiError, ConflictError, GoneError, NotFoundError


def refusal_of(code: int, reason: str, message: str) -> ApiError:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return refusal(code, msgspec.json.encode(body), "GET /api/v1/nodes")


@pytest.mark.parametrize(
    ("code", "reason", "message", "kind"),
    [
        (404, "NotFound", 'pods "web" not found', NotFoundError),
        (409, "Conflict", "the object has been modified", ConflictError),
        (410, "Expired", "too old resource version", GoneError),
        (
            403,
            "Forbidden",
            'User "x" cannot list resource "nodes" in API group ""',
            AccessDeniedError,
        ),
    ],
)
def test_each_refusal_has_its_own_exception_with_the_message_of_the_server(
    code: int, reason: str, message: str, kind: type[ApiError]
) -> None:
    problem = refusal_of(code, reason, message)
    assert type(problem) is kind
    assert (problem.code, problem.reason, str(problem)) == (code, reason, message)


def test_a_terminating_namespace_is_not_a_missing_right() -> None:
    message = 'pods "web" is forbidden: unable to create new content in namespace x because it is'
    assert type(refusal_of(403, "Forbidden", message)) is ApiError


def test_unknown_credentials_raise_with_a_hint() -> None:
    problem = refusal_of(401, "Unauthorized", "Unauthorized")
    assert isinstance(problem, AccessDeniedError)
    assert "GET /api/v1/nodes" in str(problem)
    assert "check the token" in str(problem)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"upstream\n is  away", ": upstream is away"),
        (b"", ""),
        (b"\xff\xfe", ": \ufffd\ufffd"),
        (b"[1]", ": [1]"),
    ],
)
def test_an_answer_of_a_proxy_is_reported_after_the_request(body: bytes, message: str) -> None:
    problem = refusal(502, body, "GET /api/v1/nodes")
    expected = f"GET /api/v1/nodes: HTTP 502{message}"
    assert (problem.code, problem.reason, str(problem)) == (502, "Unknown", expected)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(
            409,
            "Precondition failed: UID in precondition: a, UID in object meta: b",
            id="at a binding",
        ),
        pytest.param(
            409, "the UID in the precondition (a) does not match the UID in record (b)", id="delete"
        ),
        pytest.param(
            422,
            'Pod "p" is invalid: metadata.uid: Invalid value: "a": field is immutable',
            id="patch",
        ),
    ],
)
def test_a_uid_mismatch_is_recognized(code: int, message: str) -> None:
    assert is_uid_mismatch(ApiError(code, "", message))


def test_a_version_conflict_is_not_a_uid_mismatch() -> None:
    assert not is_uid_mismatch(ConflictError("the object has been modified"))
    assert not is_uid_mismatch(ApiError(500, "", "UID in precondition"))
