"""The kinds of pod groups that a live scheduler can follow on this API server.

`GroupKinds` follows the kinds of pod groups that the server has and the scheduler may read, each
API group in its newest version only, because two versions would be two views of one object. It
looks again for a missing API group, more often while pods wait for a group of it, because its
custom resource definition may be applied at any time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, final

from bayplan.adapters.live.access import denial, group_statuses, missing_rights, rights_to_follow
from bayplan.adapters.live.client import ApiClient
from bayplan.adapters.live.discovery import Discovery, Resource
from bayplan.api.pod_groups import api_group_of
from bayplan.ports import ApiError, OutcomeUnknownError
from bayplan.serving.log_lines import Log

#: Seconds between two look-ups: while pods wait for groups of a missing kind, and otherwise.
AWAITED_PERIOD_SECONDS: Final = 5.0
PERIOD_SECONDS: Final = 60.0

_log = Log("server")


def offered_kinds(kinds: Iterable[str], is_offered: Callable[[str], bool]) -> tuple[str, ...]:
    """The last offered kind of each API group. ``kinds``: the versions of an API group oldest
    first."""
    newest: dict[str, str] = {}
    for kind in kinds:
        if is_offered(kind):
            newest[api_group_of(kind)] = kind
    return tuple(newest.values())


@final
class GroupKinds:
    """Finds the kinds of pod groups to follow, each once."""

    def __init__(
        self,
        client: ApiClient,
        kinds: Sequence[str],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """``kinds``: the configured kinds, the versions of an API group oldest first."""
        self._client = client
        self._kinds = kinds
        self._sleep = sleep
        self._followed: dict[str, str] = {}
        #: Kinds without the right to read, and API groups that pods wait for. Each is logged once.
        self._unreadable: set[str] = set()
        self._missed: set[str] = set()

    async def look(self) -> tuple[str, ...]:
        """The kinds that can be followed and are not followed yet; from now on they count as
        followed. Raises ApiError, OutcomeUnknownError."""
        discovery = Discovery(self._client)
        kinds = [kind for kind in self._kinds if api_group_of(kind) not in self._followed]
        await discovery.discover(kinds)
        offered = offered_kinds(kinds, lambda kind: discovery.resource(kind) is not None)
        resources = [discovery.resource(kind) for kind in offered]
        readable = [
            each for each in resources if each is not None and await self._is_readable(each)
        ]
        for resource in readable:
            self._followed[api_group_of(resource.kind)] = resource.kind
        return tuple(resource.kind for resource in readable)

    async def _is_readable(self, resource: Resource) -> bool:
        """Whether the scheduler may read a kind; else the groups of this kind are ignored. The
        right to write their status is not necessary to place groups."""
        kind = resource.kind
        missing = await missing_rights(self._client, rights_to_follow([resource]))
        if missing:
            if kind not in self._unreadable:
                self._unreadable.add(kind)
                _log.error("Pod groups are ignored", kind=kind, err=denial(missing))
            return False
        missing = await missing_rights(self._client, group_statuses([resource]))
        if missing:
            _log.error("The status of pod groups is not written", kind=kind, err=denial(missing))
        return True

    async def watch(
        self, awaited: Callable[[], Collection[str]], follow: Callable[[str], None]
    ) -> None:
        """Look up the kinds periodically, until cancelled. ``awaited``: the API groups of groups
        that have no object and that pods wait for; ``follow``: begins to follow a kind."""
        groups = {api_group_of(kind) for kind in self._kinds}
        while len(self._followed) < len(groups):
            lacking = (groups & set(awaited())) - set(self._followed)
            await self._sleep(AWAITED_PERIOD_SECONDS if lacking else PERIOD_SECONDS)
            try:
                kinds = await self.look()
            except (ApiError, OutcomeUnknownError) as problem:
                _log.warning("Kinds of pod groups are looked for later", err=str(problem))
                continue
            for kind in kinds:
                _log.info("Pod groups are followed from now on", kind=kind)
                follow(kind)
            self._tell_of(lacking - set(self._followed))

    def _tell_of(self, lacking: Iterable[str]) -> None:
        for api_group in sorted(set(lacking) - self._missed):
            self._missed.add(api_group)
            _log.warning(
                "Pods wait for groups of an API group that the API server does not offer, or that "
                "may not be read; apply its custom resource definition (deploy/crds)",
                group=api_group,
            )
