"""The cluster that a question is about: files, or the folder of a run."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import click
import msgspec
import yaml

from bayplan.cli.console import sign_of_life
from bayplan.cli.problems import STANDARD_INPUT
from bayplan.cli.streams import put
from bayplan.config import SchedulerConfig
from bayplan.config.pod_group_kinds import group_kinds
from bayplan.model.objects import ClusterObjects
from bayplan.model.reading import objects_of_files, objects_of_run
from bayplan.plugins.registry import Registry
from bayplan.sim.output.run_folder import RunFolder, is_run

F = TypeVar("F", bound=Callable[..., Any])


@final
@dataclass(frozen=True, slots=True)
class ClusterSource:
    """Where the objects of a cluster are."""

    paths: tuple[str, ...]

    def read(self, config: SchedulerConfig, registry: Registry) -> ClusterObjects:
        """Everything that a scheduler with this configuration reads.

        Raises BadInputError.
        """
        if len(self.paths) == 1 and is_run(Path(self.paths[0])):
            return objects_of_run(RunFolder(Path(self.paths[0])))
        kinds = {*registry.kinds, *group_kinds(config.spec.pod_groups.kinds)}
        # Reading standard input needs no spinner: a person may be typing there.
        with nullcontext() if STANDARD_INPUT in self.paths else sign_of_life("reading"):
            return objects_of_files(self.paths, kinds)


def output_option(*formats: str) -> Callable[[F], F]:
    """-o, which --format stands for, too."""
    return click.option(
        "-o",
        "--format",
        "output",
        type=click.Choice(formats or ("text", "json", "yaml")),
        default="text",
        show_default=True,
        help="Format of the output",
    )


def put_document(answer: msgspec.Struct, output: str) -> None:
    """Print an answer as JSON or YAML."""
    if output == "json":
        put(msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n")
    else:
        dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        put(yaml.dump(msgspec.to_builtins(answer), Dumper=dumper, sort_keys=False).encode())
