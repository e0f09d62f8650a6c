"""All commands that take a file, run on one file: each ends as it is documented to end.

A command must not raise (`tests.cli.command_line` raises what the command line would turn into a
line about a defect), must end with an exit code of docs/output.md#exit-codes, and must not
write `internal error`. The run and the page account for every pod of the file.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import ClientSession

from bayplan.config import config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import default_registry
from bayplan.serving.redaction import redacted
from bayplan.sim.input.controller_kinds import SCALED_KINDS
from bayplan.sim.input.errors import InputErrors
from bayplan.sim.input.sources import Part, read_sources
from bayplan.ui.subjects import ClusterSubject, Subject, subject_of_files
from tests.cli.command_line import bayplan, write_objects
from tests.ui.fetching import PAGE, visited

Content = dict[str, Any]

_SHAPE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "shape", "namespace": "default"},
    "spec": {
        "containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "3"}}}]
    },
}
#: Placed, not placed, and nothing was judged.
_ANSWERS = (0, 1)
#: The last code is that of a `fit` that judged nothing.
_OF_FIT = (0, 1, 4)
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Input:
    """A file, and the names in it that commands are asked about."""

    path: Path
    #: All objects of the file.
    objects: list[Content]

    @classmethod
    def of_file(cls, path: Path) -> "Input":
        parts = read_sources([path], InputErrors())
        return cls(path, [part.value for part in parts if isinstance(part, Part)])

    def of_kind(self, *kinds: str) -> list[Content]:
        return [each for each in self.objects if each.get("kind") in kinds]

    @property
    def nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.of_kind("Node")]

    @property
    def live_pods(self) -> list[Content]:
        return [
            pod
            for pod in self.of_kind("Pod")
            if (pod.get("status") or {}).get("phase") not in _ENDED and "name" in pod["metadata"]
        ]


def pod_name(pod: Content) -> str:
    meta = pod["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def succeeded(*arguments: Any, codes: tuple[int, ...] = (0,)) -> str:
    """Standard output of a command that ends with one of these codes."""
    result = bayplan(*arguments)
    assert result.exit_code in codes, (arguments, result.exit_code, result.output)
    assert "internal error" not in result.output
    assert "Traceback" not in result.output
    return result.stdout


def check_every_command(given: Input, folder: Path, *, is_large: bool = False) -> None:
    """``is_large``: all changes are one question, and the answers are JSON."""
    folder.mkdir(exist_ok=True)
    shape = write_objects(folder / "shape.yaml", _SHAPE)
    check_simulation(given, folder)
    output = "json" if is_large else "text"
    changes = list(_changes(given, shape))
    if is_large:
        changes = [tuple(part for change in changes for part in change)]
    for change in changes:
        options = ("--shapes", shape, "--force", "-o", output)
        succeeded("whatif", given.path, *change, *options)
    for subject in _subjects(given):
        succeeded("why", *subject, given.path, "-o", output, codes=_ANSWERS)
    succeeded("fit", "-f", shape, given.path, "-o", output, codes=_OF_FIT)
    succeeded("fit", "-f", shape, given.path, "--max", codes=_OF_FIT)
    succeeded("headroom", "-f", shape, given.path)
    succeeded("whatif", given.path, "--drain-each")
    if given.nodes:
        drain = ("--drain", given.nodes[-1], "--force", "--until", "60s", "--shapes", shape)
        succeeded("whatif", given.path, *drain)
    check_redaction(given, folder)
    check_page(given, computes=not is_large)


def check_simulation(given: Input, folder: Path) -> None:
    """Every pod of the file is placed, waits or is gone, and nothing else is."""
    run = folder / "run"
    result = json.loads(succeeded("simulate", given.path, "--out", run, "-o", "json"))
    pods: dict[str, Content] = result["pods"]
    names = {pod_name(pod) for pod in given.live_pods}
    assert names <= pods.keys(), names - pods.keys()
    earlier_count = sum(map(len, result["earlierPods"].values()))
    assert result["counts"]["pods"] == len(pods) + earlier_count
    for name, pod in pods.items():
        is_gone, is_placed = pod["deletedAt"] is not None, pod["node"] is not None
        assert is_gone or not is_placed or pod["node"] in result["nodeUsage"], (name, pod)
    waiting = [n for n, pod in pods.items() if pod["deletedAt"] is None and pod["node"] is None]
    assert result["unschedulable"].keys() <= set(waiting)
    first = next(iter(pods), None)
    if first is not None:
        succeeded("why", first, "--run", run)


def _changes(given: Input, shape: Path) -> Iterator[tuple[str, ...]]:
    """Changes for `whatif`, which go together."""
    if given.nodes:
        first, last = given.nodes[0], given.nodes[-1]
        yield "--drain", first
        yield "--add", "2", "--like", last
    scaled = next(iter(given.of_kind(*SCALED_KINDS)), None)
    if scaled is not None and "spec" in scaled:
        meta = scaled["metadata"]
        name = f"{scaled['kind']}/{meta['name']}=9"
        yield "--scale", name, "-n", meta.get("namespace") or "default"
    yield "--apply", str(shape)


def _subjects(given: Input) -> Iterator[tuple[str, ...]]:
    """What `why` is asked about: a waiting pod, a running pod, a workload."""
    waiting = [pod for pod in given.live_pods if not pod["spec"].get("nodeName")]
    running = [pod for pod in given.live_pods if pod["spec"].get("nodeName")]
    for pods in (waiting, running):
        if pods:
            yield (pod_name(pods[-1]),)
    with_pods = {
        (pod["metadata"].get("namespace"), owner["kind"], owner["name"])
        for pod in given.live_pods
        for owner in pod["metadata"].get("ownerReferences") or ()
    }
    for workload in given.of_kind("StatefulSet", "DaemonSet", "ReplicaSet", "Job"):
        meta = workload["metadata"]
        if (meta.get("namespace"), workload["kind"], meta.get("name")) in with_pods:
            namespace = meta.get("namespace") or "default"
            yield f"{workload['kind'].lower()}/{meta['name']}", "-n", namespace
            return


def check_redaction(given: Input, folder: Path) -> None:
    """What `capture --redact` would write of the objects is read again, with as many pods."""
    known = [each for each in given.objects if each.get("metadata")]
    hidden = redacted(known).objects
    file = write_objects(folder / "redacted.json", {"kind": "List", "items": hidden})
    result = json.loads(succeeded("simulate", file, "-o", "json"))
    assert result["counts"]["pods"] >= len([p for p in given.live_pods if p in known])


# ---- the page ------------------------------------------------------------------------------


def check_page(given: Input, *, computes: bool = True) -> ClusterSubject:
    """The page loads, and its questions have answers. ``computes``: it is asked what if, too.

    Returns what the page showed, with its model.
    """
    subject = subject_of_files([str(given.path)], config_from(DEFAULT_CONFIG), default_registry())
    subject.load()
    answer = subject.answer()
    assert (answer.phase, answer.problem) == ("ready", "")
    assert {pod_name(pod) for pod in given.live_pods} <= set(subject.timeline.rows_by_name)
    paths = [
        "sources",
        "overview",
        "moment",
        "series",
        "heat?color=cpu",
        "nodes",
        "pods",
        "waiting",
    ]
    paths += [f"node?name={quote(given.nodes[0])}"] if given.nodes else []
    paths += [f"whatif?drain={quote(given.nodes[0])}"] if given.nodes and computes else []
    for pod in given.live_pods[-1:]:
        name = quote(pod_name(pod))
        paths += [f"pod?name={name}", f"explanation?pod={name}"]

    async def visit(session: ClientSession, url: str) -> None:
        for path in paths:
            await _answered(session, f"{url}api/{path}")

    others = set(threading.enumerate())
    with ThreadPoolExecutor(1) as worker:
        Subject.start(subject, worker)
        visited([subject], visit)
        subject.stop()
    # The thread of long answers has a model of its own until it ends, which nobody waits for.
    for thread in set(threading.enumerate()) - others:
        if thread.name.startswith("long answers"):
            thread.join()
    return subject


async def _answered(session: ClientSession, url: str) -> None:
    """Ask until the answer is computed."""
    while True:
        async with session.get(url, headers=PAGE) as response:
            body = await response.json()
            assert response.status == 200, (url, body)
        if not isinstance(body, dict) or body.get("phase") != "computing":
            break
        await asyncio.sleep(0.01)
    if isinstance(body, dict):
        assert body.get("phase") != "failed", (url, body)
