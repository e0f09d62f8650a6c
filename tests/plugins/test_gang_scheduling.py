"""GangScheduling."""

from bayplan.api.objects import Pod, decode
from bayplan.api.pod_groups import KINDS
from bayplan.framework.events import EventResource, QueueingHint
from bayplan.framework.handle import Handle
from bayplan.plugins.gang_scheduling import GangScheduling
from bayplan.state.pods import pod_info
from bayplan.testing import api_pod
from bayplan.testing.clusters import PROFILE, SampleCluster

KIND = "scheduling.k8s.io/v1beta1 PodGroup"


def member(name: str) -> Pod:
    return api_pod(name, spec={"schedulingGroup": {"podGroupName": "g"}})


def with_group(cluster: SampleCluster, minimum: int) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    content = {"metadata": {"name": "g", "namespace": "default"}, "spec": spec}
    cluster.pod_groups.put(KINDS[KIND].compile(KIND, decode(KIND, content)))


def message_of(cluster: SampleCluster, pod: Pod) -> str:
    plugin = GangScheduling(None, Handle(cluster.services, PROFILE, "GangScheduling", ()))
    status = plugin.pre_enqueue(pod_info(pod))
    return "" if status is None else status.message


def test_a_pod_waits_for_its_groups_object_in_upstreams_words() -> None:
    cluster = SampleCluster()
    expected = 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    assert message_of(cluster, member("a")) == expected


def test_members_wait_for_each_other_in_upstreams_words() -> None:
    cluster = SampleCluster()
    with_group(cluster, 2)
    cluster.pod_groups.put_pod(member("a"))
    expected = "waiting for minCount pods from a gang to appear in scheduling queue"
    assert message_of(cluster, member("a")) == expected
    cluster.pod_groups.put_pod(member("b"))
    assert message_of(cluster, member("a")) == ""


def test_other_pods_and_other_kinds_of_groups_are_skipped() -> None:
    cluster = SampleCluster()
    assert message_of(cluster, api_pod("lone")) == ""
    labelled = api_pod("other", labels={"scheduling.x-k8s.io/pod-group": "g"})
    assert message_of(cluster, labelled) == ""


def test_members_and_the_group_object_queue_a_pod() -> None:
    plugin = GangScheduling(None, Handle(SampleCluster().services, PROFILE, "GangScheduling", ()))
    hints = {each.event.resource: each.hint for each in plugin.events_to_register()}
    pod = pod_info(member("a"))
    for resource in (EventResource.UNSCHEDULED_POD, EventResource.ASSIGNED_POD):
        came = hints[resource]
        assert came is not None
        assert came(pod, None, pod_info(member("b"))) is QueueingHint.QUEUE
        assert came(pod, None, pod_info(api_pod("lone"))) is QueueingHint.QUEUE_SKIP
    changed = hints[EventResource.POD_GROUP]
    assert changed is not None
    for name, expected in (("g", QueueingHint.QUEUE), ("h", QueueingHint.QUEUE_SKIP)):
        group = decode(KIND, {"metadata": {"name": name, "namespace": "default"}})
        assert changed(pod, None, group) is expected
