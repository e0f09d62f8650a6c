"""Groups that fit only if all members are looked at together: drawn instances, each checked.

    python -m benchmarks arrangements [--instances 1000] [--nodes 5000] [--seed 0]

A cluster has racks of 18 nodes. For each instance a rack is drawn, and members that fill its nodes;
they arrive in drawn order. So a placement exists by construction. An instance counts only if the
search turned off does not place it: members one after another, rack by rack, as kube-scheduler
does. Milliseconds are processor time of the attempt of a scheduler with the search; those of the
search alone, and of the attempt that fails without it, stand beside them. Exit status 1: a group
was not placed.
"""

import sys
from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from time import process_time

import click

from bayplan.api.objects import NODE, POD, decode
from bayplan.api.pod_groups import REQUIRED_TOPOLOGY
from bayplan.ports import BindPod, EventType, WatchEvent
from bayplan.rng import Stream, stream
from benchmarks.engine_run import added, discarded_log, settled_memory
from benchmarks.group_run import GPU, GROUP_KIND, RACK, GroupRun, Object, group, member, node

NODES_PER_RACK = 18
#: GPUs and milli-cores that members request.
KINDS = ((8, 16_000), (4, 8_000), (2, 4_000), (1, 2_000))


def rack_node(index: int, gpus: int, milli_cpu: int) -> Object:
    """A node of one of the racks."""
    amounts = {"pods": "110", "memory": "512Gi", GPU: str(gpus), "cpu": f"{milli_cpu}m"}
    return node(index, {RACK: f"rack-{index // NODES_PER_RACK:04d}"}, amounts)


class Instance:
    """A rack, what its nodes offer, and members that fill them."""

    def __init__(self, rng: Stream, rack_count: int) -> None:
        self.rack = rng.randrange(rack_count)
        self.offers: list[tuple[int, int]] = []
        self.members: list[tuple[int, int]] = []
        for _ in range(NODES_PER_RACK):
            gpus = milli_cpu = 0
            for _ in range(rng.randrange(4)):
                requested = KINDS[rng.randrange(len(KINDS))]
                self.members.append(requested)
                gpus, milli_cpu = gpus + requested[0], milli_cpu + requested[1]
            self.offers.append((gpus, milli_cpu + rng.randrange(3) * 1000))
        rng.shuffle(self.members)


def events_of(instance: Instance, name: str) -> Iterator[WatchEvent]:
    yield added(GROUP_KIND, group(name, len(instance.members), {REQUIRED_TOPOLOGY: RACK}))
    for index, (gpus, milli_cpu) in enumerate(instance.members):
        yield added(POD, member(f"{name}-{index:03d}", name, f"{milli_cpu}m", gpus))


class Bench:
    """A scheduler and its nodes."""

    def __init__(self, node_count: int, search_steps: int, seed: int) -> None:
        rng = stream(seed, "nodes")
        #: By node: what it offers while its rack is not drawn.
        self._usual = [(rng.choice((0, 1, 2, 4)), 64_000) for _ in range(node_count)]
        nodes = (rack_node(index, *offer) for index, offer in enumerate(self._usual))
        groups = {"searchSteps": search_steps}
        self.scheduler = GroupRun(nodes, {"podGroups": groups}).scheduler

    def offer(self, instance: Instance, *, is_usual: bool = False) -> None:
        """Give the nodes of the rack what the instance, or the usual cluster, has."""
        first = instance.rack * NODES_PER_RACK
        for index in range(first, first + NODES_PER_RACK):
            offer = self._usual[index] if is_usual else instance.offers[index - first]
            content = decode(NODE, rack_node(index, *offer))
            self.scheduler.handle(WatchEvent(EventType.MODIFIED, NODE, content))

    def attempt(self, instance: Instance, name: str) -> tuple[bool, float]:
        """(whether the group was placed, milliseconds of the attempt)"""
        events = list(events_of(instance, name))
        for event in events:
            self.scheduler.handle(event)
        self.scheduler.take_effects()
        began = process_time()
        self.scheduler.schedule_one()
        milliseconds = (process_time() - began) * 1e3
        bound = [one for one in self.scheduler.take_effects() if isinstance(one, BindPod)]
        for event in reversed(events):
            gone = WatchEvent(EventType.DELETED, event.kind, event.object)
            self.scheduler.handle(gone)
        self.scheduler.take_effects()
        return len(bound) == len(instance.members), milliseconds


def spread(values: Sequence[float]) -> str:
    """Median, 95th percentile and maximum."""
    last = quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
    return f"{median(values):.1f} ms median, {last:.1f} ms p95, {max(values):.1f} ms at most"


@click.command(help=__doc__)
@click.option("--instances", default=1000, help="instances that count")
@click.option("--nodes", "node_count", default=5000, help="nodes of the cluster")
@click.option("--seed", default=0, help="seed of the cluster and the instances")
def main(instances: int, node_count: int, seed: int) -> None:
    """Measure both schedulers with the same instances, in turn."""
    node_count -= node_count % NODES_PER_RACK
    with discarded_log(), settled_memory():
        without, with_search = Bench(node_count, 0, seed), Bench(node_count, 20_000, seed)
        failed, searched = list[float](), list[float]()
        drawn_count, missed = 0, list[str]()
        while len(searched) < instances:
            drawn = stream(seed, f"instance-{drawn_count}")
            instance = Instance(drawn, node_count // NODES_PER_RACK)
            name = f"gang-{drawn_count:05d}"
            drawn_count += 1
            if not instance.members:
                continue
            without.offer(instance)
            is_placed, took = without.attempt(instance, name)
            without.offer(instance, is_usual=True)
            if is_placed:
                continue
            failed.append(took)
            with_search.offer(instance)
            is_placed, took = with_search.attempt(instance, name)
            with_search.offer(instance, is_usual=True)
            searched.append(took)
            if not is_placed:
                missed.append(name)
    print(f"{node_count:,} nodes, seed {seed}: {drawn_count:,} instances drawn")
    print(f"without the search {len(failed):,} are not placed: {spread(failed)}")
    print(f"with it {len(searched) - len(missed):,} of these are placed: {spread(searched)}")
    if missed:
        sys.exit(f"not placed: {', '.join(missed[:10])}")


if __name__ == "__main__":
    main()
