"""Status patches on their way to the API server: at most one request for each object at a time."""

import asyncio
from collections.abc import Callable
from typing import final

from msgspec.structs import replace

from bayplan import ports

#: Between two tries of a request, in seconds: the first pause, and the longest.
RETRY_SECONDS_MIN = 0.05
RETRY_SECONDS_MAX = 5.0
STATUS_PATCH_TRIES = 4

#: Called with a patch that was given up, and the error.
DroppedPatch = Callable[[ports.PatchPodStatus, Exception], None]


@final
class PodPatches:
    """Status patches of pods: one request per pod at a time, and the newest value wins.

    A patch that has not been sent is merged with later patches, so a retry never undoes a later
    patch. Upstream's asynchronous API calls behave the same.
    """

    def __init__(self, cluster: ports.Cluster, dropped: DroppedPatch) -> None:
        """``dropped``: called with a patch that is given up, and the error of its last try."""
        self._cluster = cluster
        self._dropped = dropped
        #: Both by the uid of the pod. Read ``requests`` only.
        self._unsent: dict[str, ports.PatchPodStatus] = {}
        self.requests: dict[str, asyncio.Lock] = {}

    def add(self, patch: ports.PatchPodStatus) -> bool:
        """Returns True if the caller must now call `write` for this pod."""
        older = self._unsent.get(patch.uid)
        self._unsent[patch.uid] = patch if older is None else older.merged_with(patch)
        if patch.uid in self.requests:
            return False
        self.requests[patch.uid] = asyncio.Lock()
        return True

    async def write(self, uid: str) -> None:
        """Retries after a conflict or an unknown outcome. A pod that is gone needs no patch."""
        delay, tries = RETRY_SECONDS_MIN, 0
        try:
            while uid in self._unsent:
                tries += 1
                problem = await self._sent(uid, self._unsent.pop(uid))
                if problem is None:
                    delay, tries = RETRY_SECONDS_MIN, 0
                elif tries == STATUS_PATCH_TRIES:
                    self._dropped(self._unsent.pop(uid), problem)
                else:
                    await self._cluster.sleep(delay)
                    delay *= 2
        finally:
            del self.requests[uid]

    def write_now(self, uid: str, cluster: ports.ImmediateCluster) -> bool:
        """In place of `write`, for a cluster in memory: send the unsent patch. False: the server
        refused it; then call `write`."""
        patch = self._unsent.pop(uid)
        try:
            if patch.condition is not None or patch.nominated_node_name is not None:
                cluster.patch_pod_status_now(patch)
        except ports.NotFoundError:
            pass  # as in `_sent`
        except ports.ApiError:
            self._unsent[uid] = patch
            return False
        del self.requests[uid]
        return True

    def is_pending(self, uid: str) -> bool:
        """Whether a patch of the pod is unsent or being sent."""
        return uid in self._unsent or uid in self.requests

    async def settle(self, uid: str) -> None:
        """Call before the pod is bound: drops the condition of an earlier failed attempt."""
        lock = self.requests.get(uid)
        if lock is not None:
            async with lock:
                pass
        unsent = self._unsent.get(uid)
        if unsent is not None:
            self._unsent[uid] = replace(unsent, condition=None)

    async def _sent(self, uid: str, patch: ports.PatchPodStatus) -> Exception | None:
        """Returns the error if the patch must be sent again, merged with later patches."""
        if patch.condition is None and patch.nominated_node_name is None:
            return None
        try:
            async with self.requests[uid]:
                await self._cluster.patch_pod_status(patch)
        except ports.NotFoundError:
            self._unsent.pop(uid, None)
        except (ports.ApiError, ports.OutcomeUnknownError) as problem:
            newer = self._unsent.get(uid)
            self._unsent[uid] = patch if newer is None else patch.merged_with(newer)
            return problem
        return None


@final
class GroupPatches:
    """Status patches of groups: one request per group at a time. Later patches are merged.

    A patch that fails is merged with later patches and sent again. The scheduler sends differences
    only, so no patch may be lost while the group exists.
    """

    def __init__(self, cluster: ports.Cluster) -> None:
        self._cluster = cluster
        self._unsent: dict[tuple[str, str, str], ports.PatchPodGroupStatus] = {}
        self._writing: set[tuple[str, str, str]] = set()

    def add(self, patch: ports.PatchPodGroupStatus) -> bool:
        """Returns True if the caller must now call `write` for this group."""
        key = (patch.kind, patch.namespace, patch.name)
        older = self._unsent.get(key)
        if older is not None and older.uid == patch.uid:
            patch = replace(patch, status={**older.status, **patch.status})
        self._unsent[key] = patch
        if key in self._writing:
            return False
        self._writing.add(key)
        return True

    async def write(self, patch: ports.PatchPodGroupStatus) -> None:
        """Send the patches of a group until none is unsent."""
        key, delay = (patch.kind, patch.namespace, patch.name), RETRY_SECONDS_MIN
        try:
            while key in self._unsent:
                sending = self._unsent.pop(key)
                try:
                    await self._cluster.patch_group_status(sending)
                    delay = RETRY_SECONDS_MIN
                except (ports.ConflictError, ports.OutcomeUnknownError):
                    self._take_back(key, sending)
                    await self._cluster.sleep(delay)
                    delay = min(2 * delay, RETRY_SECONDS_MAX)
                except ports.ApiError:
                    # The group is gone, is a new object, or may not be written. The patch is
                    # dropped.
                    continue
        finally:
            self._writing.discard(key)

    def _take_back(self, key: tuple[str, str, str], sent: ports.PatchPodGroupStatus) -> None:
        newer = self._unsent.get(key, sent)
        if newer.uid == sent.uid:
            newer = replace(newer, status={**sent.status, **newer.status})
        self._unsent[key] = newer
