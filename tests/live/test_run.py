"""`bayplan run` against a real API server: replicas, signals, endpoints, roles, the chart."""

import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bayplan.adapters.live.client import open_client
from bayplan.ports import ApiError
from bayplan.serving.replica import SHUTDOWN_SECONDS_MAX
from tests.cli.command_line import answer, bayplan
from tests.deploy.rendering import (
    DEPLOY,
    MANIFESTS,
    NAME,
    NAMESPACE,
    documents,
    plain_manifests,
    rendered,
)
from tests.live.control_plane import ControlPlane, token
from tests.live.mirror import Object
from tests.live.processes import (
    SchedulerProcess,
    apply,
    config_file,
    free_port,
    kubeconfig_with,
    replicas,
    service_account_token,
)
from tests.live.run_world import (
    LEADS,
    Cluster,
    get,
    run_replicas,
    scheduler,
    wait_until_logged,
)
from tests.live.world import small_pod

pytestmark = pytest.mark.timeout(400)

STANDS_BY = "Leader changed"


# ---- one replica ----------------------------------------------------------------------------


def test_a_scheduler_binds_writes_events_and_ends_on_request(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    port = free_port()
    one = scheduler(control_plane, tmp_path, "run-one", port)

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        await cluster.add_pods("run-one", "p", "q")
        await cluster.add_pods("nobody", "theirs")
        await cluster.until_bound("p", "q")
        url = f"http://127.0.0.1:{port}"
        assert await get(f"{url}/livez") == (200, "ok")
        assert (await get(f"{url}/readyz?verbose"))[1].startswith("[+]ping ok\n[+]caches ok\n")
        _, metrics = await get(f"{url}/metrics")
        attempts = 'scheduler_schedule_attempts_total{profile="run-one",result="scheduled"} 2.0'
        assert attempts in metrics
        assert 'leader_election_master_status{name="run-one"} 1.0' in metrics
        _, configz = await get(f"{url}/configz")
        profile = json.loads(configz)["componentconfig"]["profiles"][0]
        assert profile["schedulerName"] == "run-one"
        result = await asyncio.to_thread(
            answer, "why", "run-one/p", "--address", f"127.0.0.1:{port}"
        )
        assert "attempt 1 (run-one): chose run-one-" in result
        assert "theirs" not in cluster.bound()
        one.send(signal.SIGUSR2)
        await wait_until_logged(one, '"Compared caches" differences=0')
        assert one.end() == 0
        lease = await cluster.client.get(
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/run-one"
        )
        assert lease["spec"]["holderIdentity"] == ""

    with replicas(one):
        run_replicas(control_plane, "run-one", scene)
    assert '"Successfully bound pod to node" pod="run-one/p" node="run-one-' in one.output
    assert "Ended" in one.output


def test_a_capture_can_be_simulated_and_a_redacted_one_names_nothing(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    file, hidden = tmp_path / "cluster.yaml", tmp_path / "hidden.yaml"
    kubeconfig = control_plane.kubeconfig("admin")

    async def scene(cluster: Cluster) -> None:
        await cluster.add_pods("run-captured", "acme-secret-pod")
        command = ("capture", "--kubeconfig", kubeconfig)
        assert (await asyncio.to_thread(bayplan, *command, "-o", file)).exit_code == 0
        redacted = await asyncio.to_thread(bayplan, *command, "--redact", "-o", hidden)
        assert redacted.exit_code == 0

    run_replicas(control_plane, "run-captured", scene)
    assert "acme-secret-pod" in file.read_text()
    assert "acme-secret-pod" not in hidden.read_text()
    config = config_file(tmp_path / "c.yaml", {"profiles": [{"schedulerName": "run-captured"}]})
    for each in (file, hidden):
        summary = json.loads(answer("simulate", each, "--config", config, "-o", "json"))
        assert summary["counts"]["scheduled"] == 1


@pytest.mark.parametrize(
    ("renew_deadline", "exit_code", "text"),
    [
        ("40s", 0, "Some bindings did not end in time"),
        ("4s", 1, "lost the lease"),
    ],
)
def test_the_scheduler_ends_in_time_although_the_api_server_is_silent(
    control_plane: ControlPlane, tmp_path: Path, renew_deadline: str, exit_code: int, text: str
) -> None:
    """Bindings are in flight, patches and events are queued, and the lease cannot be released."""
    name = f"run-mute-{renew_deadline}"
    election = {"resourceName": name, "leaseDuration": "60s", "renewDeadline": renew_deadline}
    slow = {"qps": 50, "burst": 50}
    one = scheduler(control_plane, tmp_path, name, leaderElection=election, clientConnection=slow)

    async def scene(cluster: Cluster) -> None:
        await wait_until_logged(one, LEADS)
        large = [small_pod(f"large-{number}", name) for number in range(200)]
        for each in large:
            each["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100"
        path = f"/api/v1/namespaces/{cluster.namespace}/pods"
        await cluster.add_pods(name, *(f"p{number}" for number in range(200)))
        await asyncio.gather(*(cluster.client.request("POST", path, each) for each in large))
        await cluster.until_bound("p0")
        with control_plane.mute_api_server():
            start_seconds = time.monotonic()
            assert await asyncio.to_thread(one.end) == exit_code
            assert time.monotonic() - start_seconds <= SHUTDOWN_SECONDS_MAX

    with replicas(one):
        run_replicas(control_plane, name, scene)
    assert text in one.output
    assert "Traceback" not in one.output


# ---- several replicas -----------------------------------------------------------------------


#: How often a leader is killed. To change it: BAYPLAN_KILL_ROUNDS=100 make test-live.
KILL_ROUNDS = int(os.environ.get("BAYPLAN_KILL_ROUNDS", "2"))


@pytest.mark.timeout(400 + 60 * KILL_ROUNDS)
def test_a_leader_killed_among_a_thousand_pods_is_replaced_and_each_pod_is_bound_once(
    control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The times are the defaults: on a slow machine, a leader could miss a shorter deadline.
    election = {"resourceName": "run-two"}
    takeovers_seconds: list[float] = []

    async def one_round(
        cluster: Cluster, number: int, leader: SchedulerProcess, standby: SchedulerProcess
    ) -> None:
        names = [f"p{number}-{each}" for each in range(1000)]
        # The rounds kill the leader at different times.
        threshold = 100 + number * 97 % 700
        adding = asyncio.ensure_future(cluster.add_pods("run-two", *names))
        await cluster.mirror.until(lambda: len(cluster.bound()) >= threshold, "pods are bound")
        leader.end(signal.SIGKILL)
        killed_seconds, bound_count = time.monotonic(), len(cluster.bound())
        await wait_until_logged(standby, LEADS)
        await cluster.mirror.until(lambda: len(cluster.bound()) > bound_count, "the standby binds")
        takeovers_seconds.append(time.monotonic() - killed_seconds)
        await adding
        await cluster.until_bound(*names)
        cluster.each_was_placed_once(names)
        await cluster.client.request(
            "DELETE", f"/api/v1/namespaces/{cluster.namespace}/pods", {"gracePeriodSeconds": 0}
        )
        await cluster.mirror.until(lambda: not cluster.bound(), "the pods are deleted")

    async def scene(cluster: Cluster) -> None:
        with contextlib.ExitStack() as stack:

            def new_replica() -> SchedulerProcess:
                replica = scheduler(control_plane, tmp_path, "run-two", leaderElection=election)
                stack.enter_context(replicas(replica))
                return replica

            leader = new_replica()
            await wait_until_logged(leader, LEADS)
            for number in range(KILL_ROUNDS):
                standby = new_replica()
                await wait_until_logged(standby, STANDS_BY)
                await one_round(cluster, number, leader, standby)
                leader = standby
            assert leader.end() == 0
        # A binding whose client was killed has no code 201, because there was no answer.
        counts = control_plane.bindings("run-two")
        accepted = {name: count for (name, code), count in counts.items() if code == 201}
        assert set(accepted.values()) == {1}

    run_replicas(control_plane, "run-two", scene)
    with capsys.disabled():
        worst, middle = max(takeovers_seconds), statistics.median(takeovers_seconds)
        print(f"\n{KILL_ROUNDS} kills; first binding after {middle:.1f} s, at most {worst:.1f} s")


# ---- the chart ------------------------------------------------------------------------------


def test_the_plain_manifests_equal_the_rendered_chart() -> None:
    assert MANIFESTS.read_text(encoding="utf-8") == plain_manifests(), "run `make manifests`"


@pytest.mark.parametrize(
    "values",
    [
        "plugins.files.my\\.py=x=1",
        "plugins.configMap.name=mine,plugins.configMap.files={a.py}",
        "plugins.image.reference=registry.example/plugins",
        "networkPolicy.enabled=false,serviceMonitor.enabled=true,leaderElection.enabled=false,replicas=1",
        "prometheusRule.enabled=true,prometheusRule.labels.team=a",
    ],
)
def test_every_combination_of_values_renders(values: str) -> None:
    assert documents(rendered("--set", values))


def test_the_authorities_of_client_certificates_come_from_a_config_map() -> None:
    manifests = documents(rendered("--set", "clientCA.configMap=authorities,clientCA.key=a.crt"))
    (deployment,) = (each for each in manifests if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "--client-ca-file=/etc/bayplan/client-ca/a.crt" in container["args"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "client-ca")
    assert mount["mountPath"] == "/etc/bayplan/client-ca"
    (volume,) = (each for each in pod["volumes"] if each["name"] == "client-ca")
    assert volume["configMap"] == {"name": "authorities"}


@pytest.mark.parametrize(
    ("values", "ingress"),
    [
        (
            "networkPolicy.peers.prometheus.podSelector.matchLabels.app=prometheus",
            {
                "ports": [{"port": "https", "protocol": "TCP"}],
                "from": [
                    {
                        "namespaceSelector": {
                            "matchLabels": {"kubernetes.io/metadata.name": "monitoring"}
                        }
                    },
                    {"podSelector": {"matchLabels": {"app": "prometheus"}}},
                ],
            },
        ),
        ("networkPolicy.peers.monitoring=null", None),
    ],
)
def test_the_peers_of_the_network_policy_come_from_values(
    values: str, ingress: Object | None
) -> None:
    manifests = documents(rendered("--set", values))
    (policy,) = (each for each in manifests if each["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"] == ([] if ingress is None else [ingress])


def test_an_empty_network_policy_peer_is_refused() -> None:
    """An empty peer would allow all clients."""
    with pytest.raises(subprocess.CalledProcessError):
        rendered("--set-json", 'networkPolicy.peers={"all":{}}')


def test_an_unknown_value_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        rendered("--set", "replicaCount=3")
    assert "replicaCount" in refused.value.stderr


def test_the_chart_runs_as_two_processes_under_exactly_its_roles(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    namespace = yaml.safe_load((DEPLOY / "manifests" / "10-namespace.yaml").read_text())
    manifests = documents(rendered())
    by_kind = {manifest["kind"]: manifest for manifest in manifests}
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    config = tmp_path / "scheduler.yaml"
    config.write_text(by_kind["ConfigMap"]["data"]["scheduler.yaml"])

    def start(kubeconfig: str, number: int, port: int) -> SchedulerProcess:
        arguments = [
            *(arg.replace("/etc/bayplan/scheduler.yaml", str(config)) for arg in container["args"]),
            f"--kubeconfig={kubeconfig}",
            f"--secure-port={port}",
        ]
        env = {"POD_NAMESPACE": NAMESPACE, "POD_NAME": f"{NAME}-{number}"}
        return SchedulerProcess(env["POD_NAME"], arguments, tmp_path / f"log-{number}", **env)

    async def scene(cluster: Cluster) -> None:
        await apply(cluster.client, [namespace, *manifests])
        secret = await service_account_token(cluster.client, NAMESPACE, NAME)
        model = control_plane.kubeconfig("admin")
        kubeconfig = kubeconfig_with(secret, model, "kubeconfig-chart")
        ports = [free_port(), free_port()]
        pair = [start(kubeconfig, number, port) for number, port in enumerate(ports)]
        with replicas(*pair):
            for each in pair:
                await wait_until_logged(each, LEADS, STANDS_BY)
            assert sum(LEADS in each.output for each in pair) == 1
            await cluster.add_pods(NAME, "p", "q")
            await cluster.until_bound("p", "q")
            # The leader has bound pods, so that its lists are complete; the standby may still list.
            leader = next(number for number, each in enumerate(pair) if LEADS in each.output)
            await check_endpoints(ports[leader])
            for each in pair:
                assert "Rights are missing" not in each.output
                assert "forbidden" not in each.output
                assert each.end() == 0
        async with open_client(kubeconfig) as client:
            for path in ("/api/v1/secrets", "/api/v1/namespaces/default/configmaps"):
                with pytest.raises(ApiError, match="is forbidden"):
                    await client.get(path)
            with pytest.raises(ApiError, match="is forbidden"):
                await client.request("DELETE", "/api/v1/nodes/any")

    run_replicas(control_plane, "run-chart", scene)


async def check_endpoints(port: int) -> None:
    """The endpoints use TLS, and the API server authorizes requests."""
    url = f"https://127.0.0.1:{port}"
    assert (await get(f"{url}/readyz"))[0] == 200
    assert (await get(f"{url}/metrics"))[0] == 401
    assert (await get(f"{url}/metrics", Authorization="Bearer unknown"))[0] == 401
    status, text = await get(f"{url}/metrics", Authorization=f"Bearer {token('stranger')}")
    assert (status, text) == (403, 'Forbidden: User "stranger" cannot get path "/metrics"\n')
    assert (await get(f"{url}/metrics", Authorization=f"Bearer {token('admin')}"))[0] == 200


def test_a_client_certificate_gives_access_to_the_endpoints(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    port = free_port()
    authority = f"--client-ca-file={control_plane.client_authority}"
    one = scheduler(control_plane, tmp_path, "run-certificates", port, more=(authority,))
    names = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "run-certificates"}}
    role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io"}
    user = {"kind": "User", "name": "scheduler", "apiGroup": "rbac.authorization.k8s.io"}
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    manifests = [
        {**names, "kind": "ClusterRole", "rules": [rule]},
        {
            **names,
            "kind": "ClusterRoleBinding",
            "roleRef": {**role, "name": "run-certificates"},
            "subjects": [user],
        },
    ]

    async def scene(cluster: Cluster) -> None:
        await apply(cluster.client, manifests)
        await wait_until_logged(one, LEADS)
        url = f"https://127.0.0.1:{port}/metrics"
        assert (await get(url))[0] == 401
        status, text = await get(url, certificate=control_plane.client_certificate("stranger"))
        assert (status, text) == (403, 'Forbidden: User "stranger" cannot get path "/metrics"\n')
        status, text = await get(url, certificate=control_plane.client_certificate("scheduler"))
        assert status == 200
        # The parser of Prometheus' client library accepts the text.
        families = {family.name for family in text_string_to_metric_families(text)}
        assert {"scheduler_schedule_attempts", "rest_client_requests"} <= families
        assert one.end() == 0

    with replicas(one):
        run_replicas(control_plane, "run-certificates", scene)


def test_a_missing_right_ends_the_scheduler_with_verb_and_resource(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = config_file(tmp_path / "c.yaml", {"profiles": [{"schedulerName": "run-bare"}]})
    kubeconfig = control_plane.kubeconfig("stranger")
    arguments = ["run", f"--kubeconfig={kubeconfig}", f"--config={config}", "--secure-port=0"]
    one = SchedulerProcess("stranger", arguments, tmp_path / "log")
    with replicas(one):
        assert one.exit_code() == 1
    assert 'cannot list resource "namespaces" in API group ""' in one.output.replace("; ", "\n")
    assert "Traceback" not in one.output
