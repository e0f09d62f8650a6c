"""`bayplan why`: what became of a pod, and why."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.console import show, sign_of_life
from bayplan.cli.problems import refusals
from bayplan.journal import AttemptRecord, Record
from bayplan.sim.replay import node_verdict
from bayplan.sim.run_folder import RunFolder, RunFolderError
from bayplan.sim.why import known_pods, subject_of, told, told_node, without_record
from bayplan.state.pods import DEFAULT_NAMESPACE


@click.command("why")
@click.argument("pod", metavar="NAMESPACE/NAME")
@click.option("--run", "run_path", required=True, metavar="DIR", help="what simulate --out wrote")
@click.option("--node", metavar="NAME", help="look at one node, by replaying up to the attempt")
@click.option("--attempt", type=int, help="only this one; with --node, the last one if left out")
def why_command(pod: str, run_path: str, node: str | None, attempt: int | None) -> None:
    """Tell a pod's story from a run's journal: each attempt, who rejected which nodes and why,
    the best nodes' scores plugin by plugin, and what broke the tie."""
    name = pod if "/" in pod else f"{DEFAULT_NAMESPACE}/{pod}"
    with refusals():
        parts = _answer(RunFolder(Path(run_path)), name, node, attempt)
    show(parts)


def _answer(
    folder: RunFolder, pod: str, node: str | None, attempt: int | None
) -> list[RenderableType]:
    story: list[Record] = []
    others: set[str] = set()
    for record in folder.journal():
        if subject_of(record) == pod:
            story.append(record)
        else:
            others.add(subject_of(record))
    if not story:
        return [Text(_without_record(folder, pod, others))]
    if node is None and attempt is None:
        return told(story)
    chosen = _attempt(folder, pod, story, attempt)
    if node is None:
        return told([chosen])
    with sign_of_life("replaying the run"):
        return told_node(node_verdict(folder, chosen, node))


def _without_record(folder: RunFolder, pod: str, others: set[str]) -> str:
    """Why there is no story. Raises RunFolderError for a pod that was not there."""
    said = without_record(pod, folder.result())
    if said is None:
        text = f"{folder.path}: nothing was decided about {pod}; {known_pods(pod, others)}"
        raise RunFolderError(text)
    return said


def _attempt(
    folder: RunFolder, pod: str, story: Sequence[Record], number: int | None
) -> AttemptRecord:
    """The last attempt of that number, or of all: a name may have had several pods."""
    attempts = [record for record in story if isinstance(record, AttemptRecord)]
    found = [record for record in attempts if number in (None, record.attempt)]
    if not found:
        numbers = ", ".join(str(record.attempt) for record in attempts[-20:]) or "none"
        told = f"no attempt {number}" if number is not None else "no attempt"
        raise RunFolderError(f"{folder.path}: {told} at {pod}; there were: {numbers}")
    return found[-1]
