"""The ports of the core."""

import pytest

from bayplan import ports
from bayplan.api.objects import Condition


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (ports.NotFoundError("pods web"), 404, "NotFound"),
        (ports.ConflictError("pods web"), 409, "Conflict"),
        (ports.GoneError("pods web"), 410, "Expired"),
        (ports.ApiError(403, "Forbidden", "pods web"), 403, "Forbidden"),
    ],
)
def test_a_refusal_has_code_reason_and_message_of_the_api(
    error: ports.ApiError, code: int, reason: str
) -> None:
    assert isinstance(error, ports.ApiError)
    assert (error.code, error.reason, str(error)) == (code, reason, "pods web")


@pytest.mark.parametrize("error", [ports.OutcomeUnknownError, ports.WatchDroppedError])
def test_unknown_outcomes_and_ended_watches_are_not_refusals(error: type[Exception]) -> None:
    """A call without an answer may have succeeded, and the end of a watch refuses no request."""
    assert not issubclass(error, ports.ApiError)


@pytest.mark.parametrize(
    ("older", "newer", "both"),
    [
        pytest.param(("a", None), ("b", None), ("b", None), id="the newer condition"),
        pytest.param(("a", "n1"), (None, "n2"), ("a", "n2"), id="the newer nomination"),
        pytest.param(
            ("a", "n1"),
            ("b", None),
            ("b", "n1"),
            id="a nomination that the newer patch does not change",
        ),
        pytest.param((None, "n1"), ("b", ""), ("b", ""), id="a nomination cleared"),
    ],
)
def test_two_status_patches_are_merged(
    older: tuple[str | None, str | None],
    newer: tuple[str | None, str | None],
    both: tuple[str | None, str | None],
) -> None:
    assert patch(*older).merged_with(patch(*newer)) == patch(*both)


def patch(message: str | None, nominated: str | None) -> ports.PatchPodStatus:
    condition = Condition(type="PodScheduled", message=message) if message else None
    return ports.PatchPodStatus("default", "p", "uid", condition, nominated)


def test_event_types_have_the_spelling_of_the_wire() -> None:
    spelled = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    assert [str(each) for each in ports.EventType] == spelled
