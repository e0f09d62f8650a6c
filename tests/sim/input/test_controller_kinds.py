"""Invalid controllers are reported before their pods are created."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.sim.input.controller_kinds import PODS_MAX, is_controller
from bayplan.sim.input.controller_validation import controller_problems
from tests.kit.manifests import container, node, pod
from tests.sim.manifests import controller, template

KINDS = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"]


def paths(kind: str, **spec: Any) -> list[str]:
    return [problem.path for problem in controller_problems(controller(kind, **spec))]


@pytest.mark.parametrize("kind", KINDS)
def test_valid_controllers_are_accepted(kind: str) -> None:
    assert is_controller(controller(kind))
    assert paths(kind, replicas=3, parallelism=2, completions=5) == []


def test_other_kinds_are_not_controllers() -> None:
    assert not any(map(is_controller, (pod(), node(), controller("CronJob"))))


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Deployment", {"replicas": -1}, "spec.replicas"),
        ("Deployment", {"replicas": PODS_MAX + 1}, "spec.replicas"),
        ("Deployment", {"replicas": "3"}, "spec.replicas"),
        ("Deployment", {"template": None}, "spec.template.spec"),
        ("Deployment", {"template": {"metadata": {}}}, "spec.template.spec"),
        ("Deployment", {"template": "x"}, "spec.template"),
        ("Deployment", {"selector": ["app"]}, "spec.selector"),
        (
            "Deployment",
            {"selector": {"matchExpressions": [{"key": "app", "operator": "in"}]}},
            "spec.selector.matchExpressions[0].operator",
        ),
        (
            "StatefulSet",
            {"selector": {"matchLabels": {"app": "other"}}},
            "spec.template.metadata.labels",
        ),
        ("StatefulSet", {"ordinals": {"start": -1}}, "spec.ordinals.start"),
        (
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": 5}]},
            "spec.volumeClaimTemplates[0].metadata",
        ),
        ("Job", {"parallelism": -1}, "spec.parallelism"),
        ("Job", {"completions": -1}, "spec.completions"),
        ("Job", {"completionMode": "indexed"}, "spec.completionMode"),
        (
            "DaemonSet",
            {"template": template(containers=[container("1x")])},
            "spec.template.spec.containers[0].resources.requests.cpu",
        ),
        (
            "ReplicaSet",
            {"template": template(labels={"app": "a b"})},
            "spec.template.metadata.labels",
        ),
    ],
)
def test_invalid_controllers_are_refused_with_the_path(
    kind: str, spec: dict[str, Any], path: str
) -> None:
    assert paths(kind, **spec) == [path]


def rolling(**fields: Any) -> dict[str, Any]:
    return {"rollingUpdate": fields}


@pytest.mark.parametrize(
    ("kind", "spec", "text"),
    [
        (
            "Deployment",
            {"template": template(restartPolicy="Never")},
            (
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"'
            ),
        ),
        (
            "Job",
            {"template": template(restartPolicy="Always")},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        (
            "DaemonSet",
            {"template": template(activeDeadlineSeconds=5)},
            (
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                "DaemonSet is not Supported"
            ),
        ),
        (
            "Deployment",
            {"selector": {}},
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            "ReplicationController",
            {"selector": {"app": "other"}},
            (
                'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not '
                "match template `labels`"
            ),
        ),
        (
            "Deployment",
            {"strategy": rolling(maxSurge=0, maxUnavailable="0%")},
            (
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 '
                "when `maxSurge` is 0"
            ),
        ),
        (
            "Deployment",
            {"strategy": {"type": "Recreate", **rolling(maxSurge=1)}},
            (
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` "
                "is 'Recreate'"
            ),
        ),
        (
            "Deployment",
            {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
            "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
        ),
        (
            "StatefulSet",
            {"updateStrategy": rolling(maxUnavailable=0)},
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
        ),
        (
            "StatefulSet",
            {"podManagementPolicy": "Ordered"},
            (
                "spec.podManagementPolicy: Invalid value: \"Ordered\": must be 'OrderedReady' or "
                "'Parallel'"
            ),
        ),
        (
            "DaemonSet",
            {"updateStrategy": rolling(maxSurge=1)},
            (
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when "
                "maxUnavailable is non-zero"
            ),
        ),
        (
            "Job",
            {"backoffLimitPerIndex": 1},
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            "Job",
            {"completionMode": "Indexed", "parallelism": 2},
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            "Job",
            {"selector": {"matchLabels": {"a": ""}}},
            'spec.selector: Invalid value: {"matchLabels":{"a":""}}: `selector` not auto-generated',
        ),
    ],
)
def test_the_words_are_those_of_the_api_server(kind: str, spec: dict[str, Any], text: str) -> None:
    assert [str(each) for each in controller_problems(controller(kind, **spec))] == [text]


def test_a_stored_controller_is_not_checked_again() -> None:
    content = controller("Deployment", template=template(restartPolicy="Never"))
    assert controller_problems(content, is_new=False) == []


VALUES = (
    st.none()
    | st.integers()
    | st.text()
    | st.lists(st.none())
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
)


@given(
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(["replicas", "template", "selector", "ordinals", "completions"]), VALUES
    ),
)
def test_an_invalid_controller_is_a_problem_and_not_an_exception(
    kind: str, spec: dict[str, Any]
) -> None:
    for problem in controller_problems(controller(kind, **spec)):
        assert problem.actual
