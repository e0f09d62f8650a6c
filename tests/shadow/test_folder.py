"""The files in the folder of a shadow are written and read back."""

from pathlib import Path

import pytest
from msgspec import structs

from bayplan.problems import BadInputError
from bayplan.shadow import folder
from tests.ui.example_shadow import DECISIONS as COUNT
from tests.ui.example_shadow import LISTED_MAX, write_shadow


def test_the_folder_has_the_report_and_every_decision(tmp_path: Path) -> None:
    written = write_shadow(tmp_path / "s")
    report, decisions = folder.read_shadow(tmp_path / "s")
    assert report == written
    assert len(decisions) == COUNT
    assert [one.at_seconds for one in decisions] == sorted(one.at_seconds for one in decisions)
    counts = report.decisions
    disagreements = [one.disagreement for one in decisions if one.disagreement is not None]
    assert len(disagreements) == counts.lower + counts.rejected > LISTED_MAX
    assert len(report.disagreements) == LISTED_MAX
    assert sum(one.result == "best" for one in decisions) == counts.best


def test_a_report_without_a_folder_has_its_disagreements(tmp_path: Path) -> None:
    write_shadow(tmp_path)
    copy = tmp_path / "copy.json"
    (tmp_path / folder.REPORT).rename(copy)
    report, decisions = folder.read_shadow(copy)
    assert [one.disagreement for one in decisions] == list(report.disagreements)


def test_a_shadow_is_distinguished_from_other_files(tmp_path: Path) -> None:
    assert not folder.is_shadow(tmp_path)
    other = tmp_path / "list.json"
    other.write_text('{"kind": "List"}')
    assert not folder.is_shadow(other)
    write_shadow(tmp_path)
    assert folder.is_shadow(tmp_path)
    assert folder.is_shadow(tmp_path / folder.REPORT)


def test_only_the_owner_can_read_the_files_which_are_never_overwritten(tmp_path: Path) -> None:
    write_shadow(tmp_path)
    for name in (folder.REPORT, folder.DECISIONS):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        folder.DecisionFile(tmp_path)


def test_an_interim_report_exists_until_the_end(tmp_path: Path) -> None:
    final = write_shadow(tmp_path)
    (tmp_path / folder.REPORT).unlink()
    for seconds in (1.0, 2.0):
        folder.write_report_so_far(tmp_path, structs.replace(final, seconds=seconds))
        assert folder.is_shadow(tmp_path)
        assert folder.written_so_far(tmp_path) is not None
        assert folder.read_shadow(tmp_path)[0].seconds == seconds
    assert (tmp_path / folder.RUNNING).stat().st_mode & 0o777 == 0o600
    folder.write_report(tmp_path, final)
    assert folder.written_so_far(tmp_path) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.DECISIONS, folder.REPORT]
    assert folder.read_shadow(tmp_path)[0] == final


def test_a_partly_written_decision_is_not_read(tmp_path: Path) -> None:
    write_shadow(tmp_path)
    file = tmp_path / folder.DECISIONS
    file.write_bytes(file.read_bytes()[:-10])
    assert len(folder.read_shadow(tmp_path)[1]) == COUNT - 1


@pytest.mark.parametrize("text", ["{", '{"kind": "ShadowReport"}'])
def test_a_damaged_report_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / folder.REPORT).write_text(text)
    with pytest.raises(BadInputError, match=folder.REPORT):
        folder.read_shadow(tmp_path)
