"""A run on disk: written completely, read back, refused if it is invalid."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.journal import AttemptRecord, NoteRecord, Record
from bayplan.sim.input.sources import belongs_to_run
from bayplan.sim.input.workload import Workload
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.output.run_folder import RunFolder, RunFolderError, RunManifest, is_run
from tests.kit.manifests import node, pod
from tests.sim.runs import simulation, workload

FEED = workload(node("n1"), pod("a"), pod("b", cpu="64"))
DEFAULT = RunManifest(seed=7, config=None, feature_gates="")


def write_run(path: Path, *plugin_files: Path, manifest: RunManifest = DEFAULT) -> SimulationResult:
    """Run FEED and store the run in a folder."""
    folder = RunFolder(path)
    with folder.start(manifest, FEED, plugin_files) as run:
        simulated = simulation(FEED, seed=manifest.seed, sinks=[run], put_entry=run.put)
        result = simulated.run()
    folder.finish(result)
    return result


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(RunFolderError) as refused:
        call()
    return str(refused.value)


# ---- writing -------------------------------------------------------------------------------


def test_the_stored_summary_equals_the_printed_one(tmp_path: Path) -> None:
    result = write_run(tmp_path / "run")
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["placements"] == {"default/a": "n1"}
    assert summary["digest"] == result.digest
    assert RunFolder(tmp_path / "run").result() == result


def test_placements_are_rows_of_pod_node_time_and_end(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    lines = (tmp_path / "run/placements.csv").read_bytes()
    assert lines == b"pod,node,bound_at,end\ndefault/a,n1,0.0,placed\n"


def test_the_journal_holds_every_record_in_order(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    records = list(RunFolder(tmp_path / "run").journal())
    assert [type(r).__name__ for r in records] == [
        "AttemptRecord",
        "BindingRecord",
        "AttemptRecord",
    ]
    first, last = records[0], records[-1]
    assert isinstance(first, AttemptRecord)
    assert isinstance(last, AttemptRecord)
    assert (first.pod, first.node) == ("default/a", "n1")
    [rejected] = last.rejections
    assert (rejected.plugin, rejected.reason, rejected.nodes) == (
        "NodeResourcesFit",
        "Insufficient cpu",
        1,
    )


def plugin_files(folder: RunFolder) -> list[Path]:
    return [folder.path / name for name in folder.manifest().plugins]


def test_inputs_are_read_back_unchanged(tmp_path: Path) -> None:
    plugin = tmp_path / "policy.py"
    plugin.write_text("X = 1\n")
    gates = RunManifest(seed=3, config="kind: K\n", feature_gates="A=true")
    write_run(tmp_path / "run", plugin, manifest=gates)
    folder = RunFolder(tmp_path / "run")
    manifest = folder.manifest()
    assert folder.workload() == FEED
    assert (manifest.seed, manifest.config) == (3, "kind: K\n")
    assert manifest.feature_gates == "A=true"
    [file] = plugin_files(folder)
    assert (file.name, file.read_text()) == ("policy.py", "X = 1\n")


def test_two_plugin_files_with_one_name_are_both_stored(tmp_path: Path) -> None:
    files = [tmp_path / "one/policy.py", tmp_path / "two/policy.py"]
    for number, file in enumerate(files):
        file.parent.mkdir()
        file.write_text(str(number))
    write_run(tmp_path / "run", *files)
    stored = plugin_files(RunFolder(tmp_path / "run"))
    assert [file.read_text() for file in stored] == ["0", "1"]


def test_nothing_remains_of_an_earlier_run(tmp_path: Path) -> None:
    plugin = tmp_path / "policy.py"
    plugin.write_text("X = 1\n")
    write_run(tmp_path / "run", plugin)
    folder = RunFolder(tmp_path / "run")
    with folder.start(DEFAULT, workload(), ()):
        pass
    assert folder.result() is None
    assert list(folder.journal()) == []
    assert not (tmp_path / "run/placements.csv").exists()
    assert not list((tmp_path / "run/inputs").glob("plugin-*"))


def test_a_plugin_file_may_come_from_the_run_that_is_replaced(tmp_path: Path) -> None:
    plugin = tmp_path / "policy.py"
    plugin.write_text("X = 1\n")
    write_run(tmp_path / "run", plugin)
    [inside] = plugin_files(RunFolder(tmp_path / "run"))
    write_run(tmp_path / "run", inside)
    [again] = plugin_files(RunFolder(tmp_path / "run"))
    assert again.read_text() == "X = 1\n"


def test_a_folder_without_a_run_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("mine")
    message = refusal(lambda: write_run(tmp_path))
    assert "holds summary.json, and is no run" in message
    assert (tmp_path / "summary.json").read_text() == "mine"


def test_other_files_in_the_folder_stay_unchanged(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    write_run(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_interrupted_run_has_its_journal_and_no_result(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    note = NoteRecord(at_seconds=0.0, subject="a", text="b")

    def interrupted() -> None:
        with folder.start(DEFAULT, FEED, ()) as sink:
            sink.write(note)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(folder.journal()) == [note]
    assert folder.result() is None


@pytest.mark.parametrize("inside", ["", "/deeper"])
def test_a_file_is_refused_as_a_run_folder(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").touch()
    path = Path(f"{tmp_path}/file{inside}")
    assert refusal(lambda: write_run(path)) == f"{path}: cannot be written: Not a directory"


def test_a_full_disk_is_reported_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    folder = RunFolder(tmp_path)
    note: Record = NoteRecord(at_seconds=0.0, subject="a", text="b")
    with folder.start(DEFAULT, FEED, ()) as sink:
        monkeypatch.setattr("bayplan.journal.FileSink.write", full)
        message = refusal(lambda: sink.write(note))
    assert message == f"{tmp_path}: cannot be written: No space left on device"


def test_files_of_a_run_are_distinguished_from_other_files(tmp_path: Path) -> None:
    plugin = tmp_path / "policy.py"
    plugin.write_text("X = 1\n")
    write_run(tmp_path, plugin)
    (tmp_path / "cluster.yaml").touch()
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    foreign = {path.name for path in files if not belongs_to_run(path)}
    assert foreign == {"policy.py", "cluster.yaml"}


def test_files_with_names_of_a_run_do_not_make_a_run(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    for name in ("summary.json", "inputs/cluster.yaml"):
        (tmp_path / name).touch()
        assert not belongs_to_run(tmp_path / name)


# ---- reading -------------------------------------------------------------------------------


def test_a_folder_without_a_run_is_refused_with_a_hint(tmp_path: Path) -> None:
    message = refusal(lambda: list(RunFolder(tmp_path / "ghost").journal()))
    assert message.startswith(
        f"{tmp_path}/ghost: this folder contains no run (No such file or directory: "
    )
    assert message.endswith("wanted a folder that `bayplan simulate --out` wrote")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(b"garbage\n", "JSON is malformed", id="not JSON"),
        pytest.param(b'{"type":"attempt"}\n', "missing required field", id="not a record"),
        pytest.param(b'{"type":"never"}\n', "Invalid value", id="unknown record type"),
        pytest.param(b'{"type":"note","subject":"\xff"}\n', "not UTF-8", id="not text"),
        pytest.param(b'{"type":"att', "truncated", id="truncated"),
    ],
)
def test_a_corrupt_journal_is_refused_with_the_line(
    tmp_path: Path, line: bytes, message: str
) -> None:
    write_run(tmp_path)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + line)
    refused = refusal(lambda: list(RunFolder(tmp_path).journal()))
    assert refused.startswith(f"{journal}: line 4: ")
    assert message in refused


def test_missing_inputs_are_named(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "inputs/workload.json").unlink()
    assert f"{tmp_path}/inputs/workload.json" in refusal(RunFolder(tmp_path).workload)


@pytest.mark.parametrize("content", [b"{}", b"[", b'{"seed":"\xff"}'])
def test_an_invalid_manifest_is_reported(tmp_path: Path, content: bytes) -> None:
    write_run(tmp_path)
    (tmp_path / "run.json").write_bytes(content)
    assert refusal(RunFolder(tmp_path).manifest).startswith(f"{tmp_path}/run.json: ")


def test_changed_inputs_are_not_replayed(tmp_path: Path) -> None:
    write_run(tmp_path)
    path = tmp_path / "inputs/workload.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert refusal(RunFolder(tmp_path).workload) == f"{path}: was changed since the run"


def test_an_invalid_summary_is_reported(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    assert refusal(RunFolder(tmp_path).result).startswith(f"{tmp_path}/summary.json: ")


def test_values_that_json_cannot_represent_are_stored(tmp_path: Path) -> None:
    feed = Workload(initial=({"kind": "K", "huge": 10**40, "deep": [[[{}]]], "text": "é → ü"},))
    folder = RunFolder(tmp_path)
    with folder.start(DEFAULT, feed, ()):
        pass
    assert folder.workload() == feed


# ---- folders of others ---------------------------------------------------------------------


_FILES = ("run.json", "inputs/workload.json", "summary.json", "journal.jsonl")


def read_all(folder: RunFolder) -> None:
    folder.settings()
    folder.workload()
    folder.result()
    list(folder.journal())
    with folder.reading_states() as log:
        list(log.numbered_entries())


@pytest.mark.parametrize("name", [*_FILES, "states/000000.jsonl"])
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(os.mkfifo, "found a FIFO, wanted a regular file", id="FIFO"),
        pytest.param(Path.mkdir, "found a folder, wanted a regular file", id="folder"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "leads out of the", id="device"),
        pytest.param(lambda path: path.symlink_to("/etc/passwd"), "leads out of the", id="file"),
        pytest.param(lambda path: path.symlink_to("../../x"), "leads out of the", id="relative"),
        pytest.param(lambda path: path.symlink_to(path.name), "leads out of the", id="loop"),
    ],
)
def test_only_regular_files_of_the_folder_are_read(
    tmp_path: Path, name: str, make: Callable[[Path], Any], problem: str
) -> None:
    write_run(tmp_path / "run")
    path = tmp_path / "run" / name
    path.unlink(missing_ok=True)
    make(path)
    assert is_run(tmp_path / "run")
    assert problem in refusal(lambda: read_all(RunFolder(tmp_path / "run")))


@pytest.mark.parametrize("folder", ["inputs", "states"])
def test_a_folder_of_a_run_is_no_link(tmp_path: Path, folder: str) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / folder).rename(tmp_path / folder)
    (tmp_path / "run" / folder).symlink_to(tmp_path / folder)
    message = refusal(lambda: read_all(RunFolder(tmp_path / "run")))
    assert "leads out of the folder of the run" in message


def test_a_link_to_a_whole_run_is_read(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    read_all(RunFolder(tmp_path / "link"))


@pytest.mark.parametrize("name", ["{outside}", "../evil.py", "inputs/../../evil.py", "a\0b"])
def test_a_manifest_names_files_of_the_folder_only(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit")
    write_run(tmp_path / "run")
    name = name.format(outside=tmp_path / "evil.py")
    path = tmp_path / "run/run.json"
    manifest = json.loads(path.read_text())
    manifest["plugins"] = [name]
    path.write_text(json.dumps(manifest))
    message = refusal(lambda: read_all(RunFolder(tmp_path / "run", allows_plugins=True)))
    assert message == f"{tmp_path}/run: {name} leads out of the folder of the run"


@pytest.mark.parametrize("name", _FILES)
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    write_run(tmp_path)
    os.truncate(tmp_path / name, 1 << 42)
    assert re.search(r"larger than|longer than", refusal(lambda: read_all(RunFolder(tmp_path))))


@pytest.mark.parametrize("name", _FILES)
def test_a_file_that_is_nested_deep_is_refused(tmp_path: Path, name: str) -> None:
    write_run(tmp_path)
    (tmp_path / name).write_text('{"a":' * 100_000)
    assert refusal(lambda: read_all(RunFolder(tmp_path)))
