"""Following a cluster: unreadable kinds, missed events, and the recording."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from bayplan.adapters.live.errors import AccessDeniedError
from bayplan.api.objects import NODE, POD, STORAGE_CLASS, ApiObject, Node, Pod
from bayplan.config import SchedulerConfig
from bayplan.model.cluster_kinds import ClusterKinds
from bayplan.plugins.registry import default_registry
from bayplan.ports import ApiError, EventType, GoneError, Listing, WatchDroppedError, WatchEvent
from bayplan.shadow.folder import read_shadow, written_so_far
from bayplan.shadow.following import Follower, FollowOptions
from bayplan.shadow.report import ShadowReport
from bayplan.testing import node, pod
from tests.cli.command_line import answer
from tests.kit.scripted_cluster import ScriptedCluster

SOURCE = ClusterKinds("https://api.example", (NODE, STORAGE_CLASS, POD))


def versioned(content: Pod | Node, version: int) -> ApiObject:
    meta = structs.replace(content.metadata, resource_version=str(version))
    return structs.replace(content, metadata=meta)


def bound(waiting: Pod, node_name: str) -> Pod:
    return structs.replace(waiting, spec=structs.replace(waiting.spec, node_name=node_name))


def changed(content: Pod | Node, version: int, change: EventType) -> WatchEvent:
    kind = POD if isinstance(content, Pod) else NODE
    return WatchEvent(change, kind, versioned(content, version), str(version))


class Cluster(ScriptedCluster):
    """Two nodes, and lists and watches that a test defines."""

    def __init__(self) -> None:
        nodes = Listing([versioned(node("n1", cpu="4"), 1), versioned(node("n2", cpu="2"), 1)], "1")
        empty = Listing([], "1")
        super().__init__({NODE: [nodes], STORAGE_CLASS: [empty], POD: [empty]}, hurries=True)

    def whole(self, kind: str, namespace: str, name: str) -> bytes | None:
        if kind == NODE:
            room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            content: dict[str, Any] = {"metadata": {"name": name}, "status": {"allocatable": room}}
        else:
            spec = {"containers": [{"name": "c"}], "schedulerName": "default-scheduler"}
            meta = {"name": name, "namespace": namespace, "uid": name}
            content = {"metadata": meta, "spec": spec}
        return json.dumps(content).encode()


def followed(
    cluster: Cluster, folder: Path | None = None, before_end: Callable[[], None] = lambda: None
) -> tuple[ShadowReport, list[str]]:
    """The report after the last list and the last event, and the progress lines."""
    lines: list[str] = []

    async def stop_at_the_end(stop: asyncio.Event) -> None:
        while not cluster.is_at_its_end or not lines:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        before_end()
        stop.set()

    async def work() -> ShadowReport:
        options = FollowOptions(
            config=SchedulerConfig(), registry=default_registry(()), folder=folder
        )
        stop = asyncio.Event()
        ending = asyncio.ensure_future(stop_at_the_end(stop))
        try:
            async with asyncio.timeout(60.0):
                return await Follower(cluster, SOURCE, options, lines.append).run(
                    stop, asyncio.Event()
                )
        finally:
            ending.cancel()

    return asyncio.run(work()), lines


def test_a_decision_is_compared_and_recorded(tmp_path: Path) -> None:
    cluster, web = Cluster(), pod("web", cpu="1").pod
    cluster.events[POD] = [
        changed(web, 2, EventType.ADDED),
        changed(bound(web, "n1"), 3, EventType.MODIFIED),
        changed(bound(web, "n1"), 4, EventType.DELETED),
    ]
    report, lines = followed(cluster, tmp_path)
    assert report.decisions.compared == report.decisions.best == 1
    assert report.stream.events == {POD: 3}
    assert lines[0] == (
        "https://api.example: 2 nodes, 0 pods waiting; decisions of default-scheduler are compared"
    )
    result = json.loads(answer("simulate", tmp_path / "recording", "-o", "json"))
    assert result["counts"]["gone"] == {"deleted": 1}
    assert result["pods"]["default/web"]["node"]
    assert "2 changes recorded" in report.remarks[-1]


def test_an_interim_report_is_written_while_the_shadow_runs(tmp_path: Path) -> None:
    reports: list[ShadowReport] = []
    report, _ = followed(Cluster(), tmp_path, lambda: reports.append(read_shadow(tmp_path)[0]))
    assert reports[0].nodes == report.nodes == 2
    assert reports[0].seconds < report.seconds
    assert (written_so_far(tmp_path), read_shadow(tmp_path)[0]) == (None, report)


def test_an_unreadable_kind_is_named_and_left_out() -> None:
    cluster = Cluster()
    cluster.lists[STORAGE_CLASS] = [AccessDeniedError(403, "Forbidden", "cannot list classes")]
    report, lines = followed(cluster)
    assert report.stream.unreadable == {STORAGE_CLASS: "cannot list classes"}
    assert report.nodes == 2
    assert f"the shadow decides without {STORAGE_CLASS}: cannot list classes" in lines


@pytest.mark.parametrize("kind", [NODE, POD])
def test_the_shadow_ends_if_nodes_or_pods_are_unreadable(kind: str) -> None:
    cluster = Cluster()
    cluster.lists[kind] = [AccessDeniedError(403, "Forbidden", "cannot list")]
    with pytest.raises(ApiError, match="cannot list"):
        followed(cluster)


def test_changes_that_only_a_relist_shows_count_as_missed() -> None:
    cluster, web = Cluster(), pod("web", cpu="1").pod
    first = cluster.lists[POD][0]
    again = Listing([versioned(bound(web, "n2"), 9)], "9")
    cluster.lists[POD] = [first, again]
    cluster.events[POD] = [changed(web, 2, EventType.ADDED), GoneError("too old")]
    report, lines = followed(cluster)
    assert (report.decisions.compared, report.decisions.unordered) == (0, 1)
    assert [(each.kind, each.changes) for each in report.stream.relists] == [(POD, 1)]
    assert report.stream.missed_events == 1
    assert report.stream.failures == {"watch v1 Pod: the version is too old": 1}
    assert "v1 Pod was listed again: 1 changes; events were lost" in lines


def test_a_watch_that_is_cut_and_resumed_loses_no_event() -> None:
    cluster, web = Cluster(), pod("web", cpu="1").pod
    cluster.events[POD] = [
        changed(web, 2, EventType.ADDED),
        WatchDroppedError("the connection was closed"),
        changed(bound(web, "n1"), 3, EventType.MODIFIED),
    ]
    report, _ = followed(cluster)
    assert report.decisions.compared == 1
    assert report.stream.relists == ()
    assert report.stream.failures == {"watch v1 Pod: the connection was closed": 1}


def test_a_failed_list_is_retried() -> None:
    cluster = Cluster()
    nodes = cluster.lists[NODE][0]
    cluster.lists[NODE] = [ApiError(500, "InternalError", "broken"), nodes]
    report, lines = followed(cluster)
    assert report.nodes == 2
    assert "cannot list v1 Node: broken" in lines
    assert report.stream.relists == ()
