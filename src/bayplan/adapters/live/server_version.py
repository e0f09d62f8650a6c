"""The release that an API server reports at /version."""

import msgspec

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.errors import AccessDeniedError, UnreadableAnswerError, read_answer
from bayplan.config.cluster_version import NOTHING_REPORTED, ReportedReleases
from bayplan.ports import NotFoundError

_PATH = "/version"


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


async def reported_by_server(client: ApiClient) -> ReportedReleases:
    """Nothing if the server does not say it. Raises ApiError if the server does not answer."""
    try:
        answer = read_answer(await client.request("GET", _PATH), _Version, f"GET {_PATH}")
    except (AccessDeniedError, NotFoundError, UnreadableAnswerError):
        return NOTHING_REPORTED
    release = answer.git_version
    return ReportedReleases((release,), "the API server is") if release else NOTHING_REPORTED
