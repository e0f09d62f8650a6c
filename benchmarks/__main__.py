"""The one entry point: ``python -m benchmarks NAME …``; without a name, a list of them all."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

PREFIX = "bench_"


def names() -> list[str]:
    return sorted(
        file.stem.removeprefix(PREFIX) for file in Path(__file__).parent.glob("bench_*.py")
    )


def title(name: str) -> str:
    """The first line of a benchmark's docstring, read without importing it."""
    spec = find_spec(f"benchmarks.{PREFIX}{name}")
    assert spec is not None, name
    assert spec.origin is not None, name
    return Path(spec.origin).read_text(encoding="utf-8").partition("\n")[0].strip('"')


class Benchmarks(click.Group):
    """One command for each module bench_NAME.py. Only the one that runs is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in names():
            return None
        command: click.Command = import_module(f"benchmarks.{PREFIX}{cmd_name}").main
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Benchmarks"):
            formatter.write_dl([(name, title(name)) for name in names()])


@click.group(cls=Benchmarks)
def main() -> None:
    """Measurements of the repository; benchmarks/README.md explains them."""


if __name__ == "__main__":
    main(sys.argv[1:] or ["--help"], prog_name="python -m benchmarks")
