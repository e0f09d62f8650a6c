"""Options of several commands."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from bayplan.answers.formats import FORMATS, JSON_PATH, OutputFormat, output_format
from bayplan.cli.streams import fail
from bayplan.problems import BadInputError, shown

F = TypeVar("F", bound=Callable[..., Any])


class WholeNumber(click.IntRange):
    """A whole number, in a range. A message has the words of all options."""

    name = "integer"

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            low = "" if self.min is None else f" from {self.min}"
            end = " on" if low and self.max is None else ""
            high = "" if self.max is None else f" to {self.max}"
            expected = f"wanted a whole number{low}{high}{end}"
            self.fail(f"found {shown(str(value))}, {expected}", param, ctx)


#: The type of the number of a port; 0: any free one.
PORT = WholeNumber(0, 65535)

KUBECONFIG_HELP = "Kubeconfig. Default: the pod's ServiceAccount, $KUBECONFIG or ~/.kube/config"


def config_option(
    text: str = "KubeSchedulerConfiguration to use. Default: one profile, default-scheduler",
) -> Callable[[F], F]:
    return click.option("--config", "config_path", metavar="FILE", help=text)


def plugin_option() -> Callable[[F], F]:
    text = "Python file with plugins; may be repeated"
    return click.option("--plugin", "plugins", multiple=True, metavar="FILE.py", help=text)


def allow_plugins_option() -> Callable[[F], F]:
    text = "Execute the plugins in the folder of a run, and call its extenders: trust who made it"
    return click.option("--allow-plugins", is_flag=True, help=text)


def namespace_option(text: str = "Namespace. Default: the context's") -> Callable[[F], F]:
    return click.option("-n", "--namespace", metavar="NAME", help=text)


def all_namespaces_option(text: str) -> Callable[[F], F]:
    return click.option("-A", "--all-namespaces", is_flag=True, help=text)


def selector_option(text: str) -> Callable[[F], F]:
    return click.option("-l", "--selector", metavar="LABELS", help=text)


def sort_option(text: str, *choices: str) -> Callable[[F], F]:
    """--sort-by; the first of ``choices`` is the default."""
    return click.option(
        "--sort-by", type=click.Choice(choices), default=choices[0], show_default=True, help=text
    )


def together(decorators: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Options in the order in which help lists them."""

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def seed_option(
    text: str = "Number that breaks ties between equal nodes: equal seeds give equal results",
) -> Callable[[F], F]:
    return click.option("--seed", type=WholeNumber(), default=0, show_default=True, help=text)


class _OutputFormat(click.ParamType):
    """The value of -o."""

    name = "format"

    def __init__(self, formats: Sequence[str]) -> None:
        self._formats = formats

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "|".join(f"{name}=…" if name == JSON_PATH else name for name in self._formats)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> OutputFormat:
        """Ends the command for a format that does not exist."""
        try:
            return output_format(str(value), self._formats)
        except BadInputError as problem:
            fail(str(problem))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = (f"{name}=" if name == JSON_PATH else name for name in self._formats)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def output_option(*formats: str) -> Callable[[F], F]:
    """-o of a command. Without ``formats``: all formats of an answer."""
    return click.option(
        "-o",
        "--output",
        "output",
        type=_OutputFormat(formats or FORMATS),
        default=(formats or FORMATS)[0],
        show_default=True,
        help="Format of the output",
    )


def options_as_words(*names: str) -> list[str]:
    """The words with which the command line of the present command has these options.

    ``names``: of the parameters. Options that the command line lacks have no words.
    """
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        if (
            option.name in names
            and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
        ):
            value = context.params[option.name]
            for each in value if isinstance(value, tuple) else [value]:
                words += [option.opts[-1], str(each)]
    return words
