"""Additional kinds of pod groups by configuration."""

from typing import Any

import pytest

from bayplan.api.pod_groups import BUILT_IN_KINDS, KINDS, GroupKey
from bayplan.config import config_from
from bayplan.config.pod_group_kinds import group_kinds

ROW = {
    "group": "batch.example.com",
    "version": "v1",
    "kind": "Gang",
    "label": "example.com/gang",
}


def config(*rows: dict[str, Any]) -> Any:
    return config_from(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "podGroups": {"kinds": list(rows)},
        }
    )


def test_a_row_adds_a_kind_and_a_label() -> None:
    kinds = group_kinds(config(ROW).spec.pod_groups.kinds)
    assert set(kinds) == {*KINDS, "batch.example.com/v1 Gang"}
    key = kinds.membership("default", {"example.com/gang": "g"}, None)
    assert key == GroupKey("batch.example.com", "default", "g")
    assert BUILT_IN_KINDS.membership("default", {"example.com/gang": "g"}, None) is None


def test_a_row_may_replace_the_label_of_a_built_in_kind() -> None:
    row = {"group": "scheduling.x-k8s.io", "version": "v1alpha1", "label": "example.com/gang"}
    kinds = group_kinds(config(row).spec.pod_groups.kinds)
    assert set(kinds) == set(KINDS)
    key = kinds.membership("default", {"example.com/gang": "g"}, None)
    assert key == GroupKey("scheduling.x-k8s.io", "default", "g")
    old = {"scheduling.x-k8s.io/pod-group": "g"}
    assert kinds.membership("default", old, None) is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"group": "scheduling.k8s.io"}, "wanted another API group"),
        ({"group": ""}, "wanted an API group"),
        ({"group": "No Group"}, "wanted an API group"),
        ({"version": "1"}, "wanted a version"),
        ({"kind": "gang"}, "wanted a kind"),
        ({"label": ""}, "wanted the label"),
        ({"label": "a/b/c"}, "wanted the label"),
        ({"group": "scheduling.ming.io"}, "wanted PodGroup: an API group has one kind"),
    ],
)
def test_an_invalid_row_is_refused(change: dict[str, str], text: str) -> None:
    assert text in " ".join(map(str, config({**ROW, **change}).problems))


def test_a_repeated_row_is_refused() -> None:
    (problem,) = config(ROW, ROW).problems
    assert "podGroups.kinds[0] is the same" in str(problem)
