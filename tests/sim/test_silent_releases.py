"""Which nodes come without an event for a waiting pod, as kube-scheduler's hints say."""

from typing import Any

import pytest

from bayplan.journal import AttemptRecord, RejectionCount
from tests.sim.brute_force import POD, Content, Picture
from tests.sim.fault_world import SilentReleases

NODE: Content = {"metadata": {"name": "n2", "labels": {"zone": "a"}}}


def attempt(*plugins: str) -> AttemptRecord:
    rejections = tuple(RejectionCount(name, "Unschedulable", "no", 1) for name in plugins)
    return AttemptRecord(
        at_seconds=0.0,
        pod="default/p",
        uid="u",
        profile="default-scheduler",
        attempt=1,
        result="unschedulable",
        rejections=rejections,
    )


def picture(**affinity: Any) -> Picture:
    """What is known before the node comes: a pending pod with these required terms."""
    terms = {
        kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key}]}
        for kind, key in affinity.items()
    }
    pod: Content = {
        "metadata": {"namespace": "default", "name": "p", "uid": "u"},
        "spec": {"affinity": terms},
    }
    return Picture.of({POD: {("default", "p"): pod}}, {})


@pytest.mark.parametrize(
    ("plugins", "affinity", "expected"),
    [
        pytest.param(["InterPodAffinity"], {}, {"u": {"n2"}}, id="kept out by placed pods"),
        pytest.param(["InterPodAffinity", "NodePorts"], {}, {}, id="another plugin has a hint"),
        pytest.param(["InterPodAffinity"], {"podAffinity": "zone"}, {}, id="own affinity"),
        pytest.param(["InterPodAffinity"], {"podAntiAffinity": "zone"}, {}, id="own anti-affinity"),
    ],
)
def test_a_new_node_is_no_event_for_a_pod_that_only_placed_pods_keep_out(
    plugins: list[str], affinity: dict[str, str], expected: dict[str, set[str]]
) -> None:
    releases = SilentReleases()
    releases.write(attempt(*plugins))
    releases.node_added(picture(**affinity), NODE)
    assert releases.excused_nodes == expected


def test_the_next_attempt_sees_the_node() -> None:
    releases = SilentReleases()
    releases.write(attempt("InterPodAffinity"))
    releases.node_added(picture(), NODE)
    releases.write(attempt("InterPodAffinity"))
    assert releases.excused_nodes == {}
