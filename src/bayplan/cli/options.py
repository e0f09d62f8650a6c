"""Options of several commands, and the examples at the end of a command's help."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

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


def seed_option(
    text: str = "Number that breaks ties between equal nodes: equal seeds give equal results",
) -> Callable[[F], F]:
    return click.option("--seed", default=0, show_default=True, help=text)


def format_option(formats: Sequence[str] = ("text", "json")) -> Callable[[F], F]:
    return click.option(
        "--format",
        "output",
        type=click.Choice(formats),
        default="text",
        show_default=True,
        help="Format of the output",
    )


def examples(*lines: str) -> str:
    """An epilog: commands to copy, one per line."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
