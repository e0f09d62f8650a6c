"""The vocabulary of cluster events, and the events that a registration covers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.framework.events import (
    ALL,
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_ASSIGNED_POD_UPDATE,
    EVENT_FORCE_ACTIVATE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD,
    EVENT_UNSCHEDULED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_UPDATE,
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    default_events,
    resource_of_kind,
)

ADD, DELETE = ActionType.ADD, ActionType.DELETE
LABEL, TAINT = ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT

# ---- actions and resources -----------------------------------------------------------------


def test_the_first_bits_are_in_upstreams_order() -> None:
    assert [(int(bit), str(bit)) for bit in ActionType][:13] == [
        (1, "Add"),
        (2, "Delete"),
        (4, "UpdateNodeAllocatable"),
        (8, "UpdateNodeLabel"),
        (16, "UpdateNodeTaint"),
        (32, "UpdateNodeCondition"),
        (64, "UpdateNodeAnnotation"),
        (128, "UpdatePodLabel"),
        (256, "UpdatePodScaleDown"),
        (512, "UpdatePodToleration"),
        (1024, "UpdatePodSchedulingGatesEliminated"),
        (2048, "UpdatePodGeneratedResourceClaim"),
        (4096, "Update"),
    ]


def test_newer_bits_are_appended_and_all_covers_them() -> None:
    assert [str(bit) for bit in ActionType][13:] == [
        "UpdateNodeDeclaredFeature",
        "UpdateNodePreemptionPolicy",
        "UpdatePodScaleUp",
    ]
    assert sum(ActionType) == ALL == UPDATE + ADD + DELETE
    assert not UPDATE & (ADD | DELETE)


@pytest.mark.parametrize(
    ("action", "spelling"),
    [(UPDATE, "Update"), (ALL, "All"), (ADD | DELETE, "Add|Delete"), (ADD | LABEL, None)],
)
def test_actions_compose_and_print(action: ActionType, spelling: str | None) -> None:
    assert str(action) == (spelling or "Add|UpdateNodeLabel")


@pytest.mark.parametrize(
    ("resource", "value"),
    [
        (EventResource.POD, "Pod"),
        (EventResource.NODE, "Node"),
        (EventResource.PERSISTENT_VOLUME_CLAIM, "PersistentVolumeClaim"),
        (EventResource.CSI_NODE, "storage.k8s.io/CSINode"),
        (EventResource.DEVICE_CLASS, "resource.k8s.io/DeviceClass"),
        (EventResource.POD_GROUP, "scheduling.k8s.io/PodGroup"),
        (EventResource.WILDCARD, "*"),
    ],
)
def test_resources_have_their_group(resource: EventResource, value: str) -> None:
    assert resource == value


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("v1 Node", EventResource.NODE),
        ("storage.k8s.io/v1 CSINode", EventResource.CSI_NODE),
        ("resource.k8s.io/v1 ResourceSlice", EventResource.RESOURCE_SLICE),
        ("example.com/v1alpha1 Quota", "example.com/Quota"),
    ],
)
def test_a_kinds_resource_is_its_group_and_name(kind: str, resource: str) -> None:
    assert resource_of_kind(kind) == resource


# ---- labels --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (EVENT_ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (EVENT_ASSIGNED_POD_UPDATE, "AssignedPodUpdate"),
        (EVENT_ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (EVENT_UNSCHEDULED_POD_ADD, "UnscheduledPodAdd"),
        (EVENT_UNSCHEDULED_POD_UPDATE, "UnscheduledPodUpdate"),
        (EVENT_UNSCHEDULED_POD_DELETE, "UnscheduledPodDelete"),
        (EVENT_UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (EVENT_FORCE_ACTIVATE, "ForceActivate"),
        (ClusterEvent(EventResource.STORAGE_CLASS, ADD), "storage.k8s.io/StorageClassAdd"),
        (ClusterEvent(EventResource.NODE, TAINT), "NodeUpdateNodeTaint"),
    ],
)
def test_labels(event: ClusterEvent, label: str) -> None:
    assert event.label == label


def test_only_moves_without_a_reason_are_wildcards() -> None:
    assert EVENT_UNSCHEDULABLE_TIMEOUT.is_wildcard
    assert EVENT_FORCE_ACTIVATE.is_wildcard
    assert not ClusterEvent(EventResource.WILDCARD, ADD).is_wildcard
    assert not ClusterEvent(EventResource.NODE, ALL).is_wildcard


# ---- matching ------------------------------------------------------------------------------

NODE, POD, ANY = EventResource.NODE, EventResource.POD, EventResource.WILDCARD


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        pytest.param((NODE, UPDATE), (NODE, LABEL), True, id="any update covers a specific one"),
        pytest.param(
            (NODE, TAINT), (NODE, LABEL), False, id="a specific update does not cover another one"
        ),
        pytest.param(
            (NODE, ADD | TAINT), (NODE, TAINT), True, id="one of several actions covers it"
        ),
        pytest.param(
            (NODE, LABEL),
            (NODE, UPDATE),
            False,
            id="a specific update does not cover a general one",
        ),
        pytest.param((NODE, ALL), (NODE, UPDATE), True, id="all actions cover it"),
        pytest.param((POD, DELETE), ("AssignedPod", DELETE), True, id="Pod covers assigned pods"),
        pytest.param((POD, ADD), ("UnscheduledPod", ADD), True, id="Pod covers unscheduled pods"),
        pytest.param((POD, UPDATE), ("TargetPod", UPDATE), True, id="Pod covers the target pod"),
        pytest.param(
            ("TargetPod", UPDATE),
            ("AssignedPod", UPDATE),
            False,
            id="the target pod does not cover assigned pods",
        ),
        pytest.param(
            ("TargetPod", UPDATE),
            ("TargetPod", ActionType.UPDATE_POD_OTHER),
            True,
            id="every update covers another pod update",
        ),
        pytest.param(
            ("TargetPod", ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_OTHER),
            ("TargetPod", ActionType.UPDATE_POD_OTHER),
            False,
            id="specific updates do not cover another pod update",
        ),
        pytest.param((ANY, ADD), (NODE, ADD), True, id="the wildcard resource covers any resource"),
        pytest.param(
            (ANY, ADD),
            (NODE, DELETE),
            False,
            id="the wildcard resource does not cover another action",
        ),
        pytest.param((ANY, ALL), (NODE, LABEL), True, id="the wildcard covers everything"),
        pytest.param((NODE, ALL), (ANY, ALL), False, id="only a wildcard covers the wildcard"),
        pytest.param((ANY, ALL), (ANY, ALL), True, id="the wildcard covers the wildcard"),
        pytest.param(
            (ANY, UPDATE),
            (ANY, ALL),
            False,
            id="the wildcard resource alone does not cover the wildcard",
        ),
        pytest.param((NODE, ADD), (NODE, TAINT), False, id="Add does not cover taints"),
        pytest.param(
            ("example.com/Quota", UPDATE),
            ("example.com/Quota", UPDATE),
            True,
            id="custom resources",
        ),
    ],
)
def test_which_events_a_registration_covers(
    registered: tuple[str, ActionType], incoming: tuple[str, ActionType], matches: bool
) -> None:
    assert ClusterEvent(*registered).match(ClusterEvent(*incoming)) is matches


@given(st.integers(1, int(ALL)), st.sampled_from([*ActionType, UPDATE]))
def test_a_registration_matches_an_action_that_it_shares_a_bit_with_or_covers(
    bits: int, incoming: ActionType
) -> None:
    """Upstream's rule as numbers. Upstream has no "other pod update"; it prints as Update here."""
    if incoming is ActionType.UPDATE_POD_OTHER:
        incoming = UPDATE
    registered = ActionType(bits)
    covers_updates = registered & UPDATE == UPDATE
    expected = covers_updates if incoming == UPDATE else bool(registered & incoming)
    assert ClusterEvent(NODE, registered).match(ClusterEvent(NODE, incoming)) is expected


# ---- what plugins register -----------------------------------------------------------------


def test_a_plugin_that_registers_no_events_waits_for_all_events() -> None:
    registered = [entry.event for entry in default_events()]
    assert all(entry.hint is None for entry in default_events())
    for resource in EventResource:
        if resource is not EventResource.WILDCARD:
            incoming = ClusterEvent(resource, DELETE)
            assert sum(event.match(incoming) for event in registered) == 1, resource


def test_a_plugin_that_registers_no_events_waits_for_its_declared_kinds_too() -> None:
    kinds = ("v1 Node", "example.com/v1 Quota")
    registered = [entry.event for entry in default_events(kinds)]
    for resource in (NODE, "example.com/Quota"):
        assert sum(event.match(ClusterEvent(resource, DELETE)) for event in registered) == 1


def test_a_registration_without_a_hint_has_none() -> None:
    assert ClusterEventWithHint(EVENT_ASSIGNED_POD_ADD).hint is None
