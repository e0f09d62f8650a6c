"""The cluster that a question is about: files, the folder of a run, or an API server."""

import gc
import os
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

import click

from bayplan.adapters.embedded.admission.plugin_set import PluginSet
from bayplan.adapters.embedded.api_features import ApiFeatures, api_features
from bayplan.api.selectors import Selector, SelectorError, selector_of_text
from bayplan.cli.configuration import read_config, read_plugins
from bayplan.cli.console import progress
from bayplan.cli.options import KUBECONFIG_HELP
from bayplan.cli.problems import STANDARD_INPUT, refusals
from bayplan.cli.streams import EXIT_UNREADABLE, remark
from bayplan.cli.warm_models import OpenedModel, warm_models
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.garbage import rarely_collected
from bayplan.lazy_loader import load
from bayplan.model.cluster_model import ClusterModel
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import DEFAULT_NAMESPACE
from bayplan.plugins.registry import Registry
from bayplan.ports import ApiError
from bayplan.problems import BadInputError, wrong

F = TypeVar("F", bound=Callable[..., Any])


#: Reading a cluster takes a few lists, and needs no rate limit.
_UNLIMITED_QPS = -1.0
#: Follows the refusal of a kubeconfig where files would do.
OR_FILES = "or name the files of a cluster: cluster.yaml, or what `kubectl get -o json` printed"


class UnreadableClusterError(Exception):
    """The API server cannot be reached, or refuses to list nodes or pods. One line."""


@final
@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Where the objects of a cluster are: without paths, the cluster that kubectl would use."""

    paths: tuple[str, ...]
    kubeconfig: str | None = None
    #: A context of the kubeconfig; "": its current context.
    context_name: str = ""
    #: The admission plugins of the API server in memory; None: as the files say.
    admission: PluginSet | None = None
    #: --at: the moment of a run; None: its end.
    at: str | None = None

    def default_namespace(self) -> str:
        """The namespace that a name without one is in."""
        if self.paths:
            return DEFAULT_NAMESPACE
        # Questions about files need no kubeconfig, and no library that reads it.
        joined = load("bayplan.adapters.live.credentials:kubeconfig_paths")(self.kubeconfig)
        namespace_of = load("bayplan.adapters.live.kubeconfig:namespace_of")
        paths: list[str] = joined.split(os.pathsep)
        named = (namespace_of(Path(path).expanduser(), self.context_name) for path in paths)
        return next(filter(None, named), DEFAULT_NAMESPACE)

    def model(
        self,
        config: SchedulerConfig,
        registry: Registry,
        subject: str = "",
        *,
        is_whole: bool = False,
        seed: int = 0,
    ) -> ClusterModel:
        """A model of everything that a scheduler with this configuration reads.

        ``subject``: "namespace/name" of the pod whose content is kept, with that of its
        controllers. ``is_whole``: all content, and all controllers, are read. Raises
        BadInputError, ConfigError, UnreadableClusterError.
        """
        if not self._is_run and self.at is not None:
            raise BadInputError("--at: wanted the folder of a run as the cluster")
        if not self.paths:
            # Loading an HTTP client takes time, which questions about files do not need.
            model_of = load("bayplan.model.live_reading:model_of_cluster")
            what = {"is_whole": is_whole, "seed": seed}
            return self._read_live(
                lambda client: model_of(client, config, registry, subject, **what)
            )
        kinds = {*registry.kinds, *group_kinds(config.spec.pod_groups.kinds)}
        objects = self._read_files(kinds, api_features(config.gates))
        return ClusterModel(objects, config, registry, seed=seed)

    def _read_files(self, kinds: Collection[str], features: ApiFeatures) -> ClusterPicture:
        """Objects of files, or of a moment of a run. Raises BadInputError."""
        if self._is_run:
            return self._read_run()
        # Reading standard input needs no spinner: a person may be typing there.
        with nullcontext() if STANDARD_INPUT in self.paths else progress("reading"):
            read = load("bayplan.model.reading:objects_of_files")
            return read(self.paths, kinds, self.admission, features=features)

    @property
    def _is_run(self) -> bool:
        """Whether the cluster is that of a run. Raises BadInputError for a run among files."""
        is_run = load("bayplan.sim.output.run_folder:is_run")
        runs = [path for path in self.paths if is_run(Path(path))]
        if runs and len(self.paths) > 1:
            raise BadInputError(
                f"{runs[0]}: found the folder of a run among files, wanted it alone"
            )
        return bool(runs)

    def _read_run(self) -> ClusterPicture:
        """Objects of a moment of a run. Raises BadInputError."""
        folder = load("bayplan.sim.output.run_folder:RunFolder")(Path(self.paths[0]))
        moment = load("bayplan.model.run_moments:run_moment")(folder, self.at or "end", "--at")
        with progress("reading"):
            return load("bayplan.model.run_moments:objects_of_run")(folder, moment)

    def _read_live(self, read: Callable[[Any], Coroutine[Any, Any, ClusterModel]]) -> ClusterModel:
        """``read``: called with a client. Raises UnreadableClusterError."""
        client_of = load("bayplan.adapters.live.client:open_client")
        options = load("bayplan.adapters.live.client:ClientOptions")(
            qps=_UNLIMITED_QPS,
            context_name=self.context_name,
            accepts_gzip=True,
            notice_seconds=5.0,
        )

        async def work() -> ClusterModel:
            async with client_of(self.kubeconfig, options) as client:
                return await read(client)

        credentials_error = load("bayplan.adapters.live.credentials:CredentialsError")
        try:
            with progress("reading"):
                return load("bayplan.cli.event_loop:run_event_loop")(work())
        except ApiError as problem:
            raise UnreadableClusterError(str(problem)) from None
        except credentials_error as problem:
            raise UnreadableClusterError(f"{problem}; {OR_FILES}") from None


@contextmanager
def model_of(
    source: ClusterSource, options: dict[str, Any], subject: str = "", *, is_whole: bool = False
) -> Iterator[OpenedModel]:
    """The model of a cluster under the configuration of the options; its plugins are closed at the
    end. In a process with warm models, the model may be that of an earlier question.

    ``subject``, ``is_whole``: see `ClusterSource.model`. Raises BadInputError,
    UnreadableClusterError.
    """
    models = warm_models()
    if models is not None:
        config = (options["config_path"], options["feature_gates"], options["kubernetes"])
        what = (source, *config, options["seed"])
        make = partial(_opened, source, options, "", is_whole=True)
        with models.lent(source.paths, what, make) as opened:
            yield opened
        return
    opened = _opened(source, options, subject, is_whole=is_whole)
    try:
        yield opened
    finally:
        opened.model.close()
        gc.unfreeze()


def _opened(
    source: ClusterSource, options: dict[str, Any], subject: str, *, is_whole: bool
) -> OpenedModel:
    registry = read_plugins(options["plugins"])
    config = read_config(
        options["config_path"], options["feature_gates"], kubernetes=options["kubernetes"]
    )
    with rarely_collected():
        model = source.model(config, registry, subject, is_whole=is_whole, seed=options["seed"])
    return OpenedModel(model, model.config, registry)


@contextmanager
def question_refusals() -> Iterator[None]:
    """`refusals`; also ends the process if a cluster cannot be read."""
    with refusals():
        try:
            yield
        except UnreadableClusterError as problem:
            remark(str(problem))
            sys.exit(EXIT_UNREADABLE)


def label_selector_of(text: str | None) -> Selector | None:
    """The value of -l. Raises BadInputError."""
    try:
        return None if text is None else selector_of_text(text)
    except SelectorError as problem:
        expected = f"labels as for `kubectl -l`, such as app=web ({problem})"
        raise BadInputError(str(wrong("-l", text, expected))) from None


def kubectl_options() -> Callable[[F], F]:
    """--kubeconfig and --context, as kubectl has them."""

    def decorate(command: F) -> F:
        context = click.option(
            "--context",
            "context_name",
            default="",
            metavar="NAME",
            help="Context of the kubeconfig",
        )
        kubeconfig = click.option("--kubeconfig", metavar="FILE", help=KUBECONFIG_HELP)
        return kubeconfig(context(command))

    return decorate


def moment_option() -> Callable[[F], F]:
    """--at, for commands whose cluster may be the folder of a run."""
    return click.option(
        "--at",
        metavar="TIME",
        help="With the folder of a run: the moment, as start, end or 10m. Default: end",
    )
