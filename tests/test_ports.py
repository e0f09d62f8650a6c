"""The outside as the core knows it."""

import pytest

from bayplan.ports import (
    ApiError,
    ConflictError,
    EventType,
    GoneError,
    NotFoundError,
    OutcomeUnknownError,
    WatchDroppedError,
)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (NotFoundError("pods web"), 404, "NotFound"),
        (ConflictError("pods web"), 409, "Conflict"),
        (GoneError("pods web"), 410, "Expired"),
        (ApiError(403, "Forbidden", "pods web"), 403, "Forbidden"),
    ],
)
def test_a_refusal_carries_what_the_api_says(error: ApiError, code: int, reason: str) -> None:
    assert isinstance(error, ApiError)
    assert (error.code, error.reason, str(error)) == (code, reason, "pods web")


@pytest.mark.parametrize("error", [OutcomeUnknownError, WatchDroppedError])
def test_what_is_no_refusal_is_told_apart(error: type[Exception]) -> None:
    """No answer may mean that it was done, and the end of a watch is nobody's refusal."""
    assert not issubclass(error, ApiError)


def test_event_types_are_spelled_as_on_the_wire() -> None:
    assert [str(each) for each in EventType] == ["ADDED", "MODIFIED", "DELETED"]
