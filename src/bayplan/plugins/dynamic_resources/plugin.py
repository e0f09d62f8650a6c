"""DynamicResources: devices for the claims of a pod (KEP-4381 and its successors).

A pod may name claims, and a claim requests devices. An allocated claim binds its pods to the nodes
that can use its devices. For other claims Filter looks for free devices on every node, Reserve
takes those of the chosen node, and PreBind writes the allocation. Upstream:
plugins/dynamicresources.

`Releases` lists pods that are being removed from the users of a claim after a failed binding. The
next attempt may begin before that write ends, while the claim still names the pod. Then the write
would remove the reservation after the binding. So PreBind waits for the write and reads the claim
again.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, final

import numpy as np

from bayplan.api.device_objects import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    AllocationResult,
    ResourceClaim,
)
from bayplan.clock import rfc3339
from bayplan.config.feature_gates import FeatureGates
from bayplan.durations import Duration, duration_seconds
from bayplan.framework import plugin
from bayplan.framework.arithmetic import uniform
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    UPDATE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    queue_if,
)
from bayplan.framework.handle import Handle, Write
from bayplan.framework.status import SKIP, Code, NodeToStatus, Status, unschedulable
from bayplan.framework.types import Nomination, Normalizer, PreFilterResult
from bayplan.framework.validation import RefusedAnswer
from bayplan.plugins.dynamic_resources import binding
from bayplan.plugins.dynamic_resources.allocator import PoolsByNode
from bayplan.plugins.dynamic_resources.binding import BindingError
from bayplan.plugins.dynamic_resources.extended import wants_devices
from bayplan.plugins.dynamic_resources.features import features_of
from bayplan.plugins.dynamic_resources.filtering import (
    BINDING_TIMEOUT,
    ClaimLookup,
    ClaimsAttempt,
    NodeFilter,
    claims_of,
    is_ready,
    is_timed_out,
    preference,
    prepare,
    waits_for_conditions,
)
from bayplan.plugins.dynamic_resources.group_claims import (
    allocated_in_pass,
    claim_names_of,
    is_reserved,
)
from bayplan.plugins.dynamic_resources.node_allocatable import (
    DevicesWithAmounts,
    Statuses,
    named_as,
)
from bayplan.ports import ApiError, BindPort, OutcomeUnknownError
from bayplan.state.change_log import Facet
from bayplan.state.columns import NodeScores
from bayplan.state.device_table import DEVICE_KINDS
from bayplan.state.nodes import NodeInfo, NodeView
from bayplan.state.pods import PodInfo, PodShape

# ---- hints ----------------------------------------------------------------------------------


_NODE_ACTIONS = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE


def device_events(
    claims: ClaimLookup, *, are_deletions_events: bool = True, has_group_claims: bool = False
) -> Sequence[ClusterEventWithHint]:
    """The events that pods with claims wait for. Hints read claims as they are after the change.

    ``are_deletions_events``: whether the deletion of a claim is an event. ``has_group_claims``:
    whether a claim may have been made for the pod's group.
    """

    def of_pod(pod: PodInfo) -> list[ResourceClaim] | Status:
        return claims_of(pod, claims, has_group_claims=has_group_claims)

    def after_claim(
        pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None
    ) -> QueueingHint:
        return _after_claim(pod, old, new, of_pod)

    def after_own_update(pod: PodInfo, old: Any, new: PodInfo) -> QueueingHint:
        """The hint for an update of the pod itself: the controller has created the pod's claims,
        and reports them in the pod's status."""
        pod_claims = of_pod(new)
        return QueueingHint.QUEUE_SKIP if isinstance(pod_claims, Status) else QueueingHint.QUEUE

    actions = ActionType.ADD | UPDATE
    if are_deletions_events:
        actions |= ActionType.DELETE
    claim_changed = ClusterEvent(RESOURCE_CLAIM, actions)
    own_claims = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    return [
        ClusterEventWithHint(ClusterEvent(EventResource.NODE, _NODE_ACTIONS)),
        ClusterEventWithHint(claim_changed, after_claim),
        ClusterEventWithHint(ClusterEvent(EventResource.TARGET_POD, own_claims), after_own_update),
        ClusterEventWithHint(ClusterEvent(DEVICE_CLASS, ActionType.ADD | UPDATE)),
        ClusterEventWithHint(ClusterEvent(RESOURCE_SLICE, ActionType.ADD | UPDATE)),
    ]


def _after_claim(
    pod: PodInfo,
    old: ResourceClaim | None,
    new: ResourceClaim | None,
    of_pod: Callable[[PodInfo], list[ResourceClaim] | Status],
) -> QueueingHint:
    if new is None:
        was_allocated = old is not None and old.allocation is not None
        return queue_if(was_allocated)
    own = of_pod(pod)
    if isinstance(own, Status):
        return QueueingHint.QUEUE_SKIP
    if old is not None and old.allocation is not None and new.allocation is None:
        return QueueingHint.QUEUE  # Any pod may get the devices that the claim had.
    is_own = any(claim.uid == new.uid for claim in own)
    if not is_own or (old is not None and old.status == new.status):
        return QueueingHint.QUEUE_SKIP
    return QueueingHint.QUEUE


# ---- releases -------------------------------------------------------------------------------


#: The time between two checks whether a write has ended.
RELEASE_POLL_SECONDS: Final = 0.05
#: The number of stored releases. The oldest ones are dropped, after which only the API's version of
#: the claim counts for them.
COUNT_MAX: Final = 10_000


@final
class Releases:
    """The writes that took a reservation, or the devices of a claim, away from a pod since its last
    PreBind. They are found by the uids of the claim and of the pod."""

    def __init__(self) -> None:
        #: Whether the write is still under way.
        self._is_open: dict[tuple[str, str], bool] = {}

    def begin(self, claim_uid: str, pod_uid: str) -> None:
        """Note that a write is about to be sent."""
        self._is_open.pop((claim_uid, pod_uid), None)
        self._is_open[claim_uid, pod_uid] = True
        if len(self._is_open) > COUNT_MAX:
            del self._is_open[next(iter(self._is_open))]

    def end(self, claim_uid: str, pod_uid: str) -> None:
        """Note that the write was carried out or has failed."""
        if (claim_uid, pod_uid) in self._is_open:
            self._is_open[claim_uid, pod_uid] = False

    async def ended(self, claim_uid: str, pod_uid: str, port: BindPort) -> bool:
        """Wait until the write has ended. False: there was no write since the pod's last
        PreBind."""
        key = (claim_uid, pod_uid)
        while self._is_open.get(key):
            await port.sleep(RELEASE_POLL_SECONDS)
        return self._is_open.pop(key, None) is not None


# ---- plugin ---------------------------------------------------------------------------------


DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
#: The message of upstream's error if PreFilter did not run.
NO_NOTES = "not found"
TOO_FEW_ALLOCATIONS = "number of allocations {} is smaller than number of claims"
NO_ALLOCATION = "claim allocation not found for node"
#: The time between two checks of the devices' conditions.
POLL_SECONDS = 5.0

_TIME_IS_UP = "context deadline exceeded"
_KEY = "DynamicResources"
#: The first part of a key in the notes of a group. The second part is the uid of a member, and the
#: value is the member with its claims.
_ATTEMPT = "DynamicResources attempt"
#: The state of pods that request no devices; it is never changed.
_NO_CLAIMS = ClaimsAttempt([], has_special=False)


_DEFAULT_BINDING_TIMEOUT: Duration = "600s"
_BINDING_GATES = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")


class DynamicResourcesArgs(plugin.PluginArgs, frozen=True):
    """The arguments: how long the search on one node may take, and how long a device may take to
    become ready."""

    filter_timeout: Duration = "10s"
    binding_timeout: Duration = _DEFAULT_BINDING_TIMEOUT

    def problems(self) -> Iterable[tuple[str, str]]:
        if duration_seconds(self.filter_timeout) < 0:
            yield "filterTimeout", f"{self.filter_timeout}; wanted 0s or more"
        if duration_seconds(self.binding_timeout) < 1:
            yield "bindingTimeout", f"{self.binding_timeout}; wanted 1s or more"

    def problems_in_version(self, gates: FeatureGates) -> Iterable[tuple[str, str]]:
        if self.binding_timeout is _DEFAULT_BINDING_TIMEOUT:
            return
        if not gates.behaviour.has_binding_timeout:
            yield "bindingTimeout", "unknown field; newer versions of Kubernetes have it"
        elif missing := [name for name in _BINDING_GATES if not gates.enabled(name)]:
            yield "bindingTimeout", f"unwanted; belongs to the gate {missing[0]}, which is off"


@final
class DynamicResources(
    plugin.PreEnqueuePlugin[DynamicResourcesArgs],
    plugin.PreFilterPlugin,
    plugin.ScalarFilterPlugin,
    plugin.PostFilterPlugin,
    plugin.PodGroupPostFilterPlugin,
    plugin.ScorePlugin,
    plugin.RowScore,
    plugin.ReservePlugin,
    plugin.PreBindPlugin,
    plugin.EnqueueExtensions,
    plugin.SignPlugin,
):
    """Places pods where their devices are, or where there are devices for them."""

    name = "DynamicResources"
    kinds = DEVICE_KINDS
    concern_kinds = (DEVICE_CLASS,)
    optional_kinds = (DEVICE_TAINT_RULE,)
    caching = plugin.Caching(facets_if_unconcerned=Facet(0), signs_template=True)
    ignores_resizes = True
    allows_parallel_pre_bind = True
    normalizer = Normalizer.MAX

    def setup(self) -> None:
        args: DynamicResourcesArgs = self.args or DynamicResourcesArgs()
        self._binding_timeout_seconds = duration_seconds(args.binding_timeout)
        self._features = features_of(self.handle.gates)
        slices = self.handle.devices.resource_slices
        amounts = DevicesWithAmounts(slices) if self._features.node_allocatable else None
        self._filter = NodeFilter(
            self.handle,
            duration_seconds(args.filter_timeout) if self._features.filter_timeout else 0.0,
            self._binding_timeout_seconds,
            self._features.binding_conditions,
            amounts,
            self._features.group_claims,
        )
        self._pools = PoolsByNode(slices, self._features)
        self._releases = Releases()
        texts = self.handle.behaviour.release_texts
        #: The reason that a group gets, whether or not a member has claims.
        self.group_reason = texts.of_group
        self._has_no_claims = unschedulable(*filter(None, (texts.without_claims,)))
        self._releases_nothing = unschedulable(*filter(None, (texts.nothing,)))

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Gate the pod until its claims exist."""
        if not pod.spec.resource_claims:
            return None
        pod_word = self.handle.behaviour.claim_owner_word
        claims = claims_of(
            pod,
            self.handle.devices.resource_claims,
            pod_word,
            has_group_claims=self._features.group_claims,
        )
        return claims if isinstance(claims, Status) else None

    def concerns(self, shape: PodShape) -> bool:
        return wants_devices(shape, self.handle.devices.device_classes)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> PreFilterResult | Status | None:
        if not self.concerns(pod.shape):
            state[_KEY] = _NO_CLAIMS
            return SKIP
        state[_KEY] = ClaimsAttempt([], has_special=False)
        in_pass, groups = allocated_in_pass(state), self.handle.pod_groups
        prepared = prepare(
            pod,
            self.handle.devices,
            self._pools,
            groups,
            in_pass=in_pass,
            amounts=self._filter.amounts,
        )
        if isinstance(prepared, Status):
            return prepared
        state[_KEY] = prepared
        state.claim_amounts = prepared.claim_amounts
        if state.group_notes is not None:
            state.group_notes[_ATTEMPT, pod.uid] = (pod, prepared)
        return None if prepared.claims else SKIP

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return self._filter.verdict(state[_KEY], pod, node)

    def post_filter(
        self, state: CycleState, pod: PodInfo, node_to_status: NodeToStatus
    ) -> tuple[Nomination | None, Status | None]:
        """Release devices that restrict the pod to nodes that it cannot use. Runs when no node
        fits.

        Upstream takes a random claim of this kind; Bayplan takes the first.
        """
        attempt: ClaimsAttempt | None = state.get(_KEY)
        if attempt is None:
            return None, Status(Code.ERROR, (NO_NOTES,))
        for index in sorted(attempt.unavailable):
            claim = attempt.claims[index]
            if not attempt.is_special(index) and _is_free_but_for(claim, pod):
                self._take_back(claim, pod.uid, partial(binding.deallocate, claim=claim))
                return None, unschedulable(DEALLOCATED)
        if attempt.special is not None and attempt.special_is_in_api:
            claim = attempt.special
            _perform(self.handle, claim, partial(binding.delete_claim, claim=claim))
            return None, unschedulable(DELETED)
        return None, self._releases_nothing if attempt.claims else self._has_no_claims

    def release_for_group(self, notes: Mapping[Hashable, Any]) -> None:
        """Deallocate, for each member, a claim whose devices are on nodes that the member cannot
        use. If some member has no such claim, and no member has a node, a claim of the group is
        released. Upstream deallocates a claim once for each member, and gives up after the
        conflict."""
        attempts: list[tuple[PodInfo, ClaimsAttempt]] = [
            note
            for key, note in notes.items()
            if isinstance(key, tuple) and key[0] == _ATTEMPT and note[1].claims
        ]
        released = set[str]()
        found = [self._release_one(pod, attempt, released) for pod, attempt in attempts]
        if not all(found):
            self._release_of_group(attempts, released)

    def _release_one(self, pod: PodInfo, attempt: ClaimsAttempt, released: set[str]) -> bool:
        """Release one claim of a member. Returns whether there was one. ``released``: the uids of
        released claims; the function adds to it."""
        for index in sorted(attempt.unavailable):
            claim = attempt.claims[index]
            if attempt.is_special(index) or not _is_free_but_for(claim, pod):
                continue
            if claim.allocation is not None and claim.uid not in released:
                released.add(claim.uid)
                self._take_back(claim, pod.uid, partial(binding.deallocate, claim=claim))
            return True
        if attempt.special is not None and attempt.special_is_in_api:
            claim = attempt.special
            _perform(self.handle, claim, partial(binding.delete_claim, claim=claim))
            return True
        return False

    def _release_of_group(
        self, attempts: Sequence[tuple[PodInfo, ClaimsAttempt]], released: set[str]
    ) -> None:
        """Release one claim of the group if its members have no nodes."""
        member = attempts[0][0]
        state = self.handle.pod_groups.of(member)
        if not self._features.group_claims or state is None or state.group is None:
            return
        if not state.is_upstream or state.assigned_count:
            return
        group, group_uid = state.group, state.group.metadata.uid or ""
        for _, attempt in attempts:
            for index in sorted(attempt.unavailable):
                claim = attempt.claims[index]
                users = claim.status.reserved_for or ()
                is_free = all(user.uid == group_uid for user in users)
                if is_free and claim.allocation is not None and claim.uid not in released:
                    self._take_back(claim, group_uid, partial(binding.deallocate, claim=claim))
                    return
        for name in claim_names_of(group):
            claim = self.handle.devices.resource_claims.get(member.namespace, name)
            if claim is None or claim.allocation is None or claim.uid in released:
                continue
            if self._is_reserved(claim, member):
                self._take_back(claim, group_uid, partial(self._release, claim, group_uid))
                return

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: how high the alternatives rank that the pod would get on each node."""
        attempt: ClaimsAttempt | None = state.get(_KEY)
        if attempt is None or not attempt.by_node or not self._features.alternatives:
            return uniform(0, len(nodes))
        self._check_scorable(attempt)
        return np.array([_score_of(attempt, name) for name in nodes.names()], np.int64)

    def score_row(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        attempt: ClaimsAttempt | None = state.get(_KEY)
        if attempt is None or not attempt.by_node or not self._features.alternatives:
            return 0
        self._check_scorable(attempt)
        return _score_of(attempt, node.name)

    def _check_scorable(self, attempt: ClaimsAttempt) -> None:
        """Before 1.36, Score fails for pods with allocated and unallocated claims. Raises
        RefusedAnswer."""
        if self.handle.behaviour.scores_allocated_claims:
            return
        for node_allocation in attempt.by_node.values():
            if len(node_allocation.results) < len(attempt.claims):
                raise RefusedAnswer(TOO_FEW_ALLOCATIONS.format(len(node_allocation.results)))

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt: ClaimsAttempt | None = state.get(_KEY)
        if attempt is None:
            return Status(Code.ERROR, (NO_NOTES,))
        if attempt.allocator is None:
            return None
        node_allocation = attempt.by_node.get(node_name)
        if node_allocation is None or not node_allocation.results:
            needs = any(not attempt.is_special(index) for index, _ in attempt.unallocated())
            return Status(Code.ERROR, (NO_ALLOCATION,)) if needs else None
        for index, allocation in node_allocation.results.items():
            claim = attempt.claims[index]
            if claim.uid not in attempt.in_flight:
                self.handle.devices.resource_claims.put_in_flight(claim, allocation)
                attempt.in_flight[claim.uid] = allocation
            # A pod may name a claim twice. Then the first allocation is written.
            attempt.reserved[index] = attempt.in_flight[claim.uid]
        allocated_in_pass(state).update(attempt.in_flight)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        attempt: ClaimsAttempt | None = state.get(_KEY)
        if attempt is None:
            return
        self._give_back(attempt)
        for index, claim in enumerate(attempt.user_claims()):
            if attempt.user_of(index, pod).uid != pod.uid:
                continue  # Other members may need the claim.
            if index in attempt.written or claim.is_reserved_for(pod.uid):
                self._take_back(claim, pod.uid, partial(self._release, claim, pod.uid))
        special = attempt.special
        if special is not None and attempt.special_is_in_api and attempt.written:
            _perform(self.handle, special, partial(binding.delete_claim, claim=special))
        attempt.written.clear()
        if attempt.has_written_amounts:
            attempt.has_written_amounts = False
            self.handle.perform(f"Pod {pod.key}", partial(binding.clear_amounts, pod=pod))

    def pre_bind_preflight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        attempt: ClaimsAttempt | None = state.get(_KEY)
        return None if attempt is not None and attempt.claims else SKIP

    async def pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, port: BindPort
    ) -> Status | None:
        attempt: ClaimsAttempt = state[_KEY]
        try:
            for index, claim in enumerate(list(attempt.claims)):
                if await self._releases.ended(claim.uid, pod.uid, port):
                    # The attempt may have an older list of the claim's users.
                    claim = attempt.claims[index] = await binding.refreshed(port, claim)
                if not self._is_reserved(claim, pod):
                    await self._bind(attempt, index, pod, node_name, port=port)
            amounts = attempt.claim_amounts.get(node_name)
            if amounts:
                # From here on a failure must clear the amounts.
                attempt.has_written_amounts = True
                await binding.write_amounts(port, pod, self._named(amounts, attempt.special))
            if self._features.binding_conditions and any(
                waits_for_conditions(claim) for claim in attempt.claims
            ):
                note = f"waiting for binding conditions for device on node {node_name}"
                self.handle.emit(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
                return await self._ready(attempt, port)
        except (BindingError, ApiError, OutcomeUnknownError) as problem:
            return Status(Code.ERROR, (str(problem),))
        return None

    def _is_reserved(self, claim: ResourceClaim, pod: PodInfo) -> bool:
        return is_reserved(claim, pod, has_group_claims=self._features.group_claims)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        are_events = self.handle.behaviour.deleted_claims_are_events
        return device_events(
            self.handle.devices.resource_claims,
            are_deletions_events=are_events,
            has_group_claims=self._features.group_claims,
        )

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """Sign no pod with claims: a search for devices depends on the whole cluster, so its result
        is never cached."""
        return None if self.concerns(pod.shape) else ()

    # ---- binding --------------------------------------------------------------------------

    async def _bind(
        self, attempt: ClaimsAttempt, index: int, pod: PodInfo, node_name: str, *, port: BindPort
    ) -> None:
        """Bind one claim. Raises BindingError, ApiError, OutcomeUnknownError."""
        allocation = attempt.reserved.get(index)
        if attempt.is_special(index):
            if allocation is None:
                return  # the node offers the resource itself
            await self._create_special(attempt, node_name, port)
        claim = attempt.claims[index]
        # From here on a failure must release the claim.
        attempt.written.add(index)
        stamp = self._stamp if self._features.binding_conditions else None
        if allocation is not None and not self._is_in_flight(claim, allocation):
            claim = await binding.written_by_sharer(port, claim, allocation)
            allocation = None
        user = attempt.user_of(index, pod)
        bound = await binding.bind_claim(port, claim, user, allocation, stamp=stamp)
        attempt.claims[index] = bound
        self.handle.devices.resource_claims.assume(bound)
        if attempt.is_special(index):
            special = attempt.by_node[node_name].special
            assert special is not None, f"{pod.key} has no claim for extended resources"
            await binding.tell_containers(port, pod, bound.metadata.name, special.mappings)

    def _named(self, amounts: Statuses, special: ResourceClaim | None) -> Statuses:
        """The amounts with the name that the claim for extended resources has in the API."""
        if special is None or not self._features.behaviour.amounts_name_created_claims:
            return amounts
        return named_as(amounts, special.metadata.name)

    def _is_in_flight(self, claim: ResourceClaim, allocation: AllocationResult) -> bool:
        """Whether no member that shares the allocation has written it."""
        return self.handle.devices.resource_claims.pending_allocation(claim.uid) is allocation

    def _take_back(self, claim: ResourceClaim, pod_uid: str, write: Write) -> None:
        """Remove the pod's reservation, or the devices of its claim.

        The pod's next PreBind waits for the write, because its attempt may not have seen the write
        and may assume that the claim is reserved and allocated.
        """
        self._releases.begin(claim.uid, pod_uid)

        async def tracked(port: BindPort) -> None:
            try:
                await write(port)
            finally:
                self._releases.end(claim.uid, pod_uid)

        _perform(self.handle, claim, tracked)

    async def _release(self, claim: ResourceClaim, pod_uid: str, port: BindPort) -> None:
        """Remove the reservation of the pod, because the pod no longer uses the claim. Raises
        ApiError, OutcomeUnknownError."""
        released = await binding.unreserve(port, claim, pod_uid)
        if released is not None:
            self.handle.devices.resource_claims.assume(released)

    async def _create_special(self, attempt: ClaimsAttempt, node_name: str, port: BindPort) -> None:
        """Create the special claim in the API. From then on the claim has another uid."""
        special, old = attempt.by_node[node_name].special, attempt.claims[-1]
        assert special is not None, f"{old.key} was not asked for"
        created = await binding.create_special_claim(port, special.claim)
        attempt.claims[-1] = created
        allocation, claims = attempt.in_flight.pop(old.uid), self.handle.devices.resource_claims
        claims.remove_in_flight(old.uid, allocation)
        claims.put_in_flight(created, allocation)
        attempt.in_flight[created.uid] = allocation

    async def _ready(self, attempt: ClaimsAttempt, port: BindPort) -> Status | None:
        """Wait until all devices are ready, one device has failed, or the time is over."""
        deadline = self.handle.now_seconds + self._binding_timeout_seconds
        while True:
            ready = [self._is_ready(claim) for claim in attempt.claims]
            failed = next((each for each in ready if isinstance(each, str)), None)
            if failed is not None:
                return Status(Code.ERROR, (failed,))
            if all(ready):
                return None
            if self.handle.now_seconds >= deadline:
                return Status(Code.ERROR, (f"{BINDING_TIMEOUT}: {_TIME_IS_UP}",))
            await port.sleep(POLL_SECONDS)

    def _is_ready(self, claim: ResourceClaim) -> bool | str:
        """Whether all devices are ready in the API's version of the claims; or a text that names
        the device that has failed."""
        namespace, name = claim.metadata.namespace or "", claim.metadata.name
        newest = self.handle.devices.resource_claims.get(namespace, name)
        if newest is None or newest.uid != claim.uid:
            return f'could not find ResourceClaim "{claim.key}"'
        ready = is_ready(newest)
        now = self.handle.epoch_seconds
        if ready is False and is_timed_out(newest, now, self._binding_timeout_seconds):
            return f"{BINDING_TIMEOUT}: claim={name}"
        return ready

    # ---- inside ---------------------------------------------------------------------------

    def _stamp(self) -> str:
        return rfc3339(self.handle.epoch_seconds)

    def _give_back(self, attempt: ClaimsAttempt) -> None:
        for uid, allocation in attempt.in_flight.items():
            self.handle.devices.resource_claims.remove_in_flight(uid, allocation)
        attempt.in_flight.clear()
        attempt.reserved.clear()


def _perform(handle: Handle, claim: ResourceClaim, write: Write) -> None:
    handle.perform(f"ResourceClaim {claim.key}", write)


def _is_free_but_for(claim: ResourceClaim, pod: PodInfo) -> bool:
    """Whether no pod but this one uses the claim."""
    return all(user.uid == pod.uid for user in claim.status.reserved_for or ())


def _score_of(attempt: ClaimsAttempt, node_name: str) -> int:
    allocation = attempt.by_node.get(node_name)
    return 0 if allocation is None else preference(attempt, allocation)
