"""`bayplan webhook`: options and one-line errors. tests/live tests the running webhook."""

from pathlib import Path

from bayplan.cli.streams import EXIT_UNREADABLE
from bayplan.durations import DESCRIPTION
from tests.cli.command_line import bayplan, refusal


def test_plain_http_is_for_loopback_only() -> None:
    (line,) = refusal("webhook", "--bind-address", "0.0.0.0")
    assert line == (
        "--bind-address 0.0.0.0: an API server calls webhooks with HTTPS; wanted --tls-cert-file "
        "and --tls-private-key-file"
    )


def test_a_budget_is_a_positive_duration() -> None:
    assert refusal("webhook", "--budget", "soon") == [
        f'--budget: found "soon", wanted {DESCRIPTION}'
    ]
    assert refusal("webhook", "--budget", "0s") == ["--budget: found 0s, wanted more than 0"]


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    (line,) = refusal("webhook", "--tls-cert-file", tmp_path / "tls.crt")
    assert line.startswith("--tls-cert-file, --tls-private-key-file: found one of them")


def test_a_missing_kubeconfig_ends_with_3() -> None:
    result = bayplan("webhook", "--kubeconfig", "/nonexistent")
    assert (result.exit_code, result.stdout) == (EXIT_UNREADABLE, "")
    assert "/nonexistent" in result.stderr
