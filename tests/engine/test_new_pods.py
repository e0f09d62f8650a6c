"""Many new pods added at once have the same effect as one by one."""

from typing import Any

from bayplan.api.objects import Pod
from bayplan.engine.cache_check import differences
from bayplan.testing import api_pod, node
from tests.engine.kit import Engine, waiting_pod


def new_pods() -> list[Pod]:
    """Pods of every kind that a list of pods may have."""
    placed = [api_pod(f"placed-{i}", node=f"n{i % 2}", cpu=1) for i in range(20)]
    return [
        *placed[:10],
        api_pod("ended", node="n1", status={"phase": "Succeeded"}),
        waiting_pod(),
        waiting_pod("gated", gates=["later"]),
        api_pod("of-another-scheduler"),
        api_pod("with-a-port", node="n1", host_ports=(80,)),
        api_pod("not-a-quantity", node="n1", cpu="many"),
        api_pod("on-an-unknown-node", node="n9", cpu=2),
        *placed[10:],
        placed[3],
    ]


def test_many_new_pods_are_added_as_one_by_one() -> None:
    one_by_one, at_once = Engine(), Engine()
    for engine in (one_by_one, at_once):
        engine.add(node("n0", cpu=16), node("n1", cpu=16))
    one_by_one.add(*new_pods())
    at_once.scheduler.add_pods(new_pods())
    valid = [pod for pod in new_pods() if pod.metadata.name != "not-a-quantity"]
    assert differences(at_once.scheduler, [node("n0"), node("n1")], valid) == []
    for pod in new_pods():
        name = pod.metadata.name
        assert at_once.state_of(name) == one_by_one.state_of(name)
    assert order(at_once) == order(one_by_one)
    assert event_counts(at_once) == event_counts(one_by_one)
    assert at_once.texts() == one_by_one.texts()
    assert at_once.bound() == one_by_one.bound()


def order(engine: Engine) -> list[list[str]]:
    """The names of the pods of each node, in the order of their arrival."""
    snapshot = engine.scheduler.cache.lend()
    names = [[pod.name for pod in info.pods] for info in snapshot.nodes.infos()]
    snapshot.end()
    return names


def event_counts(engine: Engine) -> dict[Any, float]:
    """Label → the number of handled events."""
    (family,) = engine.scheduler.metrics.event_handling_duration.collect()
    return {
        tuple(sample.labels.items()): sample.value
        for sample in family.samples
        if sample.name.endswith("_count")
    }
