"""The entry point: the commands together, and how the program ends."""

import atexit
import gc
import sys
import traceback

import click

from bayplan import __version__
from bayplan.cli.epilogs import examples
from bayplan.cli.lazy_group import CommandEntry, LazyGroup
from bayplan.cli.streams import EXIT_FAILED, EXIT_INTERRUPTED, prepare_streams, remark
from bayplan.lazy_loader import load

_COMMANDS = {
    "demo": CommandEntry(
        "bayplan.cli.demo:demo_command",
        "Simulate a small cluster that the package carries, and show what to try next.",
    ),
    "run": CommandEntry(
        "bayplan.cli.run:run_command",
        "Schedule the pods of a real cluster.",
    ),
    "serve-extender": CommandEntry(
        "bayplan.cli.serve_extender:serve_extender_command",
        "Serve a profile's plugins to an unmodified kube-scheduler, as a scheduler extender.",
    ),
    "shadow": CommandEntry(
        "bayplan.cli.shadow:shadow_command",
        "Compare each decision of a cluster's scheduler with Bayplan's, and write nothing.",
    ),
    "webhook": CommandEntry(
        "bayplan.cli.webhook:webhook_command",
        "Warn whoever creates a pod or a workload that no node can hold, and never refuse one.",
    ),
    "simulate": CommandEntry(
        "bayplan.cli.simulate:simulate_command",
        "Place pods on nodes under virtual time and report the result for each pod.",
    ),
    "compare": CommandEntry(
        "bayplan.cli.compare:compare_command",
        "Run several configurations over the same pods and seeds, and report what differs.",
    ),
    "why": CommandEntry(
        "bayplan.cli.why:why_command",
        "Explain why a pod has a node or none, and what would make it fit.",
    ),
    "upgrade": CommandEntry(
        "bayplan.cli.upgrade:upgrade_command",
        "Say what an upgrade of Kubernetes changes about the scheduling of a cluster.",
    ),
    "fit": CommandEntry(
        "bayplan.cli.fit:fit_command",
        "Place a workload in memory on a cluster as it is now, and say whether it fits.",
    ),
    "headroom": CommandEntry(
        "bayplan.cli.headroom:headroom_command",
        "Count how many more pods of each shape fit into a cluster as it is now.",
    ),
    "whatif": CommandEntry(
        "bayplan.cli.whatif:whatif_command",
        "Say what would happen in a cluster if something changed.",
    ),
    "ui": CommandEntry(
        "bayplan.cli.ui:ui_command",
        "Show a run or a cluster in a browser.",
    ),
    "mcp": CommandEntry(
        "bayplan.cli.mcp:mcp_command",
        "Answer the questions of an agent, over the Model Context Protocol.",
    ),
    "capture": CommandEntry(
        "bayplan.cli.capture:capture_command",
        "Write the objects that a scheduler reads to a file for `bayplan simulate`.",
    ),
    "bench": CommandEntry(
        "bayplan.cli.bench:bench_command",
        "Measure how fast pods are bound, with workloads of kube-scheduler's scheduler_perf.",
    ),
    "schema": CommandEntry(
        "bayplan.cli.schema:schema_command",
        "Print the JSON schema of an answer or a document.",
    ),
    "config": CommandEntry(
        "bayplan.cli.config:config_group",
        "Check a configuration, draw its score graph, print its roles and its schema.",
    ),
    "plugins": CommandEntry(
        "bayplan.cli.plugins:plugins_command",
        "List all plugins with their extension points, arguments and events.",
    ),
    "completion": CommandEntry(
        "bayplan.cli.completion:completion_command",
        "Print the script that completes `bayplan` in bash, zsh or fish.",
    ),
}


@click.group(
    cls=LazyGroup,
    entries=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "bayplan demo                                          # a first result, without files",
        "bayplan capture -o cluster.yaml                       # your cluster as a file",
        "bayplan simulate cluster.yaml workload.yaml --out runs/a",
        "bayplan why deployment/web --run runs/a               # explain where its pods are",
        "bayplan plugins new PreferQuietNodes                  # a plugin of your own",
        'eval "$(bayplan completion bash)"                     # completion; also zsh, fish',
    ),
)
@click.version_option(__version__)
def cli() -> None:
    """Bayplan is a Kubernetes scheduler in Python.

    Write a scheduling policy, try it on the objects of your own cluster, ask why a pod was
    placed on its node, and run the same code as a scheduler in the cluster.
    """


#: Their standard error is a log, and what made them fail may not happen again.
_SERVICES = frozenset(("run", "serve-extender", "webhook"))

#: Imports make many objects and no garbage. With Python's thresholds, a short command spends a
#: quarter of its time on the search for garbage.
_GC_THRESHOLDS = (50_000, 20, 20)


def kubectl_main() -> None:
    """The entry point of the kubectl plugin: `kubectl bayplan …`.

    kubectl runs `kubectl-bayplan` with the arguments that follow the plugin's name.
    """
    main("kubectl bayplan")


def main(program: str = "bayplan") -> None:
    """The entry point. ``program``: the command's name in its help."""
    if not __debug__:
        sys.exit("bayplan: python -O removes assertions that Bayplan needs; run it without -O")
    gc.set_threshold(*_GC_THRESHOLDS)
    # Python collects garbage when it ends. What is frozen is not searched.
    atexit.register(gc.freeze)
    prepare_streams()
    sys.exit(_exit_code(program))


def _exit_code(program: str) -> int | None:
    """Run a command. However it fails, it ends with lines on standard error."""
    try:
        return cli.main(prog_name=program, standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        remark("interrupted")
        return EXIT_INTERRUPTED
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except MemoryError:
        remark("out of memory: the input is too large for this machine, or for its limit")
    except SystemExit:
        raise
    except BaseException as problem:  # noqa: BLE001 - a defect is one line, too
        _remark_on_defect(problem)
    return EXIT_FAILED


def _remark_on_defect(problem: BaseException) -> None:
    shows_tracebacks = load("bayplan.internal_errors:shows_tracebacks")
    if shows_tracebacks() or _SERVICES.intersection(sys.argv[1:2]):
        traceback.print_exception(problem)
    remark(load("bayplan.internal_errors:internal_error")(problem))
