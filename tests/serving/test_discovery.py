"""Kinds of pod groups that the API server lacks or gets later."""

import asyncio
import logging
from collections.abc import Collection

import pytest

from bayplan.api.pod_groups import COSCHEDULING_GROUP, KINDS, MING_GROUP
from bayplan.serving.discovery import (
    AWAITED_PERIOD_SECONDS,
    PERIOD_SECONDS,
    GroupKinds,
    offered_kinds,
)
from tests.adapters.live.clients import talking_to
from tests.kit.api_server import FOR_A_SCHEDULER, FakeApiServer, Resources, resource

X_K8S = "scheduling.x-k8s.io/v1alpha1"
MING = "scheduling.ming.io/v1"
POD_GROUPS = [resource("PodGroup", "podgroups")]


def test_without_pod_group_kinds_nothing_is_watched() -> None:
    assert offered_kinds(KINDS, lambda _: False) == ()


def test_each_api_group_is_watched_in_its_newest_version() -> None:
    assert offered_kinds(KINDS, lambda kind: "/v1 " not in kind or ".ming." in kind) == (
        "scheduling.k8s.io/v1beta1 PodGroup",
        "scheduling.x-k8s.io/v1alpha1 PodGroup",
        "scheduling.ming.io/v1 PodGroup",
    )


class _Watched:
    """Records the actions of a watch at a server that changes between two discoveries."""

    def __init__(self, api: FakeApiServer, awaited: Collection[str] = ()) -> None:
        self._api = api
        self._awaited = awaited
        #: The kinds that are offered before each discovery; the watch ends after the last one.
        self.changes: list[Resources] = []
        self.followed: list[str] = []
        self.slept_seconds: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.slept_seconds.append(seconds)
        if not self.changes:
            raise asyncio.CancelledError
        self._api.resources.update(self.changes.pop(0))

    def run(self) -> None:
        async def main() -> None:
            async with talking_to(self._api) as client:
                kinds = GroupKinds(client, tuple(KINDS), self._sleep)
                self.followed += await kinds.look()
                with pytest.raises(asyncio.CancelledError):
                    await kinds.watch(lambda: self._awaited, self.followed.append)

        asyncio.run(main())


def _messages(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith(text)]


def test_a_kind_that_appears_later_is_watched_from_then_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="bayplan")
    watched = _Watched(FakeApiServer(resources={**FOR_A_SCHEDULER, MING: POD_GROUPS}))
    watched.changes = [{}, {X_K8S: POD_GROUPS}, {}]
    watched.run()
    assert watched.followed == [f"{MING} PodGroup", f"{X_K8S} PodGroup"]
    assert watched.slept_seconds == [PERIOD_SECONDS] * 4
    assert len(_messages(caplog, "Pod groups are followed from now on")) == 1


def test_a_kind_that_pods_wait_for_is_polled_more_often_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = _Watched(
        FakeApiServer(resources=FOR_A_SCHEDULER), awaited={COSCHEDULING_GROUP, "unheard.of"}
    )
    watched.changes = [{}, {}, {X_K8S: POD_GROUPS}]
    watched.run()
    assert watched.followed == [f"{X_K8S} PodGroup"]
    assert watched.slept_seconds == [AWAITED_PERIOD_SECONDS] * 3 + [PERIOD_SECONDS]
    (message,) = _messages(caplog, "Pods wait for groups of an API group")
    assert "deploy/crds" in message


def test_a_forbidden_kind_is_named_once_and_watched_when_it_is_allowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = FakeApiServer(
        resources={**FOR_A_SCHEDULER, MING: POD_GROUPS}, forbidden=["list podgroups"]
    )
    watched = _Watched(api, awaited={MING_GROUP})
    watched.changes = [{}, {}]
    watched.run()
    assert watched.followed == []
    assert len(_messages(caplog, "Pod groups are ignored")) == 1


def test_a_failed_discovery_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    api = FakeApiServer(resources=FOR_A_SCHEDULER)
    watched = _Watched(api)
    watched.changes = [{X_K8S: None}, {X_K8S: POD_GROUPS}]
    watched.run()
    assert watched.followed == [f"{X_K8S} PodGroup"]
    assert len(_messages(caplog, "Kinds of pod groups are looked for later")) == 1
