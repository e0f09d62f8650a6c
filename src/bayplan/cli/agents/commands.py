"""Commands: a command line runs in this process, and what it prints is the answer, byte for byte.

Commands print to the standard streams, which belong to the whole process. So they run one after the
other, in a thread of their own, and no other part of the process may print. A long answer has
pages; the answer of a page is that of the question, also if the cluster has changed since.
"""

import io
import sys
from collections import OrderedDict
from contextlib import redirect_stderr, redirect_stdout
from typing import Final, final

import click
import msgspec
from msgspec import Struct

from bayplan.cli.agents.paging import pages_of
from bayplan.cli.entry import cli
from bayplan.cli.streams import EXIT_FAILED
from bayplan.cli.warm_models import WarmModels, lend_warm_models
from bayplan.internal_errors import internal_error

#: The length of a page, in characters.
PAGE_LENGTH: Final = 48_000
#: Answers whose further pages can be read.
_ANSWERS_MAX: Final = 8
#: The longest error, in characters.
_REMARKS_LENGTH_MAX: Final = 4_000


@final
class CommandOutput(Struct, frozen=True):
    """What a command printed."""

    #: The document, as the command prints it.
    text: str
    exit_code: int
    #: What it printed to standard error.
    remarks: str = ""

    def pages(self) -> list[str]:
        """Documents that together are the text."""
        return pages_of(self.text, PAGE_LENGTH)

    def entry_counts(self) -> str:
        """How many entries each list of the document has, such as "1,000 pods, 7 notes"."""
        document: dict[str, object] = msgspec.json.decode(self.text)
        lists = {
            name: value for name, value in document.items() if isinstance(value, list) and value
        }
        return ", ".join(f"{len(value):,} {name}" for name, value in lists.items())


@final
class Commands:
    """Runs commands, and holds the newest answers of more than one page."""

    def __init__(self, models: WarmModels) -> None:
        self._models = models
        self._long: OrderedDict[str, list[str]] = OrderedDict()
        self._count = 0

    def ask(self, arguments: list[str]) -> CommandOutput:
        """Run one command."""
        output, errors = io.BytesIO(), io.StringIO()
        stream = io.TextIOWrapper(output, encoding="utf-8", write_through=True)
        with redirect_stdout(stream), redirect_stderr(errors), lend_warm_models(self._models):
            exit_code = _exit_code(arguments)
        text = output.getvalue().decode()
        return CommandOutput(text, exit_code, errors.getvalue()[:_REMARKS_LENGTH_MAX])

    def add_long(self, pages: list[str]) -> str:
        """Hold the pages of an answer; returns its name."""
        self._count += 1
        name = f"answer-{self._count}"
        self._long[name] = pages
        if len(self._long) > _ANSWERS_MAX:
            self._long.popitem(last=False)
        return name

    def long_answer(self, name: str) -> list[str] | None:
        """The pages of an answer that is still there."""
        return self._long.get(name)


def _exit_code(arguments: list[str]) -> int:
    """Run a command. However it fails, there are lines on standard error."""
    try:
        cli.main(arguments, prog_name="bayplan", standalone_mode=False)
    except click.ClickException as problem:
        problem.show(sys.stderr)
        return problem.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_FAILED
    except Exception as problem:  # noqa: BLE001 - a defect ends one answer, not the server
        print(internal_error(problem), file=sys.stderr)  # noqa: T201 - as a command does
        return EXIT_FAILED
    return 0
