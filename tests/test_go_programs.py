"""Programs for tests come from the named folder, or from the cache."""

from pathlib import Path

import pytest

from tests.go_programs import GoModule, GoPrograms, NoBinaries


def programs(folder: Path) -> GoPrograms:
    for name in ("go.mod", "go.sum"):
        (folder / name).write_text("module x\n")
    module = GoModule(folder, {"one": "x/one", "two.test": "x/two"})
    return GoPrograms("x", "X_ASSETS", (module,))


def executable(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o700)


def test_the_named_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two.test"):
        executable(tmp_path / "bin" / name)
    monkeypatch.setenv("X_ASSETS", str(tmp_path / "bin"))
    assert programs(tmp_path).get() == tmp_path / "bin"


def test_a_named_folder_without_a_program_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(tmp_path / "bin" / "one")
    monkeypatch.setenv("X_ASSETS", str(tmp_path / "bin"))
    with pytest.raises(NoBinaries, match=r"has no two\.test$"):
        programs(tmp_path).get()


def test_built_programs_are_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("X_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    expected = programs(tmp_path)
    assert expected.folder() is None
    for name in ("one", "two.test"):
        executable(expected.cache() / name)
    assert expected.get() == expected.cache()


def test_without_go_the_error_says_how_to_get_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("X_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoBinaries, match=r"need one, two\.test: set X_ASSETS .* or install Go"):
        programs(tmp_path).get()


def test_another_version_of_a_module_has_another_cache(tmp_path: Path) -> None:
    before = programs(tmp_path).cache()
    (tmp_path / "go.sum").write_text("other\n")
    module = GoModule(tmp_path, {"one": "x/one"})
    assert GoPrograms("x", "X_ASSETS", (module,)).cache() != before
