"""Who may read an endpoint."""

from typing import Any

import pytest

from bayplan.clock import ManualClock
from bayplan.ports import ApiError
from bayplan.serving.access import (
    ACCESS_REVIEWS,
    REMEMBERED_SECONDS,
    TOKEN_REVIEWS,
    OpenAccess,
    Owner,
    ReviewedAccess,
    owner_of,
)
from bayplan.sim.loop import run


class Reviewer:
    """An API server that knows one token."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.allows = True
        self.problem: Exception | None = None

    async def __call__(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path, review["spec"]))
        if self.problem is not None:
            raise self.problem
        if path == TOKEN_REVIEWS:
            user = {"username": "prometheus", "groups": ["monitoring"], "uid": "7"}
            known = review["spec"]["token"] == "good"
            return {"status": {"authenticated": known, "user": user if known else {}}}
        return {"status": {"allowed": self.allows}}


def denial(
    reviewer: Reviewer, path: str, authorization: str, owner: Owner | None = None
) -> tuple[int, str]:
    access = ReviewedAccess(reviewer, ManualClock())
    found = run(access.denial(path, authorization, owner), ManualClock())
    return (200, "") if found is None else (found.status, found.text)


def test_loopback_is_open() -> None:
    assert run(OpenAccess().denial("/metrics", "", None), ManualClock()) is None


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_need_no_token(path: str) -> None:
    reviewer = Reviewer()
    assert denial(reviewer, path, "") == (200, "")
    assert reviewer.asked == []


def test_whoever_the_api_server_allows_may_read() -> None:
    reviewer = Reviewer()
    assert denial(reviewer, "/metrics", "Bearer good") == (200, "")
    (_, _), (path, spec) = reviewer.asked
    assert path == ACCESS_REVIEWS
    assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
    assert (spec["user"], spec["groups"], spec["uid"]) == ("prometheus", ["monitoring"], "7")


@pytest.mark.parametrize("authorization", ["", "Basic Zm9v", "Bearer", "Bearer  "])
def test_without_a_token_nothing_is_asked(authorization: str) -> None:
    reviewer = Reviewer()
    assert denial(reviewer, "/metrics", authorization)[0] == 401
    assert reviewer.asked == []


def test_a_token_nobody_knows_is_refused() -> None:
    assert denial(Reviewer(), "/metrics", "Bearer bad")[0] == 401


def test_a_user_who_may_not_is_told_who_and_what() -> None:
    reviewer = Reviewer()
    reviewer.allows = False
    text = 'Forbidden: User "prometheus" cannot get path "/metrics"'
    assert denial(reviewer, "/metrics", "Bearer good") == (403, text)


def test_if_the_api_server_cannot_be_asked_nobody_may() -> None:
    reviewer = Reviewer()
    reviewer.problem = ApiError(403, "Forbidden", "cannot create tokenreviews")
    status, text = denial(reviewer, "/metrics", "Bearer good")
    assert status == 503
    assert "cannot create tokenreviews" in text


def test_answers_are_remembered_for_a_while_for_each_token_and_path() -> None:
    reviewer, clock = Reviewer(), ManualClock()
    access = ReviewedAccess(reviewer, clock)

    def ask(path: str, token: str) -> int:
        run(access.denial(path, f"Bearer {token}", None), clock)
        return len(reviewer.asked)

    assert [ask("/metrics", "good"), ask("/metrics", "good")] == [2, 2]
    assert ask("/configz", "good") == 4
    assert ask("/metrics", "bad") == 5
    clock.advance_to(REMEMBERED_SECONDS)
    assert ask("/metrics", "good") == 7


def test_a_certificate_says_who_asks_and_comes_before_a_token() -> None:
    reviewer = Reviewer()
    owner = Owner("ops", ("admins", "system:authenticated"))
    assert denial(reviewer, "/metrics", "Bearer bad", owner) == (200, "")
    [(path, spec)] = reviewer.asked
    assert path == ACCESS_REVIEWS
    assert (spec["user"], spec["groups"]) == ("ops", ["admins", "system:authenticated"])
    reviewer.allows = False
    text = 'Forbidden: User "ops" cannot get path "/metrics"'
    assert denial(reviewer, "/metrics", "", owner) == (403, text)


def test_a_certificates_owner_is_its_common_name_in_its_organizations() -> None:
    subject = (
        (("organizationName", "a"),),
        (("organizationName", "b"), ("countryName", "CH")),
        (("commonName", "ops"),),
    )
    assert owner_of({"subject": subject}) == Owner("ops", ("a", "b", "system:authenticated"))


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ((("commonName", ""),),)}])
def test_without_a_name_there_is_no_owner(certificate: Any) -> None:
    assert owner_of(certificate) is None
