"""The bar on a terminal."""

import pytest

from bayplan.cli.progress_bar import progress_bar


def test_a_progress_bar_counts_and_disappears(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "90")
    with progress_bar("running", "runs") as update:
        update(3, 8, "fifo, seed 1")
    written = capsys.readouterr().err
    assert "running" in written
    assert "3 of 8 runs" in written
    assert "fifo, seed 1" in written
    assert written.endswith("\x1b[2K")
