"""Parameters are filled in before the run starts."""

from typing import Any

import pytest
from msgspec import convert

from bayplan.perf.parameters import filled_in, seconds
from bayplan.perf.schema import OPERATIONS, CreatePods
from tests.perf.kit import Value, op


def filled(params: Value, *operations: Value) -> list[Any]:
    made: Any = [convert(one, OPERATIONS[one["opcode"]]) for one in operations]
    result, problems = filled_in(made, params, "w")
    assert not problems
    return result


def refused(params: Value, *operations: Value) -> list[str]:
    made: Any = [convert(one, OPERATIONS[one["opcode"]]) for one in operations]
    return [str(problem) for problem in filled_in(made, params, "w")[1]]


@pytest.mark.parametrize(
    ("opcode", "fields"),
    [
        ("createNodes", {}),
        ("createNamespaces", {"prefix": "a"}),
        ("createPods", {}),
        ("createAny", {"templatePath": "a"}),
        ("updateAny", {"templatePath": "a"}),
        ("createPodGroups", {"namespace": "a", "templatePath": "a"}),
    ],
)
def test_counts_can_be_parameters(opcode: str, fields: Value) -> None:
    (result,) = filled({"n": 7}, op(opcode, countParam="$n", **fields))
    assert result.count == 7


def test_a_count_may_be_multiplied() -> None:
    pods = op("createPods", countParam="$groups", countMultiplierParam="$each")
    assert filled({"groups": 3, "each": 4}, pods)[0].count == 12


def test_without_a_count_one_object_is_created() -> None:
    any_op, update = op("createAny", templatePath="a"), op("updateAny", templatePath="a")
    assert [one.count for one in filled({}, any_op, update)] == [1, 1]


def test_steady_state_and_duration_can_be_parameters() -> None:
    pods = op("createPods", steadyStateParam="$steady", durationParam="$time", count=1)
    (result,) = filled({"steady": True, "time": "1m30s"}, pods)
    assert (result.steady_state, seconds(result.duration)) == (True, 90.0)
    assert filled({"time": "2s"}, op("sleep", durationParam="$time"))[0].duration == "2s"


def test_sets_of_pods_are_unrolled() -> None:
    sets = op(
        "createPodSets",
        countParam="$sets",
        namespacePrefix="ns",
        createPodsOp={"opcode": "createPods", "countParam": "$pods"},
    )
    operations = filled({"sets": 2, "pods": 5}, sets)
    assert all(isinstance(one, CreatePods) for one in operations)
    assert [(one.namespace, one.count) for one in operations] == [("ns-0", 5), ("ns-1", 5)]


def test_template_values_are_read_as_go_reads_json() -> None:
    templates = {"a": "$n", "b": 2, "c": "$x|[1, two]", "d": "$y|", "e": "text", "f": True}
    (operation,) = filled({"n": 5}, op("createNodes", templateParams=templates))
    values = operation.template_params
    assert values == {"a": 5.0, "b": 2.0, "c": [1.0, "two"], "d": None, "e": "text", "f": True}
    assert isinstance(values["a"], float)


@pytest.mark.parametrize(
    ("params", "operation", "message"),
    [
        (
            {"pods": 1},
            op("createPods", countParam="$pod"),
            'w.params: no "pod"; did you mean "pods"?',
        ),
        ({}, op("createNodes", templateParams={"a": "$b"}), 'w.params: no "b"; there are '),
        (
            {"n": "5"},
            op("createPods", countParam="$n"),
            'w.params.n: "5"; wanted a whole number',
        ),
        ({"n": True}, op("createPods", countParam="$n"), "w.params.n: true; wanted a whole number"),
        ({"n": -1}, op("createPods", countParam="$n"), "w.params.n: -1; wanted 0 or more"),
        (
            {"s": 1},
            op("createPods", steadyStateParam="$s"),
            "w.params.s: 1; wanted true or false",
        ),
        (
            {"t": "soon"},
            op("sleep", durationParam="$t"),
            'w.params.t: found "soon"; wanted a duration such as',
        ),
        (
            {},
            op("createPods", collectMetrics=True, skipWaitToCompletion=True),
            "createPods: found collectMetrics with skipWaitToCompletion",
        ),
        (
            {},
            op("createPods", steadyState=True, duration="1s", skipWaitToCompletion=True),
            "createPods: found steadyState with skipWaitToCompletion",
        ),
        ({}, op("createPods", steadyState=True), "createPods.duration: found no time"),
        (
            {},
            op("createPods", persistentVolumeTemplatePath="a"),
            "createPods: found one of persistentVolumeTemplatePath",
        ),
        (
            {},
            op("churn", mode="recreate", templatePaths=["a"]),
            "churn.number: found 0; wanted more to recreate",
        ),
        ({"unused": 1}, op("barrier"), "w.params.unused: no operation uses it"),
        (
            {},
            op("createNodes", templateParams={"a": "$b|[1"}),
            "templateParams: $b|[1: ",
        ),
    ],
)
def test_invalid_parameters_are_reported(params: Value, operation: Value, message: str) -> None:
    assert refused(params, operation)[0].startswith(message)
