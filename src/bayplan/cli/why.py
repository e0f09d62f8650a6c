"""`bayplan why`: what became of a pod, or a group of pods, and why."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.text import Text

from bayplan.cli.console import show, sign_of_life
from bayplan.cli.event_loop import run_event_loop
from bayplan.cli.problems import fail, read_text, refusals
from bayplan.cli.running_scheduler import NotAnsweredError, address_of, story_from
from bayplan.journal import AttemptRecord, Record, group_subject, is_group, subject_of
from bayplan.serving.stories import StoryAnswer
from bayplan.sim.replay import node_verdict
from bayplan.sim.run_folder import RunFolder, RunFolderError
from bayplan.sim.why import known_pods, told, told_node, without_record
from bayplan.state.pods import DEFAULT_NAMESPACE


@click.command("why")
@click.argument("words", nargs=-1, required=True, metavar="[podgroup] NAMESPACE/NAME")
@click.option("--run", "run_path", metavar="DIR", help="what simulate --out wrote")
@click.option("--address", metavar="HOST:PORT", help="of the endpoints of `bayplan run`")
@click.option("--token-file", metavar="FILE", help="with --address: a bearer token")
@click.option("--ca-file", metavar="FILE", help="with --address https://…: who vouches for it")
@click.option("--node", metavar="NAME", help="look at one node, by replaying up to the attempt")
@click.option("--attempt", type=int, help="only this one; with --node, the last one if left out")
def why_command(words: tuple[str, ...], **given: Any) -> None:
    """Tell a pod's story: each attempt, who rejected which nodes and why, the best nodes' scores
    plugin by plugin, and what broke the tie; or that of a group of pods. From the journal of a run
    (--run), or from what a running scheduler still remembers (--address)."""
    name = _subject(words)
    if is_group(name) and (given["node"] is not None or given["attempt"] is not None):
        fail("--node, --attempt: these are for one pod's attempts")
    run_path, address, node = given["run_path"], given["address"], given["node"]
    if (run_path is None) == (address is None):
        fail("wanted one of --run DIR and --address HOST:PORT")
    if address is not None and node is not None:
        fail("--node: wanted --run, for one node is asked by replaying a run")
    with refusals():
        if address is not None:
            parts = _remembered(name, given)
        else:
            parts = _answer(RunFolder(Path(run_path)), name, node, given["attempt"])
    show(parts)


def _subject(words: tuple[str, ...]) -> str:
    """Whom the story is about, as the journal has it."""
    *kinds, name = words
    full_name = name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"
    if kinds in ([], ["pod"]):
        return full_name
    if kinds not in (["podgroup"], ["pg"]):
        wanted = "wanted NAMESPACE/NAME of a pod, or podgroup NAMESPACE/NAME"
        fail(f"found {' '.join(words)}, {wanted}")
    return group_subject(full_name)


def _remembered(pod: str, given: dict[str, Any]) -> list[RenderableType]:
    """What a running scheduler says. Raises RunFolderError for an attempt that is not there."""
    try:
        token = read_text(given["token_file"]).strip() if given["token_file"] else ""
        address = address_of(given["address"], token, given["ca_file"] or "")
        answer = run_event_loop(story_from(address, pod))
    except NotAnsweredError as problem:
        fail(str(problem))
    if not answer.records:
        remembered = f"of {answer.kept_count} records kept (at most {answer.kept_count_max})"
        fail(f"{address.url}: nothing is remembered of {pod}, {remembered}; {_hint(pod, answer)}")
    head = Text(f"times count from the scheduler's start, {answer.started}")
    number = given["attempt"]
    if number is None:
        return [head, *told(answer.records)]
    found = [r for r in answer.records if isinstance(r, AttemptRecord) and r.attempt == number]
    if not found:
        fail(f"{address.url}: no attempt {number} at {pod} is remembered")
    return [head, *told(found[-1:])]


def _hint(pod: str, answer: StoryAnswer) -> str:
    return known_pods(pod, answer.known)


def _answer(
    folder: RunFolder, pod: str, node: str | None, attempt: int | None
) -> list[RenderableType]:
    story: list[Record] = []
    others: set[str] = set()
    for record in folder.journal():
        subject = subject_of(record)
        if subject == pod:
            story.append(record)
        elif is_group(subject) is is_group(pod):
            others.add(subject)
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
