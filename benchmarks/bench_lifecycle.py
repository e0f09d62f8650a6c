"""The life of groups in racks: growth, replacement, preemption, reservation, backfill.

    python -m benchmarks lifecycle [--only growth] [--nodes 5000] [--markdown benchmarks/RESULTS.md]

A cluster has 50 racks; a node takes two members. Groups grow, and lose members that are replaced;
each new member has to join its group in its rack. Groups with a priority free whole racks: those
in which the fewest groups lose pods. A group that has waited gets a rack reserved, which only pods
that end in time may use. All effects are performed at once, and their watch events arrive. Seconds
are processor time of events, attempts and effects. Exit status 1: an outcome is not the right one.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from msgspec.structs import replace

from bayplan.api.objects import POD, Pod
from bayplan.api.pod_groups import COSCHEDULING_LABEL, EXCLUSIVE_TOPOLOGY, REQUIRED_TOPOLOGY
from bayplan.clock import ManualClock, rfc3339
from bayplan.durations import DURATION_ANNOTATION
from bayplan.engine.binding import BindingCycle
from bayplan.ports import (
    BindPod,
    Effect,
    EmitEvent,
    EventType,
    ImmediateCluster,
    PatchPodStatus,
    Perform,
    WatchEvent,
)
from bayplan.state.pods import PodInfo
from benchmarks.engine_run import added, discarded_log, nominated, perform, settled_memory
from benchmarks.group_run import GROUP_KIND, RACK, GroupRun, Object, group, member, node, pod
from benchmarks.machine import machine, markdown_table, put_between, today

RACK_COUNT = 50
#: Every fifth rack has two groups in place of four.
SPARSE_EVERY = 5
#: Longer than the longest backoff of a group.
PAUSE_SECONDS = 35.0
ON_ONE_RACK = {REQUIRED_TOPOLOGY: RACK}
ALONE = {**ON_ONE_RACK, EXCLUSIVE_TOPOLOGY: RACK}
MEMBER_CPU, BACKFILL_CPU = "2", "100m"
#: When the pods of the reserved rack end, and those of the others, in seconds.
RESERVED_RACK, START_SECONDS, LATER_SECONDS = 7, 1000.0, 3000.0
COLUMNS = ("part of a life", "groups", "pods", "attempts", "evicted", "seconds", "pods/s")


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of the life of groups cost."""

    name: str
    groups: int
    bound: int
    attempts: int
    evicted: int
    seconds: float

    def cells(self) -> tuple[str, ...]:
        rate = f"{self.bound / self.seconds:,.0f}" if self.bound else ""
        per_attempt = f"{self.seconds / self.attempts * 1e3:,.2f}" if self.attempts else ""
        counts = (self.groups, self.bound, self.attempts, self.evicted)
        return (
            self.name,
            *(f"{count:,}" for count in counts),
            f"{self.seconds:.2f}",
            rate,
            per_attempt,
        )


class Racks(GroupRun, ImmediateCluster):
    """A cluster of racks whose API server does at once what the scheduler decides."""

    def __init__(self, node_count: int, fields: Object | None = None) -> None:
        self.rack_nodes = node_count // RACK_COUNT
        amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        labels = ({RACK: f"rack-{self.rack_of(index):03d}"} for index in range(node_count))
        super().__init__((node(*each, amounts) for each in enumerate(labels)), fields)
        #: By uid.
        self.pods: dict[str, Pod] = {}
        self.evicted: list[Pod] = []
        self.parts: list[Part] = []
        self.problems: list[str] = []

    # ---- what the API server does -----------------------------------------------------------

    def perform(self, effects: Sequence[Effect]) -> None:
        """Perform the effects, and those that follow."""
        while effects:
            for effect in effects:
                if isinstance(effect, BindPod):
                    self._bind(effect)
                elif isinstance(effect, Perform):
                    perform(effect, self)
                elif isinstance(effect, PatchPodStatus) and effect.nominated_node_name:
                    self._change(nominated(self.pods[effect.uid], effect.nominated_node_name))
            effects = self.scheduler.take_effects()

    def _bind(self, effect: BindPod) -> None:
        assert isinstance(effect.run, BindingCycle)
        outcome = effect.run.run_now(self)
        assert outcome is not None, "the API server refuses no binding"
        self.scheduler.binding_finished(outcome)
        self._change(WatchEvent(EventType.MODIFIED, POD, self.pods[effect.pod.uid]))
        self.bound += 1

    def bind_now(self, pod: PodInfo, node_name: str) -> None:
        bound = self.pods[pod.uid]
        self.pods[pod.uid] = replace(bound, spec=replace(bound.spec, node_name=node_name))

    def create_event_now(self, event: EmitEvent) -> None:
        """Events are not stored."""

    def patch_pod_status_now(self, patch: PatchPodStatus) -> None:
        """Conditions are not stored."""

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """An evicted pod goes at once."""
        self.evicted.append(self.pods[uid])
        self.scheduler.handle(self.gone(uid))

    def gone(self, uid: str) -> WatchEvent:
        """A pod ends. Returns what the watch reports."""
        return WatchEvent(EventType.DELETED, POD, self.pods.pop(uid))

    def create(self, kind: str, content: Object) -> WatchEvent:
        """An object is created. Returns what the watch reports."""
        event = added(kind, content)
        if kind == POD:
            self.pods[event.object.metadata.uid] = event.object
        return event

    def _change(self, event: WatchEvent) -> None:
        self.pods[event.object.metadata.uid] = event.object
        self.scheduler.handle(event)

    # ---- groups -----------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """How many members a rack takes."""
        return 2 * self.rack_nodes

    def rack_of(self, index: int) -> int:
        return index // self.rack_nodes

    def new_group(
        self, name: str, member_count: int, annotations: Mapping[str, str], priority: int = 0
    ) -> Iterator[WatchEvent]:
        """A group arrives with its members."""
        yield self.create(GROUP_KIND, group(name, member_count, annotations))
        yield from self.members(name, range(member_count), priority)

    def members(self, name: str, numbers: Iterable[int], priority: int = 0) -> Iterator[WatchEvent]:
        for number in numbers:
            content = member(f"{name}-{number:04d}", name, MEMBER_CPU)
            content["spec"]["priority"] = priority
            yield self.create(POD, content)

    def settle(self) -> None:
        """Try what is ready now, and after each backoff."""
        self.try_all()
        self.wait(PAUSE_SECONDS)

    def fill(self, contents: Callable[[int], Iterable[Object]]) -> None:
        """Fill each rack with pods that are there already, two on a node."""
        for rack in range(RACK_COUNT):
            for place, content in enumerate(contents(rack)):
                content["spec"]["nodeName"] = f"node-{rack * self.rack_nodes + place // 2:05d}"
                content["status"]["startTime"] = rfc3339(ManualClock.EPOCH_SECONDS)
                self.scheduler.handle(self.create(POD, content))

    def racks_by_group(self) -> Mapping[str, set[int]]:
        """The racks of each group; -1: of members without a node."""
        racks = defaultdict[str, set[int]](set)
        for each in self.pods.values():
            racks[group_of(each)].add(self.rack_of_pod(each))
        return racks

    def rack_of_pod(self, of: Pod) -> int:
        name = of.spec.node_name
        return self.rack_of(int(name.removeprefix("node-"))) if name else -1

    # ---- the measurement --------------------------------------------------------------------

    def end_part(self, name: str, group_count: int) -> None:
        """What was measured up to now is one part of the life of groups. ``name``: "": it is none,
        and is forgotten."""
        if name:
            counts = self.bound, self.attempts, len(self.evicted)
            self.parts.append(Part(name, group_count, *counts, self.seconds))
        self.bound = self.attempts = 0
        self.seconds = 0.0
        self.evicted.clear()

    def expect(self, is_right: bool, text: str) -> None:
        """Note a wrong outcome."""
        if not is_right:
            self.problems.append(text)


def group_of(of: Pod) -> str:
    """The name of the pod's group; "" if it has none."""
    return (of.metadata.labels or {}).get(COSCHEDULING_LABEL, "")


# ---- growth and replacement -------------------------------------------------------------------


def start(racks: Racks) -> list[str]:
    """Groups of half a rack start; each has a rack of its own. Returns their names."""
    names = [f"gang-{number:04d}" for number in range(RACK_COUNT - RACK_COUNT // SPARSE_EVERY)]
    racks.place(
        [one for name in names for one in racks.new_group(name, racks.rack_nodes, ON_ONE_RACK)]
    )
    racks.end_part("start", len(names))
    return names


def grow(racks: Racks) -> None:
    """Groups grow by a half. No member moves."""
    names = start(racks)
    before = dict(racks.pods)
    numbers = range(racks.rack_nodes, racks.rack_nodes * 3 // 2)
    racks.place([event for name in names for event in racks.members(name, numbers)])
    racks.expect(
        racks.bound == len(numbers) * len(names), f"growth: {racks.bound:,} new members are bound"
    )
    racks.expect(
        all(racks.pods[uid] is before[uid] for uid in before), "growth: a member has moved"
    )
    _expect_one_rack_each(racks, "growth")
    racks.end_part("growth", len(names))


def replace_lost(racks: Racks) -> None:
    """A tenth of the members of each group is lost and replaced. Other racks have more room."""
    names = start(racks)
    before = racks.racks_by_group()
    numbers = range(0, racks.rack_nodes, 10)
    lost = [f"sched-1/{name}-{number:04d}" for name in names for number in numbers]
    events = [racks.gone(uid) for uid in lost]
    again = range(racks.rack_nodes, racks.rack_nodes + len(numbers))
    events += [event for name in names for event in racks.members(name, again)]
    racks.place(events)
    racks.expect(racks.bound == len(lost), f"replacement: {racks.bound:,} of {len(lost):,} bound")
    racks.expect(racks.racks_by_group() == before, "replacement: a group has another rack")
    racks.end_part("replacement", len(names))


def _expect_one_rack_each(racks: Racks, part: str) -> None:
    for name, own in racks.racks_by_group().items():
        racks.expect(len(own) == 1 and -1 not in own, f"{part}: {name} has the racks {own}")


# ---- preemption -------------------------------------------------------------------------------


def group_count_of(rack: int) -> int:
    return 4 if rack % SPARSE_EVERY else 2


def free_racks(racks: Racks) -> None:
    """Groups of a whole rack preempt."""
    _preempt(racks, "preemption of whole racks", racks.capacity, ON_ONE_RACK)


def free_racks_for_exclusive(racks: Racks) -> None:
    """Groups of half a rack preempt, and have their racks alone."""
    _preempt(racks, "preemption for exclusive groups", racks.rack_nodes, ALONE)


def _preempt(racks: Racks, part: str, member_count: int, annotations: Mapping[str, str]) -> None:
    """The racks with two groups are freed, and no group of another rack loses a pod."""

    def residents(rack: int) -> Iterator[Object]:
        for place in range(racks.capacity):
            number = place * group_count_of(rack) // racks.capacity
            yield member(f"old-{rack:03d}-{place:04d}", f"old-{rack:03d}-{number}", MEMBER_CPU)

    for rack in range(RACK_COUNT):
        for number in range(group_count_of(rack)):
            name = f"old-{rack:03d}-{number}"
            racks.scheduler.handle(added(GROUP_KIND, group(name, 1)))
    racks.fill(residents)
    sparse = set(range(0, RACK_COUNT, SPARSE_EVERY))
    names = [f"new-{number:02d}" for number in range(len(sparse))]
    racks.place(
        [each for name in names for each in racks.new_group(name, member_count, annotations, 100)]
    )
    racks.measure(racks.settle)
    racks.expect(
        racks.bound == len(names) * member_count,
        f"{part}: {racks.bound:,} of {len(names) * member_count:,} bound",
    )
    own = racks.racks_by_group()
    taken = [rack for name in names for rack in own[name]]
    racks.expect(sorted(taken) == sorted(sparse), f"{part}: the new groups have the racks {taken}")
    hurt = {racks.rack_of_pod(each) for each in racks.evicted}
    racks.expect(hurt == sparse, f"{part}: pods were evicted from the racks {sorted(hurt)}")
    count = len(sparse) * racks.capacity
    racks.expect(len(racks.evicted) == count, f"{part}: {len(racks.evicted):,} pods were evicted")
    racks.end_part(part, len(names))


# ---- reservation and backfill -----------------------------------------------------------------


def reserve(racks: Racks) -> None:
    """A rack is reserved for a group that waits. Pods that end in time use its room; other pods do
    not. The group starts when it was expected to."""

    def old(rack: int) -> Iterator[Object]:
        seconds = START_SECONDS if rack == RESERVED_RACK else LATER_SECONDS
        for place in range(racks.capacity):
            yield _lasting(pod(f"old-{rack:03d}-{place:04d}", MEMBER_CPU), seconds)

    racks.fill(old)
    racks.place(list(racks.new_group("gang", racks.rack_nodes, ALONE)))
    racks.measure(racks.settle)
    racks.expect(not racks.bound, f"reservation: {racks.bound:,} members are bound")
    racks.end_part("reservation of a rack", 1)

    _backfill(racks)
    racks.wait(START_SECONDS / 2 - racks.clock.now())
    for place in range(1, racks.capacity, 2):
        uid = f"sched-1/old-{RESERVED_RACK:03d}-{place:04d}"
        racks.scheduler.handle(racks.gone(uid))
    for uid in [uid for uid in racks.pods if "/short-" in uid]:
        racks.scheduler.handle(racks.gone(uid))
    racks.end_part("", 0)
    racks.measure(racks.settle)
    racks.expect(
        racks.racks_by_group()["gang"] == {RESERVED_RACK},
        f"start: the group has the racks {racks.racks_by_group()['gang']}",
    )
    racks.end_part("start in the reserved rack", 1)


def _backfill(racks: Racks) -> None:
    """Half of the pods of the reserved rack end early."""
    for place in range(0, racks.capacity, 2):
        uid = f"sched-1/old-{RESERVED_RACK:03d}-{place:04d}"
        racks.scheduler.handle(racks.gone(uid))
    events: list[WatchEvent] = []
    count = 10 * racks.rack_nodes
    for number in range(count):
        for name, seconds in (("long", LATER_SECONDS), ("short", START_SECONDS / 10)):
            content = _lasting(pod(f"{name}-{number:04d}", BACKFILL_CPU), seconds)
            events.append(racks.create(POD, content))
    racks.place(events)
    racks.measure(racks.settle)
    pods = racks.pods.items()
    short = {racks.rack_of_pod(each) for uid, each in pods if "/short-" in uid}
    long = {racks.rack_of_pod(each) for uid, each in pods if "/long-" in uid}
    racks.expect(racks.bound == count, f"backfill: {racks.bound:,} of {count:,} bound")
    racks.expect(short == {RESERVED_RACK}, f"backfill: short pods have the racks {short}")
    racks.expect(long == {-1}, f"backfill: long pods have the racks {long}")
    racks.end_part("backfill", 0)


def _lasting(content: Object, seconds: float) -> Object:
    """The pod runs so long."""
    content["metadata"]["annotations"] = {DURATION_ANNOTATION: f"{seconds:g}s"}
    return content


# ---- the command ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Story:
    """One course of events in a cluster of its own."""

    name: str
    run: Callable[[Racks], None]
    #: Of the configuration.
    fields: Object | None = None


STORIES: Sequence[Story] = (
    Story("growth", grow),
    Story("replacement", replace_lost),
    Story("preemption", free_racks),
    Story("exclusive preemption", free_racks_for_exclusive),
    Story("reservation", reserve, {"podGroups": {"reserveAfterSeconds": 10}}),
)


def played(story: Story, node_count: int) -> Racks:
    """A cluster after the story."""
    racks = Racks(node_count, story.fields)
    with discarded_log(), settled_memory():
        story.run(racks)
    racks.scheduler.close()
    return racks


@click.command(help=__doc__)
@click.option("--only", default="", help="stories whose name contains this")
@click.option("--nodes", "node_count", default=5000, help="nodes in 50 racks")
@click.option(
    "--markdown", type=click.Path(path_type=Path, exists=True), help="put the table there"
)
def main(only: str, node_count: int, markdown: Path | None) -> None:
    """Measure each story once."""
    rows: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    for story in STORIES:
        if only in story.name:
            racks = played(story, node_count)
            problems += racks.problems
            for part in racks.parts:
                rows[part.name] = part.cells()
                print(*rows[part.name], sep="  ", flush=True)
    if markdown is not None:
        command = "    python -m benchmarks lifecycle"
        text = [f"Measured {today()}: {machine()}. {node_count:,} nodes.", "", command, ""]
        table = markdown_table((*COLUMNS, "ms/attempt"), rows.values())
        put_between(markdown, "lifecycle", [*text, *table])
    if problems:
        sys.exit("; ".join(problems))


if __name__ == "__main__":
    main()
