"""The alerts of the chart fire when they should, by `promtool test rules`.

promtool is $PROMTOOL, on the path, or built by `make test-alerts`. It is part of Prometheus
(Debian: the package prometheus).
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import checkers
from tests.deploy.monitoring import alert_names
from tests.deploy.rendering import documents, rendered


def _program() -> str | None:
    path = os.environ.get("PROMTOOL") or shutil.which("promtool")
    built = None if path else checkers.PROMTOOL.folder()
    return path if built is None else str(built / "promtool")


PROMTOOL = _program()
pytestmark = pytest.mark.skipif(
    PROMTOOL is None, reason="no promtool: set PROMTOOL to one, or run `make test-alerts` once"
)

OWN = 'namespace="bayplan", job="bayplan"'
UPSTREAM = 'namespace="kube-system", job="kube-scheduler"'
ATTEMPTS = "scheduler_schedule_attempts_total"
BUCKET = "scheduler_scheduling_attempt_duration_seconds_bucket"

#: The metrics of a scheduler without problems: series → values, one per minute.
HEALTHY = {
    'leader_election_master_status{name="bayplan", pod="a"}': "1x120",
    'leader_election_master_status{name="bayplan", pod="b"}': "0x120",
    f'{ATTEMPTS}{{{OWN}, result="scheduled"}}': "0+600x120",
    f'{BUCKET}{{{OWN}, le="0.128"}}': "0+600x120",
    f'{BUCKET}{{{OWN}, le="1.024"}}': "0+600x120",
    f'{BUCKET}{{{OWN}, le="+Inf"}}': "0+600x120",
    f'scheduler_pending_pods{{{OWN}, queue="active"}}': "500 0 500 0 500 0 0x110",
    f'scheduler_pending_pods{{{OWN}, queue="unschedulable"}}': "5000x120",
    "bayplan_bugs_total": "3x120",
}
#: The metrics of a kube-scheduler with problems in the same cluster.
OTHER = {
    f'{ATTEMPTS}{{{UPSTREAM}, result="error"}}': "0+6000x120",
    f'{BUCKET}{{{UPSTREAM}, le="1.024"}}': "0x120",
    f'{BUCKET}{{{UPSTREAM}, le="+Inf"}}': "0+6000x120",
    f'scheduler_pending_pods{{{UPSTREAM}, queue="active"}}': "5000x120",
}
#: Alert → the series that make it fire, in addition to or in place of the healthy series.
FIRING = {
    "BayplanHasNoLeader": {'leader_election_master_status{name="bayplan", pod="a"}': "0x120"},
    "BayplanCannotReadTheCluster": {'bayplan_cluster_problem{request="list v1 Node"}': "1x120"},
    "BayplanAttemptsFail": {f'{ATTEMPTS}{{{OWN}, result="error"}}': "0+60x120"},
    "BayplanAttemptsAreSlow": {
        f'{BUCKET}{{{OWN}, le="0.128"}}': "0+500x120",
        f'{BUCKET}{{{OWN}, le="1.024"}}': "0+500x120",
    },
    "BayplanFallsBehind": {f'scheduler_pending_pods{{{OWN}, queue="active"}}': "500x120"},
    "BayplanPluginBlocks": {
        'bayplan_plugin_blocking_seconds_total{plugin="P", extension_point="Score"}': "0+6x120"
    },
    "BayplanDropsEvents": {"bayplan_events_dropped_total": "0+1x120"},
    "BayplanHasBugs": {"bayplan_bugs_total": "0+1x120"},
    "BayplanPluginFails": {'bayplan_plugin_failures_total{plugin="P"}': "0+1x120"},
    "BayplanReuseMismatch": {'bayplan_reuse_mismatch_total{plugin="P"}': "0+1x120"},
}


def promtool(folder: Path, series: dict[str, str], expected: list[str]) -> str:
    """The output of promtool if not exactly these alerts fire after an hour; "" if they do."""
    (rule,) = [
        each
        for each in documents(rendered("--set", "prometheusRule.enabled=true"))
        if each["kind"] == "PrometheusRule"
    ]
    (folder / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": expression, "eval_time": "60m", "exp_samples": samples}],
    }
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(content))
    command = [str(PROMTOOL), "test", "rules", "test.yaml"]
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if completed.returncode == 0 else completed.stdout + completed.stderr


def test_no_alert_fires_for_a_healthy_scheduler_beside_a_busy_kube_scheduler(
    tmp_path: Path,
) -> None:
    assert not promtool(tmp_path, HEALTHY | OTHER, [])


@pytest.mark.parametrize("alert", FIRING)
def test_an_alert_fires_alone_for_its_own_problem(alert: str, tmp_path: Path) -> None:
    assert not promtool(tmp_path, HEALTHY | OTHER | FIRING[alert], [alert])


def test_every_alert_has_a_case() -> None:
    assert [*FIRING] == alert_names()


def test_a_missing_alert_is_detected(tmp_path: Path) -> None:
    assert "BayplanHasBugs" in promtool(tmp_path, HEALTHY, ["BayplanHasBugs"])
