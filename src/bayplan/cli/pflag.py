"""Flags with the syntax of kube-scheduler's flag library where click's syntax differs.

A boolean flag without a value is true and never consumes the next argument: its value must follow
an equals sign. The words of a name may be joined by underscores. A repeated list is one list.
Upstream: github.com/spf13/pflag (NoOptDefVal), component-base/cli/flag (WordSepNormalizeFunc).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, final

import click

from bayplan.config.feature_gates import COMPONENT_PREFIX, FALSE, TRUE, is_prefixed
from bayplan.config.kubernetes_versions import requested_version
from bayplan.durations import is_duration
from bayplan.problems import BadInputError, suggestion

F = TypeVar("F", bound=Callable[..., Any])


@final
class GoBool(click.ParamType):
    """The spellings that Go's strconv.ParseBool accepts."""

    name = "boolean"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value not in TRUE and value not in FALSE:
            self.fail(f"found {value!r}, wanted true or false", param, ctx)
        return value in TRUE


@final
class GoDuration(click.ParamType):
    """A duration in Go's format, such as 15s; stays a string."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_duration(value):
            self.fail(f"found {value!r}, wanted a duration such as 15s or 1m30s", param, ctx)
        return value


@final
class NameList(click.ParamType):
    """Names separated by commas. If ``known`` is not empty, other names are refused."""

    name = "names"

    def __init__(self, choices: tuple[str, ...] = ()) -> None:
        self._choices = choices

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return cast("tuple[str, ...]", value)
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in names:
            if self._choices and name not in self._choices:
                meant = suggestion(name, self._choices)
                self.fail(f"unknown name {name}" + (f"; {meant}" if meant else ""), param, ctx)
        return names


@final
class PflagCommand(click.Command):
    """A command whose arguments have kube-scheduler's syntax.

    ``removed``: flags that kube-scheduler had once → what to use instead.
    """

    def __init__(self, *args: Any, removed: Mapping[str, str] | None = None, **extras: Any) -> None:
        super().__init__(*args, **extras)
        self._removed = removed or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._rewritten(ctx, args)))

    def _rewritten(self, ctx: click.Context, args: Sequence[str]) -> Iterator[str]:
        """The arguments in click's syntax."""
        options = {
            name: param
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            for name in param.opts
        }
        remaining = iter(args)
        for arg in remaining:
            if arg == "--":
                yield from (arg, *remaining)
                return
            if not arg.startswith("-"):
                yield arg
                continue
            written, equals, value = arg.partition("=")
            name = written.replace("_", "-") if written.startswith("--") else written
            option = options.get(name)
            if option is None and (advice := self._removed.get(name.removeprefix("--"))):
                raise click.UsageError(f"kube-scheduler v1.37 has no {name}; {advice}", ctx)
            if option is None or option.is_flag:
                yield f"{name}{equals}{value}"
            elif equals:
                yield f"{name}={value}"
            elif isinstance(option.type, GoBool):
                yield f"{name}=true"
            else:
                yield name
                yield from _next(remaining)


def _next(remaining: Iterator[str]) -> Iterator[str]:
    """The value of the previous option, even if the value looks like an option."""
    for value in remaining:
        yield value
        return


_VERSION_HELP = (
    "Version of kube-scheduler to answer as. Default: that of the cluster, or the newest"
)


def feature_gates_option(
    text: str = "Feature gates of kube-scheduler; may be repeated",
    *,
    version: Callable[[F], F] | None = None,
) -> Callable[[F], F]:
    """`--feature-gates A=true,kube:B=false`, where repeated flags add up, as kube-scheduler's do;
    and `--kubernetes 1.36`, the version that has them. ``version``: in place of it."""
    gates = click.option(
        "--feature-gates", multiple=True, callback=_joined_gates, metavar="A=true,…", help=text
    )
    of_version = kubernetes_option() if version is None else version
    return lambda command: gates(of_version(command))


def kubernetes_option(
    name: str = "--kubernetes", text: str = _VERSION_HELP, *, multiple: bool = False
) -> Callable[[F], F]:
    """`--kubernetes 1.36`: the version of kube-scheduler to answer as, or several."""
    return click.option(
        name,
        "kubernetes",
        multiple=multiple,
        default=() if multiple else "",
        callback=_checked_versions,
        metavar="1.36",
        help=text,
    )


def _checked_versions(
    ctx: click.Context, param: click.Parameter, value: str | tuple[str, ...]
) -> str | tuple[str, ...]:
    for text in (value,) if isinstance(value, str) else value:
        try:
            requested_version(text, "")
        except BadInputError as problem:
            message = str(problem).removeprefix(": ")
            raise click.BadParameter(message, ctx, param) from None
    return value


def _joined_gates(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> str:
    """All gates as one text. Upstream refuses a list in which only some gates have the prefix."""
    pairs = [pair for text in texts for pair in text.split(",") if pair.strip()]
    if len({is_prefixed(pair) for pair in pairs}) > 1:
        expected = f"wanted the prefix {COMPONENT_PREFIX} for all gates or for none"
        raise click.BadParameter(f"found {','.join(pairs)}, {expected}", ctx, param)
    return ",".join(pairs)
