"""Resources: the documents that an agent reads about answers, and their JSON schemas."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bayplan.cli.agents.commands import Commands
from bayplan.cli.schema import NAMES

_PACKAGE = Path(__file__).resolve().parents[2]
#: The wheel carries the documents within the package. In a checkout the folder is beside `src`.
_PLACES = (_PACKAGE / "docs", _PACKAGE.parents[1] / "docs")
#: File → what it is about.
_DOCUMENTS = {
    "agents.md": "Which question, which tool; how to read causes and fixes",
    "why.md": "Why a pod waits: causes, distances, fixes",
    "fit.md": "Does a workload fit, and how many more",
    "what-if.md": "What would happen if something changed",
    "glossary.md": "The words",
}


class Document(NamedTuple):
    """One resource."""

    uri: str
    description: str
    media_type: str
    read: Callable[[], str]


def documents(answers: Commands) -> Iterator[Document]:
    """All resources of this installation."""
    for name in NAMES:
        yield Document(
            f"bayplan://schemas/{name}",
            f"JSON schema of `bayplan schema {name}`",
            "application/schema+json",
            lambda name=name: answers.ask(["schema", name]).text,
        )
    for name, description in _DOCUMENTS.items():
        path = next((place / name for place in _PLACES if (place / name).is_file()), None)
        if path is not None:
            yield Document(
                f"bayplan://docs/{name}",
                description,
                "text/markdown",
                lambda path=path: path.read_text(encoding="utf-8"),
            )
