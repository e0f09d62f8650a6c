"""Problems: one line each, with a suggestion for a misspelled name."""

import pytest

from bayplan.problems import Problem, joined, listed, nearest, shown, suggestion, wrong


def test_a_problem_is_one_line() -> None:
    assert str(Problem("a.b", "3", "wanted 4")) == "a.b: 3; wanted 4"
    assert str(Problem("a.b", "missing")) == "a.b: missing"
    assert str(Problem("", "no documents")) == "no documents"


@pytest.mark.parametrize(
    ("path", "inner", "whole"),
    [("a", "b", "a.b"), ("a", "[0].b", "a[0].b"), ("", "b", "b"), ("a", "", "a")],
)
def test_paths_are_joined(path: str, inner: str, whole: str) -> None:
    assert joined(path, inner) == whole
    assert Problem(inner, "x").under(path).path == whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        (True, "true"),
        (1.5, "1.5"),
        (None, "null"),
        ("", '""'),
        (b"bytes", "b'bytes'"),
        ("two\nlines", '"two\\nlines"'),
        ({"a": 1}, "a mapping"),
        ((1,), "a list"),
        ("ä" * 100, '"' + "ä" * 59 + "…"),
    ],
)
def test_values_are_printed_as_they_are_written(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NodeResourceFit", "NodeResourcesFit"),
        ("noderesourcesfit", "NodeResourcesFit"),
        ("Coscheduling", None),
        ("", None),
    ],
)
def test_only_a_similar_name_is_suggested(name: str, meant: str | None) -> None:
    assert nearest(name, ["NodeResourcesFit", "SchedulingGates", "NodeName"]) == meant


_NODES = [f"ip-10-0-{i}.eu-west-1.compute.internal" for i in ("2-10", "2-101", "52-206", "7-3")]
_KEYS = ["kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"]


@pytest.mark.parametrize(
    ("name", "names", "meant"),
    [
        ("ip-10-0-52-206", _NODES, _NODES[2]),
        ("ip-10-0-2-10", _NODES, _NODES[0]),
        ("ip-10-0-52-207", _NODES, _NODES[2]),
        ("zoned", _KEYS, _KEYS[2]),
        ("zone", _KEYS, _KEYS[2]),
        ("topology.k8s.io/zone", _KEYS, _KEYS[2]),
        (
            "Deployment shop/web",
            ["Deployment default/web", "Job batch/x"],
            "Deployment default/web",
        ),
        ("spec.minMember", ["spec.size", "status.phase"], None),
        ("ReadWriteOnc", ["ReadWriteOncePod", "ReadWriteOnce", "ReadOnlyMany"], "ReadWriteOnce"),
    ],
)
def test_a_part_that_people_remember_suggests_the_whole_name(
    name: str, names: list[str], meant: str | None
) -> None:
    assert nearest(name, names) == meant


def test_a_beginning_of_several_names_lists_these() -> None:
    assert suggestion("default/web-3", ["default/web-5", "shop/web-3"]) == (
        'did you mean "shop/web-3"?'
    )
    assert suggestion("a/web", ["shop/web", "b/web", "a/webs"]) == 'wanted "b/web" or "shop/web"'
    assert suggestion("ip-1", [*_NODES[:2], "other"]) == f'wanted "{_NODES[0]}" or "{_NODES[1]}"'
    assert suggestion("cpu", ["cpu-1", "cpu-3", "gpu-1"]) == 'wanted "cpu-1" or "cpu-3"'


def test_a_suggestion_lists_a_few_names_but_not_many() -> None:
    assert suggestion("agregate", ["aggregate", "over"]) == 'did you mean "aggregate"?'
    assert suggestion("x", ["b", "a"]) == 'wanted "a" or "b"'
    assert suggestion("x", [f"name{i}" for i in range(20)]) == ""
    assert suggestion("x", []) == ""


def test_names_are_listed_in_order() -> None:
    assert listed(["c", "a", "b"]) == '"a", "b" or "c"'
    assert listed(["a"]) == '"a"'


def test_a_problem_has_path_value_and_expectation() -> None:
    problem = wrong("spec.priority", "high", "a number")
    assert str(problem) == 'spec.priority: found "high", wanted a number'
    assert str(wrong("", None, "an object")) == "found nothing, wanted an object"


def test_a_misspelling_gets_the_nearest_name() -> None:
    verbs = ("create", "patch", "delete")
    problem = wrong("spec.events[0]", "crate", "a verb", verbs)
    expected = 'spec.events[0]: found "crate", wanted a verb; did you mean "create"?'
    assert str(problem) == expected
    assert nearest("zzz", verbs) is None
    assert nearest("nosechdule", ("NoSchedule", "NoExecute")) == "NoSchedule"
