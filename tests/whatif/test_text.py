"""Words and tables that several answers share."""

from bayplan.answers.pages import as_text
from bayplan.whatif.text import PendingPodCounts, note_lines


def test_pods_that_wait_are_noted() -> None:
    assert list(PendingPodCounts(placed=1, waiting=2).lines()) == [
        "1 pod of the cluster without a node: placed first, as its scheduler would",
        "2 pods of the cluster without a node: no room, still waiting",
    ]
    assert list(PendingPodCounts(waiting=2, is_ignored=True).lines()) == [
        "2 pods of the cluster without a node: not tried"
    ]
    assert note_lines(PendingPodCounts().lines()) == []
    assert as_text(note_lines(["a note"])) == "\na note"
