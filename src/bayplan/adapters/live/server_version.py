"""The release that an API server reports at /version."""

from typing import Any, cast

from bayplan.adapters.live.client import ApiClient
from bayplan.config.cluster_version import NOTHING_REPORTED, ReportedReleases
from bayplan.ports import ApiError


async def reported_by_server(client: ApiClient) -> ReportedReleases:
    """Nothing if the server does not say it."""
    try:
        answer = await client.get("/version")
    except ApiError:
        return NOTHING_REPORTED
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    release = str(fields.get("gitVersion") or "")
    return ReportedReleases((release,), "the API server is") if release else NOTHING_REPORTED
