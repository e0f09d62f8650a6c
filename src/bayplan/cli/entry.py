"""The entry point: the commands together, and how the program ends."""

import sys

import click

from bayplan.cli.console import prepare_streams
from bayplan.cli.lazy_group import LazyGroup
from bayplan.cli.options import examples
from bayplan.cli.problems import EXIT_FAILED, EXIT_INTERRUPTED, remark
from bayplan.sim.world.checkers import InvariantBroken

_PLACES = {
    "run": ("bayplan.cli.run", "run_command"),
    "serve-extender": ("bayplan.cli.serve_extender", "serve_extender_command"),
    "simulate": ("bayplan.cli.simulate", "simulate_command"),
    "compare": ("bayplan.cli.compare", "compare_command"),
    "why": ("bayplan.cli.why", "why_command"),
    "capture": ("bayplan.cli.capture", "capture_command"),
    "bench": ("bayplan.cli.bench", "bench_command"),
    "config": ("bayplan.cli.config", "config_group"),
    "plugins": ("bayplan.cli.plugins", "plugins_command"),
}


@click.group(
    cls=LazyGroup,
    places=_PLACES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "bayplan capture -o cluster.yaml                       # your cluster as a file",
        "bayplan simulate cluster.yaml workload.yaml --out runs/a",
        "bayplan why deployment/web --run runs/a               # explain where its pods are",
        "bayplan plugins new PreferQuietNodes                  # a plugin of your own",
        'eval "$(_BAYPLAN_COMPLETE=bash_source bayplan)"       # completion (zsh: zsh_source)',
    ),
)
@click.version_option(package_name="bayplan")
def cli() -> None:
    """Bayplan is a Kubernetes scheduler in Python.

    Write a scheduling policy, try it on the objects of your own cluster, ask why a pod was
    placed on its node, and run the same code as a scheduler in the cluster.
    """


def main() -> None:
    """The entry point."""
    if not __debug__:
        sys.exit("bayplan: python -O removes assertions that Bayplan needs; run it without -O")
    prepare_streams()
    try:
        code = cli.main(prog_name="bayplan", standalone_mode=False)
    except click.Abort:
        remark("interrupted")
        code = EXIT_INTERRUPTED
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except InvariantBroken as problem:
        remark(f"a broken invariant ended the run: {problem}")
        code = EXIT_FAILED
    sys.exit(code)
