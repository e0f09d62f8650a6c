"""Extenders as the Handle shows them."""

from bayplan.engine.extenders.configured import ConfiguredExtender
from bayplan.framework.handle import Extender
from bayplan.ports import ExtenderVerb
from bayplan.testing import SampleCluster, handle, pod


def test_a_handle_shows_who_is_there_and_what_for() -> None:
    cluster = SampleCluster()
    assert handle(cluster).extenders == ()
    gpus = frozenset(("example.com/gpu",))
    verbs = frozenset((ExtenderVerb.PREEMPT,))
    configured: Extender = ConfiguredExtender("http://a", verbs, managed_resources=gpus)
    cluster.extenders = (configured,)
    (found,) = handle(cluster).extenders
    assert (found.name, found.verbs, found.weight, found.ignorable) == (
        "http://a", verbs, 1, False,
    )  # fmt: skip
    assert not found.is_interested(pod("p"))
    assert found.is_interested(pod("p", requests={"example.com/gpu": 1}))
