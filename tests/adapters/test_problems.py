"""The words of a refusal."""

from typing import Any

import pytest

from bayplan.adapters.problems import (
    Problem,
    join,
    nearest,
    of_decoding,
    shown,
    unknown_name,
    wrong,
)
from bayplan.api.objects import DecodeError, decode
from tests.adapters.manifests import pod


def test_a_problem_says_where_what_was_found_and_what_was_wanted() -> None:
    problem = wrong("spec.priority", "high", "a number")
    assert str(problem) == 'spec.priority: found "high", wanted a number'
    assert str(wrong("", None, "an object")) == "found nothing, wanted an object"


def test_a_misspelling_gets_the_nearest_name() -> None:
    known = ("create", "patch", "delete")
    problem = unknown_name("spec.events[0]", "crate", "a verb", known)
    expected = 'spec.events[0]: found "crate", wanted a verb; did you mean "create"?'
    assert str(problem) == expected
    assert nearest("zzz", known) is None
    assert nearest("nosechdule", ("NoSchedule", "NoExecute")) == "NoSchedule"


def test_seen_from_outside_the_path_is_longer() -> None:
    assert Problem("spec", "x").under("spec.template").path == "spec.template.spec"
    assert [join("", "a"), join("a", ""), join("a", "b"), join("a", "[1].b")] == [
        "a",
        "a",
        "a.b",
        "a[1].b",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1x", '"1x"'),
        (None, "nothing"),
        ("", "nothing"),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": 1}, "a mapping"),
        (("a",), "a list"),
        ("two\nlines", '"two\\nlines"'),
        ("x" * 100, '"' + "x" * 56 + "..."),
        (b"bytes", "b'bytes'"),
    ],
)
def test_values_are_shown_short_and_on_one_line(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            pod(priority="high"),
            'spec.priority: found "high", wanted a whole number',
        ),
        (
            pod(containers={"name": "c"}),
            "spec.containers: found a mapping, wanted a list",
        ),
        (
            pod(tolerations=[{"operator": 7}]),
            "spec.tolerations[0].operator: found 7, wanted a string",
        ),
        (
            pod(labels={"app": "a", "team": 1}),
            "metadata.labels.team: found 1, wanted a string",
        ),
    ],
)
def test_a_wrong_type_is_told_in_the_same_words(content: Any, text: str) -> None:
    with pytest.raises(DecodeError) as failure:
        decode("v1 Pod", content)
    assert str(of_decoding(failure.value, content)) == text


def test_a_quantity_of_a_wrong_type_is_named_by_its_resource() -> None:
    asked = {"memory": "1Gi", "cpu": ["1"]}
    content = pod(containers=[{"name": "c", "resources": {"requests": asked}}])
    with pytest.raises(DecodeError) as failure:
        decode("v1 Pod", content)
    problem = of_decoding(failure.value, content)
    assert problem.path == "spec.containers[0].resources.requests.cpu"
    assert problem.text.startswith("found a list, wanted a")


def test_a_message_without_a_place_is_passed_on() -> None:
    assert str(of_decoding(DecodeError("v1 Pod: too deep"), {})) == "too deep"
