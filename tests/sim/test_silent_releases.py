"""The new nodes without an event for a waiting pod, by kube-scheduler's hints."""

from typing import Any

import pytest

from bayplan.journal import AttemptRecord, RejectionCount
from tests.sim.brute_force import POD, Content, Picture
from tests.sim.silent_releases import SilentReleases

NODE: Content = {"metadata": {"name": "n2", "labels": {"zone": "a"}}}
OTHER_ZONE: Content = {"metadata": {"name": "n2", "labels": {"zone": "b"}}}


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
    """The picture before the node: a pending pod with these required terms."""
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
        pytest.param(["InterPodAffinity"], {}, {"u": {"n2"}}, id="excluded by placed pods"),
        pytest.param(["InterPodAffinity", "NodePorts"], {}, {}, id="another plugin has a hint"),
        pytest.param(["InterPodAffinity"], {"podAffinity": "zone"}, {}, id="own affinity"),
        pytest.param(["InterPodAffinity"], {"podAntiAffinity": "zone"}, {}, id="own anti-affinity"),
        pytest.param(["NodeVolumeLimits"], {"podAffinity": "zone"}, {"u": {"n2"}}, id="volumes"),
        pytest.param(["NodeVolumeLimits", "NodePorts"], {}, {}, id="volumes and a hint"),
        pytest.param([], {}, {}, id="not rejected"),
    ],
)
def test_a_new_node_is_no_event_where_no_rejecting_plugin_registers_it(
    plugins: list[str], affinity: dict[str, str], expected: dict[str, set[str]]
) -> None:
    releases = SilentReleases()
    releases.write(attempt(*plugins))
    releases.node_added(picture(**affinity), NODE)
    assert releases.excused_nodes == expected


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(["InterPodAffinity", "NodeResourcesFit"], {"u": {"n2"}}, id="no label hint"),
        pytest.param(["InterPodAffinity", "VolumeZone"], {}, id="another plugin has a label hint"),
        pytest.param(["NodeResourcesFit"], {}, id="not excluded by placed pods"),
    ],
)
def test_other_labels_are_no_event_unless_a_rejecting_plugin_registers_it(
    plugins: list[str], expected: dict[str, set[str]]
) -> None:
    releases = SilentReleases()
    releases.write(attempt(*plugins))
    releases.node_relabelled(picture(), OTHER_ZONE, NODE)
    assert releases.excused_nodes == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param({"podAntiAffinity": "host"}, {"u": {"n2"}}, id="a label that stays"),
        pytest.param({"podAntiAffinity": "zone"}, {}, id="anti-affinity over the label"),
        pytest.param({"podAffinity": "zone"}, {}, id="affinity over the label"),
    ],
)
def test_other_labels_are_an_event_for_pods_with_terms_over_them(
    affinity: dict[str, str], expected: dict[str, set[str]]
) -> None:
    releases = SilentReleases()
    releases.write(attempt("InterPodAffinity"))
    releases.node_relabelled(picture(**affinity), OTHER_ZONE, NODE)
    assert releases.excused_nodes == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        pytest.param("a", {}, id="the node begins to match"),
        pytest.param(None, {"u": {"n2"}}, id="the node matched before"),
        pytest.param("c", {"u": {"n2"}}, id="the node does not match"),
    ],
)
def test_other_labels_are_an_event_for_node_affinity_where_the_node_begins_to_match(
    zone: str | None, expected: dict[str, set[str]]
) -> None:
    pod = waiting(nodeSelector={} if zone is None else {"zone": zone})
    releases = SilentReleases()
    releases.write(attempt("InterPodAffinity", "NodeAffinity"))
    releases.node_relabelled(Picture.of({POD: {("default", "p"): pod}}, {}), OTHER_ZONE, NODE)
    assert releases.excused_nodes == expected


def test_the_next_attempt_ends_the_excuse() -> None:
    releases = SilentReleases()
    releases.write(attempt("InterPodAffinity"))
    releases.node_added(picture(), NODE)
    releases.write(attempt("InterPodAffinity"))
    assert releases.excused_nodes == {}


def waiting(**spec: Any) -> Content:
    metadata = {"namespace": "default", "name": "p", "uid": "u", "labels": {"app": "db"}}
    return {"metadata": metadata, "spec": spec}


def drawn_to(app: str) -> Content:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return waiting(affinity={"podAffinity": terms})


def spread_over(app: str) -> Content:
    selector = {"matchLabels": {"app": app}}
    constraint = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return waiting(topologySpreadConstraints=[constraint])


PLACED: Content = {
    "metadata": {"namespace": "default", "name": "a", "uid": "a", "labels": {"app": "db"}},
    "spec": {"nodeName": "n2"},
}
TERMINATING: Content = {
    **PLACED,
    "metadata": {**PLACED["metadata"], "deletionTimestamp": "2026-01-01T00:00:30Z"},
}
ENDED: Content = {**PLACED, "status": {"phase": "Succeeded"}}


@pytest.mark.parametrize(
    ("pod", "kind", "before", "after", "expected"),
    [
        pytest.param(drawn_to("db"), POD, PLACED, None, {"u"}, id="affinity, deleted"),
        pytest.param(drawn_to("db"), POD, PLACED, ENDED, {"u"}, id="affinity, ended"),
        pytest.param(drawn_to("db"), "v1 Node", NODE, None, {"u"}, id="affinity, node deleted"),
        pytest.param(drawn_to("db"), POD, PLACED, TERMINATING, set(), id="affinity, terminates"),
        pytest.param(drawn_to("web"), POD, PLACED, None, set(), id="affinity to another app"),
        pytest.param(spread_over("db"), POD, PLACED, TERMINATING, {"u"}, id="spread, terminates"),
        pytest.param(spread_over("db"), POD, TERMINATING, None, set(), id="spread, deleted"),
        pytest.param(spread_over("web"), POD, PLACED, TERMINATING, set(), id="spread, another app"),
    ],
)
def test_a_pod_that_stops_counting_is_no_event_for_pods_that_may_now_fit(
    pod: Content, kind: str, before: Content, after: Content | None, expected: set[str]
) -> None:
    releases = SilentReleases()
    objects = {("default", "p"): pod, ("default", "a"): before if kind == POD else PLACED}
    releases.delivered(kind, before, after, lambda: Picture.of({POD: objects}, {}))
    assert releases.excused_uids == expected
    releases.write(attempt("InterPodAffinity"))
    assert releases.excused_uids == set(), "the attempt saw the change"


@pytest.mark.parametrize(
    ("app", "expected"),
    [
        pytest.param("db", {"u"}, id="its anti-affinity excluded the pod"),
        pytest.param("web", set(), id="its anti-affinity is about another app"),
    ],
)
def test_a_deleted_node_is_no_event_for_pods_that_the_pods_on_it_excluded(
    app: str, expected: set[str]
) -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    excluding = {**PLACED, "spec": {"nodeName": "n2", "affinity": {"podAntiAffinity": terms}}}
    releases = SilentReleases()
    objects = {("default", "p"): waiting(), ("default", "a"): excluding}
    releases.delivered("v1 Node", NODE, None, lambda: Picture.of({POD: objects}, {}))
    assert releases.excused_uids == expected


def with_claim(name: str, *, node: str = "") -> Content:
    spec: Content = {"volumes": [{"persistentVolumeClaim": {"claimName": name}}]}
    metadata = {"namespace": "default", "name": "a", "uid": "a"}
    return {"metadata": metadata, "spec": {**spec, "nodeName": node}}


@pytest.mark.parametrize(
    ("claim", "plugin", "expected"),
    [
        pytest.param("c", "NodeVolumeLimits", {"u": {"n2"}}, id="its volume is on the node"),
        pytest.param("d", "NodeVolumeLimits", {}, id="another claim"),
        pytest.param("c", "NodeResourcesFit", {}, id="another reason"),
    ],
)
def test_a_pod_with_the_same_claim_is_no_event_for_the_limit_of_volumes(
    claim: str, plugin: str, expected: dict[str, set[str]]
) -> None:
    releases = SilentReleases()
    releases.write(attempt(plugin))
    other = waiting(volumes=[{"persistentVolumeClaim": {"claimName": "c"}}])
    before, after = with_claim(claim), with_claim(claim, node="n2")
    objects = {("default", "p"): other, ("default", "a"): before}
    releases.delivered(POD, before, after, lambda: Picture.of({POD: objects}, {}))
    assert releases.excused_nodes == expected
