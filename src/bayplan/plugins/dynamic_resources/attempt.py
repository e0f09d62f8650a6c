"""The state of one attempt about the pod's claims, from PreFilter to the end of binding."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.api.device_objects import FIRST_AVAILABLE_MAX, AllocationResult, ResourceClaim
from bayplan.api.selectors import NodeTerm
from bayplan.plugins.dynamic_resources.allocator import Allocator
from bayplan.plugins.dynamic_resources.extended import IN_MEMORY_NAME, NodeClaim


@dataclass(slots=True, eq=False)
class NodeAllocation:
    """The result of Filter for one node."""

    #: Of the claims that were to be allocated, by their index.
    results: Mapping[int, AllocationResult]
    special: NodeClaim | None


@dataclass(slots=True, eq=False)
class Attempt:
    """The pod's claims with their allocations."""

    #: Those that the pod names, then the special one for extended resources, if it needs one.
    claims: list[ResourceClaim]
    has_special: bool
    #: By index of an allocated claim: the nodes that can use it; None: all.
    selectors: Sequence[Sequence[NodeTerm] | None] = ()
    #: None: no claim needs an allocation.
    allocator: Allocator | None = None
    #: Indices of allocated claims that some node cannot use.
    unavailable: set[int] = field(default_factory=set[int])
    by_node: dict[str, NodeAllocation] = field(default_factory=dict[str, NodeAllocation])
    #: By index of the claim: the allocation that Reserve chose, until the API has it.
    reserved: dict[int, AllocationResult] = field(default_factory=dict[int, AllocationResult])
    #: Allocations in flight, by uid of the claim.
    in_flight: dict[str, AllocationResult] = field(default_factory=dict[str, AllocationResult])

    #: Indices of claims that PreBind has begun to write.
    written: set[int] = field(default_factory=set[int])

    @property
    def special(self) -> ResourceClaim | None:
        return self.claims[-1] if self.has_special else None

    @property
    def has_user_claims(self) -> bool:
        return len(self.claims) > self.has_special

    def user_claims(self) -> Sequence[ResourceClaim]:
        """Without the special one."""
        return self.claims[:-1] if self.has_special else self.claims

    def is_special(self, index: int) -> bool:
        return self.has_special and index == len(self.claims) - 1

    def unallocated(self) -> Iterator[tuple[int, ResourceClaim]]:
        """Claims that have nothing yet, with their index."""
        for index, claim in enumerate(self.claims):
            if claim.allocation is None:
                yield index, claim

    @property
    def special_is_in_api(self) -> bool:
        """Whether an earlier attempt, or this one, has created the special claim."""
        special = self.special
        return special is not None and special.metadata.name != IN_MEMORY_NAME


def preference(attempt: Attempt, node_allocation: NodeAllocation) -> int:
    """How high the alternatives rank that a node would give: the first of each request is best."""
    score = 0
    for number, claim in enumerate(attempt.claims):
        allocation = claim.allocation or node_allocation.results.get(number)
        if allocation is None:
            continue
        chosen = {result.request for result in allocation.results}
        for request in claim.spec.devices.requests or ():
            for index, each in enumerate(request.first_available or ()):
                if f"{request.name}/{each.name}" in chosen:
                    score += FIRST_AVAILABLE_MAX - index
    return score
