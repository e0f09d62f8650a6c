"""The caches compared with the API server, when somebody asks (SIGUSR2, as for kube-scheduler)."""

import asyncio
from typing import final

from bayplan.engine.scheduler import Scheduler
from bayplan.ports import ApiError, Cluster, OutcomeUnknownError
from bayplan.runner import check_cache
from bayplan.serving.log_lines import Log

#: More than these are counted.
_SHOWN_MAX = 20


@final
class CacheCheck:
    """Runs a check at a time; what it finds is logged."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._log = Log("cache-check")
        self._running: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Returns at once."""
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self.run())

    async def run(self) -> None:
        try:
            found = await check_cache(self._scheduler, self._cluster)
        except (ApiError, OutcomeUnknownError) as problem:
            self._log.error("The caches could not be compared", err=str(problem))
            return
        for difference in found[:_SHOWN_MAX]:
            self._log.error("Cache differs from the API server", difference=difference)
        queue = {name: len(pods) for name, pods in self._scheduler.queue.pending_pods().items()}
        nodes, pods = self._scheduler.cache.table.node_count, len(self._scheduler.cache.pods())
        self._log.info(
            "Compared caches", differences=len(found), nodes=nodes, pods=pods, pending=queue
        )

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
