"""The constraints of a pod: its own, or defaults for pods that an object selects.

PodTopologySpreadArgs: the defaults and the refused values.
"""

from typing import Any

import msgspec
import pytest

from bayplan.api.objects import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    ZONE_LABEL,
)
from bayplan.api.selectors import Selector, map_selector
from bayplan.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    Constraint,
    DefaultConstraint,
    PodTopologySpreadArgs,
    SpreadRules,
)
from bayplan.state.pods import PodInfo
from tests.plugins.spread_kit import NO_DEFAULTS, SpreadCluster, app_pod, constraint, rules

# ---- constraints ----------------------------------------------------------------------------


SYSTEM = PodTopologySpreadArgs()
#: One hard and one soft default.
LISTED = PodTopologySpreadArgs(
    defaulting_type="List",
    default_constraints=tuple(
        DefaultConstraint(max_skew=2, topology_key=ZONE_LABEL, when_unsatisfiable=action)
        for action in (HARD, SOFT)
    ),
)

# ---- own constraints -------------------------------------------------------------------------


def only(spread: dict[str, Any], **fields: Any) -> Constraint:
    """The one hard constraint of a pod."""
    (constraint,) = rules().hard(app_pod(spread=[spread], **fields)).constraints
    return constraint


def test_missing_fields_have_the_defaults_of_the_api() -> None:
    result = only(constraint())
    assert (result.max_skew, result.min_domains) == (1, 1)
    assert (result.honors_affinity, result.honors_taints) == (True, False)


def test_pods_of_one_shape_are_compiled_once() -> None:
    one, other = app_pod("one", spread=[constraint()]), app_pod("other", spread=[constraint()])
    assert rules().hard(one) is rules(SYSTEM).hard(other)


def test_only_pods_of_the_namespace_that_are_not_being_deleted_count() -> None:
    pods = only(constraint(), namespace="team").pods
    assert pods is not None
    assert pods.matches("team", {"app": "a"}, False)
    assert not pods.matches("default", {"app": "a"}, False)
    assert not pods.matches("team", {"app": "a"}, True)


@pytest.mark.parametrize(
    ("labels", "keys", "selected"),
    [
        pytest.param({"hash": "1"}, ["hash"], {"app": "a", "hash": "1"}, id="the pod has it"),
        pytest.param({"hash": "1"}, ["none"], {"app": "a"}, id="the pod lacks it"),
        pytest.param({}, ["hash"], {"app": "a"}, id="no labels"),
    ],
)
def test_match_label_keys_narrow_the_selector_to_the_pods_own_values(
    labels: dict[str, str], keys: list[str], selected: dict[str, str]
) -> None:
    result = only(constraint(matchLabelKeys=keys), labels=labels)
    assert result.selector == map_selector(selected)


def test_match_label_keys_that_the_api_server_merged_change_nothing() -> None:
    merged = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}
    result = only(constraint(labelSelector=merged, matchLabelKeys=["app"]))
    assert result.selector == map_selector({"app": "a"})


def test_a_missing_selector_matches_no_pod_even_with_match_label_keys() -> None:
    result = only(constraint(labelSelector=None, matchLabelKeys=["app"]))
    assert result.selector.nothing
    assert result.self_match_count == 0


BROKEN = {"matchExpressions": [{"key": "app", "operator": "Foo"}]}


def test_a_selector_that_does_not_parse_invalidates_the_constraints_of_its_kind() -> None:
    waiting = app_pod(spread=[constraint(), constraint(SOFT, SOFT, labelSelector=BROKEN)])
    assert rules().hard(waiting).error is None
    error = rules().soft(waiting).error
    assert error is not None
    assert error.startswith("obtaining pod's soft topology spread constraints: ")
    assert '"Foo" is not a valid label selector operator' in error


# ---- defaults --------------------------------------------------------------------------------

OWNED = ("apps/v1", "ReplicaSet", "web")


def selector_of(spread: SpreadRules, waiting: PodInfo) -> Selector | None:
    """The selector of the soft defaults; None if they do not apply."""
    selectors = {c.selector for c in spread.soft(waiting).constraints}
    assert len(selectors) <= 1
    return selectors.pop() if selectors else None


def test_without_services_and_owner_no_defaults_apply() -> None:
    spread = rules(SYSTEM)
    assert not spread.soft(app_pod()).constraints
    assert not spread.soft(app_pod(owner=OWNED)).constraints


def test_the_systems_defaults_are_all_soft() -> None:
    spread = rules(SYSTEM, SpreadCluster().put(SERVICE, "web", {"app": "a"}))
    assert len(spread.soft(app_pod()).constraints) == 2
    assert not spread.hard(app_pod()).constraints


def test_the_selectors_of_all_services_that_select_the_pod_are_merged() -> None:
    world = SpreadCluster().put(SERVICE, "one", {"app": "a"}).put(SERVICE, "two", {"tier": "x"})
    world.put(SERVICE, "not-mine", {"app": "b"}).put(SERVICE, "headless", None)
    world.put(SERVICE, "elsewhere", {"zone": "z"}, namespace="other")
    waiting = app_pod(labels={"app": "a", "tier": "x", "zone": "z"})
    expected = map_selector({"app": "a", "tier": "x"})
    assert selector_of(rules(SYSTEM, world), waiting) == expected


@pytest.mark.parametrize(
    ("kind", "owner", "selector"),
    [
        pytest.param(
            REPLICATION_CONTROLLER, ("v1", "ReplicationController", "web"), {"app": "a"}, id="rc"
        ),
        pytest.param(REPLICA_SET, OWNED, {"matchLabels": {"app": "a"}}, id="replica set"),
        pytest.param(
            STATEFUL_SET,
            ("apps/v1", "StatefulSet", "web"),
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
            id="stateful set",
        ),
    ],
)
def test_the_owners_selector_counts(kind: str, owner: Any, selector: Any) -> None:
    spread = rules(SYSTEM, SpreadCluster().put(kind, "web", selector))
    assert selector_of(spread, app_pod(owner=owner)) == map_selector({"app": "a"})
    assert selector_of(spread, app_pod()) is None, "the pod has no owner"
    assert selector_of(spread, app_pod(owner=owner, namespace="other")) is None


def test_selectors_of_services_and_of_the_owner_are_combined() -> None:
    world = SpreadCluster().put(SERVICE, "web", {"app": "a"})
    world.put(REPLICA_SET, "web", {"matchLabels": {"hash": "1"}})
    expected = map_selector({"app": "a", "hash": "1"})
    assert selector_of(rules(SYSTEM, world), app_pod(owner=OWNED)) == expected


def test_an_owner_of_another_kind_is_ignored() -> None:
    world = SpreadCluster().put(REPLICA_SET, "web", {"matchLabels": {"app": "a"}})
    assert selector_of(rules(SYSTEM, world), app_pod(owner=("batch/v1", "Job", "web"))) is None


def test_an_owner_whose_selector_does_not_parse_is_ignored() -> None:
    world = SpreadCluster().put(SERVICE, "web", {"app": "a"}).put(REPLICA_SET, "web", BROKEN)
    assert selector_of(rules(SYSTEM, world), app_pod(owner=OWNED)) == map_selector({"app": "a"})


def test_empty_selectors_mean_no_defaults() -> None:
    world = SpreadCluster().put(SERVICE, "all", {}).put(REPLICA_SET, "web", {})
    assert selector_of(rules(SYSTEM, world), app_pod(owner=OWNED)) is None


def test_defaults_follow_the_services_as_they_change() -> None:
    world = SpreadCluster()
    spread = rules(SYSTEM, world)
    waiting = app_pod(labels={"app": "a", "tier": "x"}, owner=OWNED)
    assert selector_of(spread, waiting) is None
    world.put(SERVICE, "web", {"app": "a"})
    assert selector_of(spread, waiting) == map_selector({"app": "a"})
    world.put(SERVICE, "web", {"tier": "x"})
    assert selector_of(spread, waiting) == map_selector({"tier": "x"})
    world.put(REPLICA_SET, "web", {"matchLabels": {"app": "a"}})
    assert selector_of(spread, waiting) == map_selector({"app": "a", "tier": "x"})
    world.kinds[SERVICE].objects.clear()
    assert selector_of(spread, waiting) == map_selector({"app": "a"})


def test_defaults_are_computed_once_while_nothing_changes() -> None:
    spread = rules(LISTED, SpreadCluster().put(SERVICE, "web", {"app": "a"}))
    assert spread.soft(app_pod("one")) is spread.soft(app_pod("other"))


def test_only_the_systems_defaults_allow_a_missing_label() -> None:
    bare, own = app_pod(), app_pod(spread=[constraint()])
    assert not rules(SYSTEM).requires_all_topologies(bare)
    assert rules(SYSTEM).requires_all_topologies(own)
    assert rules(LISTED).requires_all_topologies(bare)
    assert [rules(args).has_defaults for args in (SYSTEM, LISTED, NO_DEFAULTS)] == [
        True,
        True,
        False,
    ]


# ---- args -----------------------------------------------------------------------------------


def decoded(**content: Any) -> PodTopologySpreadArgs:
    return msgspec.convert(content, PodTopologySpreadArgs)


def default_constraint(
    *, key: str = "rack", action: str = "DoNotSchedule", **fields: Any
) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, **fields}


def problems(*constraints: dict[str, Any], defaulting: str | None = "List") -> list[str]:
    """The paths."""
    args = decoded(defaultConstraints=list(constraints), defaultingType=defaulting)
    return [path for path, _ in args.problems()]


def test_an_empty_list_means_no_defaults() -> None:
    args = decoded(defaultingType="List")
    assert not args.constraints()
    assert not args.is_system_defaulting
    assert not list(args.problems())


def test_a_list_may_hold_each_pair_of_key_and_action_once() -> None:
    assert not problems(
        default_constraint(),
        default_constraint(action="ScheduleAnyway"),
        default_constraint(key="a.b/c"),
    )
    assert problems(default_constraint(), default_constraint(key="zone"), default_constraint()) == [
        "defaultConstraints[2]"
    ]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        pytest.param(default_constraint(maxSkew=0), "maxSkew", id="a skew of zero"),
        pytest.param(default_constraint(maxSkew=-1), "maxSkew", id="negative skew"),
        pytest.param(default_constraint(maxSkew=2**31), "maxSkew", id="more than the API holds"),
        pytest.param(default_constraint(key=""), "topologyKey", id="no key"),
        pytest.param(default_constraint(key="not a key"), "topologyKey", id="an invalid label key"),
        pytest.param(default_constraint(action=""), "whenUnsatisfiable", id="no action"),
        pytest.param(default_constraint(action="Maybe"), "whenUnsatisfiable", id="unknown action"),
        pytest.param(
            default_constraint(labelSelector={}), "labelSelector", id="selector of its own"
        ),
    ],
)
def test_each_constraint_is_checked(bad: dict[str, Any], field: str) -> None:
    assert problems(default_constraint(key="fine"), bad) == [f"defaultConstraints[1].{field}"]


@pytest.mark.parametrize(
    ("defaulting", "constraints"),
    [
        pytest.param("Sometimes", [], id="unknown type"),
        pytest.param("System", [default_constraint()], id="both the system's and a list"),
        pytest.param(None, [default_constraint()], id="a list without the type List"),
    ],
)
def test_the_type_must_agree_with_the_list(
    defaulting: str | None, constraints: list[dict[str, Any]]
) -> None:
    assert problems(*constraints, defaulting=defaulting) == ["defaultingType"]


def test_problems_name_the_value_and_the_expected_value() -> None:
    args = decoded(defaultingType="List", defaultConstraints=[default_constraint(maxSkew=0)])
    assert list(args.problems()) == [
        ("defaultConstraints[0].maxSkew", "0; wanted 1 to 2147483647"),
    ]


@pytest.mark.parametrize("unknown", [{"skew": 1}, {"defaultConstraints": [{"skew": 1}]}])
def test_unknown_fields_are_refused(unknown: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="skew"):
        decoded(**unknown)
