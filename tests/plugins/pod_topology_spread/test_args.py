"""PodTopologySpreadArgs: the defaults, and what is refused."""

from typing import Any

import msgspec
import pytest

from bayplan.api.objects import HOSTNAME_LABEL, ZONE_LABEL
from bayplan.plugins.pod_topology_spread.args import PodTopologySpreadArgs


def decoded(**content: Any) -> PodTopologySpreadArgs:
    return msgspec.convert(content, PodTopologySpreadArgs)


def given(*, key: str = "rack", action: str = "DoNotSchedule", **rest: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, **rest}


def problems(*constraints: dict[str, Any], defaulting: str | None = "List") -> list[str]:
    """The paths."""
    args = decoded(defaultConstraints=list(constraints), defaultingType=defaulting)
    return [path for path, _ in args.problems()]


@pytest.mark.parametrize("content", [{}, {"defaultingType": "System"}, {"defaultingType": None}])
def test_without_a_list_the_systems_constraints_hold(content: dict[str, Any]) -> None:
    args = decoded(**content)
    found = [(c.topology_key, c.max_skew, c.when_unsatisfiable) for c in args.constraints()]
    assert found == [(HOSTNAME_LABEL, 3, "ScheduleAnyway"), (ZONE_LABEL, 5, "ScheduleAnyway")]
    assert args.is_system_defaulting
    assert not list(args.problems())


def test_an_empty_list_means_no_defaults() -> None:
    args = decoded(defaultingType="List")
    assert not args.constraints()
    assert not args.is_system_defaulting
    assert not list(args.problems())


def test_a_list_may_hold_each_pair_of_key_and_action_once() -> None:
    assert not problems(given(), given(action="ScheduleAnyway"), given(key="a.b/c"))
    assert problems(given(), given(key="zone"), given()) == ["defaultConstraints[2]"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        pytest.param(given(maxSkew=0), "maxSkew", id="no skew at all"),
        pytest.param(given(maxSkew=-1), "maxSkew", id="negative skew"),
        pytest.param(given(maxSkew=2**31), "maxSkew", id="more than the API holds"),
        pytest.param(given(key=""), "topologyKey", id="no key"),
        pytest.param(given(key="not a key"), "topologyKey", id="no label key"),
        pytest.param(given(action=""), "whenUnsatisfiable", id="no action"),
        pytest.param(given(action="Maybe"), "whenUnsatisfiable", id="unknown action"),
        pytest.param(given(labelSelector={}), "labelSelector", id="selector of its own"),
    ],
)
def test_each_constraint_is_checked(bad: dict[str, Any], field: str) -> None:
    assert problems(given(key="fine"), bad) == [f"defaultConstraints[1].{field}"]


@pytest.mark.parametrize(
    ("defaulting", "constraints"),
    [
        pytest.param("Sometimes", [], id="unknown type"),
        pytest.param("System", [given()], id="both the system's and a list"),
        pytest.param(None, [given()], id="a list without saying so"),
    ],
)
def test_the_type_must_go_with_the_list(
    defaulting: str | None, constraints: list[dict[str, Any]]
) -> None:
    assert problems(*constraints, defaulting=defaulting) == ["defaultingType"]


def test_problems_say_what_was_found_and_what_is_wanted() -> None:
    args = decoded(defaultingType="List", defaultConstraints=[given(maxSkew=0)])
    assert list(args.problems()) == [
        ("defaultConstraints[0].maxSkew", "0; wanted 1 to 2147483647"),
    ]


@pytest.mark.parametrize("unknown", [{"skew": 1}, {"defaultConstraints": [{"skew": 1}]}])
def test_unknown_fields_are_refused(unknown: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="skew"):
        decoded(**unknown)
