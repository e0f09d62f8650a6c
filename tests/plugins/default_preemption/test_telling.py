"""What is told to one victim. In which order they are told: test_eviction.py, test_awaited.py."""

from typing import Any

import pytest

from bayplan.plugins.default_preemption.telling import is_preempted
from bayplan.testing import node, pod
from tests.plugins.preemption_kit import scene

HIGH = pod("p", cpu=3, priority=9)


def test_what_is_said_already_is_not_said_again() -> None:
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    said = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status: dict[str, Any] = {"conditions": [{**said, "message": message}]}
    over = scene(node("n1", cpu=3), pod("v", cpu=3, node="n1", status=status))
    over.attempt(HIGH)
    port = over.perform()
    assert port.patches == [] and port.deleted == ["default/v"]


@pytest.mark.parametrize(
    ("terminating", "reason", "expected"),
    [
        (True, "PreemptionByScheduler", True),
        (True, "EvictionByEvictionAPI", False),
        (False, "PreemptionByScheduler", False),
    ],
)
def test_only_pods_that_go_for_a_preemption_count(
    terminating: bool, reason: str, expected: bool
) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    found = pod("v", terminating=terminating, status={"conditions": [condition]})
    assert is_preempted(found) is expected
