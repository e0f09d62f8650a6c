"""The notes of one attempt, and the scores of a node's devices."""

from bayplan.api.device_objects import AllocationResult
from bayplan.plugins.dynamic_resources.extended import special_claim
from bayplan.plugins.dynamic_resources.filtering import ClaimsAttempt, NodeAllocation, preference
from bayplan.testing import pod
from tests.plugins.devices_kit import allocated, as_claim, claim, exactly, first_of


def giving(*requests: str) -> AllocationResult:
    status = allocated(*(("n1", f"d{index}") for index in range(len(requests))))
    for result, name in zip(status["allocation"]["devices"]["results"], requests, strict=True):
        result["request"] = name
    allocation = as_claim(claim("x", status=status)).allocation
    assert allocation is not None
    return allocation


def test_the_first_alternative_of_each_request_has_the_highest_score() -> None:
    new_claim = as_claim(claim("c", first_of("r", a={}, b={}, c={}), first_of("q", a={}, b={})))
    attempt = ClaimsAttempt([new_claim], has_special=False)
    scores = [
        preference(attempt, NodeAllocation({0: giving(*chosen)}, None))
        for chosen in (("r/a", "q/a"), ("r/b", "q/a"), ("r/c", "q/b"))
    ]
    assert scores == [16, 15, 13]


def test_claims_that_are_allocated_already_count_too() -> None:
    content = claim("c", first_of("r", a={}, b={}), status=allocated(("n1", "x")))
    content["status"]["allocation"]["devices"]["results"][0]["request"] = "r/b"
    attempt = ClaimsAttempt([as_claim(content), as_claim(claim("d", exactly()))], has_special=False)
    assert preference(attempt, NodeAllocation({1: giving("r")}, None)) == 7


def test_the_claim_for_extended_resources_is_the_last_one_and_not_a_users() -> None:
    asking = pod("p")
    special, user = special_claim(asking, ()), as_claim(claim("c", exactly()))
    attempt = ClaimsAttempt([user, special], has_special=True)
    assert attempt.special is special
    assert attempt.user_claims() == [user]
    assert attempt.has_user_claims
    assert [attempt.is_special(index) for index in (0, 1)] == [False, True]
    assert not attempt.special_is_in_api
    assert [index for index, _ in attempt.unallocated()] == [0, 1]
    assert not ClaimsAttempt([special], has_special=True).has_user_claims
