"""Drains, cordons, evictions and scales of a scenario, as kubectl does them."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.adapters.embedded.versioned_store import StoredObject
from bayplan.api.objects import POD, decode
from bayplan.objects.keys import key_of
from bayplan.sim.input.workload import DrainOptions
from bayplan.sim.output.result import SimulationResult
from bayplan.sim.world.drains import drain_plan
from tests.kit.manifests import Content, container, node, pod
from tests.sim.manifests import controller, owned, scenario, template
from tests.sim.runs import living, load_objects, run_by_default

SELECTOR = {"matchLabels": {"app": "web"}}
WEB = controller("Deployment", replicas=3, selector=SELECTOR)
LOGS = controller("DaemonSet", name="logs", uid="logs", selector=SELECTOR)
ALL = {"ignoreDaemonsets": True, "deleteEmptyDirData": True, "force": True}


def at(seconds: float, **verbs: Any) -> Content:
    return {"at": seconds, **verbs}


def drain(name: str, **flags: bool) -> Content:
    return {"drain": [{"name": name, **flags}]}


def budget(**bounds: Any) -> Content:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": SELECTOR, **bounds},
    }


def run(folder: Path, *contents: Content) -> SimulationResult:
    return run_by_default(load_objects(folder, *contents))


# ---- evicted pods ---------------------------------------------------------------------------


def stored(content: Content) -> StoredObject:
    return StoredObject(key_of(content), content, decode(POD, content), 1, True, None)


def planned(*pods: Content, has_daemon_set: bool = True, **flags: bool) -> tuple[list[str], Any]:
    options = DrainOptions(**flags)
    plan = drain_plan(map(stored, pods), options, lambda key: has_daemon_set)
    return [key.name for key in plan.evicted], plan.problems


BARE = pod("bare")
LOCAL = owned(pod("local", volumes=[{"name": "tmp", "emptyDir": {}}]), WEB, controller=True)
DAEMON = owned(pod("daemon"), LOGS, controller=True)
MIRROR = pod("mirror")
MIRROR["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
MANAGED = owned(pod("managed"), WEB, controller=True)


def test_pods_that_need_a_flag_are_named_in_kubectls_words() -> None:
    evicted, problems = planned(BARE, LOCAL, DAEMON, MIRROR, MANAGED)
    assert evicted == ["managed"]
    assert [one.partition("cannot delete ")[2] for one in problems] == [
        "Pods that declare no controller (use --force to override): default/bare",
        "DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/daemon",
        "Pods with local storage (use --delete-emptydir-data to override): default/local",
    ]


def test_with_all_flags_only_daemon_and_mirror_pods_stay() -> None:
    flags = {"ignore_daemonsets": True, "delete_empty_dir_data": True, "force": True}
    pods = (BARE, LOCAL, DAEMON, MIRROR, MANAGED)
    assert planned(*pods, **flags) == (["bare", "local", "managed"], ())


def test_a_pod_of_a_missing_daemon_set_is_evicted_with_force() -> None:
    assert planned(DAEMON, has_daemon_set=False, force=True) == (["daemon"], ())
    _, problems = planned(DAEMON, has_daemon_set=False)
    assert problems == ('cannot delete daemonsets.apps "logs" not found: default/daemon',)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_need_no_flag(phase: str) -> None:
    ended = [{**one, "status": {"phase": phase}} for one in (BARE, LOCAL, DAEMON)]
    assert planned(*ended) == (["bare", "daemon", "local"], ())


# ---- drains in a run ------------------------------------------------------------------------


def test_a_drained_node_is_cordoned_and_its_pods_move(tmp_path: Path) -> None:
    late = at(5, create=[node("n2")])
    result = run(tmp_path, node("n1"), WEB, LOGS, scenario(late, at(9, **drain("n1", **ALL))))
    nodes = sorted((one.controller, one.node) for one in living(result).values())
    assert nodes == [
        ("DaemonSet/logs", "n1"),
        ("DaemonSet/logs", "n2"),
        *[("Deployment/web", "n2")] * 3,
    ]
    uncordoned = at(20, uncordon=[{"name": "n1"}], create=[pod("p", nodeSelector={"on": "n1"})])
    n1 = node("n1", labels={"on": "n1"})
    blocked = run(tmp_path, n1, scenario(at(9, **drain("n1")), {**uncordoned, "uncordon": []}))
    assert list(blocked.unschedulable) == ["default/p"]
    back = run(tmp_path, n1, scenario(at(9, **drain("n1")), uncordoned))
    assert back.placements == {"default/p": "n1"}


def test_a_drain_without_its_flags_evicts_nothing_and_leaves_the_node_cordoned(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, node("n1"), WEB, LOGS, scenario(at(9, **drain("n1"))))
    assert len(living(result)) == len(result.pods) == 4
    (note,) = [note for note in result.notes if note.startswith("at 9 s: ")]
    assert note.startswith(
        'at 9 s: unable to drain node "n1" due to error: cannot delete DaemonSet'
    )


def test_a_drain_retries_evictions_that_a_budget_blocks_every_five_seconds(tmp_path: Path) -> None:
    """Each replacement must run before the next pod may be evicted."""
    objects = (node("n1"), WEB, budget(maxUnavailable=1))
    event = at(10, create=[node("n2")]), at(11, **drain("n1"))
    result = run(tmp_path, *objects, scenario(*event))
    deletion_times = sorted(one.deleted_at for one in result.pods.values() if one.deleted_at)
    assert deletion_times == [11.0, 16.0, 21.0]
    assert {one.node for one in living(result).values()} == {"n2"}
    assert "at 21 s: disruption budgets delayed the drain of n1 by 10 s" in result.notes


def test_a_drain_that_a_budget_blocks_permanently_does_not_prolong_a_run(tmp_path: Path) -> None:
    web = controller("Deployment", replicas=2, selector=SELECTOR)
    result = run(tmp_path, node("n1"), web, budget(minAvailable=2), scenario(at(10, **drain("n1"))))
    assert len(living(result)) == 2
    notes = [note for note in result.notes if "is not done" in note]
    assert len(notes) == 2
    assert notes[0].endswith(
        "Cannot evict pod as it would violate the pod's disruption budget. "
        "The disruption budget b needs 2 healthy pods and has 2 currently"
    )


def test_a_replacement_that_waits_blocks_the_drain(tmp_path: Path) -> None:
    full = template(containers=[container("3")])
    web = controller("Deployment", replicas=2, selector=SELECTOR, template=full)
    objects = (node("n1"), node("n2"), web, budget(maxUnavailable=1))
    result = run(tmp_path, *objects, scenario(at(10, **drain("n1")), until="60s"))
    assert len(result.unschedulable) == 1


def test_an_eviction_that_a_budget_refuses_is_a_note(tmp_path: Path) -> None:
    mine = pod("a", nodeName="n1")
    mine["metadata"]["labels"] = {"app": "web"}
    evict = scenario(at(5, evict=[{"name": "a"}]))
    refused = run(tmp_path, node("n1"), mine, budget(minAvailable=1), evict)
    assert refused.pods["default/a"].deleted_at is None
    assert refused.notes[-1] == (
        "at 5 s: evict Pod default/a: Cannot evict pod as it would violate the pod's disruption "
        "budget. The disruption budget b needs 1 healthy pods and has 1 currently"
    )
    accepted = run(tmp_path, node("n1"), mine, evict)
    assert accepted.pods["default/a"].deleted_at == 5.0
    assert accepted.lost[0].causes == {"evicted": 1}
