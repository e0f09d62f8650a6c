"""Faults to be planted into the scheduler: the fault simulation must find each of them.

A change of the code could cause each of these faults. Each names the invariants that it violates,
so the tests show that every rule of the brute force and every other checker finds a fault.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pytest

from bayplan import runner
from bayplan.api.objects import POD
from bayplan.engine.placements import Placements
from bayplan.engine.podgroups.trial import PodGroupTrial
from bayplan.framework.plugin import Plugin
from bayplan.framework.preemption import Victims
from bayplan.framework.status import EXTENDER_NAME, Code, Rejection, Status
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.default_preemption.plugin import DefaultPreemption
from bayplan.plugins.default_preemption.victims import victims_on
from bayplan.plugins.dynamic_resources import binding
from bayplan.plugins.dynamic_resources.filtering import NodeFilter
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.inter_pod_affinity.plugin import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.node_volume_limits import NodeVolumeLimits
from bayplan.plugins.pod_topology_spread.plugin import PodTopologySpread
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.plugins.volume_binding.binding import Progress
from bayplan.plugins.volume_binding.claims import NodeVolumes
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.ports import ApiError, EventType, OutcomeUnknownError, WatchEvent
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import UnschedulablePods
from bayplan.state.cache import Cache
from bayplan.state.device_table import Claims
from tests.sim import planted_rules

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Plant:
    """A fault, and the invariants that it violates, one of which is reported first."""

    name: str
    apply: Callable[[Patch], None]
    invariants: tuple[str, ...]


# ---- plugins that accept everything ---------------------------------------------------------


def _accepts_everything(plugin: type[Plugin]) -> Callable[[Patch], None]:
    def apply(patch: Patch) -> None:
        patch.setattr(plugin, "filter", lambda *_: ())
        if hasattr(plugin, "filter_row"):
            patch.setattr(plugin, "filter_row", lambda *_: ())

    return apply


def _anti_affinity_of_placed_pods_is_ignored(patch: Patch) -> None:
    patch.setattr(InterPodAffinity, "_terms_about", lambda *_: ())


def _own_anti_affinity_is_ignored(patch: Patch) -> None:
    notes_of = InterPodAffinity._notes

    def notes(self: InterPodAffinity, *args: Any) -> Any:
        notes = notes_of(self, *args)
        notes.away = type(notes.away)()
        return notes

    patch.setattr(InterPodAffinity, "_notes", notes)


def _addresses_of_ports_do_not_meet(patch: Patch) -> None:
    """0.0.0.0 is an ordinary address."""

    def rejection(self: NodePorts, state: Any, pod: Any, node: Any) -> Any:
        host_ports = set(pod.shape.host_ports)
        is_in_use = any(host_ports & set(other.shape.host_ports) for other in node.pods)
        return ((Code.UNSCHEDULABLE, ("taken",)),) if is_in_use else ()

    def rejections(self: NodePorts, state: Any, pod: Any, nodes: Any, feasible: Any) -> Any:
        verdicts = [rejection(self, state, pod, nodes.info(at)) for at in range(len(nodes))]
        yield Rejection(np.array([bool(each) for each in verdicts]), Code.UNSCHEDULABLE, ("taken",))

    patch.setattr(NodePorts, "filter", rejections)
    patch.setattr(NodePorts, "filter_row", rejection)


def _volumes_are_within_reach(patch: Patch) -> None:
    rejections = NodeVolumes.rejections

    def all_but_one(self: NodeVolumes) -> Any:
        self.out_of_reach[:] = False
        return rejections(self)

    patch.setattr(NodeVolumes, "rejections", all_but_one)


def _gates_are_open(patch: Patch) -> None:
    patch.setattr(SchedulingGates, "pre_enqueue", lambda *_: None)


def _devices_fit(patch: Patch) -> None:
    """Filter accepts every node for pods whose devices are allocated elsewhere."""
    verdict_of = NodeFilter.verdict

    def verdict(self: NodeFilter, attempt: Any, pod: Any, node: Any) -> Status | None:
        status = verdict_of(self, attempt, pod, node)
        return status if attempt.allocator is not None else None

    patch.setattr(NodeFilter, "verdict", verdict)


# ---- resource accounting --------------------------------------------------------------------


def _room_is_not_released(patch: Patch) -> None:
    def give_back(self: Placements, placed: Any) -> None:
        del self.by_uid[placed.pod.uid]
        for _ in placed.framework.run_unreserve(placed.state, placed.pod, placed.node_name):
            pass

    patch.setattr(Placements, "give_back", give_back)


def _bound_pods_are_not_counted_until_their_event_arrives(patch: Patch) -> None:
    finished = Placements.binding_finished

    def forgetful(self: Placements, outcome: Any) -> None:
        placed = self.by_uid.get(outcome.uid)
        finished(self, outcome)
        if placed is not None and outcome.status is None:
            self._cluster.forget(placed.pod)

    patch.setattr(Placements, "binding_finished", forgetful)


def _a_pod_is_counted_on_the_old_node(patch: Patch) -> None:
    """The API binds the pod to another node than the assumed one."""
    add = Cache.add_pod

    def stubborn(self: Cache, pod: Any) -> None:
        old = self.by_uid.get(pod.uid)
        if old is not None and old.node_name != pod.node_name:
            self._assumed.discard(pod.uid)
        else:
            add(self, pod)

    patch.setattr(Cache, "add_pod", stubborn)


def _pods_of_a_lost_node_are_forgotten(patch: Patch) -> None:
    """The pods run on the new node of the same name."""
    remove = Cache.remove_node

    def forgetful(self: Cache, name: str) -> None:
        for pod in self.pods():
            if pod.node_name == name:
                self.remove_pod(pod.uid)
        remove(self, name)

    patch.setattr(Cache, "remove_node", forgetful)


def _devices_in_flight_are_free(patch: Patch) -> None:
    put = Claims.put_in_flight

    def put_uncounted(self: Any, claim: Any, allocation: Any) -> None:
        put(self, claim, allocation)
        self._count(claim.uid, None)

    patch.setattr(Claims, "put_in_flight", put_uncounted)


# ---- events and messages --------------------------------------------------------------------


def _watches_lose(patch: Patch, *, is_lost: Callable[[Any, WatchEvent], bool]) -> None:
    """Events for which ``is_lost`` holds are missing from what a watch hands over."""
    take = runner.Reflector._take

    def lossy(self: runner.Reflector, events: Any) -> None:
        take(self, [event for event in events if not is_lost(self, event)])

    patch.setattr(runner.Reflector, "_take", lossy)


def _some_deletions_are_dropped(patch: Patch) -> None:
    numbers = count()

    def is_lost(reflector: Any, event: WatchEvent) -> bool:
        if event.type is not EventType.DELETED or event.kind != POD or next(numbers) % 10 != 9:
            return False
        reflector._delivered.pop(runner._key(event.object.metadata), None)
        return True

    _watches_lose(patch, is_lost=is_lost)


def _some_changes_are_dropped(patch: Patch) -> None:
    numbers = count()

    def is_lost(reflector: Any, event: WatchEvent) -> bool:
        if event.type is not EventType.MODIFIED or next(numbers) % 30 != 29:
            return False
        # A listing does not make up for the change.
        reflector._delivered[runner._key(event.object.metadata)] = event.object.metadata
        return True

    _watches_lose(patch, is_lost=is_lost)


def _deletions_that_a_listing_shows_are_dropped(patch: Patch) -> None:
    changes_of = runner.Reflector._changes

    def lossy(self: runner.Reflector, objects: Any) -> Any:
        return [e for e in changes_of(self, objects) if e.type is not EventType.DELETED]

    patch.setattr(runner.Reflector, "_changes", lossy)


def _the_last_of_several_changes_is_dropped(patch: Patch) -> None:
    """Changes that come together, of a listing or of a watch."""
    take = runner.Reflector._take

    def lossy(self: runner.Reflector, events: Any) -> None:
        events = list(events)
        if len(events) > 1:
            meta = events[-1].object.metadata
            self._delivered[runner._key(meta)] = meta
            del events[-1]
        take(self, events)

    patch.setattr(runner.Reflector, "_take", lossy)


def _a_pod_that_another_replaced_stays(patch: Patch) -> None:
    """The deletion of the pod was not delivered, and another pod has its name."""
    take = runner.Reflector._take

    def replaced(self: runner.Reflector, events: Any) -> None:
        events = list(events)
        for event in events:
            if event.type in (EventType.ADDED, EventType.MODIFIED):
                key = runner._key(event.object.metadata)
                before = self._delivered.get(key)
                if before is not None and before.uid != event.object.metadata.uid:
                    del self._delivered[key]
        take(self, events)

    patch.setattr(runner.Reflector, "_take", replaced)


def _pods_are_tried_before_all_is_listed(patch: Patch) -> None:
    async def reflect(self: runner.Runner, kind: str) -> None:
        arguments = (self._cluster, kind, self._deliver, self._scheduler.bug)
        self._spawn(runner.Reflector(*arguments).run())

    patch.setattr(runner.Runner, "_reflect", reflect)


# ---- the queue ----------------------------------------------------------------------------


def _events_wake_no_pod(patch: Patch) -> None:
    patch.setattr(SchedulingQueue, "move_all", lambda *_, **__: None)


def _a_rejected_pod_is_lost(patch: Patch) -> None:
    patch.setattr(SchedulingQueue, "add_unschedulable", lambda *_, **__: None)


def _no_pod_is_preempted(patch: Patch) -> None:
    no = (None, Status(Code.UNSCHEDULABLE, ("no victims",)))
    patch.setattr(DefaultPreemption, "post_filter", lambda *_: no)


# ---- bindings -----------------------------------------------------------------------------


def _bindings_are_sent_twice(patch: Patch) -> None:
    """The API refuses the second binding, and this answer counts as the answer to the first."""

    async def bind(self: DefaultBinder, state: Any, pod: Any, node_name: str, port: Any) -> Any:
        try:
            await port.bind(pod, node_name)
            await port.bind(pod, node_name)
        except (ApiError, OutcomeUnknownError) as problem:
            return Status.from_error(problem)
        return None

    patch.setattr(DefaultBinder, "bind", bind)


def _an_unknown_outcome_counts_as_success(patch: Patch) -> None:
    async def bind(self: DefaultBinder, state: Any, pod: Any, node_name: str, port: Any) -> Any:
        try:
            await port.bind(pod, node_name)
        except ApiError as problem:
            return Status.from_error(problem)
        except OutcomeUnknownError:
            return None
        return None

    patch.setattr(DefaultBinder, "bind", bind)


def _pods_are_bound_where_the_pod_before_went(patch: Patch) -> None:
    bind_of, before = DefaultBinder.bind, [""]

    async def bind(self: DefaultBinder, state: Any, pod: Any, node_name: str, port: Any) -> Any:
        before[0], name = node_name, before[0] or node_name
        return await bind_of(self, state, pod, name, port)

    patch.setattr(DefaultBinder, "bind", bind)


def _pre_bind_does_nothing(plugin: type[Plugin]) -> Callable[[Patch], None]:
    async def pre_bind(*_: Any) -> None:
        return None

    return lambda patch: patch.setattr(plugin, "pre_bind", pre_bind)


def _nodes_that_an_extender_rejected_come_back(patch: Patch) -> None:
    patch.setattr("bayplan.engine.extenders.round.applied", lambda *_: None)


# ---- one more for each invariant ------------------------------------------------------------


def _a_removed_node_stays(patch: Patch) -> None:
    patch.setattr(Cache, "remove_node", lambda *_: None)


def _a_deleted_pod_stays_in_the_queue(patch: Patch) -> None:
    patch.setattr(SchedulingQueue, "delete", lambda *_: None)


def _pods_are_bound_again(patch: Patch) -> None:
    """The API server allows a second binding, and the scheduler sends one for a bound pod."""
    patch.setattr("bayplan.adapters.embedded.api_server.why_not_bindable", lambda _: None)


def _volumes_out_of_reach_are_accepted(patch: Patch) -> None:
    """A provisioner provisions volumes that no node reaches, and PreBind does not check them."""

    def nowhere(*_: Any) -> Any:
        return [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]}]

    patch.setattr("bayplan.sim.world.claim_binding.node_terms", nowhere)
    patch.setattr(Progress, "_check_reach", lambda *_: None)


def _devices_are_written(change: Callable[[Any], None]) -> Callable[[Patch], None]:
    """Claims are written with another status than the scheduler decided."""

    def apply(patch: Patch) -> None:
        reservation_of = binding._reservation

        def reservation(*arguments: Any) -> Any:
            written = reservation_of(*arguments)
            change(written["status"])
            return written

        patch.setattr(binding, "_reservation", reservation)

    return apply


def _for_no_pod(status: Any) -> None:
    del status["reservedFor"]


def _for_no_node(status: Any) -> None:
    if "allocation" in status:
        expression = {"key": "zone", "operator": "In", "values": ["nowhere"]}
        terms = [{"matchExpressions": [expression]}]
        status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}


def _all_pods_of_a_node_are_evicted(patch: Patch) -> None:
    def all_on(node: Any, *arguments: Any, **options: Any) -> Any:
        victims = victims_on(node, *arguments, **options)
        if isinstance(victims, Victims):
            return Victims(tuple(node.pods), victims.pdb_violation_count)
        return victims

    patch.setattr("bayplan.plugins.default_preemption.dry_run.victims_on", all_on)


def _too_few_members_are_enough(patch: Patch) -> None:
    run = PodGroupTrial.run
    patch.setattr(PodGroupTrial, "run", lambda self, members, n: run(self, members, n - 1))
    best = "bayplan.engine.podgroups.attempts.max"
    patch.setattr(best, lambda *counts: max(1, max(*counts) - 1), raising=False)


def _pods_that_an_extender_rejected_stay(patch: Patch) -> None:
    """No event and no timer moves them. An extender's new answer is no event."""
    woken_by = UnschedulablePods.woken_by

    def woken(*arguments: Any) -> list[Any]:
        return [
            (entry, strategy)
            for entry, strategy in woken_by(*arguments)
            if not any(EXTENDER_NAME in queued.unschedulable_plugins for queued in entry.pods)
        ]

    patch.setattr(UnschedulablePods, "woken_by", woken)
    patch.setattr(UnschedulablePods, "first_overdue", lambda *_: None)


PLANTS = (
    Plant(
        "NodeResourcesFit accepts everything", _accepts_everything(NodeResourcesFit), ("resources",)
    ),
    Plant("NodePorts accepts everything", _accepts_everything(NodePorts), ("ports",)),
    Plant("0.0.0.0 is an address", _addresses_of_ports_do_not_meet, ("ports",)),
    Plant("NodeAffinity accepts everything", _accepts_everything(NodeAffinity), ("node_affinity",)),
    Plant(
        "NodeUnschedulable accepts everything",
        _accepts_everything(NodeUnschedulable),
        ("unschedulable",),
    ),
    Plant("TaintToleration accepts everything", _accepts_everything(TaintToleration), ("taints",)),
    Plant(
        "InterPodAffinity accepts everything", _accepts_everything(InterPodAffinity), ("affinity",)
    ),
    Plant("own anti-affinity is ignored", _own_anti_affinity_is_ignored, ("anti_affinity",)),
    Plant(
        "anti-affinity of placed pods is ignored",
        _anti_affinity_of_placed_pods_is_ignored,
        ("anti_affinity_of_placed",),
    ),
    Plant(
        "PodTopologySpread accepts everything",
        _accepts_everything(PodTopologySpread),
        ("spreading",),
    ),
    Plant(
        "NodeVolumeLimits accepts everything",
        _accepts_everything(NodeVolumeLimits),
        ("attach_limits",),
    ),
    Plant(
        "VolumeRestrictions accepts everything",
        _accepts_everything(VolumeRestrictions),
        ("one_pod",),
    ),
    Plant("volumes are within reach", _volumes_are_within_reach, ("volumes",)),
    Plant("devices fit", _devices_fit, ("devices",)),
    Plant("devices in flight are free", _devices_in_flight_are_free, ("devices exclusive",)),
    Plant("gates are open", _gates_are_open, ("gates",)),
    Plant(
        "nodes that an extender rejected come back",
        _nodes_that_an_extender_rejected_come_back,
        ("extender",),
    ),
    Plant(
        "room is not given back",
        _room_is_not_released,
        (
            "cache",
            "woken",
        ),
    ),
    Plant(
        "bound pods are not counted until their event arrives",
        _bound_pods_are_not_counted_until_their_event_arrives,
        (
            "resources",
            "ports",
            "anti_affinity",
            "anti_affinity_of_placed",
            "affinity",
            "spreading",
        ),
    ),
    Plant(
        "a pod is counted on the old node",
        _a_pod_is_counted_on_the_old_node,
        (
            "cache",
            "resources",
            "woken",
        ),
    ),
    Plant(
        "pods of a lost node are forgotten",
        _pods_of_a_lost_node_are_forgotten,
        (
            "cache",
            "resources",
            "ports",
            "spreading",
            "anti_affinity",
            "anti_affinity_of_placed",
        ),
    ),
    Plant(
        "some deletions are dropped",
        _some_deletions_are_dropped,
        (
            "cache",
            "woken",
        ),
    ),
    Plant("some changes are dropped", _some_changes_are_dropped, ("cache",)),
    Plant(
        "the last of several changes is dropped",
        _the_last_of_several_changes_is_dropped,
        ("cache",),
    ),
    Plant(
        "deletions that a listing shows are dropped",
        _deletions_that_a_listing_shows_are_dropped,
        (
            "cache",
            "pod exists",
            "node exists",
            "woken",
        ),
    ),
    Plant(
        "a pod that another replaced stays",
        _a_pod_that_another_replaced_stays,
        (
            "cache",
            "pod exists",
        ),
    ),
    Plant(
        "pods are tried before all is listed", _pods_are_tried_before_all_is_listed, ("all listed",)
    ),
    Plant("events wake no pod", _events_wake_no_pod, ("woken",)),
    Plant(
        "a rejected pod is lost",
        _a_rejected_pod_is_lost,
        (
            "woken",
            "cache",
        ),
    ),
    Plant("no pod is preempted", _no_pod_is_preempted, ("preempts",)),
    Plant("bindings are sent twice", _bindings_are_sent_twice, ("placed once",)),
    Plant(
        "an unknown outcome counts as success",
        _an_unknown_outcome_counts_as_success,
        (
            "cache",
            "woken",
        ),
    ),
    Plant(
        "pods are bound where the pod before went",
        _pods_are_bound_where_the_pod_before_went,
        ("chosen node",),
    ),
    Plant(
        "pods are bound before their volumes are",
        _pre_bind_does_nothing(VolumeBinding),
        ("volume bound",),
    ),
    Plant(
        "pods are bound before their devices are allocated",
        _pre_bind_does_nothing(DynamicResources),
        ("devices allocated",),
    ),
    Plant("a removed node stays", _a_removed_node_stays, ("node exists",)),
    Plant("a deleted pod stays in the queue", _a_deleted_pod_stays_in_the_queue, ("pod exists",)),
    Plant("pods are bound again", _pods_are_bound_again, ("bound once",)),
    Plant(
        "volumes out of reach are accepted",
        _volumes_out_of_reach_are_accepted,
        ("bound volume in reach",),
    ),
    Plant(
        "devices are reserved for no pod", _devices_are_written(_for_no_pod), ("devices reserved",)
    ),
    Plant(
        "devices are allocated for no node",
        _devices_are_written(_for_no_node),
        ("allocated devices in reach",),
    ),
    Plant("all pods of a node are evicted", _all_pods_of_a_node_are_evicted, ("victims",)),
    Plant("too few members are enough", _too_few_members_are_enough, ("gang",)),
    Plant("pods that an extender rejected stay", _pods_that_an_extender_rejected_stay, ("placed",)),
    Plant(
        "resizes are added up", planted_rules.resizes_are_added_up, ("rejected", "woken", "placed")
    ),
    Plant(
        "terminating pods count in spreading",
        planted_rules.terminating_pods_count_in_spreading,
        ("rejected",),
    ),
    Plant("budgets are ignored", planted_rules.budgets_are_ignored, ("budgets",)),
    Plant("ports of sidecars are ignored", planted_rules.ports_of_sidecars_are_ignored, ("ports",)),
    Plant("no pod is reprieved", planted_rules.no_pod_is_reprieved, ("reprieved",)),
    Plant("nominated pods are ignored", planted_rules.nominated_pods_are_ignored, ("nominated",)),
    Plant(
        "init containers request nothing",
        planted_rules.init_containers_request_nothing,
        ("resources",),
    ),
    Plant("all protocols are one", planted_rules.all_protocols_are_one, ("rejected", "woken")),
    Plant(
        "the effect of a toleration is ignored",
        planted_rules.the_effect_of_a_toleration_is_ignored,
        ("taints",),
    ),
    Plant(
        "the namespaces of terms are ignored",
        planted_rules.the_namespaces_of_terms_are_ignored,
        ("affinity", "anti_affinity", "rejected"),
    ),
    Plant(
        "allowed topologies are ignored",
        planted_rules.allowed_topologies_are_ignored,
        ("volumes",),
    ),
    Plant(
        "nominations of deleted pods stay",
        planted_rules.nominations_of_deleted_pods_stay,
        ("nominated", "woken"),
    ),
    Plant("minDomains is ignored", planted_rules.min_domains_is_ignored, ("spreading",)),
    Plant(
        "nodeTaintsPolicy is ignored",
        planted_rules.node_taints_policy_is_ignored,
        ("rejected", "spreading", "woken"),
    ),
    Plant(
        "nodeAffinityPolicy is ignored",
        planted_rules.node_affinity_policy_is_ignored,
        ("rejected", "spreading", "woken"),
    ),
    Plant(
        "a port is released twice",
        planted_rules.a_port_is_released_twice,
        ("ports", "nominated", "cache"),
    ),
)
