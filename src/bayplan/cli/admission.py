"""The options that name the admission plugins of the API server in memory."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bayplan.adapters.embedded.admission.plugin_set import PluginSet, listed_names, plugin_set
from bayplan.problems import BadInputError

F = TypeVar("F", bound=Callable[..., Any])


def admission_options() -> Callable[[F], F]:
    """The admission plugins of the API server in memory, as kube-apiserver has the flags."""

    def decorate(command: F) -> F:
        enable = click.option(
            "--enable-admission-plugins",
            "enabled",
            default="",
            metavar="NAMES",
            help="Admission plugins to run besides the default ones, with commas between them",
        )
        disable = click.option(
            "--disable-admission-plugins",
            "disabled",
            default="",
            metavar="NAMES",
            help="Admission plugins not to run",
        )
        return enable(disable(command))

    return decorate


def admission_of(enabled: str, disabled: str) -> PluginSet | None:
    """The admission plugins that the options name; None: they name none. Raises BadInputError."""
    if not enabled and not disabled:
        return None
    try:
        return plugin_set(listed_names(enabled), listed_names(disabled))
    except BadInputError as problem:
        # kube-apiserver's words name the flags without the two dashes.
        text = str(problem)
        for flag in ("enable-admission-plugins", "disable-admission-plugins"):
            text = text.replace(flag, f"--{flag}")
        raise BadInputError(text) from None
