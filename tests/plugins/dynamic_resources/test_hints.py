"""Which changes are worth another attempt. The recorded suite of kube-scheduler says more."""

from typing import Any

import pytest

from bayplan.api.device_objects import RESOURCE_CLAIM
from bayplan.framework.events import ActionType, ClusterEvent, EventResource
from bayplan.plugins.dynamic_resources.hints import events
from bayplan.testing import pod
from tests.plugins.devices_kit import allocated, as_claim, claim, exactly, sample

WAITING = pod("p", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "mine"}]})
MINE, OTHER = claim("mine", exactly()), claim("other", exactly())
HAS_X = allocated(("n1", "x"))


def hint(old: Any, new: Any, *there: Any) -> str:
    """``there``: claims as they are after the change."""
    registered = events(sample(*there).devices.resource_claims)
    changed = ClusterEvent(RESOURCE_CLAIM, ActionType.ADD)
    (ask,) = [each.hint for each in registered if each.event.match(changed)]
    assert ask is not None
    both = [None if each is None else as_claim(each) for each in (old, new)]
    return str(ask(WAITING, *both))


@pytest.mark.parametrize(
    ("old", "new", "there", "said"),
    [
        (None, MINE, (MINE,), "Queue"),
        (None, OTHER, (MINE, OTHER), "QueueSkip"),
        (MINE, MINE, (MINE,), "QueueSkip"),
        (MINE, {**MINE, "status": HAS_X}, (MINE,), "Queue"),
        ({**OTHER, "status": HAS_X}, OTHER, (MINE, OTHER), "Queue"),
        ({**OTHER, "status": HAS_X}, OTHER, (OTHER,), "QueueSkip"),
        (OTHER, None, (MINE,), "QueueSkip"),
        ({**OTHER, "status": HAS_X}, None, (MINE,), "Queue"),
    ],
)
def test_a_claim_that_changes_is_worth_a_try_if_it_is_ones_own_or_frees_devices(
    old: Any, new: Any, there: tuple[Any, ...], said: str
) -> None:
    assert hint(old, new, *there) == said


def test_a_pod_is_tried_when_all_its_claims_are_there() -> None:
    own = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    for there, said in (((), "QueueSkip"), ((MINE,), "Queue")):
        registered = events(sample(*there).devices.resource_claims)
        (ask,) = [each.hint for each in registered if each.event.match(own)]
        assert ask is not None
        assert str(ask(WAITING, WAITING, WAITING)) == said
