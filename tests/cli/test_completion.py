"""`bayplan completion`: the scripts load, and complete commands and options."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from bayplan.cli.completion import SHELLS
from tests.cli.command_line import answer, bayplan


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_asks_the_program_for_completions(shell: str) -> None:
    script = answer("completion", shell)
    assert f"_BAYPLAN_COMPLETE={shell}_complete" in script
    assert "bayplan" in script


def completed_in_bash(*words: str) -> list[str]:
    """The completions of bash for the last word, after bash has read the script."""
    bash = shutil.which("bash")
    assert bash is not None
    line = " ".join(f"'{word}'" for word in words)
    text = (
        f"{answer('completion', 'bash')}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\n"
        '_bayplan_completion bayplan\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    path = f"{Path(sysconfig.get_path('scripts'))}{os.pathsep}{os.environ['PATH']}"
    completed = subprocess.run(
        [bash, "--norc", "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
        timeout=60,
    )
    return completed.stdout.split()


def test_bash_completes_a_command() -> None:
    assert completed_in_bash("bayplan", "de") == ["demo"]


def test_bash_completes_an_option_of_a_command() -> None:
    assert completed_in_bash("bayplan", "simulate", "--outp") == ["--output"]


def test_an_unknown_shell_is_refused_with_the_supported_names() -> None:
    result = bayplan("completion", "tcsh")
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr
