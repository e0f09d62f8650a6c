"""Who may read an endpoint: asked of the API server, as kube-scheduler does.

A bearer token is reviewed (TokenReview); a client certificate, which TLS has checked, names its
owner itself. Then whoever it is is asked about with the path as a non-resource URL and the verb get
(SubjectAccessReview). Answers are remembered for ten seconds. Paths that probes ask for are open to
all. Upstream: apiserver's DelegatingAuthenticationOptions and DelegatingAuthorizationOptions.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

from bayplan.clock import Clock
from bayplan.ports import ApiError, OutcomeUnknownError

#: Upstream: --authorization-always-allow-paths.
OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz"))
REMEMBERED_SECONDS = 10.0
_REMEMBERED_MAX = 1000

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

#: Creates a review at the API server and returns it with its status filled in.
Review = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Denial:
    """An HTTP status and why."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a client certificate belongs to."""

    name: str
    groups: tuple[str, ...] = ()


def owner_of(certificate: Mapping[str, Any] | None) -> Owner | None:
    """As ssl's getpeercert tells it: common name and organizations. None: there is none.

    Upstream: apiserver's CommonNameUserConversion.
    """
    subject = (pair for part in (certificate or {}).get("subject", ()) for pair in part)
    found = [(key, value) for key, value in subject if value]
    names = [value for key, value in found if key == "commonName"]
    groups = tuple(value for key, value in found if key == "organizationName")
    return Owner(names[-1], (*groups, "system:authenticated")) if names else None


class Access(Protocol):
    """Decides about requests."""

    async def denial(self, path: str, authorization: str, owner: Owner | None) -> Denial | None:
        """None: it may be answered. ``authorization``: the header, "" without one; ``owner``: of
        the client certificate."""
        ...


@final
class OpenAccess:
    """Everybody may read everything: for loopback."""

    async def denial(self, path: str, authorization: str, owner: Owner | None) -> Denial | None:
        return None


@final
class ReviewedAccess:
    """The API server decides."""

    def __init__(self, review: Review, clock: Clock) -> None:
        self._review = review
        self._clock = clock
        #: (path, owner or token) → when it was answered, and what.
        self._answers: dict[tuple[str, Owner | str], tuple[float, Denial | None]] = {}

    async def denial(self, path: str, authorization: str, owner: Owner | None) -> Denial | None:
        if path in OPEN_PATHS:
            return None
        # As upstream, a certificate comes first.
        if owner is not None:
            return await self._remembered(path, owner)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Denial(401, "Unauthorized: a bearer token or a client certificate is wanted")
        return await self._remembered(path, token.strip())

    async def _remembered(self, path: str, who: Owner | str) -> Denial | None:
        now, key = self._clock.now(), (path, who)
        known = self._answers.get(key)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        try:
            answer = await self._reviewed(path, who)
        except (ApiError, OutcomeUnknownError) as problem:
            return Denial(503, f"the API server cannot be asked who you are: {problem}")
        if len(self._answers) >= _REMEMBERED_MAX:
            self._answers.clear()
        self._answers[key] = (now, answer)
        return answer

    async def _reviewed(self, path: str, who: Owner | str) -> Denial | None:
        if isinstance(who, Owner):
            user = {"username": who.name, "groups": list(who.groups)}
            return await self._refused(path, user)
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        found = await self._review(TOKEN_REVIEWS, {**kind, "spec": {"token": who}})
        status: dict[str, Any] = found.get("status") or {}
        if not status.get("authenticated"):
            return Denial(401, "Unauthorized: the token is not accepted")
        return await self._refused(path, status.get("user") or {})

    async def _refused(self, path: str, user: dict[str, Any]) -> Denial | None:
        name = user.get("username", "")
        if await self._may_get(path, user):
            return None
        text = f'Forbidden: User "{name}" cannot get path "{path}"'
        return Denial(403, text)

    async def _may_get(self, path: str, user: dict[str, Any]) -> bool:
        spec: dict[str, Any] = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        found = await self._review(ACCESS_REVIEWS, {**kind, "spec": spec})
        status: dict[str, Any] = found.get("status") or {}
        return bool(status.get("allowed"))
