"""All problems of a value, and the decoded struct."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from bayplan.config.decoding import decode, path_within


class Needy(Struct, frozen=True, kw_only=True, rename="camel"):
    topology_key: str
    mode: Literal["sum", "mean"]


class Inner(Struct, frozen=True, kw_only=True, rename="camel"):
    some_name: str = ""
    share: float = 0.5


class Outer(Struct, frozen=True, kw_only=True, rename="camel"):
    count: Annotated[int, Meta(ge=1, le=100)] = 7
    wide: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    flag: bool = False
    kind: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"
    key: Annotated[str, Meta(min_length=1)] = "k"
    wait: Annotated[str, Meta(pattern="^[0-9]+s$", description="seconds such as 5s")] = "1s"
    data: bytes = b""
    inner: Inner | None = None
    parts: tuple[Inner, ...] = ()
    names: list[str] = []
    gates: dict[str, bool] = {}
    either: int | str = 0
    free: Any = None


def complaints(value: Any, kind: type[Struct] = Outer) -> list[str]:
    return [str(problem) for problem in decode(value, kind, "args")[1]]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"coun": 1}, 'args.coun: unknown field; did you mean "count"?'),
        ({"count": "1"}, 'args.count: "1"; wanted an integer'),
        ({"count": True}, "args.count: true; wanted an integer"),
        ({"count": 1.0}, "args.count: 1.0; wanted an integer"),
        ({"count": 0}, "args.count: 0; wanted an integer from 1 to 100"),
        ({"count": 101}, "args.count: 101; wanted an integer from 1 to 100"),
        ({"wide": -1}, "args.wide: -1; wanted an integer of 0 or more"),
        ({"wide": 2**63}, f"args.wide: {2**63}; wanted an integer of {2**63 - 1} or less"),
        ({"flag": 1}, "args.flag: 1; wanted true or false"),
        ({"key": 5}, "args.key: 5; wanted a string"),
        ({"key": ""}, 'args.key: ""; wanted a string that is not empty'),
        ({"wait": "5"}, 'args.wait: "5"; wanted seconds such as 5s'),
        ({"data": "%"}, 'args.data: "%"; wanted a base64 string'),
        ({"inner": []}, "args.inner: a list; wanted a mapping"),
        ({"inner": {"some_name": "x"}}, 'args.inner.some_name: unknown field; did you mean "some'),
        ({"inner": {"share": "x"}}, 'args.inner.share: "x"; wanted a number'),
        ({"parts": {}}, "args.parts: a mapping; wanted a list"),
        ({"parts": [{}, {"someName": 1}]}, "args.parts[1].someName: 1; wanted a string"),
        ({"parts": [None]}, "args.parts[0]: null; wanted a mapping"),
        ({"names": ["a", 2]}, "args.names[1]: 2; wanted a string"),
        ({"gates": {"a": "x"}}, 'args.gates.a: "x"; wanted true or false'),
        ({"gates": []}, "args.gates: a list; wanted a mapping"),
        ({"either": 1.5}, "args.either: 1.5; wanted an integer"),
        ([], "args: a list; wanted a mapping"),
    ],
)
def test_an_invalid_value_is_reported_with_its_path(value: Any, complaint: str) -> None:
    [problem] = complaints(value)
    assert problem.startswith(complaint)


def test_an_invalid_choice_is_reported_with_all_choices_and_the_nearest() -> None:
    [complaint] = complaints({"kind": "MostAlocated"})
    assert complaint == (
        'args.kind: "MostAlocated"; wanted "LeastAllocated" or "MostAllocated"; '
        'did you mean "MostAllocated"?'
    )


def test_an_optional_field_may_be_null() -> None:
    assert decode({"inner": None}, Outer, "") == (Outer(), [])


def test_a_problem_that_only_msgspec_detects_is_reported() -> None:
    class Dated(Struct, rename="camel"):
        started: dict[str, tuple[int, str]] = {}

    decoded, [problem] = decode({"started": {"a": [1]}}, Dated, "args")
    assert decoded is None
    assert problem.path.startswith("args.started")
    assert "length" in problem.actual


@given(st.builds(Inner, some_name=st.text(), share=st.floats(allow_nan=False)))
def test_a_valid_value_is_decoded_as_by_msgspec(inner: Inner) -> None:
    outer = Outer(inner=inner, parts=(inner,), either="x", names=["a"], free={"x": [1]})
    assert decode(msgspec.to_builtins(outer), Outer, "") == (outer, [])


def test_a_path_leads_to_the_part_itself_and_not_to_an_equal_one() -> None:
    part = {"type": "x"}
    whole = Outer(parts=(Inner(),), free={"scorer": {"args": part}, "other": [dict(part)]})
    assert path_within(whole, part) == "free.scorer.args"
    assert path_within(whole, whole.parts[0]) == "parts[0]"
    assert path_within(part, part) == ""
    assert path_within(whole, dict(part)) is None


def test_a_missing_required_field_gives_no_value() -> None:
    decoded, problems = decode({"topologyKey": 1}, Needy, "args")
    assert decoded is None
    assert [str(problem) for problem in problems] == [
        "args.topologyKey: 1; wanted a string",
        'args.mode: missing; wanted "mean" or "sum"',
    ]
