"""CoschedulingArgs: upstream's, those it had before 2022, and how members are placed."""

from collections.abc import Collection, Iterator
from typing import Final, Literal

from msgspec import field

from bayplan.framework.plugin import PluginArgs

DEFAULT_WAIT_SECONDS = 60

#: Why a field has no effect where members are placed in one pass.
_IN_ONE_PASS: Final = {
    "permitWaitingTimeSeconds": (
        "with placement: group no member waits at Permit; a group's own scheduleTimeoutSeconds "
        "says when it gets the condition ScheduleTimedOut"
    ),
    "podGroupBackoffSeconds": (
        "with placement: group no group is denied: one that failed has the queue's backoff"
    ),
    "deniedPGExpirationTimeSeconds": (
        "with placement: group no group is denied: one that failed has the queue's backoff"
    ),
    "podGroupRejectPercentage": "with placement: group all members are placed, or none",
}
#: Why a field never has one.
_NEVER: Final = dict.fromkeys(
    ("kubeMaster", "kubeConfigPath"),
    "clientConnection and --kubeconfig say how the API server is reached",
)

_SECONDS_MAX = 2**31 - 1


class CoschedulingArgs(PluginArgs, frozen=True):
    """``placement`` is Bayplan's own; the other fields have an effect with ``placement: pod``
    only."""

    placement: Literal["group", "pod"] = "group"
    #: How long a member waits if its group sets no time; 0: the default time.
    permit_waiting_time_seconds: int = DEFAULT_WAIT_SECONDS
    #: How long a group that failed is denied; 0: not at all.
    pod_group_backoff_seconds: int = 0
    #: Where no more than this part of the minimum is missing, those that wait go on waiting.
    pod_group_reject_percentage: int = 10
    #: podGroupBackoffSeconds by its older name; the longer one counts.
    denied_pg_expiration_time_seconds: int | None = field(
        default=None, name="deniedPGExpirationTimeSeconds"
    )
    #: Of the older set; access to the API server is the scheduler's to configure.
    kube_master: str | None = None
    kube_config_path: str | None = None

    @property
    def wait_seconds(self) -> int:
        return self.permit_waiting_time_seconds or DEFAULT_WAIT_SECONDS

    @property
    def denied_seconds(self) -> int:
        return max(self.pod_group_backoff_seconds, self.denied_pg_expiration_time_seconds or 0)

    def remarks(self, written: Collection[str]) -> Iterator[tuple[str, str]]:
        without_effect = {**(_IN_ONE_PASS if self.placement == "group" else {}), **_NEVER}
        return ((name, why) for name, why in without_effect.items() if name in written)

    def problems(self) -> Iterator[tuple[str, str]]:
        seconds = {
            "permitWaitingTimeSeconds": self.permit_waiting_time_seconds,
            "podGroupBackoffSeconds": self.pod_group_backoff_seconds,
            "deniedPGExpirationTimeSeconds": self.denied_pg_expiration_time_seconds or 0,
        }
        for path, value in seconds.items():
            if not 0 <= value <= _SECONDS_MAX:
                yield path, f"{value}; wanted 0 to {_SECONDS_MAX}"
        if not 0 <= self.pod_group_reject_percentage <= 100:
            value = self.pod_group_reject_percentage
            yield "podGroupRejectPercentage", f"{value}; wanted 0 to 100"
