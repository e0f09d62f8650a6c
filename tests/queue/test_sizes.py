"""How much waits in which queue."""

from bayplan.api.pod_groups import GroupKey
from bayplan.framework.queued_group import QueuedPodGroupInfo
from bayplan.queue.entry import Entry
from bayplan.queue.sizes import GROUP_ENTITY, POD_ENTITY, Sizes, entity_of
from bayplan.queue.transitions import State
from tests.queue.factories import pod, queued


def lone(name: str, state: State) -> Entry:
    entry = Entry(queued(name))
    entry.state = state
    return entry


def group_of(*names: str, state: State) -> Entry:
    members = {pod(name).uid: queued(name) for name in names}
    key = GroupKey("scheduling.x-k8s.io", "default", "g")
    entry = Entry(QueuedPodGroupInfo(pod(names[0]), 0.0, 1, key=key, members=members))
    entry.state = state
    return entry


def told(sizes: Sizes) -> dict[tuple[str, str], int]:
    return {at: count for at, count in sizes.entities().items() if count}


def test_a_group_is_one_entity_and_as_many_pods_as_it_has_members() -> None:
    sizes = Sizes()
    group = group_of("a", "b", "c", state=State.ACTIVE)
    for entry in (group, lone("x", State.ACTIVE), lone("y", State.ERROR_BACKOFF)):
        sizes.came(entry)
    assert sizes.pods() == {"active": 4, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert told(sizes) == {("active", "podgroup"): 1, ("active", "pod"): 1, ("backoff", "pod"): 1}
    sizes.went(group)
    assert told(sizes) == {("active", "pod"): 1, ("backoff", "pod"): 1}


def test_members_that_come_are_more_pods_and_no_more_entities() -> None:
    sizes = Sizes()
    sizes.came(group_of("a", "b", state=State.GATED))
    sizes.grew(State.GATED, 3)
    assert sizes.pods()["gated"] == 5
    assert told(sizes) == {("gated", "podgroup"): 1}


def test_every_queue_is_told_of_even_if_nothing_waits() -> None:
    queues = ("active", "backoff", "unschedulable", "gated")
    assert Sizes().entities() == {(q, e): 0 for q in queues for e in (POD_ENTITY, GROUP_ENTITY)}


def test_what_an_entry_is_follows_from_whether_it_is_a_group() -> None:
    assert entity_of(lone("x", State.ACTIVE)) == "pod"
    assert entity_of(group_of("a", state=State.ACTIVE)) == "podgroup"
