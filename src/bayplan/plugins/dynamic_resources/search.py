"""The search for devices: every request of every claim gets devices, or none does.

The search is a sequence of decisions: which alternative of a request to try, and which device to
take as its n-th. Each decision is a generator of choices. It makes a choice, yields to the
decisions below, and undoes the choice before it makes the next one. So the stack of generators is
the whole state, and its depth is bounded by memory, not by recursion. The first solution is taken,
so the order of devices ranks them. Within one request, devices are tried in ascending order only,
because the order of the devices of a request does not matter. Upstream: allocateOne in
structured/internal/incubating/allocator_incubating.go.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, final

from msgspec import Struct

from bayplan.api.device_objects import ALLOCATION_RESULTS_MAX
from bayplan.plugins.dynamic_resources.pools import AllocationError, Candidate
from bayplan.plugins.dynamic_resources.requests import (
    Alternative,
    AssignedDevice,
    ClaimSearch,
)
from bayplan.plugins.dynamic_resources.selection import Selection
from bayplan.plugins.dynamic_resources.tentative import TakeResult, Takings
from bayplan.state.device_table import DeviceId

_TOO_MANY = "allocation max size exceeded"


class _Place(NamedTuple):
    """The place of the next decision in the claims. ``alternative`` -1: the alternative is to be
    chosen."""

    claim: int = 0
    request: int = 0
    alternative: int = -1
    device: int = 0
    #: The index of the first candidate to try. The candidates before it were tried for an earlier
    #: device of the request.
    start: int = 0


_Choices = Generator[_Place, None, None]


class _Frame(Struct, eq=False):
    choices: _Choices
    claim: int
    #: For a choice among alternatives: whether each of them failed because it has too many devices.
    is_alternatives: bool
    all_too_many: bool = True


@final
class Search:
    """One search over the devices that a node may use. Use it once."""

    def __init__(
        self,
        claims: Sequence[ClaimSearch],
        candidates: Sequence[Candidate],
        takings: Takings,
        selection: Selection,
    ) -> None:
        self._claims = claims
        self._candidates = candidates
        self._selection = selection
        self._takings = takings
        self._stack: list[_Frame] = []
        #: (claim, request, alternative, device) → whether the request may get the device.
        self._meant: dict[tuple[int, int, int, DeviceId], bool] = {}

    def run(self, tick: Callable[[], None]) -> list[list[AssignedDevice]] | None:
        """The result for each claim; None: there is no solution. Raises AllocationError.

        ``tick`` is called before every decision; an exception from it ends the search.
        """
        place: _Place | None = _Place()
        while True:
            tick()
            if place is not None:
                place = self._next_decision(place)
                if place is None:
                    # The result is read before the stack is dropped, because dropping it undoes the
                    # choices.
                    return [list(claim.assigned) for claim in self._claims]
                if not self._is_too_many(place):
                    self._stack.append(self._frame(place))
                else:
                    self._retreat(place.claim)
            if not self._stack:
                return None
            place = next(self._stack[-1].choices, None)
            if place is None:
                self._fail()

    # ---- the order of decisions -----------------------------------------------------------

    def _next_decision(self, place: _Place) -> _Place | None:
        """Skip requests that need no decision; None: all decisions are made."""
        while place.claim < len(self._claims):
            claim = self._claims[place.claim]
            if place.request >= len(claim.requests):
                place = _Place(claim=place.claim + 1)
                continue
            if place.alternative < 0:
                if claim.has_alternatives[place.request]:
                    return place
                place = place._replace(alternative=0)
            alternative = self._alternative(place)
            # A request for all devices needs at least one.
            if place.device < alternative.device_count or (
                alternative.wants_all and not alternative.all_devices
            ):
                return place
            place = _Place(claim=place.claim, request=place.request + 1)
        return None

    def _alternative(self, place: _Place) -> Alternative:
        return self._claims[place.claim].requests[place.request][place.alternative]

    def _frame(self, place: _Place) -> _Frame:
        if place.alternative < 0:
            return _Frame(self._alternatives(place), place.claim, is_alternatives=True)
        choices = self._one_of_all if self._alternative(place).wants_all else self._devices
        return _Frame(choices(place), place.claim, is_alternatives=False)

    # ---- going back -----------------------------------------------------------------------

    def _is_too_many(self, place: _Place) -> bool:
        """Whether the request has more devices than a claim can list."""
        if place.alternative < 0:
            return False
        assigned_count = len(self._claims[place.claim].assigned)
        left_count = self._alternative(place).device_count - place.device
        return assigned_count + left_count > ALLOCATION_RESULTS_MAX

    def _retreat(self, claim: int) -> None:
        """Go back to the last alternative, or to the claim before, because any other choice of
        devices would be of the same size.

        Raises AllocationError if the first claim has no alternative.
        """
        while self._stack and self._stack[-1].claim == claim:
            if self._stack[-1].is_alternatives:
                return
            self._stack.pop().choices.close()
        if claim == 0:
            raise AllocationError(_TOO_MANY)
        self._note_failure()

    def _fail(self) -> None:
        """Remove the decision on top of the stack, which has no choice left."""
        frame = self._stack.pop()
        if frame.is_alternatives and frame.all_too_many:
            self._retreat(frame.claim)
        else:
            self._note_failure()

    def _note_failure(self) -> None:
        """Note that the last choice has failed, for another reason than too many devices."""
        if self._stack:
            self._stack[-1].all_too_many = False

    # ---- choices --------------------------------------------------------------------------

    def _alternatives(self, place: _Place) -> _Choices:
        claim = self._claims[place.claim]
        for index in range(len(claim.requests[place.request])):
            claim.chosen[place.request] = index
            yield place._replace(alternative=index)

    def _one_of_all(self, place: _Place) -> _Choices:
        """Try the next device of a request for all devices. Without this device there is no
        solution."""
        for candidate in self._alternative(place).all_devices[place.device : place.device + 1]:
            taking = self._take(place, candidate)
            if taking is TakeResult.CONSTRAINED:
                claim, request = self._claims[place.claim], self._alternative(place).request
                text = f"claim {claim.name}, request {request.name}: cannot add device"
                why = "because a claim constraint would not be satisfied"
                raise AllocationError(f"{text} {candidate.id} {why}")
            if taking is TakeResult.TAKEN:
                yield from self._lent(place, start=0)

    def _devices(self, place: _Place) -> _Choices:
        """Try every device that the request may get."""
        for index in range(place.start, len(self._candidates)):
            candidate = self._candidates[index]
            if candidate.pool.fatal_reason:
                pool = candidate.pool
                raise AllocationError(f"pool {pool.id.name} is invalid: {pool.fatal_reason}")
            if self._is_eligible(place, candidate) and (
                self._take(place, candidate) is TakeResult.TAKEN
            ):
                yield from self._lent(place, start=index + 1)

    def _lent(self, place: _Place, *, start: int) -> _Choices:
        """Yield the choice. Undo it when the next choice is requested or the search ends."""
        try:
            yield place._replace(device=place.device + 1, start=start)
        finally:
            self._takings.give_back(place.claim, self._claims[place.claim])

    def _take(self, place: _Place, candidate: Candidate) -> TakeResult:
        claim, request = self._claims[place.claim], self._alternative(place).request
        try:
            return self._takings.take(place.claim, claim, request, candidate)
        except AllocationError as problem:
            raise AllocationError(f"claim {claim.name}, {problem}") from None

    def _is_eligible(self, place: _Place, candidate: Candidate) -> bool:
        """Whether a request may get a device. The cheap conditions are checked first. Raises
        AllocationError."""
        alternative = self._alternative(place)
        if self._takings.is_in_use(place.claim, alternative.request, candidate):
            return False
        if not self._means(place, candidate, alternative):
            return False
        try:
            return self._takings.consumption(alternative.request, candidate) is not None
        except AllocationError as problem:
            name = self._claims[place.claim].name
            raise AllocationError(f"claim {name}, {problem}") from None

    def _means(self, place: _Place, candidate: Candidate, alternative: Alternative) -> bool:
        key = (place.claim, place.request, place.alternative, candidate.id)
        means = self._meant.get(key)
        if means is None:
            name = self._claims[place.claim].name
            means = self._selection.means(
                candidate, alternative.request, alternative.device_class, name
            )
            self._meant[key] = means
        return means
