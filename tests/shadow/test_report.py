"""The report as text, as a value and as metrics."""

import io
import socket

import msgspec
import pytest
from prometheus_client.exposition import generate_latest
from rich.console import Console

from bayplan.answers.document import schema_of
from bayplan.ports import EventType, WatchEvent
from bayplan.shadow.metrics import MetricsEndpoint, registry_of
from bayplan.shadow.report import ShadowReport, percentage
from bayplan.shadow.shadow import Shadow
from bayplan.testing import node, pod
from tests.model.clusters import model_of


def shadow() -> Shadow:
    """A shadow with two decisions: one agrees, the other has a node that is too small."""
    nodes = [node("small", cpu="2"), node("large", cpu="8")]
    finished = Shadow(model_of(nodes), policy=model_of(nodes), policy_source="packing.yaml")
    for name, cpu, on in (("web", "1", "large"), ("big", "4", "small")):
        waiting, bound = pod(name, cpu=cpu), pod(name, cpu=cpu, node=on)
        finished.observe(WatchEvent(EventType.ADDED, "v1 Pod", waiting.pod), 1.0)
        finished.check_waiting(1.0)
        finished.observe(WatchEvent(EventType.MODIFIED, "v1 Pod", bound.pod), 9.0)
    finished.relisted("v1 Node", 3, 9.0)
    finished.finish(9.0)
    return finished


def report() -> ShadowReport:
    return shadow().report(
        "2026-01-01T00:00:00Z", failures={"watch v1 Pod: cut": 2}, remarks=("a remark",)
    )


def test_the_text_has_the_counts_the_reasons_and_the_missed_events() -> None:
    output = io.StringIO()
    console = Console(file=output, width=120)
    for part in report().parts():
        console.print(part)
    text = output.getvalue()
    assert "default-scheduler: 50.00 % of 2 decisions" in text
    assert "NodeResourcesFit: Insufficient cpu" in text
    assert "2 pods waited at least 5 s longer than in the shadow" in text
    assert "packing.yaml: the pod's node is one of its best nodes in 50.00 % of 2 decisions" in text
    assert "Lists after the first: 1; they brought 3 changes" in text
    assert "Failed 2 times: watch v1 Pod: cut" in text
    assert "Note: a remark" in text


def test_a_shadow_without_decisions_reports_that_no_decision_was_compared() -> None:
    idle = Shadow(model_of([node("n1")]))
    idle.finish(60.0)
    first, *_ = idle.report("2026-01-01T00:00:00Z").parts()
    assert str(first) == "default-scheduler: no decision was compared in 60.0 s"


def test_a_share_is_rounded_down() -> None:
    assert percentage(0.99999) == "99.99 %"
    assert percentage(1.0) == "100.00 %"
    assert percentage(0.9966) == "99.66 %"
    assert percentage(None) == "–"


def test_the_report_is_a_document_with_a_version_and_a_schema() -> None:
    written = msgspec.json.encode(report())
    assert msgspec.json.decode(written, type=ShadowReport) == report()
    content = msgspec.json.decode(written)
    assert (content["apiVersion"], content["kind"]) == ("bayplan.dev/v1alpha1", "ShadowReport")
    properties = schema_of(ShadowReport)["$defs"]["ShadowReport"]["properties"]
    assert set(content) <= set(properties)


def test_metrics_count_decisions_events_and_disagreements() -> None:
    text = generate_latest(registry_of(shadow())).decode()
    lines = set(text.splitlines())
    assert 'bayplan_shadow_decisions_total{result="best"} 1.0' in lines
    assert 'bayplan_shadow_decisions_total{result="rejected"} 1.0' in lines
    rejected = 'plugin="NodeResourcesFit",result="rejected"'
    assert f"bayplan_shadow_disagreements_total{{{rejected}}} 1.0" in lines
    assert 'bayplan_shadow_events_total{kind="v1 Pod"} 4.0' in lines
    assert "bayplan_shadow_missed_events_total 3.0" in lines
    assert "bayplan_shadow_pending_pods 0.0" in lines


async def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        endpoint = MetricsEndpoint(Shadow(model_of([])))
        with pytest.raises(OSError, match="in use") as error:
            await endpoint.start(port)
    assert error.value.filename == f"--port {port}"
