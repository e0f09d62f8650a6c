"""Kinds of pod groups that a live scheduler follows."""

from bayplan.serving.group_kinds import offered_kinds


def test_a_server_without_pod_groups_has_none_to_follow() -> None:
    assert offered_kinds(lambda _: False) == ()


def test_each_api_group_is_followed_in_its_newest_version() -> None:
    assert offered_kinds(lambda kind: "/v1 " not in kind or ".ming." in kind) == (
        "scheduling.k8s.io/v1beta1 PodGroup",
        "scheduling.x-k8s.io/v1alpha1 PodGroup",
        "scheduling.ming.io/v1 PodGroup",
    )
