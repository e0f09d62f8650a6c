"""`python -m benchmarks` lists every benchmark, and the README explains each."""

from pathlib import Path

from click.testing import CliRunner

from benchmarks.__main__ import main, names, title

README = Path(__file__).parents[2] / "benchmarks" / "README.md"


def test_every_benchmark_is_listed_with_its_title() -> None:
    listed = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert len(names()) > 10
    for name in names():
        assert f"{name} {title(name)[:20]}" in listed


def test_every_benchmark_is_explained_in_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    assert not [name for name in names() if f"| `bench_{name}.py` |" not in text]


def test_a_benchmark_has_the_options_of_its_module() -> None:
    output = CliRunner().invoke(main, ["cycle", "--help"]).output
    assert "--repeat" in output
