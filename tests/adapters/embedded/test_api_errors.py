"""Refusals have upstream's code, reason and message."""

import pytest

from bayplan.adapters.embedded.api_errors import (
    AlreadyExistsError,
    ForbiddenError,
    InvalidError,
    modified,
    no_such_object,
    not_bindable,
    other_uid,
)
from bayplan.objects.keys import object_key
from bayplan.ports import ApiError

WEB = object_key("v1 Pod", "default", "web")


@pytest.mark.parametrize(
    ("error", "code", "reason", "words"),
    [
        (AlreadyExistsError(WEB), 409, "AlreadyExists", 'pods "web" already exists'),
        (InvalidError(WEB, "why"), 422, "Invalid", 'Pod "web" is invalid: why'),
        (ForbiddenError(WEB, "why"), 403, "Forbidden", 'pods "web" is forbidden: why'),
        (no_such_object(WEB), 404, "NotFound", 'pods "web" not found'),
        (modified(WEB), 409, "Conflict", "the object has been modified"),
        (other_uid(WEB, "a", "b"), 409, "Conflict", "in precondition: a, UID in object meta: b"),
        (not_bindable(WEB, "is bound"), 409, "Conflict", 'pods/binding "web": pod web is bound'),
    ],
)
def test_every_refusal_is_an_api_error(error: ApiError, code: int, reason: str, words: str) -> None:
    assert (error.code, error.reason) == (code, reason)
    assert words in str(error)
