"""Group objects of every kind become the same PodGroup."""

from typing import Any

import pytest

from bayplan.api.objects import decode
from bayplan.api.pod_groups import (
    BUILT_IN_KINDS,
    KINDS,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    GroupKey,
    PodGroup,
)

UPSTREAM = [kind for kind in KINDS if kind.startswith("scheduling.k8s.io/")]
COSCHEDULING = [kind for kind in KINDS if kind not in UPSTREAM]


def _group(kind: str, spec: dict[str, Any], **meta: Any) -> PodGroup:
    content = {"metadata": {"name": "job", "namespace": "ml", **meta}, "spec": spec}
    return KINDS[kind].compile(kind, decode(kind, content))


def test_all_kinds_that_users_have_are_in_the_table() -> None:
    assert sorted(kind.partition(" ")[0] for kind in KINDS) == [
        "scheduling.k8s.io/v1",
        "scheduling.k8s.io/v1alpha2",
        "scheduling.k8s.io/v1alpha3",
        "scheduling.k8s.io/v1beta1",
        "scheduling.ming.io/v1",
        "scheduling.x-k8s.io/v1alpha1",
    ]


@pytest.mark.parametrize("kind", COSCHEDULING)
def test_a_group_of_the_coscheduling_kinds_has_all_its_fields(kind: str) -> None:
    spec = {"minMember": 3, "minResources": {"cpu": "6"}, "scheduleTimeoutSeconds": 10}
    group = _group(kind, spec, annotations={REQUIRED_TOPOLOGY: "rack", PREFERRED_TOPOLOGY: "row"})
    assert group.key == GroupKey(kind.partition("/")[0], "ml", "job")
    assert str(group.key) == "ml/job"
    assert (group.min_member, group.min_resources) == (3, {"cpu": "6"})
    assert group.schedule_timeout_seconds == 10
    assert (group.required_topology, group.preferred_topologies) == ("rack", ("row",))
    assert not group.is_upstream


@pytest.mark.parametrize("kind", COSCHEDULING)
@pytest.mark.parametrize("spec", [{}, {"minMember": 0}, {"minMember": None}])
def test_a_missing_minimum_is_one(kind: str, spec: dict[str, Any]) -> None:
    assert _group(kind, spec).min_member == 1


@pytest.mark.parametrize("kind", UPSTREAM)
def test_upstreams_gang_policy_gives_the_minimum(kind: str) -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 4}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "priority": 7,
    }
    group = _group(kind, spec)
    assert group.key == GroupKey("scheduling.k8s.io", "ml", "job")
    assert (group.min_member, group.required_topology, group.priority) == (4, "rack", 7)
    assert group.is_upstream


@pytest.mark.parametrize("kind", UPSTREAM)
def test_upstreams_basic_policy_has_no_minimum(kind: str) -> None:
    assert _group(kind, {"schedulingPolicy": {"basic": {}}}).min_member == 1


@pytest.mark.parametrize(
    ("labels", "name", "expected"),
    [
        pytest.param(None, None, None, id="a lone pod"),
        pytest.param({"app": "web"}, None, None, id="other labels"),
        pytest.param(
            {"scheduling.x-k8s.io/pod-group": "g"}, None, "scheduling.x-k8s.io", id="x-k8s"
        ),
        pytest.param({"pod-group.scheduling.ming.io": "g"}, None, "scheduling.ming.io", id="ming"),
        pytest.param({}, "g", "scheduling.k8s.io", id="upstream"),
        pytest.param(
            {"scheduling.x-k8s.io/pod-group": "old"},
            "g",
            "scheduling.k8s.io",
            id="a field overrides a label",
        ),
        pytest.param({"scheduling.x-k8s.io/pod-group": ""}, None, None, id="an empty label"),
    ],
)
def test_a_pod_names_its_group(
    labels: dict[str, str] | None, name: str | None, expected: str | None
) -> None:
    result = BUILT_IN_KINDS.membership("ml", labels, name)
    assert result == (None if expected is None else GroupKey(expected, "ml", "g"))
