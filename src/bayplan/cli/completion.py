"""`bayplan completion`: the script that completes commands, options and names in a shell."""

import click
from click.shell_completion import get_completion_class

from bayplan.cli.epilogs import examples
from bayplan.cli.streams import put

SHELLS = ("bash", "zsh", "fish")
#: The variable in which a shell asks the program for completions, by click's rule.
_VARIABLE = "_BAYPLAN_COMPLETE"


@click.command(
    "completion",
    epilog=examples(
        'eval "$(bayplan completion bash)"                     # in ~/.bashrc; zsh: in ~/.zshrc',
        "bayplan completion fish > ~/.config/fish/completions/bayplan.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes `bayplan` in bash, zsh or fish."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None, shell
    root = ctx.find_root().command
    put(completion_class(root, {}, "bayplan", _VARIABLE).source().encode())
