"""A pod's priority from its class."""

import pytest

from bayplan.adapters.priorities import NoPriorityClass, with_priority
from bayplan.api.objects import ObjectMeta, PriorityClass
from tests.adapters.manifests import Content, pod

HIGH = PriorityClass(metadata=ObjectMeta(name="high"), value=1000, preemption_policy="Never")
LOW = PriorityClass(metadata=ObjectMeta(name="low"), value=-5)


def default_class(name: str, value: int) -> PriorityClass:
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=True)


def filled(content: Content, *classes: PriorityClass) -> tuple[int, str, str | None]:
    """(priority, preemptionPolicy, class) of the pod."""
    spec = with_priority(content, classes)["spec"]
    return spec["priority"], spec["preemptionPolicy"], spec.get("priorityClassName")


def test_without_classes_a_pod_has_priority_0_and_may_preempt() -> None:
    assert filled(pod(), HIGH) == (0, "PreemptLowerPriority", None)


def test_a_class_gives_its_value_and_its_policy() -> None:
    assert filled(pod(priorityClassName="high"), LOW, HIGH) == (1000, "Never", "high")
    assert filled(pod(priorityClassName="low"), LOW, HIGH) == (-5, "PreemptLowerPriority", "low")


def test_the_classes_of_the_system_are_always_there() -> None:
    name = "system-node-critical"
    assert filled(pod(priorityClassName=name)) == (2_000_001_000, "PreemptLowerPriority", name)


def test_the_default_class_is_for_all_who_name_none() -> None:
    found = filled(pod(), default_class("b", 7), default_class("a", 3), HIGH)
    assert found == (3, "PreemptLowerPriority", "a")


def test_a_given_priority_is_kept() -> None:
    assert filled(pod(priority=5), default_class("a", 3)) == (5, "PreemptLowerPriority", None)
    assert filled(pod(priority=5, priorityClassName="gone"))[0] == 5
    assert filled(pod(priority=5, priorityClassName="high"), HIGH) == (5, "Never", "high")


def test_a_given_policy_is_kept() -> None:
    assert filled(pod(preemptionPolicy="Never"))[1] == "Never"


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(NoPriorityClass, match="no PriorityClass with name hihg was found"):
        with_priority(pod(priorityClassName="hihg"), [HIGH])
