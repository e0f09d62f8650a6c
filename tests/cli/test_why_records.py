"""`bayplan why` about attempts in the memory of a running scheduler."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from bayplan.config import SchedulerConfig
from bayplan.history.past_state import StateRing
from bayplan.journal import MemorySink
from bayplan.plugins.registry import default_registry
from bayplan.profile.effective_config import effective
from bayplan.serving.decision_history import history_of
from bayplan.serving.dry_runs import dry_run_of
from bayplan.serving.past_attempts import PastAttempts
from bayplan.sim.simulation import Simulation
from tests.cli.command_line import answer, refusal
from tests.kit.manifests import container, node, pod, pod_group
from tests.live.processes import free_port
from tests.serving.endpoint_sources import served, sources
from tests.sim.runs import workload

MEMBER = {"scheduling.x-k8s.io/pod-group": "g"}


@pytest.fixture
def busy_address() -> Iterator[str]:
    """Endpoints of a scheduler with some placed pods and one pending pod."""
    pods = [pod(f"p{i}") for i in range(3)]
    large = [container("64")]
    waiting = [
        pod("never", containers=large),
        *(pod(f"m{i}", containers=large, labels=MEMBER) for i in range(2)),
    ]
    feed = workload(node("n1"), node("n2"), pod_group("g", minimum=2), *pods, *waiting)
    records, ring, config = MemorySink(), StateRing(1000), SchedulerConfig()
    simulation = Simulation(feed, config, default_registry(), seed=7, put_entry=ring.put)
    simulation.keep_journal(records)
    simulation.run()
    settings = effective(config, default_registry())
    contents = replace(
        sources(),
        history=lambda name: history_of(name, records, "2026-01-01T00:00:00Z"),
        attempts=PastAttempts(ring, records, config=settings, seed=7, absent=()),
        dry_run=partial(dry_run_of, scheduler=simulation.scheduler),
    )
    yield from served(contents, free_port())


def refusal_text(*arguments: str) -> str:
    return " ".join(refusal(*arguments))


def test_an_attempt_of_a_running_scheduler_is_repeated_for_one_node(busy_address: str) -> None:
    text = answer("why", "never", "--address", busy_address, "--node", "n1")
    assert "n1: rejected by NodeResourcesFit: Insufficient cpu (" in text
    assert "Note" not in text
    placed = json.loads(
        answer("why", "p2", "--address", busy_address, "--node", "n1", "-o", "json")
    )
    assert placed["kind"] == "Decisions"
    assert placed["remarks"] == []
    assert [each["plugin"] for each in placed["node"]["alone"] if each.get("code")] == []
    assert {score["node"] for score in placed["node"]["scores"]} >= {"n1"}


def test_an_attempt_that_is_not_in_memory_is_reported(busy_address: str) -> None:
    message = refusal_text("why", "p2", "--address", busy_address, "--node", "n1", "--attempt", "9")
    assert "the attempt at default/p2 is not in memory" in message


def test_a_dry_run_uses_the_cached_results(busy_address: str) -> None:
    """Nothing changed since the last attempt, so no node is evaluated."""
    document = json.loads(
        answer("why", "never", "--address", busy_address, "--dry-run", "-o", "json")
    )
    [record] = document["records"]
    assert record["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert document["evaluatedCount"] == 0
    assert document["cachedCount"] > 0
    text = answer("why", "never", "--address", busy_address, "--dry-run")
    assert "a dry run looks for no victims" in text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("p0", "default/p0 does not wait for this scheduler", id="placed"),
        pytest.param("m0", "default/m0 belongs to a group", id="member"),
    ],
)
def test_a_dry_run_is_refused_for_some_pods(busy_address: str, name: str, reason: str) -> None:
    assert reason in refusal_text("why", name, "--address", busy_address, "--dry-run")
