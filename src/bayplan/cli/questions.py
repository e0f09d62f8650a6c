"""The model of a cluster for a command that puts questions to it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from bayplan.api.objects import DEFAULT_SCHEDULER
from bayplan.api.pod_groups import PodGroupKinds
from bayplan.cli.admission import admission_of, admission_options
from bayplan.cli.cluster_source import (
    ClusterSource,
    kubectl_options,
    model_of,
    moment_option,
)
from bayplan.cli.options import (
    WholeNumber,
    config_option,
    namespace_option,
    output_option,
    plugin_option,
    seed_option,
    together,
)
from bayplan.cli.pflag import feature_gates_option
from bayplan.cli.problems import STANDARD_INPUT
from bayplan.cli.streams import remark
from bayplan.cli.why_subject import is_kind_and_name, subject_of_words
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.additions import AdditionsReader
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import plain, unreadable_remarks, with_kind
from bayplan.objects.keys import ObjectKey
from bayplan.plugins.registry import Registry
from bayplan.problems import BadInputError, suggestion
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.sources import InputSource, Part
from bayplan.whatif.fit import LIMIT
from bayplan.whatif.requested_shape import RequestedShape, requested_or_files, resource_of_text

F = TypeVar("F", bound=Callable[..., Any])

NAMESPACE_OF_OBJECTS = "Namespace of objects without one. Default: the context's"


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
    #: That of objects without one.
    namespace: str


def question_options(version: Callable[[F], F] | None = None) -> Callable[[F], F]:
    """CLUSTER…, and the options of every command that opens a model. ``version``: the option in
    place of --kubernetes."""
    decorators: list[Callable[[Any], Any]] = [
        click.argument("cluster", nargs=-1, metavar="[CLUSTER…]"),
        moment_option(),
        kubectl_options(),
        config_option(),
        plugin_option(),
        feature_gates_option(version=version),
        admission_options(),
        seed_option(),
        output_option(),
    ]
    return together(decorators)


def workload_options(text: str, *, has_replicas: bool) -> Callable[[F], F]:
    """-f, which names files of objects, and the options that describe a pod by its requests."""
    decorators: list[Callable[[Any], Any]] = [
        click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help=text),
        click.option("--cpu", metavar="AMOUNT", help="Without -f: what a pod requests, as 500m"),
        click.option("--memory", metavar="AMOUNT", help="Without -f: what it requests, as 16Gi"),
        click.option(
            "--gpu",
            type=WholeNumber(min=1),
            metavar="COUNT",
            help="Without -f: GPUs that it requests, of the kind that nodes offer",
        ),
        click.option(
            "--resource",
            "resources",
            multiple=True,
            metavar="NAME=AMOUNT",
            help="Without -f: any resource, as nvidia.com/mig-1g.5gb=1; may be repeated",
        ),
    ]
    if has_replicas:
        replicas = WholeNumber(min=1)
        help_text = "Without -f: how many such pods. Default: 1"
        decorators.append(
            click.option("--replicas", type=replicas, metavar="COUNT", help=help_text)
        )
    decorators.append(namespace_option(NAMESPACE_OF_OBJECTS))
    return together(decorators)


def names_and_cluster(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of workloads, as deployment/web, and the files of a cluster."""
    names = tuple(takewhile(_is_name, words))
    return names, tuple(words[len(names) :])


def _is_name(word: str) -> bool:
    """Whether a word is the name of an object, and no path."""
    return is_kind_and_name(word) and not Path(word).exists()


def workload_of(
    opened: OpenModel, options: dict[str, Any], names: Iterable[str] = ()
) -> tuple[Sequence[InputSource], Sequence[str]]:
    """The files of a workload with the workloads that ``names`` name, or the one that the options
    describe; and notes about it. Raises BadInputError."""
    shape = RequestedShape(
        cpu=options["cpu"],
        memory=options["memory"],
        gpu=options["gpu"],
        resources=dict(map(resource_of_text, options["resources"])),
        replicas=options.get("replicas"),
        namespace=opened.namespace,
    )
    parts = [_present_workload(opened, name) for name in names]
    return requested_or_files(opened.model, [*parts, *options["files"]], shape)


def _present_workload(opened: OpenModel, word: str) -> Part:
    """A workload that the cluster has. Raises BadInputError."""
    subject, model = subject_of_words((word,), opened.namespace), opened.model
    kinds = [kind for kind in CONTROLLERS if kind.rpartition(" ")[2] == subject.kind]
    if not kinds:
        expected = "a workload, as deployment/web, or pods in a file (-f)"
        raise BadInputError(f"found {word}, wanted {expected}")
    key = ObjectKey(kinds[0], subject.namespace, subject.name.partition("/")[2])
    present = model.store.get(key)
    if present is None:
        named = [str(each) for each, _ in model.store.items(key.kind)]
        hint = suggestion(str(key), named) or "another namespace is given with -n"
        raise BadInputError(f"{model.source.source}: there is no {key}; {hint}")
    content = model.source.manifest(key, present)
    return Part(content or with_kind(key.kind, plain(present)), word)


def limit_option(text: str) -> Callable[[F], F]:
    """--limit of a count."""
    return click.option(
        "--limit", type=WholeNumber(min=1), default=LIMIT, show_default=True, help=text
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
    source = _source(options)
    cluster = source.paths
    if cluster and (source.kubeconfig or source.context_name):
        raise BadInputError("found files of a cluster and --kubeconfig or --context, wanted one")
    if [*cluster, *files].count(STANDARD_INPUT) > 1:
        raise BadInputError("standard input: found - twice, wanted it once")
    with model_of(source, options, is_whole=is_whole) as (model, config, registry):
        for line in unreadable_remarks(model.source.unreadable):
            remark(line)
        kinds = group_kinds(config.spec.pod_groups.kinds)
        scheduler_name = DEFAULT_SCHEDULER if options["config_path"] is None else None
        namespace = namespace_of(options)
        read = AdditionsReader(
            model,
            {*registry.kinds, *kinds},
            scheduler_name,
            admission=source.admission,
            namespace=namespace,
        )
        yield OpenModel(model, read, kinds, config, registry, scheduler_name, namespace)


def namespace_of(options: dict[str, Any]) -> str:
    """The namespace of names and objects without one: -n, or that of the context."""
    return options.get("namespace") or _source(options).default_namespace()


def _source(options: dict[str, Any]) -> ClusterSource:
    """The cluster that the options name. Raises BadInputError."""
    name = next(filter(_is_name, options["cluster"]), None)
    if name is not None:
        raise BadInputError(
            f"found {name}, wanted files of the cluster, with -f for a workload that is a file; "
            f"of a workload that is there, `bayplan headroom {name}` counts how many more pods fit,"
            f" and `bayplan why {name}` says why its pods wait"
        )
    return ClusterSource(
        options["cluster"],
        options["kubeconfig"],
        options["context_name"],
        admission_of(options["enabled"], options["disabled"]),
        at=options["at"],
    )
