"""The files of a comparison."""

from pathlib import Path

import msgspec
import pyarrow.parquet
import pytest

from bayplan.comparison import outputs
from bayplan.comparison.outputs import results_csv, write_outputs
from bayplan.comparison.store import Run
from bayplan.comparison.table import Comparison
from bayplan.sim.output.run_folder import RunFolderError
from tests.comparison.kit import run

RUNS = [
    run(name, seed, placed=float(seed + more))
    for name, more in (("a", 0), ("<b>", 1))
    for seed in range(3)
]


def curve(one: Run) -> dict[str, list[tuple[float, float]]]:
    last = 10.0 if one.configuration == "a" else 20.0
    return {"free % over arrived %": [(0.0, 100.0), (50.0, 40.0), (100.0, last)]}


COMPARISON = Comparison(
    [
        msgspec.structs.replace(one, result=msgspec.structs.replace(one.result, curves=curve(one)))
        for one in RUNS
    ],
    "a",
)


def test_results_are_one_row_per_run() -> None:
    text = results_csv(COMPARISON).decode()
    assert text.splitlines()[:2] == ["input,configuration,seed,placed", ",a,0,0.0"]
    assert len(text.splitlines()) == 7


def test_all_outputs_are_written(tmp_path: Path) -> None:
    names = write_outputs(COMPARISON, tmp_path, "Study")
    assert names == [
        "results.csv", "timings.csv", "results.parquet", "plots/", "report.html",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "free-over-arrived.png", "free-over-arrived.svg", "placed.png", "placed.svg",
    ]  # fmt: skip
    table = pyarrow.parquet.read_table(tmp_path / "results.parquet")
    assert table.to_pylist() == list(COMPARISON)
    assert (tmp_path / "plots/placed.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_is_self_contained_and_escapes_names(tmp_path: Path) -> None:
    write_outputs(COMPARISON, tmp_path, "Study")
    text = (tmp_path / "report.html").read_text()
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "http" not in text.replace("http://www.w3.org", "")
    assert text.count("data:image/svg+xml;base64,") == 2
    assert "<script" not in text
    assert "1 ± 1" in text


def test_results_and_page_are_reproducible(tmp_path: Path) -> None:
    for name in "xy":
        write_outputs(COMPARISON, tmp_path / name, "Study")
    for name in ("results.csv", "results.parquet", "plots/placed.png"):
        assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()


def test_without_the_plots_extra_there_are_only_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "is_installed", lambda _module: False)
    assert write_outputs(COMPARISON, tmp_path, "Study") == [
        "results.csv",
        "timings.csv",
        "report.html",
    ]
    assert outputs.missing_packages() == (
        "no Parquet and no plots: pip install 'bayplan[compare]' brings them"
    )
    assert "data:image" not in (tmp_path / "report.html").read_text()


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="file: cannot be written"):
        write_outputs(COMPARISON, tmp_path / "file", "Study")
