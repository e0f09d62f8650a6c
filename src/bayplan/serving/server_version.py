"""The version that a process decides as: the one that is named, or that of the API server.

A process asks the API server once, at its start: after an upgrade of the cluster it decides as
before until it is started again.
"""

from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.server_version import reported_by_server
from bayplan.config import SchedulerConfig
from bayplan.config.cluster_version import NOTHING_REPORTED, VersionChoice, choose_version
from bayplan.serving.log_lines import Log


async def version_of_server(config: SchedulerConfig, client: ApiClient) -> VersionChoice:
    """The configuration in the version of the API server, unless it names one. Raises ApiError."""
    if config.names_version:
        return choose_version(config, NOTHING_REPORTED)
    return choose_version(config, await reported_by_server(client))


def log_version(log: Log, choice: VersionChoice) -> None:
    """One line about the version; a warning if it is not certain."""
    say = log.info if choice.is_certain else log.warning
    say("Deciding as kube-scheduler", version=str(choice.version), reason=choice.reason)


def version_line(choice: VersionChoice) -> str:
    """The same for a reader."""
    return f"deciding as kube-scheduler {choice.version}: {choice.reason}"
