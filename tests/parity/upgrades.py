"""`bayplan upgrade` beside the recorders of two versions of kube-scheduler.

    python -m tests.parity.upgrades FROM_DIR TO_DIR --seeds 0-99

Each folder has a program `record`, which answers cases as kube-scheduler of one version does; the
name of the folder ends in the version, as in bayplan-peer-v1.35.4. For each seed a cluster is drawn
(`upgrade_clusters`), and each of its pods is decided by both programs from the same state. The pods
whose answers differ must be those that `upgrade` names, with these answers. One line a seed; each
difference has a line of its own, and the seed alone draws its cluster again.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bayplan.api.objects import NODE, POD
from bayplan.config import config_from
from bayplan.config.kubernetes_versions import KubernetesVersion, release_of, version_of_release
from bayplan.config.loading import DEFAULT_CONFIG, in_version
from bayplan.model.picture import ClusterPicture
from bayplan.objects.keys import ObjectKey, key_of_metadata
from bayplan.objects.object_store import store_of
from bayplan.plugins.registry import default_registry
from bayplan.whatif.upgrade.answer import PodDifference, Upgrade
from bayplan.whatif.upgrade.upgrade import upgrade
from tests.parity.objects import KINDS, read_object
from tests.parity.upgrade_clusters import draw_cluster

Json = dict[str, Any]
Lists = dict[str, list[Json]]

_SECONDS_MAX = 120


class Peer(NamedTuple):
    """A recorder of one version."""

    program: Path
    #: As in 1.35.4.
    release: str
    version: KubernetesVersion


class Answer(NamedTuple):
    """What a version does with a pod, as far as `upgrade` compares it."""

    nodes: tuple[str, ...]
    message: str
    victims: tuple[str, ...]


def peer_of(folder: Path) -> Peer:
    """Raises ValueError for a folder without a recorder, or whose name has no version."""
    program, (_, _, release) = folder / "record", folder.name.rpartition("v")
    version = version_of_release(release)
    if not program.is_file() or version is None or release_of(release) is None:
        raise ValueError(f"{folder}: wanted a program `record`, and a name such as peer-v1.35.4")
    return Peer(program, release, version)


# ---- kube-scheduler ------------------------------------------------------------------------


def recorded(peer: Peer, lists: Lists) -> dict[str, Answer]:
    """Pod → the answer of the recorder about this pod alone."""
    cases = b"".join(json.dumps(case).encode() + b"\n" for case in _cases(lists))
    done = subprocess.run(
        [peer.program], input=cases, capture_output=True, timeout=_SECONDS_MAX, check=True
    )
    answers: dict[str, Answer] = {}
    for line in done.stdout.splitlines():
        case = json.loads(line)
        assert "pods" in case["answers"], case["answers"]
        [answer] = case["answers"]["pods"]
        answers[case["id"]] = _answer(answer)
    return answers


def _cases(lists: Lists) -> Iterator[Json]:
    """A case for each pod: a pod that runs goes, and waits in place of itself."""
    running = [pod for pod in lists["pods"] if "nodeName" in pod["spec"]]
    for pod in lists["pods"]:
        spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
        pending: Json = {"metadata": pod["metadata"], "spec": spec}
        if pod not in running:
            pending["status"] = pod["status"]
        cluster = {**lists, "pods": [each for each in running if each is not pod]}
        yield {
            "id": key_of(pod),
            "suite": "upgrade",
            "cluster": cluster,
            "config": None,
            "pending": [pending],
        }


def key_of(pod: Json) -> str:
    """namespace/name"""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _answer(answer: Json) -> Answer:
    gates = answer.get("preEnqueue")
    if gates:
        return Answer((), ", ".join(next(iter(gates.values()))["reasons"]), ())
    failure = answer.get("error") or answer.get("scoreError")
    if failure and not (answer.get("scoreError") and len(answer["feasible"]) == 1):
        return Answer((), failure, ())
    if answer.get("best"):
        return Answer(tuple(answer["best"]), "", ())
    after = answer.get("postFilter") or {}
    message = answer.get("fitErrorFinal") or answer["fitError"]
    return Answer((), message, tuple(sorted(after.get("victims") or ())))


# ---- Bayplan -------------------------------------------------------------------------------


def upgraded(lists: Lists, before: KubernetesVersion, after: KubernetesVersion) -> Upgrade:
    """The answer of `bayplan upgrade` about a cluster."""
    objects: dict[str, list[Any]] = {}
    contents: dict[ObjectKey, Json] = {}
    for name, kind in {"nodes": NODE, **KINDS, "pods": POD}.items():
        for each in lists.get(name, ()):
            content = read_object(kind, each, "1")
            objects.setdefault(kind, []).append(content)
            contents[key_of_metadata(kind, content.metadata)] = each
    config = config_from(DEFAULT_CONFIG, kubernetes=before)
    picture = ClusterPicture(store_of(objects), contents)
    return upgrade(picture, config, in_version(config, after), default_registry(()))


def answers_of(pod: PodDifference) -> tuple[Answer, Answer]:
    """What `upgrade` says of both versions."""
    return (
        Answer(pod.nodes_before, pod.message_before, pod.victims_before),
        Answer(pod.nodes_after, pod.message_after, pod.victims_after),
    )


# ---- both ----------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """One cluster."""

    #: A line for each pod about which the two sides differ.
    wrong: tuple[str, ...]
    pod_count: int
    #: The causes of the pods whose answers differ → pods.
    causes: Counter[str]


def compare(seed: int, old: Peer, new: Peer) -> Comparison:
    """Draw a cluster, and compare the pods whose answers differ."""
    lists, families = draw_cluster(seed)
    before, after = recorded(old, lists), recorded(new, lists)
    expected = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    answer = upgraded(lists, old.version, new.version)
    actual = {pod.pod: answers_of(pod) for pod in answer.pods}
    wrong = [
        f"seed {seed} ({', '.join(families)}) {key}: {expected.get(key)} expected, "
        f"{actual.get(key)} answered; before {before[key]}, after {after[key]}"
        for key in before
        if expected.get(key) != actual.get(key)
    ]
    assert answer.pods_tried == len(before), (answer.pods_tried, len(before))
    causes = Counter(cause for pod in answer.pods for cause in pod.causes)
    return Comparison(tuple(wrong), len(before), causes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.upgrades", description=__doc__)
    parser.add_argument("old", type=Path, metavar="FROM_DIR")
    parser.add_argument("new", type=Path, metavar="TO_DIR")
    parser.add_argument("--seeds", default="0-99", help="as in 0-99 or 17")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition("-")
    old, new = peer_of(options.old), peer_of(options.new)
    causes: Counter[str] = Counter()
    wrong_count = pod_count = 0
    for seed in range(int(first), int(last or first) + 1):
        comparison = compare(seed, old, new)
        print(
            f"seed {seed}: {comparison.pod_count} pods, {len(comparison.wrong)} wrong", flush=True
        )
        print("".join(f"  {line}\n" for line in comparison.wrong), end="", flush=True)
        causes += comparison.causes
        pod_count += comparison.pod_count
        wrong_count += bool(comparison.wrong)
    print(f"{pod_count} pods; clusters with a difference: {wrong_count}")
    for cause, count in causes.most_common():
        print(f"{count:5} {cause}")
    return 1 if wrong_count else 0


if __name__ == "__main__":
    sys.exit(main())
