"""The model of a cluster for a command that puts questions to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import click

from bayplan.api.pod_groups import PodGroupKinds
from bayplan.cli.admission import admission_of, admission_options
from bayplan.cli.cluster_source import (
    ClusterSource,
    kubectl_options,
    model_of,
    moment_option,
)
from bayplan.cli.options import (
    config_option,
    output_option,
    plugin_option,
    seed_option,
)
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import STANDARD_INPUT
from bayplan.cli.streams import remark
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.plugins.registry import Registry
from bayplan.problems import BadInputError
from bayplan.state.pods import DEFAULT_SCHEDULER
from bayplan.whatif.fit import LIMIT

F = TypeVar("F", bound=Callable[..., Any])


class OpenModel(NamedTuple):
    """A model with the values from which it was made."""

    model: ClusterModel
    #: Reads workloads for the model.
    read: AdditionsReader
    group_kinds: PodGroupKinds
    config: SchedulerConfig
    registry: Registry
    #: The scheduler that gets all pods; None: the scheduler that each pod names.
    scheduler_name: str | None


def question_options(version: Callable[[F], F] | None = None) -> Callable[[F], F]:
    """CLUSTER…, and the options of every command that opens a model. ``version``: the option in
    place of --kubernetes."""
    decorators = (
        click.argument("cluster", nargs=-1, metavar="[CLUSTER…]"),
        moment_option(),
        kubectl_options(),
        config_option(),
        plugin_option(),
        feature_gates_option(version=version),
        admission_options(),
        seed_option(),
        output_option(),
    )

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def objects_option(name: str, text: str) -> Callable[[F], F]:
    """-f, which names files of objects. ``name``: of the parameter."""
    return click.option(
        "-f", "--filename", name, multiple=True, required=True, metavar="FILE", help=text
    )


def limit_option(text: str) -> Callable[[F], F]:
    """--limit of a count."""
    return click.option(
        "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help=text
    )


def ignore_pending_option() -> Callable[[F], F]:
    """--ignore-pending of a count."""
    text = "Leave out the cluster's own pods that wait, instead of placing them first"
    return click.option("--ignore-pending", "ignores_waiting", is_flag=True, help=text)


@contextmanager
def open_model(options: dict[str, Any], *files: str, is_whole: bool = False) -> Iterator[OpenModel]:
    """The model of the cluster that the options name; its plugins are closed at the end.

    ``files``: what the command reads besides. ``is_whole``: a simulation follows, which needs the
    content of all objects. Raises BadInputError, UnreadableClusterError.
    """
    cluster: tuple[str, ...] = options["cluster"]
    kubeconfig, context_name = options["kubeconfig"], options["context_name"]
    if cluster and (kubeconfig or context_name):
        raise BadInputError("found files of a cluster and --kubeconfig or --context, wanted one")
    if [*cluster, *files].count(STANDARD_INPUT) > 1:
        raise BadInputError("standard input: found - twice, wanted it once")
    admission = admission_of(options["enabled"], options["disabled"])
    source = ClusterSource(
        cluster,
        kubeconfig,
        context_name,
        admission,
        at=options["at"],
    )
    with model_of(source, options, is_whole=is_whole) as (model, config, registry):
        for kind, reason in model.source.unreadable.items():
            remark(f"the answer leaves out {kind}: {reason}")
        kinds = group_kinds(config.spec.pod_groups.kinds)
        scheduler_name = DEFAULT_SCHEDULER if options["config_path"] is None else None
        read = AdditionsReader(
            model, {*registry.kinds, *kinds}, scheduler_name, admission=admission
        )
        yield OpenModel(model, read, kinds, config, registry, scheduler_name)
