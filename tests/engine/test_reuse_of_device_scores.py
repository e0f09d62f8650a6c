"""Scores that depend on devices are equal with and without reuse.

The scheduler and other writers allocate and release devices; slices and classes are added, changed
and deleted, and nodes change the labels that select devices.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.device_objects import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.api.objects import decode
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import unschedulable
from bayplan.ports import BindPod, EventType
from bayplan.state.device_table import DeviceCounts
from bayplan.testing import api_pod, node
from tests.engine.reuse_pair import FIRST, Fault, Pair, no_fault
from tests.plugins.devices_kit import allocated, claim, class_of, slice_of

GPU: Final = "test.example/gpu"
NODES: Final = ("n0", "n1", "n2", "n3")
_SCORED: Final = [{"name": name} for name in ("cpu", "memory", GPU)]
ARGS: Final[Sequence[Mapping[str, Any]]] = (
    {
        "name": "NodeResourcesFit",
        "args": {"scoringStrategy": {"type": "LeastAllocated", "resources": _SCORED}},
    },
    {"name": "NodeResourcesBalancedAllocation", "args": {"resources": _SCORED}},
)

_RED: Final = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "color", "operator": "In", "values": ["red"]}]}
    ]
}
#: The possible states of each object; None means that it does not exist.
OBJECTS: Final[Sequence[tuple[str, Sequence[Any]]]] = (
    (DEVICE_CLASS, (class_of(extendedResourceName=GPU), class_of(), None)),
    (RESOURCE_SLICE, (slice_of("n0", "a", "b", "c"), slice_of("n0", "a"), None)),
    (
        RESOURCE_SLICE,
        (
            slice_of("n1", "a", "b"),
            slice_of("n1", "a", "b", allNodes=True),
            slice_of("n1", "a", "b", "c", nodeSelector=_RED),
            None,
        ),
    ),
    (RESOURCE_SLICE, (slice_of("n2", "a", "b", "c", "d"), slice_of("n2", "d", nodeName="n3"))),
    (
        RESOURCE_CLAIM,
        (
            claim("other", status=allocated(("n0", "a"), ("n2", "b"))),
            claim("other", status=allocated(("n1", "b"))),
            claim("other"),
            None,
        ),
    ),
)
COLORS: Final = ("red", "blue")
PODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "plain": {"cpu": "300m", "memory": "200Mi"},
    "one": {"cpu": "300m", "memory": "200Mi", "requests": {GPU: 1}},
    "two": {"cpu": "300m", "memory": "200Mi", "requests": {GPU: 2}},
}

places = st.integers(0, 20)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from(sorted(PODS)), st.sampled_from((1, 2, 4))),
        st.tuples(st.just("object"), places, places),
        st.tuples(st.just("label"), st.sampled_from(NODES), st.sampled_from(COLORS)),
        st.tuples(st.just("binding"), places, st.booleans()),
    ),
    min_size=5,
    max_size=30,
)


class DeviceRun:
    """Both schedulers and their events."""

    def __init__(self, fault: Fault = no_fault) -> None:
        self.tally: Counter[str] = Counter()
        options: Any = {"is_plain": True, "has_keys": False, "bytes_max": 1 << 26, "args": ARGS}
        self.pair = Pair(self.tally, fault, **options)
        self._there: set[tuple[str, str]] = set()
        self._names: list[str] = []
        self._binding: list[str] = []
        for name in NODES:
            self.pair.node(EventType.ADDED, _node(name, "blue"))
        for place in range(4):
            self.object(place, 0)
        self.pod("one", 2)

    def pod(self, kind: str, count: int) -> None:
        """Add pods of one kind, one after another."""
        for _ in range(count):
            name = f"p{len(self._names)}"
            self._names.append(name)
            new_pod = api_pod(name, scheduler_name=FIRST, **PODS[kind])
            self.pair.pod(EventType.ADDED, new_pod)
            self.compare()

    def object(self, place: int, state: int) -> None:
        kind, states = OBJECTS[place % len(OBJECTS)]
        content = states[state % len(states)]
        key = (kind, next(each for each in states if each)["metadata"]["name"])
        if content is not None:
            event = EventType.MODIFIED if key in self._there else EventType.ADDED
            self._there.add(key)
            self.pair.tell(event, kind, decode(kind, content))
        elif key in self._there:
            self._there.remove(key)
            self.pair.tell(EventType.DELETED, kind, decode(kind, states[0]))

    def label(self, name: str, color: str) -> None:
        self.pair.node(EventType.MODIFIED, _node(name, color))

    def binding(self, place: int, fails: bool) -> None:
        """One binding ends. If it fails, its devices are released."""
        if self._binding:
            name = self._binding.pop(place % len(self._binding))
            self.pair.finish(f"uid-default/{name}", unschedulable("no") if fails else None)

    def compare(self) -> None:
        self.pair.schedule(3)
        effects = self.pair.compare([f"uid-default/{name}" for name in self._names])
        self._binding += [each.pod.name for each in effects if isinstance(each, BindPod)]

    def tell(self, calls: Sequence[tuple[Any, ...]]) -> None:
        for what, *arguments in calls:
            getattr(self, what)(*arguments)
            self.pod("one", 1)
        self.pair.close()


def _node(name: str, color: str) -> Any:
    return node(name, cpu=16, memory="16Gi", labels={"color": color})


@settings(max_examples=60)
@given(steps)
def test_decisions_and_scores_are_the_same_with_reuse_and_without(
    calls: list[tuple[Any, ...]],
) -> None:
    DeviceRun().tell(calls)


def test_a_class_that_comes_or_goes_decides_whether_devices_stand_for_a_resource() -> None:
    """Without a class, pods that request the resource are pods like others: a ranking answers."""
    calls = (("object", 0, 2), ("pod", "one", 6), ("object", 0, 0), ("pod", "one", 3))
    run = DeviceRun()
    run.tell(calls)
    assert run.tally["rankings used"] >= 3

    def unaware(scheduler: Scheduler) -> None:
        for framework in scheduler._attempts._frameworks.values():
            framework.renew_concerns = lambda: None  # type: ignore[method-assign]

    with pytest.raises(AssertionError, match="with reuse and without"):
        DeviceRun(unaware).tell(calls)


#: Changes of the devices of a node, or of taken devices, that change no row otherwise.
CHANGES: Final[Mapping[str, Sequence[tuple[Any, ...]]]] = {
    "a slice": (("object", 3, 1),),
    "a slice of all nodes": (("object", 2, 1),),
    "a claim of another writer": (("object", 4, 0),),
    "a claim that is released": (("object", 4, 0), ("pod", "one", 1), ("object", 4, 2)),
}


@pytest.mark.parametrize("calls", CHANGES.values(), ids=CHANGES)
def test_a_device_change_missing_from_the_change_log_is_detected(
    calls: Sequence[tuple[Any, ...]],
) -> None:
    DeviceRun().tell(calls)

    def forgetful(scheduler: Scheduler) -> None:
        counts: DeviceCounts = scheduler._events._cluster.devices._counts
        counts._note = lambda places: None  # type: ignore[method-assign]

    with pytest.raises(AssertionError, match="with reuse and without"):
        DeviceRun(forgetful).tell(calls)


def test_a_label_that_selects_devices_is_noticed() -> None:
    run = DeviceRun()
    run.tell((("object", 2, 2), ("label", "n3", "red"), ("label", "n3", "blue")))


def test_device_results_are_reused() -> None:
    """Each pod changes one of four rows. The cached scores of the other rows are reused."""
    run = DeviceRun()
    before = Counter(run.tally)
    run.pod("one", 4)
    assert run.tally["partial refreshes"] - before["partial refreshes"] == 4
