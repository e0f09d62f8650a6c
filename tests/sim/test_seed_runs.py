"""`make sim` plays the seeds, and reports progress and each failure with its replay command."""

import io

import pytest

from bayplan.plugins.node_resources_fit import NodeResourcesFit
from tests.seeded import MANY_SEEDS, ONE_SEED
from tests.sim.fault_world import FaultWorld
from tests.sim.seed_runs import Progress, SeedResult, main, run_seed


def test_seeds_that_pass_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(ONE_SEED, raising=False)
    monkeypatch.setenv(MANY_SEEDS, "2")
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith("2 seeds in ")
    assert printed.endswith("a minute), 0 failed\n")
    assert " add_node\n" in printed


@pytest.mark.timeout(600)
def test_a_failure_ends_with_its_steps_and_its_replay_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(NodeResourcesFit, "filter", lambda *_: ())
    monkeypatch.setattr(NodeResourcesFit, "filter_row", lambda *_: ())
    monkeypatch.setenv(ONE_SEED, "0")
    assert main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    replay = lines.index("replay it with: make sim SEED=0")
    assert lines[1] == "seed 0 fails"
    assert lines[replay - 1].startswith("resources: at ")
    assert replay < 12


def test_a_seed_that_does_not_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(world: FaultWorld) -> None:
        """A loop that neither virtual time nor an await ends."""
        while not world.is_calm:
            pass

    monkeypatch.setattr(FaultWorld, "_check_at_rest", spin)
    monkeypatch.setattr(FaultWorld, "_calm", lambda world: None)
    result = run_seed(0, hangs_seconds=3.0)
    assert result.failure == "fault world: does not end in 3 s"
    assert result.counts["add_node"]


def test_progress_says_how_many_seeds_are_left_and_how_many_failed() -> None:
    progress = Progress(10, io.StringIO())
    progress.add(SeedResult(0, failure="lost"))
    progress.add(SeedResult(1))
    assert progress.line().startswith("2 of 10 seeds, ")
    assert progress.line().endswith(" min left, 1 failed")
