"""Disruption budgets."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from bayplan.api.disruption_objects import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from bayplan.api.objects import decode
from bayplan.plugins.default_preemption.budgets import Budgets
from bayplan.testing import pod
from tests.plugins.preemption_kit import budget

WEB = {"app": "web"}
PODS = [pod(name, labels=WEB) for name in "abc"]


def violated(*budgets: dict[str, Any], pods: Sequence[Any] = PODS) -> list[bool]:
    budget_objects = [
        cast(PodDisruptionBudget, decode(POD_DISRUPTION_BUDGET, each)) for each in budgets
    ]
    return Budgets(budget_objects).violated_by(pods)


def test_the_most_important_pods_use_a_budget_up_first() -> None:
    assert violated(budget("b", WEB, 2)) == [False, False, True]


def test_a_terminating_pod_does_not_use_a_budget() -> None:
    assert violated(budget("b", WEB, 1, "a")) == [False, False, True]


def test_a_pod_violates_if_any_budget_is_used_up_and_uses_no_further_budget() -> None:
    assert violated(budget("b1", WEB, 0), budget("b2", WEB, 0)) == [True, True, True]
    assert violated(budget("b1", WEB, 3), budget("b2", WEB, 1)) == [False, True, True]


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(None, id="no selector"),
        pytest.param({}, id="an empty selector"),
        pytest.param({"matchLabels": {"app": "db"}}, id="another selector"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "Unheard"}]}, id="an invalid selector"
        ),
    ],
)
def test_other_selectors_protect_no_pod(selector: dict[str, Any] | None) -> None:
    new_budget = budget("b", WEB, 0)
    new_budget["spec"]["selector"] = selector
    assert violated(new_budget) == [False, False, False]


def test_pods_of_other_namespaces_and_pods_without_labels_are_not_protected() -> None:
    pods = [pod("a", labels=WEB, namespace="other"), pod("b")]
    everybody = budget("b", WEB, 0)
    everybody["spec"]["selector"] = {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
    assert violated(everybody, pods=pods) == [False, False]
