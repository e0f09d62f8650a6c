"""The runner detects differences, skips no answer, and never stops early.

The cases beside this file were recorded from kube-scheduler v1.37.0 on clusters made up for them;
each id describes its case.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.cached_answers import TIMES
from tests.parity.recorded import (
    CASES,
    FILES,
    Json,
    answer,
    case,
    compared,
    different_fields,
)
from tests.parity.runner import compare_file_line, compare_files, main
from tests.parity.tally import Tally, report
from tests.parity.world import REGISTRY

Change = Callable[[Json], Any]

#: Plugins without recorded answers in a cycle or a hint.
#: The plugins of the third line read other plugins' scores, and kube-scheduler has none of them.
#: Of GangScheduling and DeferredPodScheduling only the registered events are recorded. Attempts at
#: groups are recorded as a whole (test_groups.py).
WITHOUT_ANSWERS = {
    *("PrioritySort", "DefaultBinder", "NodeNameOrder", "Coscheduling", "GangScheduling"),
    *("DeferredPodScheduling", "PodGroupPodsCount", "TopologyPlacementGenerator"),
    *("TopologyScorer", "Invert", "Normalize", "Scale", "Steps", "Combine"),
}


# ---------------------------------------------------------------- agreement


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_recorded_answer_is_reproduced(file: Path) -> None:
    tally = compare_files([file])
    assert tally.compared > 0
    assert not tally.different, "\n".join(report(tally, 5))
    assert not tally.not_understood


def test_cached_results_of_every_kind_of_question_are_compared() -> None:
    """Some cycles use a ranking; others evaluate a part of the nodes."""
    tally = compare_files([CASES / "default-profile-mixed.jsonl", CASES / "noderesources.jsonl"])
    assert tally.cached_counts["cycles"] >= 100
    assert tally.cached_counts["by a ranking"] >= 40
    assert tally.cached_counts["with totals"] >= 5
    assert tally.cached_counts["in part evaluated"] >= 50
    again = {name for suite, name in tally.fields if suite == "noderesources, cached"}
    scores = {"scores.raw", "scores.normalized", "scores.weighted", "total"}
    assert again == {"choice", "error", "feasible", "filter", "fitError", *scores}


def test_the_cases_cover_every_plugin() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in FILES if file.suffix == ".jsonl")
    silent = {name for name in REGISTRY.names if f'"{name}":' not in text}
    assert silent <= WITHOUT_ANSWERS


# ---------------------------------------------------------------- what is tampered with is noticed


def renamed(entries: Json, old: str, new: str) -> None:
    entries[new] = entries.pop(old)


def pod_change(pod: str, change: Change) -> Change:
    return lambda content: change(answer(content, pod))


def answers_change(change: Change) -> Change:
    return lambda content: change(content["answers"])


def scores(plugin: str, node: str, **numbers: int) -> Change:
    return lambda expected: expected["scores"][plugin][node].update(numbers)


FIT, TAINTS = "noderesources", "nodeaffinity-taints-ports-images"

TAMPERED = [
    pytest.param(FIT, name, pod_change(pod, change), field, id=text)
    for name, pod, change, field, text in [
        ("most-allocated", "p1", scores("NodeResourcesFit", "a", raw=1), "scores.raw", "raw"),
        (
            "most-allocated",
            "p1",
            scores("NodeResourcesFit", "b", normalized=1),
            "scores.normalized",
            "normalized",
        ),
        ("most-allocated", "p2", scores("ImageLocality", "a", weighted=7), "scores.weighted", "w"),
        (
            "most-allocated",
            "p1",
            scores("ImageLocality", "a", more=7),
            "scores.more",
            "an extra number",
        ),
        (
            "most-allocated",
            "p1",
            lambda expected: renamed(expected["scores"]["NodeResourcesFit"], "a", "c"),
            "scores.raw",
            "a node's name in the scores",
        ),
        (
            "most-allocated",
            "p1",
            lambda expected: expected["scores"].pop("NodeResourcesFit"),
            "scores.raw",
            "a plugin's scores are missing",
        ),
        ("most-allocated", "p1", lambda w: w["total"].update(a=0), "total", "a total"),
        ("most-allocated", "p1", lambda w: w.update(best=["a", "b"]), "best", "the best"),
        ("most-allocated", "p1", lambda w: w.update(chosen="?"), "chosen", "the chosen one"),
        ("most-allocated", "p1", lambda w: w["preFilterSkip"].pop(0), "preFilterSkip", "a skip"),
        (
            "most-allocated",
            "p1",
            lambda w: w["preFilterSkip"].reverse(),
            "preFilterSkip",
            "the order of skips",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["filter"]["small"].update(code="Unschedulable"),
            "filter",
            "a code",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["filter"]["small"].update(plugin="NodePorts"),
            "filter",
            "the plugin that rejects",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["filter"]["small"].update(plugin="VolumeZone"),
            "filter",
            "the plugin that rejects, which is missing here",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["filterByPlugin"]["NodeResourcesFit"]["small"]["reasons"].append("x"),
            "filterByPlugin",
            "an extra reason",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["filterByPlugin"]["NodeResourcesFit"].pop("full"),
            "filterByPlugin",
            "a rejection is missing",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["filterByPlugin"].update(NodePorts={"big": {"code": "Unschedulable"}}),
            "filterByPlugin",
            "an extra rejection",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["feasible"].append("small"),
            "feasible",
            "an extra node",
        ),
        (
            "fit-too-little",
            "wants-9",
            lambda w: w.update(fitError=w["fitError"].replace("3", "2", 1)),
            "fitError",
            "the message",
        ),
        (
            "fit-too-little",
            "wants-9",
            lambda w: w.pop("fitError"),
            "fitError",
            "the message is missing",
        ),
        ("fit-too-little", "wants-3", lambda w: w.update(error="x"), "error", "an error"),
        ("fit-too-little", "wants-3", lambda w: w.update(pod="default/x"), "pod", "its name"),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w.update(reserve={"code": "Error", "plugin": "NodePorts"}),
            "reserve",
            "a failed Reserve",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w["preFilter"].pop("NodeName"),
            "preFilter",
            "a PreFilter is missing",
        ),
        (
            "fit-too-little",
            "wants-3",
            lambda w: w.update(preEnqueue={"SchedulingGates": {"code": "Error"}}),
            "preEnqueue",
            "a gate",
        ),
    ]
] + [
    pytest.param(suite, name, change, field, id=text)
    for suite, name, change, field, text in [
        (
            TAINTS,
            "node-affinity-fields",
            pod_change("ghost", lambda w: w["preFilterResult"]["nodeNames"].pop()),
            "preFilterResult",
            "narrowed nodes",
        ),
        (
            TAINTS,
            "node-affinity-fields",
            pod_change("one", lambda w: w["preFilter"]["NodeAffinity"].update(nodeNames=["a"])),
            "preFilter",
            "a plugin's nodes",
        ),
        (FIT, "most-allocated", answers_change(lambda a: a["pods"].pop()), "pods", "a missing pod"),
        (
            FIT,
            "most-allocated",
            answers_change(lambda a: a.update(configError="x")),
            "configError",
            "a refusal",
        ),
        (
            "configurations",
            "no-such-strategy",
            answers_change(lambda a: a.pop("configError")),
            "configError",
            "no refusal",
        ),
        (
            "gates-queue",
            "order",
            answers_change(lambda a: a["queueOrder"].reverse()),
            "queueOrder",
            "the order of the queue",
        ),
        (
            "gates-queue",
            "gates",
            answers_change(lambda a: a.pop("queueGated")),
            "queueGated",
            "a gated pod",
        ),
        (
            "hints",
            "pod-came",
            answers_change(lambda a: a["hints"].update(InterPodAffinity="QueueSkip")),
            "hints",
            "a hint",
        ),
        (
            "hints",
            "node-added-small",
            answers_change(lambda a: a["hints"].update(NodeResourcesFit="Queue")),
            "hints",
            "another result of a hint",
        ),
        (
            "hints",
            "node-added",
            answers_change(lambda a: a["hints"].pop("NodeName")),
            "hints",
            "a hint is missing",
        ),
        (
            "hints",
            "node-uncordoned",
            answers_change(lambda a: a["events"].pop()),
            "events",
            "a missing event",
        ),
        (
            "hints",
            "node-added",
            answers_change(lambda a: a["move"]["pending"].update(NodeName="backoffQ")),
            "move",
            "another queue",
        ),
        (
            "hints",
            "gates-gone",
            answers_change(lambda a: a.pop("gatedBy")),
            "gatedBy",
            "the gating plugin",
        ),
        (
            "hints",
            "nomination-given-up",
            answers_change(lambda a: a.update(preCheck=False)),
            "preCheck",
            "a pre-check",
        ),
    ]
]


@pytest.mark.parametrize(("suite", "name", "change", "field"), TAMPERED)
def test_a_changed_record_is_detected(suite: str, name: str, change: Change, field: str) -> None:
    changed = case(suite, name)
    assert not compared(changed).different
    change(changed)
    assert field in different_fields(compared(changed))


def test_a_changed_table_of_registered_events_is_detected(tmp_path: Path) -> None:
    table = json.loads((CASES / "hints-registered.json").read_bytes())
    table["default"]["registered"]["NodeAffinity"][0]["actions"].remove("Add")
    changed = tmp_path / "hints-registered.json"
    changed.write_text(json.dumps(table), encoding="utf-8")
    assert different_fields(compare_files([changed])) == {"registered"}


# ---------------------------------------------------------------- retries that upstream misses


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("missed-namespace-selector", "InterPodAffinity, namespaceSelector"),
        ("missed-namespace-selector-gone", "InterPodAffinity, namespaceSelector"),
        ("missed-ignored-resource", "NodeResourcesFit, ignored resources"),
        ("missed-ignored-group", "NodeResourcesFit, ignored resources"),
        ("missed-added-affinity", "NodeAffinity, addedAffinity"),
    ],
)
def test_a_retry_that_upstream_misses_is_an_intended_deviation(name: str, kind: str) -> None:
    tally = compared(case("hints", name))
    assert not tally.different
    assert tally.of("hints", "hints").deviating == {kind: 1}
    assert tally.of("hints", "move").deviating == {kind: 4}
    assert any(kind in line for line in report(tally, 0))


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        pytest.param("pod-came", "InterPodAffinity", id="a term without namespaceSelector"),
        pytest.param("node-grew", "NodeResourcesFit", id="no resource is ignored"),
        pytest.param("node-labelled", "NodeAffinity", id="no affinity is added"),
    ],
)
def test_any_other_missed_retry_is_a_difference(name: str, plugin: str) -> None:
    changed = case("hints", name)
    changed["answers"]["hints"][plugin] = "QueueSkip"
    tally = compared(changed)
    assert different_fields(tally) == {"hints"}
    assert not tally.of("hints", "hints").deviating


def test_ignoring_another_resource_excuses_no_difference() -> None:
    changed = case("hints", "missed-ignored-resource")
    del changed["pod"]["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"]
    tally = compared(changed)
    assert "hints" in different_fields(tally)


# ---------------------------------------------------------------- what is not understood


def test_an_unknown_answer_counts_as_different_and_is_named() -> None:
    changed = case(FIT, "most-allocated")
    answer(changed, "p1")["mood"] = "good"
    tally = compared(changed)
    assert different_fields(tally) == {"mood"}
    assert tally.not_understood == {"mood": "most-allocated default/p1"}


def test_an_unknown_list_of_objects_is_named_and_not_counted() -> None:
    changed = case(FIT, "most-allocated")
    changed["cluster"]["podGroups"] = []
    tally = compared(changed)
    assert not tally.different
    assert list(tally.not_understood) == ["cluster.podGroups"]


def test_an_unknown_suite_with_the_fields_of_another_one_is_compared() -> None:
    tally = compared({**case(FIT, "most-allocated"), "suite": "surprise"})
    assert tally.of("surprise", "scores.raw").compared > 0
    assert not tally.different


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b'{"id": "x"}',
        b'{"id": "x", "suite": "y"}',
        b'{"id": "x", "suite": "y", "pending": [{"spec": 3}], "answers": {}}',
        b'{"id": "x", "suite": "y", "pod": {}, "event": {"resource": "Moon"}, "answers": {}}',
        b'{"id": "x", "suite": "y", "pod": {}, "event": {}, "answers": {}}',
    ],
)
def test_no_line_of_a_file_stops_the_run(line: bytes) -> None:
    tally = Tally()
    compare_file_line(line, "file:1", tally)
    assert tally.different > 0


# ---------------------------------------------------------------- the command


def test_the_last_line_has_the_totals_and_agreement_exits_with_0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = CASES / "gates-queue.jsonl"
    assert main([str(file), "--processes", "1"]) == 0
    tally = compare_files([file])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"{tally.compared} answers compared, 0 differ"


def test_a_difference_exits_with_1_and_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = case(FIT, "most-allocated")
    answer(changed, "p1")["total"]["a"] = -1
    (tmp_path / "changed.jsonl").write_text(json.dumps(changed), encoding="utf-8")
    assert main([str(tmp_path), "--processes", "1"]) == 1
    message = capsys.readouterr().out
    assert "most-allocated default/p1 a: recorded " in message
    # One difference without cached results, and one per cycle with cached results.
    assert message.endswith(f" answers compared, {1 + TIMES} differ\n")


def test_two_processes_give_the_same_counts_as_one() -> None:
    files = [CASES / "interpodaffinity.jsonl", CASES / "hints.jsonl"]
    assert report(compare_files(files, processes=2), 9) == report(compare_files(files), 9)
