"""Access to the endpoints: the API server decides, as it does for kube-scheduler.

A bearer token is checked by a TokenReview; a client certificate, which TLS has verified, names its
user. A SubjectAccessReview then decides whether the user may get the path as a non-resource URL.
Both answers, positive or negative, are cached, for ten seconds by default. Paths of probes are open
to everyone. Upstream: apiserver's DelegatingAuthenticationOptions and
DelegatingAuthorizationOptions.

Any peer that opens a connection causes these requests, so they are limited: in flight, per second,
and per peer address, so that a flood from one address does not use up the reviews of another. A
request beyond a limit gets 429. Tokens are cached as digests.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final

from bayplan.clock import Clock
from bayplan.ports import ApiError, OutcomeUnknownError
from bayplan.serving.http_server import PeerRates, Rate

#: Upstream: --authorization-always-allow-paths.
OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz"))
#: Upstream: CacheTTL, AllowCacheTTL and DenyCacheTTL of the delegating options.
CACHE_SECONDS = 10.0
_CACHE_ENTRIES_MAX = 1000
#: Reviews in flight at once. Each is at most two requests.
REVIEWS_IN_FLIGHT_MAX = 10
REVIEWS_RATE = Rate(per_second=20.0, burst=40)
REVIEWS_RATE_PER_PEER = Rate(per_second=5.0, burst=20)
#: One review with everything it waits for.
REVIEW_SECONDS_MAX = 5.0

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

#: Creates a review at the API server and returns it with its status filled in.
Review = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """The open paths, and how long the API server's answers are cached."""

    #: A path that ends in "*" stands for all paths with this prefix.
    open_paths: frozenset[str] = OPEN_PATHS
    token_seconds: float = CACHE_SECONDS
    allowed_seconds: float = CACHE_SECONDS
    denied_seconds: float = CACHE_SECONDS

    def is_open(self, path: str) -> bool:
        """Upstream: apiserver's authorization/path."""
        return path in self.open_paths or any(
            path.startswith(open_path[:-1])
            for open_path in self.open_paths
            if open_path.endswith("*")
        )


@dataclass(frozen=True, slots=True)
class Denial:
    """An HTTP status with its reason."""

    status: int
    text: str
    #: The Retry-After of a 429 in seconds; 0: no such header.
    retry_after_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    """The user of a client certificate."""

    name: str
    groups: tuple[str, ...] = ()


def owner_of(certificate: Mapping[str, Any] | None) -> Owner | None:
    """Common name and organizations of the certificate that ssl's getpeercert returns; None: no
    certificate.

    Upstream: apiserver's CommonNameUserConversion.
    """
    subject = (pair for part in (certificate or {}).get("subject", ()) for pair in part)
    attributes = [(key, value) for key, value in subject if value]
    names = [value for key, value in attributes if key == "commonName"]
    groups = tuple(value for key, value in attributes if key == "organizationName")
    return Owner(names[-1], (*groups, "system:authenticated")) if names else None


class Access(Protocol):
    """Decides which requests are answered."""

    async def denial(
        self, path: str, authorization: str, owner: Owner | None, peer: str = ""
    ) -> Denial | None:
        """The refusal of a request; None: the request is answered.

        ``authorization``: the header, "" without one; ``owner``: the user of the client
        certificate; ``peer``: the address of the caller.
        """
        ...


@final
class OpenAccess:
    """Answers every request; for a server on loopback."""

    async def denial(
        self, path: str, authorization: str, owner: Owner | None, peer: str = ""
    ) -> Denial | None:
        return None


@final
class ReviewedAccess:
    """Asks the API server about each request."""

    def __init__(self, review: Review, clock: Clock, policy: AccessPolicy | None = None) -> None:
        self._review = review
        self._policy = policy = policy or AccessPolicy()
        self._rates = PeerRates(REVIEWS_RATE_PER_PEER, clock, total=REVIEWS_RATE)
        self._in_flight_count = 0
        self._users: _Answers[dict[str, Any] | Denial] = _Answers(
            clock, lambda user: policy.token_seconds
        )
        self._accesses: _Answers[Denial | None] = _Answers(
            clock, lambda denial: policy.denied_seconds if denial else policy.allowed_seconds
        )

    async def denial(
        self, path: str, authorization: str, owner: Owner | None, peer: str = ""
    ) -> Denial | None:
        if self._policy.is_open(path):
            return None
        try:
            return await self._decision(path, authorization, owner, peer)
        except _NotReviewedError as problem:
            return problem.denial

    async def _decision(
        self, path: str, authorization: str, owner: Owner | None, peer: str
    ) -> Denial | None:
        """Raises _NotReviewedError."""
        # As upstream, a certificate comes first.
        if owner is not None:
            user = {"username": owner.name, "groups": list(owner.groups)}
            return await self._access(owner, user, path, peer)
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Denial(401, "Unauthorized: a bearer token or a client certificate is wanted")
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        reviewed = await self._users.get(digest, lambda: self._user(token, peer))
        return (
            reviewed
            if isinstance(reviewed, Denial)
            else await self._access(digest, reviewed, path, peer)
        )

    async def _access(
        self, identity: Hashable, user: dict[str, Any], path: str, peer: str
    ) -> Denial | None:
        return await self._accesses.get((identity, path), lambda: self._reviewed(user, path, peer))

    # ---- reviews ----------------------------------------------------------------------------

    async def _user(self, token: str, peer: str) -> dict[str, Any] | Denial:
        """The user of a bearer token. Raises _NotReviewedError."""
        status = await self._status(TOKEN_REVIEWS, "TokenReview", {"token": token}, peer)
        if not status.get("authenticated"):
            return Denial(401, "Unauthorized: the token is not accepted")
        return status.get("user") or {}

    async def _reviewed(self, user: dict[str, Any], path: str, peer: str) -> Denial | None:
        """Raises _NotReviewedError."""
        spec: dict[str, Any] = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        if (await self._status(ACCESS_REVIEWS, "SubjectAccessReview", spec, peer)).get("allowed"):
            return None
        name = user.get("username", "")
        return Denial(403, f'Forbidden: User "{name}" cannot get path "{path}"')

    async def _status(
        self, path: str, kind: str, spec: dict[str, Any], peer: str
    ) -> dict[str, Any]:
        """The status of one review. Raises _NotReviewedError."""
        if self._in_flight_count >= REVIEWS_IN_FLIGHT_MAX or not self._rates.try_take(peer):
            raise _NotReviewedError(_TOO_MANY)
        self._in_flight_count += 1
        try:
            group = path.rpartition("/")[0].removeprefix("/apis/")
            content = {"apiVersion": group, "kind": kind, "spec": spec}
            async with asyncio.timeout(REVIEW_SECONDS_MAX):
                return (await self._review(path, content)).get("status") or {}
        except (ApiError, OutcomeUnknownError) as problem:
            text = f"the API server cannot be asked who you are: {problem}"
            raise _NotReviewedError(Denial(503, text)) from None
        except TimeoutError:
            text = f"the API server did not say within {REVIEW_SECONDS_MAX:g} s who you are"
            raise _NotReviewedError(Denial(503, text)) from None
        finally:
            self._in_flight_count -= 1


class _NotReviewedError(Exception):
    """The API server did not answer. Nothing is cached."""

    def __init__(self, denial: Denial) -> None:
        super().__init__(denial.text)
        self.denial = denial


_TOO_MANY = Denial(
    429,
    "Too Many Requests: the API server is already being asked about other callers",
    retry_after_seconds=1,
)


@final
class _Answers(Generic[T]):
    """A bounded cache of the API server's answers by question. Each expires, and the oldest leaves
    first.

    Concurrent callers with the same question share one request.
    """

    def __init__(self, clock: Clock, valid_seconds: Callable[[T], float]) -> None:
        self._clock = clock
        self._valid_seconds = valid_seconds
        #: Question → (time of the answer, answer); oldest first.
        self._entries: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._pending: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, question: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The cached answer, or that of ``ask``. Raises as ``ask`` does."""
        entry = self._entries.get(question)
        if entry is not None and self._clock.now() - entry[0] < self._valid_seconds(entry[1]):
            return entry[1]
        task = self._pending.get(question)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._fill(question, ask()))
            self._pending[question] = task
        return await asyncio.shield(task)

    async def _fill(self, question: Hashable, asking: Coroutine[Any, Any, T]) -> T:
        try:
            answer = await asking
        finally:
            del self._pending[question]
        self._entries.pop(question, None)
        if len(self._entries) >= _CACHE_ENTRIES_MAX:
            self._entries.popitem(last=False)
        self._entries[question] = (self._clock.now(), answer)
        return answer
