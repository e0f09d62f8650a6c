"""What a run says about its pods is what it ended with: one set of figures on every surface."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bayplan.sim.output.pod_counts import Counts, PodEnd, PodResult, counts_of, gone_text
from bayplan.sim.output.run_folder import RunFolder
from bayplan.ui import pages
from bayplan.ui.subjects import RunSubject
from tests.cli.command_line import answer, write_objects
from tests.kit.manifests import Content, container, node, pod, priority_class
from tests.sim.manifests import controller, scenario, template
from tests.sim.printing import printed

SELECTOR = {"matchLabels": {"app": "web"}}
TEMPLATE = template(containers=[container("2")])
N1 = {"kind": "Node", "name": "n1"}
WEB = controller("Deployment", replicas=4, selector=SELECTOR, template=TEMPLATE)
URGENT = pod("urgent", priorityClassName="high", cpu="4")
NODES = (node("n1"), node("n2"))


def at(seconds: float, **verbs: Any) -> Content:
    return {"at": seconds, **verbs}


#: Something outside of Kubernetes has to remove this finalizer.
PROTECTED = {"name": "db-0", "finalizers": ["example.com/archive"]}


def ended_pod(name: str, phase: str) -> Content:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "status": {"phase": phase},
    }


def lasting(kind: str, **spec: Any) -> Content:
    annotations = {"bayplan.dev/duration": "5s"}
    of = template(containers=[container("2")], annotations=annotations)
    return controller(kind, template=of, **spec)


# What happens → the objects, how many pods the run placed and left waiting, and what is gone.
ENDS: dict[str, tuple[list[Content], tuple[int, int], str]] = {
    "pods of a Deployment are preempted": (
        [*NODES, WEB, priority_class("high", 100), scenario(at(60, create=[URGENT]))],
        (3, 2),
        "2 pods gone: 2 preempted (replaced)",
    ),
    "pods without a controller are preempted": (
        [
            node("n1"),
            pod("a", cpu="2"),
            pod("b", cpu="2"),
            priority_class("high", 100),
            scenario(at(60, create=[URGENT])),
        ],
        (1, 0),
        "2 pods gone: 2 preempted",
    ),
    "a node is deleted": (
        [*NODES, WEB, scenario(at(60, delete=[N1]))],
        (2, 2),
        "2 pods gone: 2 lost with a node (replaced)",
    ),
    "all nodes are deleted": (
        [node("n1"), WEB, scenario(at(60, delete=[N1]))],
        (0, 4),
        "2 pods gone: 2 lost with a node (replaced)",
    ),
    "a node is drained": (
        [*NODES, WEB, scenario(at(60, drain=[{"name": "n1"}]))],
        (2, 2),
        "2 pods gone: 2 evicted (replaced)",
    ),
    "a pod ends": (
        [node("n1"), pod("a", annotations={"bayplan.dev/duration": "5s"}), pod("b")],
        (1, 0),
        "1 pod gone: 1 ended",
    ),
    "a Job completes": (
        [node("n1"), lasting("Job", parallelism=2, completions=4)],
        (0, 0),
        "4 pods gone: 4 ended",
    ),
    "a pod of a StatefulSet succeeds and comes again": (
        [
            node("n1"),
            controller("StatefulSet", name="db", replicas=1, selector=SELECTOR, template=TEMPLATE),
            scenario(at(60, patch=[ended_pod("db-0", "Succeeded")])),
        ],
        (1, 0),
        "1 pod gone: 1 ended (replaced)",
    ),
    "a pod of a StatefulSet is evicted": (
        [
            node("n1"),
            controller("StatefulSet", name="db", replicas=1, selector=SELECTOR, template=TEMPLATE),
            scenario(at(60, evict=[{"name": "db-0"}])),
        ],
        (1, 0),
        "1 pod gone: 1 evicted (replaced)",
    ),
    "a pod without a controller fails": (
        [node("n1"), pod("a"), scenario(at(60, patch=[ended_pod("a", "Failed")]))],
        (0, 0),
        "1 pod gone: 1 failed",
    ),
    "a Deployment is scaled down": (
        [
            *NODES,
            WEB,
            scenario(at(60, scale=[{"kind": "Deployment", "name": "web", "replicas": 1}])),
        ],
        (1, 0),
        "3 pods gone: 3 scaled down",
    ),
    "a Deployment is scaled down and loses a node": (
        [
            *NODES,
            WEB,
            scenario(
                at(60, scale=[{"kind": "Deployment", "name": "web", "replicas": 3}]),
                at(70, delete=[{"kind": "Node", "name": "n2"}]),
            ),
        ],
        (2, 1),
        "2 pods gone: 1 lost with a node (replaced), 1 scaled down",
    ),
    "a Deployment is deleted": (
        [
            *NODES,
            WEB,
            scenario(at(60, delete=[{"kind": "Deployment", "name": "web"}])),
        ],
        (0, 0),
        "4 pods gone: 4 deleted",
    ),
    "a DaemonSet loses a node": (
        [
            *NODES,
            controller("DaemonSet", selector=SELECTOR, template=TEMPLATE),
            scenario(at(60, delete=[N1])),
        ],
        (1, 0),
        "1 pod gone: 1 lost with a node",
    ),
    "a pod of a StatefulSet comes again under its name": (
        [
            *NODES,
            controller("StatefulSet", name="db", replicas=2, selector=SELECTOR, template=TEMPLATE),
            scenario(
                at(60, delete=[{"kind": "Pod", "name": "db-0"}]),
                at(70, delete=[{"kind": "Pod", "name": "db-0"}]),
            ),
        ],
        (2, 0),
        "2 pods gone: 2 deleted (replaced)",
    ),
    "the scenario deletes a pod": (
        [node("n1"), pod("a"), scenario(at(60, delete=[{"kind": "Pod", "name": "a"}]))],
        (0, 0),
        "1 pod gone: 1 deleted",
    ),
    "a finalizer keeps a deleted pod": (
        [
            *NODES,
            controller(
                "StatefulSet",
                name="db",
                replicas=1,
                selector=SELECTOR,
                template=TEMPLATE,
            ),
            scenario(
                at(50, patch=[{**ended_pod("db-0", "Running"), "metadata": PROTECTED}]),
                at(60, delete=[{"kind": "Pod", "name": "db-0"}]),
            ),
        ],
        (1, 0),
        "",
    ),
    "the pods of a deleted node are not collected yet": (
        [
            *NODES,
            WEB,
            scenario(at(60, delete=[N1]), until="70s", podGC={"quarantine": "40s"}),
        ],
        (2, 0),
        "",
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_every_surface_says_what_the_run_ended_with(case: str, tmp_path: Path) -> None:
    objects, (placed, waiting), gone = ENDS[case]
    path, folder = write_objects(tmp_path / "in.yaml", *objects), tmp_path / "run"
    printed_json = json.loads(answer("simulate", path, "--out", folder, "-o", "json"))
    result = RunFolder(folder).result()
    assert result is not None
    counts = result.counts
    assert (counts.scheduled, counts.unschedulable, gone_text(counts)) == (placed, waiting, gone)
    assert counts.pods == counts.present + sum(counts.gone.values())
    placements, usage = printed_json["placements"], printed_json["nodeUsage"]
    assert len(placements) == placed
    assert set(placements.values()) <= set(usage)
    assert sum(one["pods"] for one in usage.values()) == counts.placed
    assert not gone or gone in printed(result.parts(), 200).splitlines()
    # placements.csv has a row for each pod that was bound, whatever became of it.
    rows = [line.split(",") for line in (folder / "placements.csv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == [name for name, _ in result.bound_pods()]
    assert Counter(row[3] for row in rows)["placed"] == placed
    # The workloads of the run.
    for name in {each.controller for each in result.pods.values() if each.controller}:
        document = json.loads(answer("why", name, "--run", folder, "-o", "json"))
        own = [each for _, each in result.all_pods() if each.controller == name]
        assert document["counts"]["scheduled"] == counts_of(own).scheduled
        assert sum(1 for one in document["pods"] if one["node"]) == counts_of(own).placed
    # The page.
    subject = RunSubject(RunFolder(folder))
    subject.load()
    line = subject.timeline
    overview = pages.overview(line.state(line.last_change))
    assert (overview.placed, overview.waiting) == (counts.placed, counts.unschedulable)
    assert subject.series.placed[-1] == counts.placed
    totals = subject.answer().totals
    assert totals is not None
    assert (totals.placed, totals.gone) == (counts.placed, gone)


def test_the_counts_of_pods_are_those_of_their_ends() -> None:
    pods = [
        PodResult(node="n1", end=PodEnd.PLACED),
        PodResult(node="n1", bound_at=1.0, end=PodEnd.PLACED),
        PodResult(node="gone", bound_at=1.0, end=PodEnd.MISSING_NODE),
        PodResult(end=PodEnd.WAITING),
        PodResult(end=PodEnd.OTHER_SCHEDULER),
        PodResult(node="n1", bound_at=1.0, end=PodEnd.EVICTED, replaced=True),
        PodResult(node="n1", bound_at=1.0, end=PodEnd.EVICTED),
    ]
    counts = counts_of(pods)
    assert counts == Counts(
        pods=7,
        running=1,
        scheduled=1,
        unschedulable=1,
        other_schedulers=1,
        missing_nodes=1,
        gone={PodEnd.EVICTED: 2},
        replaced={PodEnd.EVICTED: 1},
    )
    assert (counts.placed, counts.present) == (2, 5)
    assert gone_text(counts) == "2 pods gone: 2 evicted (1 replaced)"
