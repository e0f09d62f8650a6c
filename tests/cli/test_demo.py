"""`bayplan demo`: a first result without a cluster and without files."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.command_line import answer, bayplan, refusal

EXAMPLES = Path(__file__).parents[2] / "examples"


def commands(text: str) -> list[list[str]]:
    """The commands that the text proposes, without the name of the program."""
    lines = text.replace("\\\n", " ").splitlines()
    proposed = [line.strip() for line in lines if line.startswith("    bayplan ")]
    return [shlex.split(line, comments=True)[1:] for line in proposed]


def test_the_demo_places_the_pods_of_the_quickstart_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert answer("demo").startswith("27 of 32 pods placed on 12 nodes\n")
    assert not [*tmp_path.iterdir()]


def test_the_demo_decides_as_simulate_does() -> None:
    simulated = json.loads(answer("simulate", EXAMPLES / "quickstart", "-o", "json"))
    assert f"digest {simulated['digest'][:12]}" in answer("demo")


def test_the_first_hints_name_existing_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hints = commands(answer("demo"))
    assert [hint[0] for hint in hints] == ["demo", "capture", "simulate", "plugins"]
    answer(*hints[0])
    assert (tmp_path / "examples" / "quickstart" / "cluster.yaml").is_file()
    answer(*hints[-1])


def test_every_command_that_the_demo_proposes_after_writing_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hints = commands(answer("demo", "--write", "my files"))
    outputs = [answer(*hint) for hint in hints]
    assert len(outputs) == 4
    assert "0/12 nodes are available" in outputs[1]
    assert outputs[3].startswith("no pod of this run is left on 4 nodes\n12 pods gone: 12 ended\n")


def test_the_written_files_are_the_examples_without_files_of_tools(tmp_path: Path) -> None:
    answer("demo", "--write", tmp_path / "new")
    written = {p.relative_to(tmp_path / "new") for p in tmp_path.rglob("*") if p.is_file()}
    assert Path("gangs/jobs.yaml") in written
    assert not [path for path in written if path.suffix == ".pyc"]
    assert all(
        (EXAMPLES / path).read_bytes() == (tmp_path / "new" / path).read_bytes() for path in written
    )


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    assert refusal("demo", "--write", tmp_path) == [
        f"--write {tmp_path}: exists already; name another folder"
    ]
    assert refusal("demo", "--write", tmp_path / "mine") == [
        f"--write {tmp_path / 'mine'}: exists already; name another folder"
    ]


def test_a_folder_that_cannot_be_written_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (line,) = refusal("demo", "--write", tmp_path / "file" / "folder")
    assert line == f"--write {tmp_path / 'file' / 'folder'}: cannot be written: Not a directory"


def test_an_installation_without_examples_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.example_files._PLACES", (Path("/nowhere"),))
    result = bayplan("demo")
    assert result.exit_code == 2
    assert "install the package bayplan again" in result.stderr
