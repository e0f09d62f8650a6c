"""`bayplan run`: its flags and its exit. tests/live tests the running scheduler."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.live.credentials import CredentialsError
from bayplan.cli import run
from bayplan.cli.run import EXIT_FAILED
from bayplan.cli.streams import EXIT_UNREADABLE
from bayplan.config import ConfigError, Problem
from bayplan.ports import ApiError
from bayplan.serving.certificates import CertificateError
from bayplan.serving.replica import LeaseLostError
from bayplan.serving.scheduler_server import ServerOptions
from tests.cli.command_line import bayplan, profile, refusal, write_objects

COMPOSED = Path(__file__).parents[2] / "examples" / "composed_rack"


def served(monkeypatch: pytest.MonkeyPatch, problem: Exception | None = None) -> list[Any]:
    """Records the log settings and the server options; no server starts."""
    calls: list[Any] = []

    async def serve(options: ServerOptions) -> None:
        calls.append(options)
        if problem is not None:
            raise problem

    monkeypatch.setattr(run, "serve", serve)
    monkeypatch.setattr(run, "write_log", lambda *args: calls.append(args))
    return calls


def test_defaults_equal_kube_schedulers_except_for_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = served(monkeypatch)
    assert bayplan("run").exit_code == 0
    log, options = calls
    assert log == (2, "text")
    assert (options.serving.address, options.serving.port) == ("127.0.0.1", 10259)
    assert options.serving.is_open
    assert options.kubeconfig is None
    assert options.config.spec.leader_election.leader_elect


def test_all_flags_reach_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = served(monkeypatch)
    config = write_objects(tmp_path / "c.yaml", profile())
    line = (
        f"--config {config} --kubeconfig k --seed 7 --leader-elect=false --bind-address 0.0.0.0 "
        f"--secure-port 1 --tls-cert-file c --tls-private-key-file p -v 4 --log-format json "
        f"--client-ca-file a"
    )
    assert bayplan("run", *line.split()).exit_code == 0
    log, options = calls
    assert log == (4, "json")
    assert (options.kubeconfig, options.seed) == ("k", 7)
    assert not options.config.spec.leader_election.leader_elect
    serving = options.serving
    assert (serving.address, serving.port, serving.is_open) == ("0.0.0.0", 1, False)
    assert (serving.cert_file, serving.key_file, serving.client_ca_file) == ("c", "p", "a")


def test_bare_leader_elect_does_not_consume_the_next_argument(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = served(monkeypatch)
    config = write_objects(tmp_path / "c.yaml", profile())
    assert bayplan("run", "--leader-elect", f"--config={config}").exit_code == 0
    assert calls[1].config.spec.leader_election.leader_elect
    assert calls[1].config.source == str(config)


def test_repeated_feature_gates_add_up_and_may_name_the_component(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = served(monkeypatch)
    gates = ("kube:SchedulerPopFromBackoffQ=false", "kube:GenericWorkload=true")
    assert bayplan("run", *(f"--feature-gates={gate}" for gate in gates)).exit_code == 0
    config = calls[1].config
    assert (config.gate("SchedulerPopFromBackoffQ"), config.gate("GenericWorkload")) == (
        False,
        True,
    )


@pytest.mark.parametrize("form", [["-v", "4"], ["-v4"], ["-v=4"], ["--v=4"], ["--v", "4"]])
def test_verbosity_has_the_usual_forms(monkeypatch: pytest.MonkeyPatch, form: list[str]) -> None:
    calls = served(monkeypatch)
    assert bayplan("run", *form).exit_code == 0
    assert calls[0] == (4, "text")


def test_an_invalid_configuration_is_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = served(monkeypatch)
    bad = write_objects(tmp_path / "c.yaml", {**profile(), "parallelism": 0})
    assert "parallelism: 0; wanted" in " ".join(refusal("run", "--config", bad))
    assert "wanted both or none" in " ".join(refusal("run", "--tls-cert-file", "x"))
    assert calls == []


def test_invalid_args_of_an_inner_plugin_are_reported_before_the_server_is_contacted(
    tmp_path: Path,
) -> None:
    wrong = (
        (COMPOSED / "config.yaml")
        .read_text()
        .replace(
            "inner: {scoringStrategy: {type: MostAllocated}}",
            "inner: {scoringStrategy: {type: Mots}}",
        )
    )
    nowhere = {"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
    users = [{"name": "x", "user": {}}]
    kubeconfig = {"clusters": [nowhere], "contexts": [context], "users": users}
    [line] = refusal(
        *("run", "--plugin", COMPOSED / "composed_rack.py"),
        *("--config", write_objects(tmp_path / "c.yaml", wrong)),
        *(
            "--kubeconfig",
            write_objects(tmp_path / "k.yaml", {**kubeconfig, "current-context": "x"}),
        ),
    )
    assert "pluginConfig[1].args.inner.scoringStrategy.type" in line
    assert '"Mots"' in line


@pytest.mark.parametrize(
    ("problem", "code", "message"),
    [
        (CredentialsError("no kubeconfig"), EXIT_UNREADABLE, "no kubeconfig"),
        (CertificateError("--tls-cert-file x: no such file"), 2, "--tls-cert-file x"),
        (ConfigError([Problem("profiles[0]", "bad")], "c.yaml"), 2, "profiles[0]: bad"),
        (ApiError(403, "Forbidden", "cannot list nodes"), EXIT_FAILED, "cannot list nodes"),
        (LeaseLostError("b holds the lease"), EXIT_FAILED, "lost the lease: b holds the lease"),
        (
            OSError(98, "in use"),
            EXIT_FAILED,
            "--bind-address 127.0.0.1 --secure-port 10259: in use",
        ),
    ],
)
def test_the_exit_code_and_message_give_the_reason(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, code: int, message: str
) -> None:
    served(monkeypatch, problem)
    ended = bayplan("run")
    assert (ended.exit_code, "Traceback" in ended.stderr) == (code, False)
    assert message in ended.stderr
