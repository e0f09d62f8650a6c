"""Files, folders and standard input."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.input.errors import InputError, InputErrors
from bayplan.sim.input.sources import SCENARIO, CsvText, Part, own_kind, read_sources
from tests.kit.manifests import node, pod
from tests.sim.manifests import scenario


def read(*paths: Path | str) -> tuple[list[Part | CsvText], list[str]]:
    """The parts and the problems."""
    errors = InputErrors()
    parts = read_sources(map(str, paths), errors)
    try:
        errors.raise_if_any()
    except InputError as problem:
        return parts, list(problem.lines)
    return parts, []


def written(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n---\n".join(json.dumps(value) for value in values))
    return path


def values(parts: list[Part | CsvText]) -> list[Any]:
    return [part.value for part in parts if isinstance(part, Part)]


def test_documents_are_read_in_order_with_their_places(tmp_path: Path) -> None:
    one, two = (
        written(tmp_path / "b.yaml", pod("a"), pod("b")),
        written(tmp_path / "a.json", node()),
    )
    parts, wrong = read(one, two)
    assert wrong == []
    assert values(parts) == [pod("a"), pod("b"), node()]
    assert [part.place for part in parts] == [
        f"{one}, document 1",
        f"{one}, document 2",
        f"{two}, document 1",
    ]


def test_a_folder_is_read_recursively_in_the_order_of_names(tmp_path: Path) -> None:
    written(tmp_path / "b.yml", pod("second"))
    written(tmp_path / "a" / "z.JSON", pod("first"))
    written(tmp_path / "c.txt", pod("not read"))
    (tmp_path / "d.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    parts, wrong = read(tmp_path)
    assert wrong == []
    assert [one["metadata"]["name"] for one in values(parts)] == ["first", "second"]
    assert parts[-1] == CsvText("sn,cpu_milli,memory_mib,gpu,model\n", f"{tmp_path}/d.csv")
    assert all(part.is_from_folder for part in parts if isinstance(part, Part))


def test_a_named_file_is_read_regardless_of_its_suffix(tmp_path: Path) -> None:
    parts, wrong = read(written(tmp_path / "objects.txt", pod()))
    assert (values(parts), wrong) == ([pod()], [])
    assert not any(part.is_from_folder for part in parts if isinstance(part, Part))


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(io.BytesIO(json.dumps(pod()).encode()))
    monkeypatch.setattr("sys.stdin", text)
    parts, wrong = read("-")
    assert wrong == []
    assert parts == [Part(pod(), "standard input, document 1")]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_lists_are_split_into_their_items(tmp_path: Path, kind: str) -> None:
    items = {"apiVersion": "v1", "kind": kind, "items": [pod("a"), pod("b")]}
    path = written(tmp_path / "a.json", items)
    parts, wrong = read(path)
    assert (values(parts), wrong) == ([pod("a"), pod("b")], [])
    assert parts[1].place == f"{path}, document 1, items[1]"


def test_items_may_take_their_kind_from_the_list(tmp_path: Path) -> None:
    bare = {"metadata": {"name": "a"}}
    items = {"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [bare, 5]}
    parts, _ = read(written(tmp_path / "a.json", items))
    assert values(parts) == [{"apiVersion": "apps/v1", "kind": "Deployment", **bare}, 5]


def test_nested_lists_are_split(tmp_path: Path) -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [pod()]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner]}
    parts, _ = read(written(tmp_path / "a.json", outer))
    assert values(parts) == [pod()]
    assert parts[0].place.endswith("document 1, items[0], items[0]")


def test_an_empty_list_is_not_an_error(tmp_path: Path) -> None:
    assert read(written(tmp_path / "a.json", {"kind": "List", "items": []})) == ([], [])
    assert read(written(tmp_path / "b.json", {"kind": "PodList", "items": None})) == ([], [])


def test_an_object_whose_kind_ends_with_list_is_an_object(tmp_path: Path) -> None:
    playlist = {"apiVersion": "x/v1", "kind": "PlayList", "metadata": {"name": "p"}}
    assert values(read(written(tmp_path / "a.json", playlist))[0]) == [playlist]


def test_a_list_that_is_one_page_of_several_has_a_remark(tmp_path: Path) -> None:
    page = {"kind": "PodList", "metadata": {"continue": "eyJ2Ijo"}, "items": [pod("a")]}
    errors = InputErrors()
    assert len(read_sources([str(written(tmp_path / "a.json", page))], errors)) == 1
    (remark,) = errors.remarks
    assert "a.json, document 1: the list is cut off (metadata.continue)" in remark


def test_a_list_whose_items_are_no_list_is_an_error(tmp_path: Path) -> None:
    _, (line,) = read(written(tmp_path / "a.json", {"kind": "PodList", "items": {"a": 1}}))
    assert line.endswith("document 1: items: found a mapping, wanted a list of objects")


def test_nulls_are_preserved_only_in_patches_of_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("apiVersion: bayplan.dev/v1alpha1\nkind: Scenario\nspec: {a: null}\n")
    assert values(read(path)[0]) == [
        {"apiVersion": "bayplan.dev/v1alpha1", "kind": "Scenario", "spec": {"a": None}}
    ]
    path.write_text("apiVersion: v1\nkind: Pod\nspec: {a: null}\n")
    assert values(read(path)[0])[0]["spec"] == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found nothing in it, wanted Kubernetes objects or a Scenario"),
        (b"# only words\n", "found nothing in it, wanted Kubernetes objects or a Scenario"),
        (b"a: [", "document 1, line "),
        (b"a: 1\n---\nb: {\n", "document 2, line "),
        (b"a: 1\na: 2\n", 'document 1, line 2: key "a" is given twice'),
        (b"\xff\xfe\x00", "not UTF-16"),
        (b"a: \xff", "not UTF-8"),
        ("a: é".encode("utf-16-le"), "document 1: UTF-16 or UTF-32 without a byte order mark"),
        (
            b'Warning: old\n{"a": 1}\n',
            "found a remark of kubectl among objects, line 1; ",
        ),
        (
            b'W0102 03:04:05.6  1 x.go:1] old\n{"a": 1}\n',
            "line 1; keep standard error out (no 2>&1)",
        ),
        (
            b'{"a": 1}\n==== START logs for container c of pod a/b ====\nx\n',
            "found logs among objects; files without them: kubectl cluster-info dump --output-",
        ),
    ],
)
def test_an_unreadable_file_is_reported_with_its_place(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    parts, (line,) = read(path)
    assert parts == []
    assert line.startswith(str(path))
    assert message in line


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    _, (line,) = read(tmp_path / "nowhere.yaml")
    assert line == f"{tmp_path}/nowhere.yaml: cannot be read: No such file or directory"
    _, (line,) = read(tmp_path)
    assert line == f"{tmp_path}: found no file ending in one of .csv, .json, .yaml, .yml"
    _, (line,) = read("a\0b")
    assert "cannot be read" in line
    (tmp_path / "bad.csv").write_bytes(b"\xff")
    _, (line,) = read(tmp_path)
    assert line == f"{tmp_path}/bad.csv: is not UTF-8"


def test_what_is_not_a_file_in_a_folder_is_named_and_the_files_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    written(folder / "a.yaml", pod("a"))
    written(tmp_path / "elsewhere" / "b.yaml", pod("b"))
    os.mkfifo(folder / "fifo.yaml")
    (folder / ".#a.yaml").symlink_to("user@host.1:2")
    (folder / "base").symlink_to("../elsewhere")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "no-input.txt").symlink_to("nowhere")
    (folder / "zero.yml").symlink_to("/dev/zero")
    errors = InputErrors()
    assert values(read_sources([str(folder)], errors)) == [pod("a")]
    errors.raise_if_any()
    (remark,) = errors.remarks
    assert remark == (
        f"{folder}: passed over what is not a file: .#a.yaml (a broken link to user@host.1:2), "
        "base (a folder, by a link to ../elsewhere), fifo.yaml (a FIFO), "
        "loop.json (a broken link to loop.json), zero.yml (a device, by a link to /dev/zero)"
    )


def test_a_folder_with_links_to_its_files_as_of_a_mounted_config_map_has_each_file_once(
    tmp_path: Path,
) -> None:
    written(tmp_path / "..2026_01_01" / "a.yaml", pod("a"))
    (tmp_path / "..data").symlink_to("..2026_01_01")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    errors = InputErrors()
    assert values(read_sources([str(tmp_path)], errors)) == [pod("a")]
    assert errors.remarks == []


def test_a_folder_or_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a.yaml", pod("a"))
    written(tmp_path / "own" / "b.yaml", pod("b"))
    scandir, open_file = os.scandir, os.open

    def forbidden(path: Any, *arguments: Any) -> Any:
        if Path(path) in (tmp_path / "own", tmp_path / "a.yaml"):
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, *arguments) if arguments else scandir(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    monkeypatch.setattr(os, "open", forbidden)
    parts, problems = read(tmp_path)
    assert parts == []
    assert problems[:2] == [
        f"{tmp_path / name}: cannot be read: Permission denied" for name in ("own", "a.yaml")
    ]


def test_scenarios_are_distinguished_from_objects() -> None:
    assert own_kind(scenario()) == SCENARIO
    assert own_kind({**scenario(), "apiVersion": "bayplan.dev/v9"}) == SCENARIO
    assert own_kind({"kind": "Scenario", "apiVersion": "x/v1"}) == SCENARIO
    named = {**scenario(), "apiVersion": "x/v1", "metadata": {"name": "s"}}
    contents: list[Any] = [pod(), [], named]
    assert not any(map(own_kind, contents))
