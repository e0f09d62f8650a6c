"""Pods with equal signatures: differences are detected, and intended deviations are counted."""

import pytest

from tests.parity.recorded import Json, answer, case, compared, different_fields
from tests.parity.signature_answers import NO_TERMS, PORTS, TIMES, UNSET
from tests.parity.tally import report

SUITE = "signatures"


def as_in_group(content: Json, pod: str, group: int) -> Json:
    answer(content, pod)["signature"] = {"signable": True, "group": group}
    return content


# ---- what is tampered with is noticed ------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pod", "field"),
    [
        ("equal-and-not", "p4", "signature.TaintToleration"),
        ("host-ports", "other", "signature.NodePorts"),
        ("unset-requests", "whole", "signature.NodeResourcesFit"),
        ("unset-requests", "whole", "signature.NodeResourcesBalancedAllocation"),
        ("images", "volume", "signature.ImageLocality"),
    ],
)
def test_different_pods_with_equal_signatures_are_a_difference(
    name: str, pod: str, field: str
) -> None:
    assert not compared(case(SUITE, name)).different
    assert field in different_fields(compared(as_in_group(case(SUITE, name), pod, 0)))


@pytest.mark.parametrize(
    ("pod", "signature"),
    [
        pytest.param("plain", {"signable": False, "refusedBy": {"NodeName": {}}}, id="refused"),
        pytest.param("plain", {"signable": False, "refusedBy": {"InterPodAffinity": {}}}, id="by"),
        pytest.param("term", {"signable": True, "group": 1}, id="signed"),
        pytest.param("plain", {"signable": False, "refusedBy": {"Coscheduling": {}}}, id="unknown"),
    ],
)
def test_a_plugin_that_signs_on_only_one_side_is_a_difference(pod: str, signature: Json) -> None:
    changed = case(SUITE, "no-terms")
    answer(changed, pod)["signature"] = signature
    assert different_fields(compared(changed)) == {"signature.unsigned"}


@pytest.mark.parametrize("signature", [None, {}, {"signable": True}, {"signable": True, "mood": 1}])
def test_a_signature_with_unknown_fields_is_reported(signature: Json | None) -> None:
    changed = case(SUITE, "no-terms")
    answer(changed, "plain")["signature"] = signature
    tally = compared(changed)
    assert different_fields(tally) == {"signature"}
    assert list(tally.not_understood) == ["signature"]


# ---- on purpose ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("host-ports", {"signature.NodePorts": {PORTS: 2}}),
        (
            "unset-requests",
            {"signature.NodeResourcesFit": {UNSET: 2}, "signature.ImageLocality": {TIMES: 2}},
        ),
        ("images", {"signature.ImageLocality": {TIMES: 1}}),
        ("no-terms", {"signature.unsigned": {NO_TERMS: 1}}),
    ],
)
def test_fields_that_upstream_ignores_are_intended_deviations(
    name: str, expected: dict[str, dict[str, int]]
) -> None:
    tally = compared(case(SUITE, name))
    assert not tally.different
    deviating = {f: dict(e.deviating) for (_, f), e in tally.fields.items() if e.deviating}
    assert deviating == expected
    result = "\n".join(report(tally, 0))
    for kinds in expected.values():
        assert all(
            f"{count} deviate on purpose ({kind})" in result for kind, count in kinds.items()
        )


def raw_scores(name: str, plugin: str, pods: tuple[str, str], node: str) -> list[int]:
    return [answer(case(SUITE, name), p)["scores"][plugin][node]["raw"] for p in pods]


def test_upstream_gives_different_answers_for_equal_signatures() -> None:
    """The reason for the deviations, shown by the record itself."""
    udp, tcp = (answer(case(SUITE, "host-ports"), pod) for pod in ("udp", "tcp-too"))
    assert udp["signature"] == tcp["signature"]
    assert "a" in tcp["filter"]
    assert "a" not in udp.get("filter", {})
    once, twice = (answer(case(SUITE, "images"), pod) for pod in ("once", "twice"))
    assert once["signature"] == twice["signature"]
    assert raw_scores("images", "ImageLocality", ("once", "twice"), "a") == [26, 27]
