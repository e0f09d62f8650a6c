"""`bayplan run` as a whole: start, end, blocking plugins, cache checks."""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec import structs

from bayplan.adapters.live.errors import AccessDeniedError, UntrustedServerError
from bayplan.clock import RealClock
from bayplan.config import SchedulerConfig, config_from
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.loading import in_version
from bayplan.metrics import SchedulerMetrics
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError
from bayplan.problems import ConfigError
from bayplan.serving import scheduler_server
from bayplan.serving.certificates import self_signed_context
from bayplan.serving.scheduler_server import (
    CacheCheck,
    ServerOptions,
    ServingOptions,
    serve,
    tell_of_blocking,
)
from bayplan.watchdog import BlockingCall
from tests.kit.api_server import (
    FOR_A_SCHEDULER,
    FakeApiServer,
    Resources,
    kubeconfig,
    resource,
    serving,
    status,
)
from tests.live.processes import free_port
from tests.scenarios.world import World, scenario

# ---- scheduler server -----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def config(**fields: Any) -> SchedulerConfig:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return config_from({**kind, "profiles": [{"schedulerName": "bayplan"}], **fields})


def fake_api(*, resources: Resources = FOR_A_SCHEDULER, **faults: Any) -> FakeApiServer:
    return FakeApiServer(resources=resources, **faults)


def played(
    folder: Path,
    api: FakeApiServer,
    look: Any = None,
    *,
    scheduler_config: SchedulerConfig | None = None,
    address: ServingOptions | None = None,
) -> None:
    """Serve until everything is listed and ``look`` has returned, then request a stop."""

    async def main() -> None:
        async with serving(api) as server:
            options = ServerOptions(
                config=scheduler_config or config(),
                registry=Registry(),
                kubeconfig=kubeconfig(folder, server),
                serving=address or ServingOptions(port=0),
            )
            running = asyncio.ensure_future(serve(options))
            listed = asyncio.ensure_future(api.listed.wait())
            await asyncio.wait((running, listed), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                if look is not None:
                    await look()
                os.kill(os.getpid(), signal.SIGTERM)
            listed.cancel()
            await running

    asyncio.run(main())


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_the_server_starts_leads_and_releases_its_lease(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="bayplan")
    api = fake_api()
    played(tmp_path, api)
    message = lines(caplog)
    assert message.index("Successfully acquired lease") < message.index("Ended")
    [lease] = api.objects.values()
    assert lease["metadata"]["name"] == "bayplan"
    assert lease["spec"]["holderIdentity"] == ""


def test_the_lease_has_the_configured_name(tmp_path: Path) -> None:
    api = fake_api()
    election = {"resourceName": "mine", "resourceNamespace": "elsewhere"}
    played(tmp_path, api, scheduler_config=config(leaderElection=election))
    assert "POST /apis/coordination.k8s.io/v1/namespaces/elsewhere/leases" in api.lines
    assert "PUT /apis/coordination.k8s.io/v1/namespaces/elsewhere/leases/mine" in api.lines


def version_lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """(level, version, reason) of each line about the version."""
    records = [r for r in caplog.records if r.getMessage() == "Deciding as kube-scheduler"]
    keys = [(record.levelname, vars(record)["bayplan_keys"]) for record in records]
    return [(level, each["version"], each["reason"]) for level, each in keys]


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ("v1.36.3-gke.100", ("INFO", "1.36", "the API server is v1.36.3-gke.100")),
        (
            "v1.39.0",
            (
                "WARNING",
                "1.37",
                "the API server is v1.39.0, a version that Bayplan does not know",
            ),
        ),
        (
            "v1.29.4",
            (
                "WARNING",
                "1.34",
                "the API server is v1.29.4, a version that Bayplan does not know",
            ),
        ),
        ("", ("WARNING", "1.37", "nothing says which version the cluster runs")),
        (
            "v0.0.0-master+$Format:%H$",
            (
                "WARNING",
                "1.37",
                'the API server is "v0.0.0-master+$Format:%H$", which is no release of Kubernetes',
            ),
        ),
    ],
)
def test_the_server_decides_as_the_version_of_the_cluster(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    reported: str,
    expected: tuple[str, str, str],
) -> None:
    caplog.set_level(logging.DEBUG, logger="bayplan")
    api = fake_api()
    api.objects["/version"] = {"gitVersion": reported}
    played(tmp_path, api)
    assert version_lines(caplog) == [expected]


def test_a_version_that_is_named_is_not_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="bayplan")
    api = fake_api()
    api.objects["/version"] = {"gitVersion": "v1.37.2"}
    named = structs.replace(in_version(config(), KubernetesVersion.V1_35), names_version=True)
    played(tmp_path, api, scheduler_config=named)
    assert version_lines(caplog) == [("INFO", "1.35", "--kubernetes or bayplan.yaml names it")]
    assert "GET /version" not in api.lines


def test_the_version_of_the_cluster_reads_the_configuration(tmp_path: Path) -> None:
    """SchedulerQueueingHints is a gate until 1.36."""
    gates = config(featureGates={"SchedulerQueueingHints": True})
    api = fake_api()
    api.objects["/version"] = {"gitVersion": "v1.36.0"}
    played(tmp_path, api, scheduler_config=gates)
    api = fake_api()
    api.objects["/version"] = {"gitVersion": "v1.37.0"}
    with pytest.raises(ConfigError, match=r"Kubernetes 1\.36 is the last version"):
        played(tmp_path, api, scheduler_config=gates)


def test_without_an_election_no_lease_is_read_or_written(tmp_path: Path) -> None:
    api = fake_api()
    played(tmp_path, api, scheduler_config=config(leaderElection={"leaderElect": False}))
    assert not [request for request in api.lines if "leases" in request]


def test_missing_read_rights_are_named_by_verb_and_resource(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_server, "DENIED_SECONDS_MAX", 0.0)
    with pytest.raises(AccessDeniedError, match='list resource "nodes" in API group ""'):
        played(tmp_path, fake_api(forbidden=["list nodes"]))


def test_a_starting_api_server_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_server, "_FIRST_RETRY_SECONDS", 0.001)
    forbidden = 'nodes is forbidden: User "u" cannot list resource "nodes" in API group ""'
    refusals = [
        status(403, "Forbidden", forbidden),
        status(403, "Forbidden", "not yet ready to handle request"),
        status(500, "InternalError", "starting"),
    ]
    api = fake_api(refusals=refusals)
    played(tmp_path, api)
    message = lines(caplog)
    assert message.count("The API server refuses; trying again, for it may be starting") == 2
    assert message.count("The API server does not answer; trying again") == 1
    assert api.listed.is_set()


def test_an_untrusted_certificate_ends_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        tls = self_signed_context("127.0.0.1", RealClock().epoch_seconds())
        runner = web.ServerRunner(web.Server(fake_api()))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        server = f"https://127.0.0.1:{runner.addresses[0][1]}"
        options = ServerOptions(
            config=config(), registry=Registry(), kubeconfig=kubeconfig(tmp_path, server)
        )
        try:
            with pytest.raises(UntrustedServerError, match=r"the certificate of .* is not trusted"):
                await serve(options)
        finally:
            await runner.cleanup()

    asyncio.run(main())
    assert "The API server does not answer; trying again" not in lines(caplog)


def test_missing_write_rights_are_logged_and_the_server_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played(tmp_path, fake_api(forbidden=["delete pods"]))
    (record,) = [r for r in caplog.records if r.getMessage() == "Rights are missing"]
    assert 'delete resource "pods"' in vars(record)["bayplan_keys"]["err"]


GROUPS = {"scheduling.ming.io/v1": [resource("PodGroup", "podgroups")]}


@pytest.mark.parametrize(
    ("forbidden", "message"),
    [
        ("list podgroups", "Pod groups are ignored"),
        ("patch podgroups/status", "The status of pod groups is not written"),
    ],
)
def test_missing_rights_for_groups_are_logged_and_the_server_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, forbidden: str, message: str
) -> None:
    api = fake_api(resources={**FOR_A_SCHEDULER, **GROUPS}, forbidden=[forbidden])
    played(tmp_path, api)
    (record,) = [r for r in caplog.records if r.getMessage() == message]
    verb, resource = forbidden.split()
    expected = f'cannot {verb} resource "{resource}" in API group "scheduling.ming.io"'
    assert expected in vars(record)["bayplan_keys"]["err"]


def test_a_plugin_with_a_missing_api_group_is_disabled_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = fake_api(resources={"v1": FOR_A_SCHEDULER["v1"]})
    played(tmp_path, api)
    records = [r for r in caplog.records if r.getMessage() == "Plugin switched off"]
    plugins = [vars(record)["bayplan_keys"]["plugin"] for record in records]
    assert plugins.count("PodTopologySpread") == 1
    assert not [request for request in api.lines if request.endswith("/replicasets")]


def test_a_silent_api_server_is_waited_for_until_a_stop_is_requested(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(scheduler_server.asyncio, "sleep", stopped)
    options = ServerOptions(
        config=config(), registry=Registry(), kubeconfig=kubeconfig(tmp_path, "http://127.0.0.1:1")
    )
    asyncio.run(serve(options))
    assert "The API server does not answer; trying again" in lines(caplog)


def test_endpoints_on_loopback_are_plain_and_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="bayplan")
    port, answers = free_port(), dict[str, Any]()

    async def look() -> None:
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}"
            for path in ("/configz", "/metrics"):
                async with session.get(url + path) as answer:
                    answers[path] = await answer.text()

    played(tmp_path, fake_api(), look, address=ServingOptions(port=port))
    assert '"schedulerName": "bayplan"' in answers["/configz"]
    assert 'leader_election_master_status{name="bayplan"}' in answers["/metrics"]
    assert "process_resident_memory_bytes" in answers["/metrics"]


def test_endpoints_elsewhere_use_tls_and_require_a_token(tmp_path: Path) -> None:
    port, statuses = free_port(), dict[str, int]()

    async def look() -> None:
        async with aiohttp.ClientSession() as session:
            url = f"https://127.0.0.1:{port}"
            for path in ("/livez", "/metrics"):
                async with session.get(url + path, ssl=False) as answer:
                    statuses[path] = answer.status

    address = ServingOptions(address="0.0.0.0", port=port)
    played(tmp_path, fake_api(), look, address=address)
    assert statuses == {"/livez": 200, "/metrics": 401}


# ---- blocking plugins -----------------------------------------------------------------------


def test_a_blocking_call_is_counted_each_second_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = SchedulerMetrics()
    for seconds, is_news in ((5.0, True), (6.0, False)):
        call = BlockingCall("Slow/one", "Filter", "policy.py:12", seconds, is_news)
        tell_of_blocking(metrics, call)
    labels = {"plugin": "Slow/one", "extension_point": "Filter"}
    assert metrics.value("bayplan_plugin_blocking_seconds_total", **labels) == 2
    (line,) = caplog.records
    assert (line.levelno, line.getMessage()) == (logging.ERROR, "A plugin blocks the scheduler")
    assert vars(line)["bayplan_keys"] == {
        "plugin": "Slow/one",
        "extensionPoint": "Filter",
        "at": "policy.py:12",
        "seconds": 5.0,
    }


# ---- cache check ----------------------------------------------------------------------------


def keys(record: logging.LogRecord) -> dict[str, Any]:
    return vars(record)["bayplan_keys"]


@scenario()
async def test_differences_are_logged_and_counted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="bayplan")

    world.add_node("n1")
    world.add_pod("p")
    world.add_pod("gated", gates=["wait"])
    await world.until(1)
    check = CacheCheck(world.scheduler, world.cluster)
    await check.run()
    (same,) = caplog.records
    assert (keys(same)["differences"], keys(same)["nodes"], keys(same)["pods"]) == (0, 1, 1)
    caplog.clear()
    node = world.scheduler.cache.node("n1")
    assert node is not None
    world.scheduler.cache.remove_node("n1")
    await check.run()
    world.scheduler.cache.add_node(node)
    assert caplog.records[0].getMessage() == "Cache differs from the API server"
    assert "n1" in keys(caplog.records[0])["difference"]
    assert keys(caplog.records[-1])["differences"] >= 1


class Busy:
    async def list(self, kind: str) -> Any:
        raise ApiError(503, "ServiceUnavailable", "busy")

    async def sleep(self, seconds: float) -> None: ...


@scenario()
async def test_an_unreachable_api_server_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    busy: Any = Busy()
    await CacheCheck(world.scheduler, busy).run()
    (record,) = caplog.records
    assert (record.getMessage(), keys(record)["err"]) == (
        "The caches could not be compared",
        "busy",
    )


@scenario()
async def test_one_cache_check_runs_at_a_time_and_none_after_the_end(world: World) -> None:
    calls: list[str] = []

    class Slow:
        async def list(self, kind: str) -> Any:
            calls.append(kind)
            await asyncio.Event().wait()

    slow: Any = Slow()
    check = CacheCheck(world.scheduler, slow)
    check.begin()
    await world.until(1)
    check.begin()
    await world.until(2)
    check.stop()
    assert len(calls) == 1
