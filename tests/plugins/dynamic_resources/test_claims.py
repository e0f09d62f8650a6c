"""A pod's claims are looked up by name, and their owner is checked."""

from typing import Any

import pytest

from bayplan.framework.status import Code, Status
from bayplan.plugins.dynamic_resources.filtering import claims_of
from bayplan.state.pods import PodInfo
from bayplan.testing import pod
from tests.plugins.devices_kit import claim, exactly, sample

BY_NAME = {"name": "g", "resourceClaimName": "c"}
BY_TEMPLATE = {"name": "g", "resourceClaimTemplateName": "t"}
MADE = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "c"}]}


def asking(*named: dict[str, str], **options: Any) -> PodInfo:
    return pod("p", spec={"resourceClaims": list(named)}, **options)


def owned(uid: str = "uid-default/p") -> dict[str, Any]:
    the_claim = claim("c", exactly())
    owner = {"kind": "Pod", "name": "p", "uid": uid, "controller": True}
    the_claim["metadata"]["ownerReferences"] = [owner]
    return the_claim


def names_of_claims(pod: PodInfo, *contents: dict[str, Any]) -> list[str] | str:
    """Names of the claims, or the reason."""
    answer = claims_of(pod, sample(*contents).devices.resource_claims)
    if not isinstance(answer, Status):
        return [each.metadata.name for each in answer]
    assert answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return answer.message


def test_a_claim_that_is_not_needed_is_left_out() -> None:
    status = {"resourceClaimStatuses": [{"name": "g"}]}
    assert names_of_claims(asking(BY_TEMPLATE, status=status)) == []


DELETED = {**claim("c"), "metadata": {**claim("c")["metadata"], "deletionTimestamp": "x"}}


@pytest.mark.parametrize(
    ("pod", "contents", "message"),
    [
        (asking(BY_NAME), (), 'could not find ResourceClaim "default/c"'),
        (asking(BY_NAME), (DELETED,), 'resourceclaim "c" is being deleted'),
        (asking(BY_TEMPLATE), (owned(),), 'pod "default/p": ResourceClaim not created yet'),
        (
            asking(BY_TEMPLATE, status=MADE),
            (owned(uid="another"),),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        (
            asking({"name": "g"}),
            (),
            'pod "default/p", spec.resourceClaim "g": none of the supported fields are set',
        ),
    ],
)
def test_the_reason_of_a_waiting_pod_is_upstreams(
    pod: PodInfo, contents: tuple[dict[str, Any], ...], message: str
) -> None:
    assert names_of_claims(pod, *contents) == message
