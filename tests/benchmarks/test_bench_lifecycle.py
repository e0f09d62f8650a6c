"""Each part of the life of groups has the right outcome at a small size."""

import pytest
from click.testing import CliRunner

from benchmarks import bench_lifecycle
from benchmarks.bench_lifecycle import STORIES, Story, main, played, reserve

#: Racks of two nodes.
NODES = 100


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_each_story_has_the_right_outcome(story: Story) -> None:
    racks = played(story, NODES)
    assert not racks.problems
    assert all(part.attempts and part.seconds > 0 for part in racks.parts)


def test_a_wrong_outcome_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reservation, pods that run too long take the room."""
    monkeypatch.setattr(bench_lifecycle, "STORIES", [Story("greedy", reserve)])
    measured = CliRunner().invoke(main, ["--nodes", str(NODES)])
    assert measured.exit_code == 1
    assert "backfill: long pods have the racks" in measured.output
