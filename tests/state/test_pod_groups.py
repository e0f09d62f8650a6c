"""Which pods count as members, and how many there are."""

from typing import Any

import msgspec
import pytest

from bayplan.api.objects import Pod, decode
from bayplan.api.pod_groups import COSCHEDULING_LABEL, KINDS, GroupKey, PodGroup
from bayplan.state.pod_groups import GroupState, PodGroups
from bayplan.state.pods import pod_info
from bayplan.testing import api_pod

KIND = "scheduling.x-k8s.io/v1alpha1 PodGroup"
KEY = GroupKey("scheduling.x-k8s.io", "default", "g")


def _groups() -> PodGroups:
    return PodGroups(lambda name: name == "bayplan")


def _group(min_member: int = 3, **status: Any) -> PodGroup:
    spec = {"minMember": min_member}
    content = {"metadata": {"name": "g", "namespace": "default"}, "spec": spec, "status": status}
    return KINDS[KIND].compile(KIND, decode(KIND, content))


def _member(name: str, **options: Any) -> Pod:
    options.setdefault("scheduler_name", "bayplan")
    return api_pod(name, labels={COSCHEDULING_LABEL: "g"}, **options)


def _with(pod: Pod, **metadata: Any) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **metadata))


def _phase(pod: Pod, phase: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase))


def _state(groups: PodGroups) -> GroupState:
    result = groups.get(KEY)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("pod", "counts"),
    [
        pytest.param(_member("a"), True, id="waits for a node"),
        pytest.param(_member("a", node="n1"), True, id="bound"),
        pytest.param(_phase(_member("a", node="n1"), "Running"), True, id="running"),
        pytest.param(_phase(_member("a", node="n1"), "Succeeded"), False, id="succeeded"),
        pytest.param(_phase(_member("a", node="n1"), "Failed"), False, id="failed"),
        pytest.param(
            _with(_member("a"), deletion_timestamp="2026-01-01T00:00:00Z"), False, id="deleting"
        ),
        pytest.param(_member("a", gates=["later"]), False, id="gated"),
        pytest.param(_member("a", scheduler_name="other"), False, id="another scheduler's"),
        pytest.param(_member("a", namespace="other"), False, id="another namespace's"),
    ],
)
def test_one_function_decides_which_pods_count(pod: Pod, counts: bool) -> None:
    groups = _groups()
    groups.put(_group())
    groups.put_pod(pod)
    assert _state(groups).here_count == int(counts)


def test_a_group_is_complete_when_its_object_and_enough_members_exist() -> None:
    groups = _groups()
    for name in "ab":
        groups.put_pod(_member(name))
    assert not _state(groups).is_complete
    groups.put(_group(min_member=3))
    assert not _state(groups).is_complete
    groups.put(_group(min_member=2))
    assert _state(groups).is_complete
    groups.remove(KEY)
    assert not _state(groups).is_complete


def test_a_member_counts_on_its_node_once_and_as_soon_as_it_is_assumed() -> None:
    groups = _groups()
    groups.put(_group(min_member=1))
    pod = _member("a")
    groups.put_pod(pod)
    groups.assume(pod_info(pod).on_node("n1"))
    state = _state(groups)
    assert (state.assigned_count, state.bound_count, state.here_count) == (1, 0, 1)
    assert state.is_met
    assert state.pending() == []
    groups.put_pod(_member("a", node="n1"))
    assert (state.assigned_count, state.bound_count, state.here_count) == (1, 1, 1)


def test_a_forgotten_member_waits_again() -> None:
    groups = _groups()
    groups.put(_group(min_member=1))
    pod = _member("a")
    groups.put_pod(pod)
    placed = pod_info(pod).on_node("n1")
    groups.assume(placed)
    groups.forget(placed)
    assert not _state(groups).is_met
    assert _state(groups).pending() == [pod]


def test_the_status_counts_members_that_ended_earlier() -> None:
    groups = _groups()
    groups.put(_group(succeeded=2, failed=1))
    groups.put_pod(_phase(_member("a", node="n1"), "Succeeded"))
    state = _state(groups)
    assert (state.succeeded_count, state.failed_count) == (3, 1)
    groups.put(_group(succeeded=3, failed=1))
    assert (state.succeeded_count, state.failed_count) == (3, 1)


def test_a_pod_that_changes_its_label_leaves_the_group() -> None:
    groups = _groups()
    groups.put(_group())
    groups.put_pod(_member("a"))
    left = groups.put_pod(api_pod("a", scheduler_name="bayplan"))
    assert [state.key for state in left] == [KEY]
    assert _state(groups).here_count == 0


def test_a_group_without_object_and_members_is_dropped() -> None:
    groups = _groups()
    pod = _member("a")
    groups.put_pod(pod)
    groups.put(_group())
    groups.remove(KEY)
    groups.remove_pod(pod.metadata.uid or "")
    assert groups.get(KEY) is None
    assert list(groups.all()) == []


def test_a_pod_whose_group_is_unknown_is_a_member_of_an_empty_group() -> None:
    result = _groups().of(pod_info(_member("a")))
    assert result is not None
    assert (result.key, result.group, result.is_complete) == (KEY, None, False)
    assert _groups().of(pod_info(api_pod("b"))) is None
