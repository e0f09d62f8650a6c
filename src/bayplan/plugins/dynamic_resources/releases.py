"""Pods that are being taken off the users of a claim after their binding failed.

The next attempt at such a pod may come before the write ends, or before the API tells of it. The
claim still names the pod as a user then, and the reservation would be gone once the pod is bound.
So PreBind waits for the write and reads the claim anew.
"""

from typing import Final, final

from bayplan.ports import BindPort

#: Between two looks at whether a write has ended.
POLL_SECONDS: Final = 0.05
#: How many are remembered; of the oldest is known what the API tells, and no more.
COUNT_MAX: Final = 10_000


@final
class Releases:
    """By the uids of claim and pod, since the pod's last PreBind."""

    def __init__(self) -> None:
        #: Whether the write is under way still.
        self._is_open: dict[tuple[str, str], bool] = {}

    def begin(self, claim_uid: str, pod_uid: str) -> None:
        """A write is about to be sent."""
        self._is_open.pop((claim_uid, pod_uid), None)
        self._is_open[claim_uid, pod_uid] = True
        if len(self._is_open) > COUNT_MAX:
            del self._is_open[next(iter(self._is_open))]

    def end(self, claim_uid: str, pod_uid: str) -> None:
        """It was carried out, or failed."""
        if (claim_uid, pod_uid) in self._is_open:
            self._is_open[claim_uid, pod_uid] = False

    async def ended(self, claim_uid: str, pod_uid: str, port: BindPort) -> bool:
        """Wait for the write. False: there was none since the pod's last PreBind."""
        key = (claim_uid, pod_uid)
        while self._is_open.get(key):
            await port.sleep(POLL_SECONDS)
        return self._is_open.pop(key, None) is not None
