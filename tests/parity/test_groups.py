"""Recorded attempts of kube-scheduler at pod groups: their placements under
TopologyAwareWorkloadScheduling, the claims that their pods share, and what their devices take.

`group_cases` draws the cases and says how their answers are recorded. Bayplan tries placements in a
fixed order and draws in its own way, so that its outcome has to be one of kube-scheduler's.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.config.kubernetes_versions import version_of_release
from tests.parity.group_answers import outcome
from tests.parity.group_cases import SUITES

RELEASE = "1.37.2"
FOLDER = Path(__file__).parent / "groups"
CASES = [
    json.loads(line)
    for file in sorted(FOLDER.glob("*.jsonl"))
    for line in file.read_text(encoding="utf-8").splitlines()
]
PLACEMENTS = [one for one in CASES if one["id"].startswith("placements")]
AMOUNTS = [one for one in CASES if one["id"].startswith("amounts")]
CLAIMS = [one for one in CASES if one["id"].startswith("claims")]


def our_outcome(one: Any) -> Any:
    version = version_of_release(RELEASE)
    assert version is not None
    return outcome(one, version)


@pytest.mark.parametrize("one", CASES, ids=lambda one: one["id"])
def test_the_outcome_of_a_group_is_one_of_the_recorded_ones(one: Any) -> None:
    assert our_outcome(one) in one["answers"]


def test_the_cases_are_those_of_their_seeds() -> None:
    for one in CASES:
        suite, _, seed = one["id"].rpartition("-")
        drawn = SUITES[suite](int(seed))
        assert {**drawn, "answers": one["answers"]} == one


def test_the_cases_have_every_kind_of_outcome() -> None:
    outcomes = [answer for one in PLACEMENTS for answer in one["answers"]]
    messages = json.dumps(outcomes)
    for text in (
        "no feasible placements found",
        "no topology domain found for pod",
        "0/3 placements are available",
        "found a placement for podgroup",
        "not eligible due to preemptionPolicy=Never",
        "deallocation and deletion of ResourceClaims completed",
    ):
        assert text in messages
    assert sum(answer["group"]["status"] == "True" for answer in outcomes) >= len(PLACEMENTS) // 4
    assert any("victims" in answer for answer in outcomes)


def test_without_the_gate_other_outcomes_follow() -> None:
    off = {"TopologyAwareWorkloadScheduling": False}
    others = [one for one in PLACEMENTS[:20] if "schedulingConstraints" in one["group"]["spec"]]
    assert any(
        our_outcome({**one, "gates": {**one["gates"], **off}}) not in one["answers"]
        for one in others
    )


def test_without_the_gate_devices_take_nothing_of_their_nodes() -> None:
    off = {"DRANodeAllocatableResources": False}
    assert AMOUNTS
    for one in AMOUNTS:
        assert our_outcome({**one, "gates": {**one["gates"], **off}}) not in one["answers"]


def test_claims_are_shared_reserved_for_groups_and_released() -> None:
    claims = [c for one in CLAIMS for answer in one["answers"] for c in answer["claims"].values()]
    users = [claim.get("users", []) for claim in claims]
    assert ["podgroups/g"] in users
    assert any(len(names) > 1 for names in users)
    before = {one["id"]: sum("status" in claim for claim in one["claims"]) for one in CLAIMS}
    after = {
        one["id"]: sum("devices" in claim for claim in one["answers"][0]["claims"].values())
        for one in CLAIMS
    }
    assert any(after[name] < count for name, count in before.items())


def test_without_the_gate_claims_have_other_users() -> None:
    gate = "DRAWorkloadResourceClaims"
    assert any(
        our_outcome({**one, "gates": {**one["gates"], gate: not one["gates"][gate]}})
        not in one["answers"]
        for one in CLAIMS
    )
