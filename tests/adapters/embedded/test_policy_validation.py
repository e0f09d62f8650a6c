"""What decides about other objects, and kube-apiserver v1.37 refuses, in its words."""

from typing import Any

import pytest

from bayplan.adapters.embedded.api_validation import problems


def texts(kind: str, **fields: Any) -> list[str]:
    version, _, word = kind.rpartition(" ")
    content = {"apiVersion": version, "kind": word, "metadata": {"name": "x"}, **fields}
    return [str(each).partition("; did you mean")[0] for each in problems(content)]


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"max": {"cpu": "2"}, "min": {"cpu": "1"}}, []),
        ({"min": {"cpu": "-1"}}, []),
        (
            {"default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
            [
                (
                    'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": '
                    "default request value 2 is greater than default limit value 1"
                )
            ],
        ),
        (
            {"max": {"cpu": "2"}, "min": {"cpu": "3"}},
            [
                (
                    'spec.limits[0].min[cpu]: Invalid value: "3": min value 3 is greater than '
                    "max value 2"
                ),
                (
                    'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": min value 3 is '
                    "greater than default request value 2"
                ),
                (
                    'spec.limits[0].default[cpu]: Invalid value: "3": min value 3 is greater than '
                    "default value 2"
                ),
            ],
        ),
        (
            {"min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            [
                (
                    'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": '
                    "ratio 3 is greater than max/min = 2.000000"
                )
            ],
        ),
        (
            {"default": {GPU: "2"}, "defaultRequest": {GPU: "1"}},
            [
                (
                    f'spec.limits[0].defaultRequest[{GPU}]: Invalid value: "1": '
                    f"default value 2 must equal to defaultRequest value 1 in {GPU}"
                )
            ],
        ),
        (
            {"type": "Pod", "default": {"cpu": "1"}},
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            {"type": "PersistentVolumeClaim"},
            [
                (
                    "spec.limits[0].limits: Required value: either minimum or maximum storage "
                    "value is required, but neither was provided"
                )
            ],
        ),
        (
            {"type": "Foo"},
            [
                (
                    'spec.limits[0].type: Invalid value: "Foo": '
                    "must be a standard limit type or fully qualified"
                )
            ],
        ),
    ],
)
def test_a_limit_range_must_not_contradict_itself(item: Any, expected: list[str]) -> None:
    spec = {"limits": [{"type": "Container", **item}]}
    assert texts("v1 LimitRange", spec=spec) == expected


def scoped(**one: Any) -> dict[str, Any]:
    return {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [one]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hard": {"count/pods": "1", "requests.nvidia.com/gpu": "1"}}, []),
        (
            {"hard": {"storage": "1"}},
            ['spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
        ),
        (
            {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
        (
            {"hard": {"pods": "1"}, "scopes": ["Terminating", "NotTerminating"]},
            ['spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes'],
        ),
        (
            scoped(scopeName="PriorityClass", operator="In"),
            [
                (
                    "spec.scopeSelector.matchExpressions.values: Required value: must be at least "
                    "one value when `operator` is 'In' or 'NotIn' for scope selector"
                )
            ],
        ),
        (scoped(scopeName="PriorityClass", operator="In", values=["a"]), []),
    ],
)
def test_a_quota_has_resources_and_scopes_that_exist(spec: Any, expected: list[str]) -> None:
    assert texts("v1 ResourceQuota", spec=spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"minAvailable": -1},
            ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"maxUnavailable": "150%"},
            ['spec.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
        ),
        (
            {"minAvailable": 1, "maxUnavailable": 1},
            [
                (
                    'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: '
                    "minAvailable and maxUnavailable cannot be both set"
                )
            ],
        ),
    ],
)
def test_a_budget_has_one_bound(spec: Any, expected: list[str]) -> None:
    assert texts("policy/v1 PodDisruptionBudget", spec=spec) == expected


def test_what_a_runtime_class_adds_to_pods_is_checked() -> None:
    scheduling = {"tolerations": [{"key": "a", "operator": "Foo"}]}
    [text] = texts("node.k8s.io/v1 RuntimeClass", handler="h", scheduling=scheduling)
    assert text.startswith('scheduling.tolerations[0].operator: Unsupported value: "Foo"')


def test_names_of_priority_classes_of_the_system_are_reserved() -> None:
    content = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    [problem] = problems({**content, "metadata": {"name": "system-mine"}})
    expected = "priority class names with 'system-' prefix are reserved for system use only"
    assert str(problem) == f"metadata.name: Forbidden: {expected}"
