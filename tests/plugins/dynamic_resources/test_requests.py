"""Requests as lists of alternatives, and the taints that they tolerate."""

from typing import Any

import pytest

from bayplan.api.device_objects import DeviceTaint
from bayplan.plugins.dynamic_resources.requests import Request, alternatives_of
from tests.plugins.devices_kit import as_claim, claim, exactly


def requests(content: Any) -> list[Request]:
    requests = as_claim(claim("c", content)).spec.devices.requests
    assert requests is not None
    return list(alternatives_of(requests[0]))


TAINT = DeviceTaint(key="broken", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "does"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "broken", "operator": "Exists"}, True),
        ({"key": "broken", "value": "yes"}, True),
        ({"key": "broken", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "broken", "value": "no"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "broken", "operator": "Perhaps"}, False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration: Any, does: bool) -> None:
    (result,) = requests(exactly("r", tolerations=[toleration]))
    assert result.tolerates_all_of((TAINT,)) is does


@pytest.mark.parametrize("effect", ["None", "Unknown"])
def test_a_taint_with_an_unknown_effect_rejects_nothing(effect: str) -> None:
    (request_list,) = requests(exactly("r"))
    assert request_list.tolerates_all_of((DeviceTaint(key="a", effect=effect),))
