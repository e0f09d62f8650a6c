"""Reported cases, each with the answer that the real server, scheduler and controllers give.

The inputs lie beside this file. The ideas are those of public reports.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import answer, bayplan

CASES = Path(__file__).parent


def case(name: str) -> Path:
    return CASES / name


def simulated(*names: str) -> dict[str, Any]:
    return json.loads(answer("simulate", *map(case, names), "-o", "json"))


def why(subject: str, name: str, exit_code: int = 1) -> str:
    """What `why` says about a pod that does not fit."""
    result = bayplan("why", subject, case(name))
    assert result.exit_code == exit_code, result.output
    return result.stdout


def fixes(text: str) -> str:
    return text.partition("What would make it fit")[2]


# ---- simulations ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "placements", "waiting"),
    [
        ("46-draext-absent.yaml", {"one": "n2"}, {}),
        ("44-draext.yaml", {"one": "n2"}, {"two": "cannot allocate all claims"}),
        ("158-jobpod-pending.yaml", {"p": "n1"}, {}),
        ("154-term.yaml", {}, {"p": "Insufficient cpu"}),
        ("92-dupuid-pending.yaml", {"a": "n1", "b": "n1"}, {"d": "Insufficient cpu"}),
        (
            "131-rcpods.yaml",
            {"web-1": "n1", "web-2": "n1"},
            {"web-3": "Insufficient cpu", "web-4": "didn't match Pod's node affinity/selector"},
        ),
        ("11-podtruth.yaml", {"a": "n1", "b": "n1"}, {"d": "Insufficient cpu"}),
        ("120-stspvc.yaml", {"db-0": "n1"}, {}),
        ("concat.json", {"p": "n1"}, {}),
    ],
)
def test_a_run_places_what_kube_scheduler_places(
    name: str, placements: dict[str, str], waiting: dict[str, str]
) -> None:
    result = simulated(name)
    assert result["placements"] == {f"default/{pod}": node for pod, node in placements.items()}
    assert result["unschedulable"].keys() == {f"default/{pod}" for pod in waiting}
    for pod, reason in waiting.items():
        assert reason in result["unschedulable"][f"default/{pod}"]


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("158-jobpod-pending.yaml", "it has the finalizer batch.kubernetes.io/job-tracking"),
        ("154-term.yaml", "it has the finalizer example.com/wait"),
        ("92-dupuid-pending.yaml", "Pod default/b has the uid of Pod default/a"),
    ],
)
def test_the_notes_say_what_is_unusual_about_an_input(name: str, note: str) -> None:
    assert any(note in line for line in simulated(name)["notes"])


def test_the_server_makes_the_name_of_a_controller_without_one() -> None:
    result = simulated("02-nodes.yaml", "90-genname.yaml")
    assert len(result["placements"]) == 3
    assert all(name.startswith("default/sample-job-") for name in result["placements"])
    fit = json.loads(
        answer("fit", "-f", case("90-genname.yaml"), case("02-nodes.yaml"), "-o", "json")
    )
    assert (fit["fits"], len(fit["pods"])) == (True, 3)


def test_two_pods_with_one_uid_are_two_pods() -> None:
    assert "Insufficient cpu" in why("default/p", "91-dupuid-running.yaml")
    cluster = case("91-dupuid-running.yaml")
    drained = json.loads(answer("whatif", cluster, "--drain", "n1", "--force", "-o", "json"))
    assert [pod for pods in drained["gone"].values() for pod in pods] == ["default/a", "default/b"]
    assert simulated("91-dupuid-running.yaml")["counts"]["pods"] == 3


# ---- what if -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--until", "60s")])
def test_a_new_node_holds_the_pods_of_its_daemon_sets_first(options: tuple[str, ...]) -> None:
    cluster = case("40-dsadd.yaml")
    change = ("--add", "1", "--like", "n1", *options, "-o", "json")
    changed = json.loads(answer("whatif", cluster, *change))
    assert [one["pod"] for one in changed["waitedBefore"]] == ["default/big"]
    assert [one["target"] for one in changed["moves"]] == ["n1-new-1"]
    assert "add one node like n1 with 2500m cpu" in why("default/big", "40-dsadd.yaml")


# ---- causes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "name", "cause"),
    [
        ("default/p", "36-small.yaml", "PersistentVolume lpv: 49Gi, less than the 50Gi requested"),
        (
            "default/p",
            "38-released.yaml",
            "PersistentVolume lpv: Released, with a claimRef to an earlier PersistentVolumeClaim",
        ),
        (
            "default/u2",
            "35-csilimit.yaml",
            "CSI driver ebs.csi.aws.com: the limit is 1, 1 attached, the pod brings 1 more",
        ),
        ("default/q", "10-schedname.yaml", "default/q: the pod's node ghost does not exist"),
        ("default/a", "50-pgbig.yaml", "2 members exist, 3 are needed, 1 missing: a, b"),
        (
            "default/low",
            "153-nominated.yaml",
            "default/pre (priority 1000) is nominated to n1 and holds 2 cpu there",
        ),
    ],
)
def test_a_cause_names_the_object_behind_it(subject: str, name: str, cause: str) -> None:
    assert cause in why(subject, name)


def test_no_cause_is_empty() -> None:
    for subject, name in (("default/a", "50-pgbig.yaml"), ("default/low", "153-nominated.yaml")):
        text = why(subject, name)
        assert "lacks 0" not in text
        assert "Causes\n\n" not in text


# ---- fixes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["122b.yaml", "122g.yaml"])
def test_room_is_made_by_scaling_the_deployment_whether_the_input_has_it_or_not(name: str) -> None:
    offered = fixes(why("default/p", name))
    assert "scale Deployment default/web from 2 to 1" in offered
    assert "kubectl scale deployment.apps/web -n default --replicas=1" in offered


def test_scaling_a_stateful_set_does_not_remove_the_pod_in_the_way() -> None:
    """The highest ordinal goes, db-1 on n2, and the annotation counts for ReplicaSets only."""
    offered = fixes(why("default/p", "124-stsroom.yaml"))
    assert "pod-deletion-cost" not in offered
    assert "goes to n1:" not in offered


def test_the_fix_of_a_workload_is_a_change_of_the_object_in_the_file() -> None:
    result = bayplan("fit", "-f", case("02-wl.yaml"), case("02-nodes.yaml"))
    assert result.exit_code == 1
    offered = fixes(result.stdout)
    assert "kubectl patch deployment.apps/web" in offered
    assert "replicaset" not in offered
    honor, *_ = (line for line in offered.splitlines() if line.startswith("  1. "))
    assert "Deployment default/web, then all 4 pods that wait get a node" in honor
    assert offered.index("nodeTaintsPolicy: Honor") < (offered + "tolerate").index("tolerate")


def test_a_rollout_that_blocks_itself_gets_no_surplus() -> None:
    offered = fixes(why("default/d-new-c", "160-rollout.yaml"))
    first = offered.partition("  2. ")[0]
    assert "maxSurge: 0" in first or "matchLabelKeys" in first


def test_a_released_volume_is_made_available_again() -> None:
    first = fixes(why("default/p", "38-released.yaml")).partition("  2. ")[0]
    assert "kubectl patch persistentvolume/lpv" in first
    assert "/spec/claimRef" in first


def test_no_fix_removes_a_critical_pod_of_a_budget_that_allows_none() -> None:
    offered = fixes(why("default/p", "121-room.yaml"))
    assert "crit" not in offered
    assert "add one node like n1" in offered


def test_a_new_node_needs_no_label_of_a_term_that_matches_already() -> None:
    offered = fixes(why("default/p", "125-minlabel.yaml"))
    assert "add one node like c with 2 cpu" in offered
    assert "ON_DEMAND" not in offered


# ---- nothing to judge ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("151-lws.yaml", "LeaderWorkerSet default/vllm"),
        ("52-volcano.yaml", "Job default/suspended"),
    ],
)
def test_what_was_not_judged_is_named(name: str, reason: str) -> None:
    result = bayplan("fit", "-f", case(name), case("02-nodes.yaml"))
    assert "not judged" in result.stdout
    assert reason in result.stdout
    if name == "151-lws.yaml":
        assert result.exit_code not in (0, 1, 2, 3)
