"""Filter: whether allocated claims can be used on a node, and whether other claims can get devices
there."""

from collections.abc import Callable
from typing import final

from msgspec import Struct

from bayplan.api.device_objects import AllocationResult, ResourceClaim
from bayplan.api.objects import Node
from bayplan.framework.handle import Handle
from bayplan.framework.status import Code, Status, unresolvable
from bayplan.plugins.dynamic_resources.attempt import Attempt, NodeAllocation
from bayplan.plugins.dynamic_resources.extended import NodeClaim, claim_for_node
from bayplan.plugins.dynamic_resources.pools import (
    AllocationError,
    NodeAllocationFailed,
    any_matches,
)
from bayplan.plugins.dynamic_resources.pre_filter import is_ready, is_timed_out
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo

NOT_AVAILABLE = "resourceclaim not available on the node"
CANNOT_ALLOCATE = "cannot allocate all claims"
#: The feature of nodes whose kubelet can skip a driver's node operations for a device.
OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
#: Steps of a search between two readings of the clock.
_STEPS_PER_LOOK = 64


class _OutOfTime(Exception):
    """The search took too long."""


@final
class NodeFilter(Struct, frozen=True):
    """Evaluates nodes one by one, and stores each result in the attempt."""

    handle: Handle
    #: How long a search on one node may take; 0: as long as it takes.
    filter_timeout_seconds: float
    binding_timeout_seconds: float
    #: Whether devices may have to be made ready before their pods are bound.
    has_binding_conditions: bool = True

    def verdict(self, attempt: Attempt, pod: PodInfo, node: NodeInfo) -> Status | None:
        """None: the node can be used, and its allocation is stored."""
        special: NodeClaim | None = None
        if attempt.special is not None:
            classes = self.handle.devices.device_classes
            node_claim = claim_for_node(pod, attempt.special, node, classes)
            if isinstance(node_claim, Status):
                return node_claim
            special = node_claim
            if special is None and not attempt.has_user_claims:
                return None  # the node offers the resource itself
        unavailable = self._unavailable(attempt, node.node)
        results = self._results(attempt, special, node.node)
        if isinstance(results, Status):
            return results
        if unavailable:
            attempt.unavailable |= unavailable
            return unresolvable(NOT_AVAILABLE)
        if attempt.allocator is not None:
            attempt.by_node[node.name] = NodeAllocation(results, special)
        return None

    def _unavailable(self, attempt: Attempt, node: Node) -> set[int]:
        """Allocated claims that the node cannot use, or whose devices have failed."""
        unavailable: set[int] = set()
        for index, claim in enumerate(attempt.claims):
            if claim.allocation is None:
                continue
            terms = attempt.selectors[index]
            if (
                (terms is not None and not any_matches(terms, node))
                or (_needs_optional_operations(claim.allocation) and not _may_skip(node))
                or self._has_failed(claim)
            ):
                unavailable.add(index)
        return unavailable

    def _has_failed(self, claim: ResourceClaim) -> bool:
        if not self.has_binding_conditions:
            return False
        ready = is_ready(claim)
        if isinstance(ready, str):
            return True
        now, timeout = self.handle.epoch_seconds, self.binding_timeout_seconds
        return not ready and is_timed_out(claim, now, timeout)

    def _results(
        self, attempt: Attempt, special: NodeClaim | None, node: Node
    ) -> dict[int, AllocationResult] | Status:
        if attempt.allocator is None:
            return {}
        unallocated = {
            index: special.claim if attempt.is_special(index) and special is not None else claim
            for index, claim in attempt.unallocated()
            if special is not None or not attempt.is_special(index)
        }
        name = node.metadata.name
        try:
            results = attempt.allocator.allocate(node, list(unallocated.values()), self._ticks())
        except _OutOfTime:
            reason = f"node {name}: timed out trying to allocate devices"
            return Status(Code.ERROR, (reason,))
        except NodeAllocationFailed as problem:
            return unresolvable(str(problem))
        except AllocationError as problem:
            return Status(Code.ERROR, (str(problem),))
        if results is None:
            return unresolvable(CANNOT_ALLOCATE)
        return dict(zip(unallocated, results, strict=True))

    def _ticks(self) -> Callable[[], None]:
        """Raises _OutOfTime when it is called too late."""
        deadline = self.handle.now_seconds + self.filter_timeout_seconds
        steps = 0

        def tick() -> None:
            nonlocal steps
            steps += 1
            is_due = steps % _STEPS_PER_LOOK == 0 and self.filter_timeout_seconds > 0
            if is_due and self.handle.now_seconds > deadline:
                raise _OutOfTime

        return tick


def _needs_optional_operations(allocation: AllocationResult) -> bool:
    return any(result.skip_node_operations for result in allocation.results)


def _may_skip(node: Node) -> bool:
    return OPTIONAL_NODE_OPERATIONS in (node.status.declared_features or ())
