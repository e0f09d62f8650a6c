"""Members are equal if only the nodes and the draws decide about them."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from bayplan.api.objects import OwnerReference
from bayplan.engine.podgroups.equal_members import are_equal
from bayplan.engine.podgroups.trial import TrialSetup
from bayplan.framework.types import QueuedPodInfo
from bayplan.state.pods import pod_info
from bayplan.testing import pod


def setup(
    *, is_observed: bool = False, reserved: tuple[str, ...] = (), reserve: tuple[object, ...] = ()
) -> TrialSetup:
    """The parts of an engine that determine equality."""
    calls = SimpleNamespace(reserve=reserve, unreserve=())
    profile = SimpleNamespace(calls=lambda _state, _pod: calls)  # pyright: ignore[reportUnknownLambdaType]
    reservations = SimpleNamespace(
        reserved_nodes=lambda _pod: frozenset(reserved),  # pyright: ignore[reportUnknownLambdaType]
        exclusive=SimpleNamespace(groups={}),
    )
    parts = SimpleNamespace(
        reservations=reservations,
        frameworks={"default-scheduler": profile},
        end=SimpleNamespace(is_observed=is_observed),
    )
    return cast("TrialSetup", parts)


def members(*fields: dict[str, Any]) -> list[QueuedPodInfo]:
    return [
        QueuedPodInfo(pod(f"m{number}", **each), 0.0, number) for number, each in enumerate(fields)
    ]


def test_pods_of_one_template_are_equal() -> None:
    assert are_equal(setup(), members({}, {}, {}))


@pytest.mark.parametrize(
    "different",
    [
        {"requests": {"cpu": "2"}},
        {"nominated_node": "n1"},
    ],
    ids=["another template", "a nomination"],
)
def test_a_different_member_makes_the_members_unequal(different: dict[str, Any]) -> None:
    assert not are_equal(setup(), members({}, {}, different))


def test_members_of_different_owners_are_unequal() -> None:
    own, other = members({}, {})
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="a", uid="a")
    metadata = replace(other.pod.metadata, owner_references=[owner])
    other.pod = pod_info(replace(other.pod.pod, metadata=metadata))
    assert other.pod.shape is own.pod.shape
    assert not are_equal(setup(), [own, other])


def test_members_are_unequal_if_more_than_the_nodes_decides() -> None:
    assert not are_equal(setup(is_observed=True), members({}, {}))
    assert not are_equal(setup(reserved=("n1",)), members({}, {}))
    assert not are_equal(setup(reserve=(object(),)), members({}, {}))
