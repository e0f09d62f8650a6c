"""Access control of the endpoints."""

import asyncio
from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.ports import ApiError
from bayplan.serving.access import (
    ACCESS_REVIEWS,
    CACHE_SECONDS,
    REVIEW_SECONDS_MAX,
    REVIEWS_IN_FLIGHT_MAX,
    REVIEWS_RATE,
    REVIEWS_RATE_PER_PEER,
    TOKEN_REVIEWS,
    AccessPolicy,
    OpenAccess,
    Owner,
    ReviewedAccess,
    owner_of,
)
from bayplan.sim.loop import run


class Reviewer:
    """An API server that accepts one token."""

    def __init__(self) -> None:
        self.reviews: list[tuple[str, dict[str, Any]]] = []
        self.allows = True
        self.problem: Exception | None = None

    async def __call__(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        self.reviews.append((path, review["spec"]))
        if self.problem is not None:
            raise self.problem
        if path == TOKEN_REVIEWS:
            user = {"username": "prometheus", "groups": ["monitoring"], "uid": "7"}
            is_authenticated = review["spec"]["token"] == "good"
            return {
                "status": {
                    "authenticated": is_authenticated,
                    "user": user if is_authenticated else {},
                }
            }
        return {"status": {"allowed": self.allows}}


def denial(
    reviewer: Reviewer, path: str, authorization: str, owner: Owner | None = None
) -> tuple[int, str]:
    access = ReviewedAccess(reviewer, ManualClock())
    refusal = run(access.denial(path, authorization, owner), ManualClock())
    return (200, "") if refusal is None else (refusal.status, refusal.text)


def test_loopback_is_open() -> None:
    assert run(OpenAccess().denial("/metrics", "", None), ManualClock()) is None


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_need_no_token(path: str) -> None:
    reviewer = Reviewer()
    assert denial(reviewer, path, "") == (200, "")
    assert reviewer.reviews == []


def test_a_user_that_the_api_server_allows_may_read() -> None:
    reviewer = Reviewer()
    assert denial(reviewer, "/metrics", "Bearer good") == (200, "")
    (_, _), (path, spec) = reviewer.reviews
    assert path == ACCESS_REVIEWS
    assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
    assert (spec["user"], spec["groups"], spec["uid"]) == ("prometheus", ["monitoring"], "7")


@pytest.mark.parametrize("authorization", ["", "Basic Zm9v", "Bearer", "Bearer  "])
def test_without_a_token_no_review_is_made(authorization: str) -> None:
    reviewer = Reviewer()
    assert denial(reviewer, "/metrics", authorization)[0] == 401
    assert reviewer.reviews == []


def test_an_unknown_token_is_refused() -> None:
    assert denial(Reviewer(), "/metrics", "Bearer bad")[0] == 401


def test_a_forbidden_user_gets_name_and_path() -> None:
    reviewer = Reviewer()
    reviewer.allows = False
    text = 'Forbidden: User "prometheus" cannot get path "/metrics"'
    assert denial(reviewer, "/metrics", "Bearer good") == (403, text)


def test_if_the_api_server_cannot_be_reached_access_is_refused() -> None:
    reviewer = Reviewer()
    reviewer.problem = ApiError(403, "Forbidden", "cannot create tokenreviews")
    status, text = denial(reviewer, "/metrics", "Bearer good")
    assert status == 503
    assert "cannot create tokenreviews" in text


def test_reviews_are_cached_for_a_while() -> None:
    """The cache has the user of a token and the rights of a user separately, including refusals."""
    reviewer, clock = Reviewer(), ManualClock()
    access = ReviewedAccess(reviewer, clock)

    def ask(path: str, token: str) -> int:
        run(access.denial(path, f"Bearer {token}", None), clock)
        return len(reviewer.reviews)

    assert [ask("/metrics", "good"), ask("/metrics", "good")] == [2, 2]
    assert ask("/configz", "good") == 3
    assert [ask("/metrics", "bad"), ask("/configz", "bad")] == [4, 4]
    clock.advance_to(CACHE_SECONDS)
    assert ask("/metrics", "good") == 6
    assert ask("/metrics", "bad") == 7


class MuteReviewer:
    """An API server that answers only after its release."""

    def __init__(self) -> None:
        self.count = 0
        self.is_released = asyncio.Event()

    async def __call__(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        await self.is_released.wait()
        return {"status": {"authenticated": True, "allowed": True}}


async def statuses(access: ReviewedAccess, requests: list[tuple[str, str]]) -> list[int]:
    """The statuses of concurrent requests by (token, peer address)."""
    denials = await asyncio.gather(
        *(access.denial("/metrics", f"Bearer {token}", None, peer) for token, peer in requests)
    )
    return [200 if denial is None else denial.status for denial in denials]


async def test_concurrent_requests_with_one_token_share_one_review() -> None:
    reviewer = MuteReviewer()
    access = ReviewedAccess(reviewer, ManualClock())
    asking = asyncio.ensure_future(statuses(access, [("one", "10.0.0.1")] * 100))
    await asyncio.sleep(0)
    reviewer.is_released.set()
    assert await asking == [200] * 100
    assert reviewer.count == 2


async def test_more_reviews_than_allowed_in_flight_get_too_many_requests() -> None:
    reviewer = MuteReviewer()
    access = ReviewedAccess(reviewer, ManualClock())
    requests = [(f"t{number}", f"10.0.0.{number}") for number in range(50)]
    asking = asyncio.ensure_future(statuses(access, requests))
    while reviewer.count < REVIEWS_IN_FLIGHT_MAX:
        await asyncio.sleep(0)
    assert reviewer.count == REVIEWS_IN_FLIGHT_MAX
    denial = await access.denial("/metrics", "Bearer more", None, "10.0.1.1")
    assert denial is not None
    assert (denial.status, denial.retry_after_seconds) == (429, 1)
    reviewer.is_released.set()
    assert sorted(await asking)[REVIEWS_IN_FLIGHT_MAX:] == [429] * 40


async def test_a_flood_from_one_address_does_not_block_another_address() -> None:
    reviewer, clock = Reviewer(), ManualClock()
    access = ReviewedAccess(reviewer, clock)
    flood = [await statuses(access, [(f"junk{n}", "10.0.0.1")]) for n in range(3000)]
    assert flood.count([401]) == REVIEWS_RATE_PER_PEER.burst
    assert flood.count([429]) == 3000 - REVIEWS_RATE_PER_PEER.burst
    assert await statuses(access, [("good", "10.0.0.2")]) == [200]
    clock.advance_to(1.0)
    flood = [await statuses(access, [(f"more{n}", "10.0.0.1")]) for n in range(3000)]
    assert flood.count([401]) == REVIEWS_RATE_PER_PEER.per_second


async def test_a_flood_from_many_addresses_evicts_no_accepted_token() -> None:
    reviewer, clock = Reviewer(), ManualClock()
    access = ReviewedAccess(reviewer, clock)
    assert await statuses(access, [("good", "10.1.0.1")]) == [200]
    for number in range(2000):
        await statuses(access, [(f"junk{number}", f"10.0.{number % 250}.1")])
        assert await statuses(access, [("good", "10.1.0.1")]) == [200]
    assert len(reviewer.reviews) == REVIEWS_RATE.burst


def test_a_review_without_an_answer_times_out() -> None:
    clock = ManualClock()
    access = ReviewedAccess(MuteReviewer(), clock)
    denial = run(access.denial("/metrics", "Bearer slow", None), clock)
    assert denial is not None
    assert (denial.status, clock.now()) == (503, REVIEW_SECONDS_MAX)


def test_a_certificate_identifies_the_user_and_precedes_a_token() -> None:
    reviewer = Reviewer()
    owner = Owner("ops", ("admins", "system:authenticated"))
    assert denial(reviewer, "/metrics", "Bearer bad", owner) == (200, "")
    [(path, spec)] = reviewer.reviews
    assert path == ACCESS_REVIEWS
    assert (spec["user"], spec["groups"]) == ("ops", ["admins", "system:authenticated"])
    reviewer.allows = False
    text = 'Forbidden: User "ops" cannot get path "/metrics"'
    assert denial(reviewer, "/metrics", "", owner) == (403, text)


def test_the_owner_of_a_certificate_is_its_common_name_with_organizations() -> None:
    subject = (
        (("organizationName", "a"),),
        (("organizationName", "b"), ("countryName", "CH")),
        (("commonName", "ops"),),
    )
    assert owner_of({"subject": subject}) == Owner("ops", ("a", "b", "system:authenticated"))


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ((("commonName", ""),),)}])
def test_without_a_name_there_is_no_owner(certificate: Any) -> None:
    assert owner_of(certificate) is None


def test_open_paths_are_configured_by_a_flag() -> None:
    policy = AccessPolicy(open_paths=frozenset(("/metrics", "/debug/*")))
    assert policy.is_open("/metrics")
    assert policy.is_open("/debug/journal")
    assert not policy.is_open("/livez")
    assert not policy.is_open("/metrics/more")


async def test_cache_durations_are_configured_by_flags() -> None:
    reviewer, clock = Reviewer(), ManualClock()
    policy = AccessPolicy(token_seconds=100, allowed_seconds=20, denied_seconds=5)
    access = ReviewedAccess(reviewer, clock, policy)

    async def paths() -> list[str]:
        reviewer.reviews.clear()
        await access.denial("/metrics", "Bearer good", None)
        return [path for path, _ in reviewer.reviews]

    assert await paths() == [TOKEN_REVIEWS, ACCESS_REVIEWS]
    clock.advance_to(19)
    assert await paths() == []
    reviewer.allows = False
    clock.advance_to(20)
    assert await paths() == [ACCESS_REVIEWS]
    clock.advance_to(25)
    assert await paths() == [ACCESS_REVIEWS]
    clock.advance_to(100)
    assert await paths() == [TOKEN_REVIEWS, ACCESS_REVIEWS]
