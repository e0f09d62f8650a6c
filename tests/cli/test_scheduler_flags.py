"""kube-scheduler's flags: each is accepted, with its meaning or with a remark."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from bayplan.cli import run
from bayplan.cli.run import run_command
from bayplan.cli.scheduler_flags import FIELD_FLAGS, IDLE_FLAGS, REMOVED_FLAGS
from bayplan.serving.scheduler_server import ServerOptions
from tests.cli.command_line import KUBEADM_ARGUMENTS, bayplan, profile, refusal, write_objects

#: `kube-scheduler --help`, v1.37.0.
UPSTREAM_FLAGS = """
    allow-metric-labels allow-metric-labels-manifest authentication-kubeconfig
    authentication-skip-lookup authentication-token-webhook-cache-ttl
    authentication-tolerate-lookup-failure authorization-always-allow-paths
    authorization-kubeconfig authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl bind-address cert-dir client-ca-file config
    contention-profiling disable-http2-serving disabled-metrics emulated-version feature-gates help
    http2-max-streams-per-connection kube-api-burst kube-api-content-type kube-api-qps kubeconfig
    leader-elect leader-elect-lease-duration leader-elect-renew-deadline
    leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace
    leader-elect-retry-period log-flush-frequency log-json-info-buffer-size log-json-split-stream
    log-text-info-buffer-size log-text-split-stream logging-format master
    min-compatibility-version permit-address-sharing permit-port-sharing
    pod-max-in-unschedulable-pods-duration profiling requestheader-allowed-names
    requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
    requestheader-uid-headers requestheader-username-headers secure-port
    show-hidden-metrics-for-version tls-cert-file tls-cipher-suites tls-curve-preferences
    tls-min-version tls-private-key-file tls-sni-cert-key v version vmodule write-config-to
""".split()  # noqa: SIM905 - a line for each would fill a page

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ServerOptions]:
    """Records the server options; no server starts."""
    options: list[ServerOptions] = []

    async def serve(server_options: ServerOptions) -> None:
        options.append(server_options)

    monkeypatch.setattr(run, "serve", serve)
    return options


def started(served: list[ServerOptions], *arguments: str) -> tuple[ServerOptions, list[str]]:
    """Options and remarks of a run that starts."""
    result = bayplan("run", *arguments, "--logging-format=json")
    assert result.exit_code == 0, result.stderr
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    return served[-1], [line["remark"] for line in lines if line["msg"] == "Remark"]


def test_every_flag_of_kube_scheduler_is_accepted_and_documented() -> None:
    accepted = {
        name.lstrip("-")
        for param in run_command.get_params(click.Context(run_command, info_name="run"))
        if isinstance(param, click.Option)
        for name in param.opts
    }
    accepted.add("help")
    assert sorted(set(UPSTREAM_FLAGS) - accepted) == []
    text = OPERATIONS.read_text(encoding="utf-8")
    assert [name for name in UPSTREAM_FLAGS if f"--{name}`" not in text] == []


def test_kubeadms_manifest_starts_without_a_remark(served: list[ServerOptions]) -> None:
    options, remarks = started(served, *KUBEADM_ARGUMENTS)
    assert remarks == []
    assert options.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert options.config.spec.leader_election.leader_elect
    # The role grants only this lease, and kube-scheduler on other nodes waits for the same lease.
    assert options.config.spec.leader_election.resource_name == "kube-scheduler"
    assert options.config.spec.leader_election.resource_namespace == "kube-system"
    serving = options.serving
    assert (serving.address, serving.port) == ("127.0.0.1", 10259)
    # The probes use HTTPS.
    assert not serving.is_open
    delegation = serving.delegation
    assert delegation.authentication_kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert delegation.authorization_kubeconfig == "/etc/kubernetes/scheduler.conf"


def test_a_default_start_has_no_remark(served: list[ServerOptions]) -> None:
    assert started(served)[1] == []


def test_election_flags_apply_beside_a_configuration_file(
    served: list[ServerOptions], tmp_path: Path
) -> None:
    config = write_objects(
        tmp_path / "c.yaml",
        {**profile(), "leaderElection": {"leaderElect": False, "retryPeriod": "3s"}},
    )
    arguments = (
        f"--config={config}",
        "--leader-elect",
        "--leader-elect-lease-duration=50s",
        "--leader-elect-renew-deadline=40s",
        "--leader-elect-resource-lock=leases",
        "--leader-elect-resource-name=a",
        "--leader-elect-resource-namespace=b",
    )
    leader_election = started(served, *arguments)[0].config.spec.leader_election
    assert leader_election.leader_elect
    assert (leader_election.lease_duration, leader_election.renew_deadline) == ("50s", "40s")
    assert (leader_election.resource_name, leader_election.resource_namespace) == ("a", "b")
    assert leader_election.retry_period == "3s"


def test_flags_are_validated_as_the_fields_that_they_set() -> None:
    [line] = refusal("run", "--leader-elect-lease-duration=5s")
    assert line.startswith("leaderElection.leaseDuration: 5s; wanted more than renewDeadline")
    [line] = refusal("run", "--leader-elect-resource-lock=endpoints")
    assert line.startswith("leaderElection.resourceLock:")
    assert "wanted a duration such as 15s" in bayplan("run", "--leader-elect-retry-period=5").stderr


def test_deprecated_flags_apply_only_without_a_configuration_file(
    served: list[ServerOptions], tmp_path: Path
) -> None:
    flags = ("--kube-api-qps=7.5", "--kube-api-burst=9")
    options, remarks = started(served, *flags)
    connection = options.config.spec.client_connection
    assert (connection.qps, connection.burst, remarks) == (7.5, 9, [])
    config = write_objects(tmp_path / "c.yaml", profile())
    options, remarks = started(served, *flags, f"--config={config}")
    connection = options.config.spec.client_connection
    assert (connection.qps, connection.burst) == (50.0, 100)
    assert remarks == [
        "--kube-api-qps has no effect together with --config; set clientConnection.qps in the file",
        (
            "--kube-api-burst has no effect together with --config; "
            "set clientConnection.burst in the file"
        ),
    ]


_VALUES = {"boolean": "true", "integer": "1", "float": "1", "duration": "5s", "text": "x"}


@pytest.mark.parametrize("flag", IDLE_FLAGS, ids=lambda flag: flag.name)
def test_a_flag_without_effect_is_reported(served: list[ServerOptions], flag: Any) -> None:
    value = _VALUES[flag.kind.name]
    remarks = started(served, f"--{flag.name}={value}")[1]
    assert remarks == [f"--{flag.name} has no effect: {flag.reason}"]


@pytest.mark.parametrize("name", REMOVED_FLAGS)
def test_a_flag_of_older_versions_is_refused_with_its_replacement(name: str) -> None:
    assert name not in UPSTREAM_FLAGS
    for flag in (f"--{name}=1", f"--{name.replace('-', '_')}"):
        result = bayplan("run", flag)
        assert result.exit_code == 2
        assert f"v1.37 has no --{name}; {REMOVED_FLAGS[name]}\n" in result.stderr


def test_the_replacement_of_a_removed_flag_is_a_flag() -> None:
    words = {word for text in REMOVED_FLAGS.values() for word in text.split()}
    flags = {word.lstrip("-").partition("=")[0] for word in words if word.startswith("-")}
    assert flags <= set(UPSTREAM_FLAGS)


def test_profiling_has_no_effect(served: list[ServerOptions]) -> None:
    remarks = started(served, "--profiling=false", "--contention-profiling")[1]
    assert remarks == [
        f"--{name} has no effect: there is no Go profiler"
        for name in ("profiling", "contention-profiling")
    ]


def test_endpoint_flags_reach_the_server(served: list[ServerOptions]) -> None:
    arguments = (
        "--tls-min-version=VersionTLS13",
        "--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA",
        "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "--tls-sni-cert-key=a,b:x",
        "--tls-sni-cert-key=c,d",
        "--cert-dir=e",
        "--permit-port-sharing",
        "--authentication-skip-lookup",
        "--authentication-tolerate-lookup-failure=false",
        "--authentication-token-webhook-cache-ttl=1s",
        "--authorization-webhook-cache-authorized-ttl=2s",
        "--authorization-webhook-cache-unauthorized-ttl=3s",
        "--authorization-always-allow-paths=/livez,/metrics",
        "--disabled-metrics=scheduler_goroutines,scheduler_pending_pods",
    )
    serving = started(served, *arguments)[0].serving
    assert serving.tls.version_min == "VersionTLS13"
    assert serving.tls.cipher_suites == (
        "TLS_AES_128_GCM_SHA256",
        "TLS_RSA_WITH_AES_128_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    )
    assert serving.tls.named_pairs == ("a,b:x", "c,d")
    assert (serving.cert_dir, serving.is_port_shared) == ("e", True)
    assert serving.hidden_metrics == {"scheduler_goroutines", "scheduler_pending_pods"}
    delegation = serving.delegation
    assert (delegation.skips_lookup, delegation.tolerates_lookup_failure) == (True, False)
    policy = delegation.policy
    assert (policy.token_seconds, policy.allowed_seconds, policy.denied_seconds) == (1, 2, 3)
    assert policy.open_paths == {"/livez", "/metrics"}


def test_the_longest_wait_without_an_event_is_configured_by_a_flag(
    served: list[ServerOptions],
) -> None:
    assert started(served)[0].config.unschedulable_max_seconds == 300
    flag = "--pod-max-in-unschedulable-pods-duration=90s"
    assert started(served, flag)[0].config.unschedulable_max_seconds == 90


def test_master_overrides_the_server_of_the_kubeconfig(served: list[ServerOptions]) -> None:
    assert started(served, "--master=https://10.0.0.1:6443")[0].master == "https://10.0.0.1:6443"


def test_the_written_configuration_is_valid(served: list[ServerOptions], tmp_path: Path) -> None:
    path = tmp_path / "written.yaml"
    result = bayplan("run", f"--write-config-to={path}", "--kube-api-qps=7", "--leader-elect=false")
    assert (result.exit_code, served) == (0, [])
    whole = yaml.safe_load(path.read_text())
    assert whole["clientConnection"]["qps"] == 7
    assert whole["leaderElection"]["leaderElect"] is False
    assert bayplan("config", "check", path).exit_code == 0
    assert "cannot be" not in refusal("run", f"--write-config-to={tmp_path}")[-1]


def test_the_version_is_printed(served: list[ServerOptions]) -> None:
    for flag in ("--version", "--version=true"):
        result = bayplan("run", flag)
        assert (result.exit_code, result.stdout.startswith("Bayplan "), served) == (0, True, [])


def test_every_flag_has_one_meaning() -> None:
    names = [flag.name for flag in (*FIELD_FLAGS, *IDLE_FLAGS)]
    assert len(names) == len(set(names))
