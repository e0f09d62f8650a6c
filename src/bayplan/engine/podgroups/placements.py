"""From a committed pass to bound members: Permit for all of them, then all bindings, or none.

If a Permit plugin returns Wait for a member, the whole group keeps its reservations and waits. When
all members are allowed, all are bound. If one member is rejected, the group gives everything back
and returns to the queue as one entry.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import final

from msgspec import Struct, field

from bayplan.engine.core import GroupController
from bayplan.engine.cycle import Cycle
from bayplan.engine.failures import CLEAR_NOMINATION, Failure, FailureHandler
from bayplan.engine.outbox import Outbox
from bayplan.engine.placements import PlacedPod, Placements
from bayplan.engine.podgroups.trial import PlacedMember, unreserve
from bayplan.engine.telemetry import Telemetry
from bayplan.engine.waiting import WaitingPods
from bayplan.framework.events import EVENT_ASSIGNED_POD_DELETE
from bayplan.framework.status import Diagnosis, Status, is_rejected, shared_names
from bayplan.queue.entry import QueuedPodGroupInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.state.cache import ClusterView
from bayplan.state.pods import PodInfo


class _WaitingGroup(Struct, eq=False):
    lead: QueuedPodGroupInfo
    members: list[PlacedPod]
    #: Uids of members that some plugin has not allowed yet.
    waiting: set[str] = field(default_factory=set[str])
    is_over: bool = False


@final
class GroupPlacements:
    """Groups between their trial and their bindings."""

    def __init__(
        self,
        cluster: ClusterView,
        queue: SchedulingQueue,
        outbox: Outbox,
        telemetry: Telemetry,
        *,
        waiting: WaitingPods,
        group_controller: GroupController,
        failures: FailureHandler,
        placements: Placements,
    ) -> None:
        self._cluster = cluster
        self._group_controller = group_controller
        self._outbox = outbox
        self._queue = queue
        self._telemetry = telemetry
        self._waiting = waiting
        self._failures = failures
        self._placements = placements

    def place(self, lead: QueuedPodGroupInfo, members: Sequence[tuple[Cycle, PodInfo]]) -> None:
        """Run Permit for all members, which are assumed and reserved on their nodes."""
        group = _WaitingGroup(lead, [self._placements.adopt(*member) for member in members])
        permits: list[tuple[PlacedPod, dict[str, float]]] = []
        for placed in group.members:
            run = placed.framework.run_permit
            status, waits = run(placed.state, placed.pod, placed.node_name)
            if status is not None and not waits:
                self._give_back(group, placed.pod, status)
                return
            permits.append((placed, waits))
        group.waiting = {placed.pod.uid for placed, waits in permits if waits}
        for placed, waits in permits:
            if waits:
                self._hold(group, placed, waits)
        if not group.waiting:
            self._bind(group)

    def take_back(self, members: Sequence[PlacedMember]) -> None:
        """Give back what the members hold, because a bug of Bayplan stopped the attempt."""
        for member in reversed(members):
            self._placements.drop(member.pod)
            if self._cluster.cache.is_assumed(member.pod.uid):
                unreserve(self._telemetry, member.cycle, member.pod)
                self._cluster.forget(member.pod)

    def _hold(self, group: _WaitingGroup, placed: PlacedPod, waits: dict[str, float]) -> None:
        current = self._cluster.pods.get(placed.pod.uid, placed.pod)
        self._outbox.patch_status(current, None, placed.node_name)
        self._placements.permit_waits.hold(
            placed,
            waits,
            boundary=partial(self._run, group),
            then=partial(self._after_wait, group, placed.pod),
        )

    def _run(self, group: _WaitingGroup, step: Callable[[], None]) -> None:
        """Run a step that concerns the whole group inside the boundary of its attempt."""
        members = [placed.queued for placed in group.members]
        started_seconds = group.members[0].started_seconds

        def fail(failure: Failure) -> None:
            group.is_over = True
            self._failures.handle_group(group.lead, members, started_seconds, failure)
            self._group_controller.changed_by(queued.pod for queued in members)

        self._placements.boundary.run(f"group {group.lead.key}", members, step, fail)

    def _after_wait(self, group: _WaitingGroup, pod: PodInfo, status: Status | None) -> None:
        if group.is_over:
            return
        group.waiting.discard(pod.uid)
        if status is not None:
            self._give_back(group, pod, status)
        elif not group.waiting:
            self._bind(group)

    def _bind(self, group: _WaitingGroup) -> None:
        """Bind each member by itself. The failure of one member does not affect the others."""
        group.is_over = True
        for placed in group.members:
            go_on = partial(self._placements.go_on, placed)
            self._placements.boundary.run_for_pod(placed.queued, placed.started_seconds, go_on)

    def _give_back(self, group: _WaitingGroup, pod: PodInfo, status: Status) -> None:
        """Give back all members. ``pod``: the member that was rejected."""
        group.is_over = True
        for uid in group.waiting:
            self._waiting.leave(uid)
        for placed in reversed(group.members):
            self._placements.give_back(placed)
        diagnosis = Diagnosis()
        diagnosis.add_plugin_status(status)
        for placed in group.members:
            placed.queued.unschedulable_plugins = shared_names(diagnosis.unschedulable_plugins)
            placed.queued.pending_plugins = shared_names(diagnosis.pending_plugins)
        message = f"group {group.lead.key}: {pod.key}: {status.message}"
        failure = Failure(status, message, diagnosis, CLEAR_NOMINATION)
        if not is_rejected(status):
            self._telemetry.plugin_failed(pod.key, status.plugin, status.message)
        self._group_controller.explain(group.lead.key, message)
        state = self._cluster.pod_groups.get(group.lead.key)
        if state is not None:
            attempt = group.lead.attempts
            self._telemetry.record_group(state, "given back", attempt=attempt, message=message)
        members = [placed.queued for placed in group.members]
        started_seconds = group.members[0].started_seconds
        self._failures.handle_group(group.lead, members, started_seconds, failure)
        self._group_controller.changed_by([pod])
        uids = {placed.pod.uid for placed in group.members}
        for placed in group.members:
            if is_rejected(status):
                # The freed resources may help other pods, but not the group itself.
                self._queue.move_all(
                    EVENT_ASSIGNED_POD_DELETE, placed.pod, None, lambda p: p.uid not in uids
                )
