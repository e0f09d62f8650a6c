"""The files that a comparison writes.

results.csv       one row per run: everything that is equal each time
results.parquet   the same, if pyarrow is installed
timings.csv       how long each run took
plots/*.png,*.svg if matplotlib is installed
report.html       all results on one page without external resources
"""

from collections.abc import Callable
from pathlib import Path

from bayplan.answers.csv_text import csv_text
from bayplan.comparison.html import page
from bayplan.comparison.table import Comparison, speed
from bayplan.lazy_loader import load
from bayplan.sim.output.run_folder import RunFolderError

RESULTS = "results.csv"
PARQUET = "results.parquet"
TIMINGS = "timings.csv"
REPORT = "report.html"
PLOTS = "plots"
#: The packages of the extra, by the names of their modules.
PARQUET_MODULE = "pyarrow"
PLOTS_MODULE = "matplotlib"


def write_outputs(comparison: Comparison, folder: Path, title: str) -> list[str]:
    """Write all files that can be written here; returns their names. Raises RunFolderError."""
    written = [RESULTS, TIMINGS]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RESULTS).write_bytes(results_csv(comparison))
        (folder / TIMINGS).write_bytes(_timings_csv(comparison))
        if is_installed(PARQUET_MODULE):
            _write_parquet(comparison, folder / PARQUET)
            written.append(PARQUET)
        pictures = _pictures(comparison)
        for name, (png, svg) in pictures.items():
            (folder / PLOTS).mkdir(exist_ok=True)
            (folder / PLOTS / f"{name}.png").write_bytes(png)
            (folder / PLOTS / f"{name}.svg").write_bytes(svg)
        written += [f"{PLOTS}/"] if pictures else []
        svgs = {name: svg.decode() for name, (_, svg) in pictures.items()}
        (folder / REPORT).write_text(page(comparison, title, svgs), encoding="utf-8")
    except OSError as problem:
        raise RunFolderError(f"{folder}: cannot be written: {problem.strerror}") from None
    return [*written, REPORT]


def missing_packages() -> str:
    """The files that need a missing package, and how to install it; "": all are written."""
    missing = [
        what
        for what, module in (("Parquet", PARQUET_MODULE), ("plots", PLOTS_MODULE))
        if not is_installed(module)
    ]
    if not missing:
        return ""
    return f"no {' and no '.join(missing)}: pip install 'bayplan[compare]' brings them"


def is_installed(module: str) -> bool:
    """Whether a package of an extra is installed."""
    try:
        load(module)
    except ImportError:
        return False
    return True


def results_csv(comparison: Comparison) -> bytes:
    return csv_text(comparison.columns, (list(row.values()) for row in comparison)).encode()


def _timings_csv(comparison: Comparison) -> bytes:
    header = ["input", "configuration", "seed", "key", "decisions", "seconds", "per_second"]
    rows = [
        [
            run.input,
            run.configuration,
            run.seed,
            run.key,
            run.result.attempts,
            round(run.result.wall_seconds, 3),
            round(speed(run) or 0.0, 1),
        ]
        for run in comparison.runs
    ]
    return csv_text(header, rows).encode()


def _write_parquet(comparison: Comparison, path: Path) -> None:
    table = load("pyarrow:Table").from_pylist(list(comparison))
    load("pyarrow.parquet:write_table")(table, path)


def _pictures(comparison: Comparison) -> dict[str, tuple[bytes, bytes]]:
    """Name → (PNG, SVG); none without matplotlib."""
    if not is_installed(PLOTS_MODULE):
        return {}
    draw: Callable[[Comparison], dict[str, tuple[bytes, bytes]]]
    draw = load("bayplan.comparison.plots:pictures")
    return draw(comparison)
