"""The invariants detect planted faults and accept valid states."""

from collections import Counter

from tests.live.invariants import broken
from tests.live.kubelet import ready_node
from tests.live.mirror import Object
from tests.live.world import small_pod


def placed(name: str, cpu: str = "1", on: str = "n1") -> Object:
    content = small_pod(name, cpu=cpu, spec={"nodeName": on})
    content["metadata"]["uid"] = f"uid-{name}"
    return content


def test_a_valid_state_is_accepted() -> None:
    bindings = Counter({("a", 201): 1, ("b", 201): 1, ("b", 409): 3})
    pods = [placed("a"), placed("b", "500m")]
    assert broken([ready_node("n1", cpu="1500m")], pods, bindings, {"uid-a": {"n1"}}) == []


def test_an_overfull_node_is_named() -> None:
    pods = [placed("a"), placed("b", "501m")]
    result = broken([ready_node("n1", cpu="1500m", pods=1)], pods, {}, {})
    assert result == ["node n1 has 1500 cpu and 1501 taken", "node n1 has 1 pods and 2 taken"]


def test_a_pod_bound_twice_is_named() -> None:
    assert broken([], [], {("a", 201): 2}, {}) == ["pod a was bound 2 times"]


def test_a_pod_that_changed_its_node_is_named() -> None:
    result = broken([], [placed("a")], {}, {"uid-a": {"n1", "n2"}})
    assert result == ["pod a moved: ['n1', 'n2']"]
