"""Templates as kubectl has them."""

from typing import Any

import pytest

from bayplan.answers.json_path import JsonPath
from bayplan.problems import BadInputError

DOCUMENT: dict[str, Any] = {
    "kind": "Fit",
    "pods": [{"pod": "a", "node": "n1", "count": 3}, {"pod": "b", "count": 7}],
    "placements": {"x/y": "n1"},
    "is": True,
    "none": None,
}
FIELDS = {*DOCUMENT, "pod", "node", "count"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.kind}", "Fit"),
        (".kind", "Fit"),
        ("kind", "Fit"),
        ("{$.kind}", "Fit"),
        ("{.pods[*].pod}", "a b"),
        ("{.pods[0].pod}-{.pods[-1].pod}", "a-b"),
        ("{.pods[-1:].pod}", "b"),
        ("{.pods[0:2:2].pod}", "a"),
        ("{.pods[5].pod}", ""),
        ("{.pods[?(@.count>5)].pod}", "b"),
        ('{.pods[?(@.pod=="a")].count}', "3"),
        ("{.pods[?(@.pod!='a')].count}", "7"),
        ("{.pods[?(@.node)].pod}", "a"),
        ("{..pod}", "a b"),
        ("{.placements}", '{"x/y":"n1"}'),
        ("{.placements['x/y']}", "n1"),
        ("{.placements.*}", "n1"),
        ("{.is} {.none}", "true null"),
        ('{range .pods[*]}{.pod}{"\\t"}{.node}{"\\n"}{end}', "a\tn1\nb\t\n"),
        ("{range .pods[*]}{range .pod}<{.}>{end}{end}", "<a><b>"),
        ("{range .pods[5:]}x{end}y", "y"),
        ("pods: {.pods[*].pod}!", "pods: a b!"),
    ],
)
def test_a_template_is_filled_in(template: str, text: str) -> None:
    assert JsonPath(template).text(DOCUMENT, FIELDS) == text


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{.foo}", "there is no field foo; the fields are is, kind, none, placements, pods"),
        ("{.pods[*].nod}", "there is no field nod; the fields are count, node, pod"),
        ("{.pods[?(@.nod==1)]}", "there is no field nod; the fields are count, node, pod"),
        ("{.kind.foo}", ""),
        ("{.kind[0]}", "[0]: the value is no list"),
    ],
)
def test_an_unknown_field_is_refused_with_the_fields_that_exist(
    template: str, problem: str
) -> None:
    path = JsonPath(template)
    if not problem:
        problem = "there is no field foo: the value is no object"
    with pytest.raises(BadInputError) as refusal:
        path.text(DOCUMENT, FIELDS)
    assert str(refusal.value) == f"-o jsonpath: {problem}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("", "found no template"),
        ("{.pods", "found a brace without its partner"),
        ("a}", "found a brace without its partner"),
        ("{end}", "found {end} without {range …}"),
        ("{range .pods[*]}{.pod}", "found {range …} without {end}"),
        ("{.pods[0,1]}", "found '[0,1]', wanted a field"),
        ("{.pods[::0]}", "found a slice with the step 0"),
        ("{.pods[?(@.pod==a)]}", "found 'a', wanted a number or a text between quotes"),
        ("{..}", "wanted a field"),
    ],
)
def test_a_wrong_template_is_refused_before_it_is_used(template: str, problem: str) -> None:
    with pytest.raises(BadInputError, match="an example: ") as refusal:
        JsonPath(template)
    assert problem in str(refusal.value)
