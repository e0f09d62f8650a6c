"""Capacity that several allocations of one device share: how much requests consume, and whether it
is left.

A request for a capacity is rounded up by the device's policy. A request without an amount gets the
policy's default, or all of the capacity. All amounts are in billionths; steps are counted in whole
units, or in thousandths (gate DRAFractionalCapacityRange). Upstream:
structured/internal/incubating/consumable_capacity.go.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from bayplan.api.amounts import canonical
from bayplan.api.device_objects import (
    Amount,
    CapacityRange,
    CapacityRequestPolicy,
    CapacityRequirements,
    Device,
    DeviceCapacity,
)
from bayplan.api.quantity import (
    INT64_MAX,
    NANOS,
    NANOS_PER_MILLI,
    QuantityError,
    nanos,
    thousandths_of,
    units_of,
    wrapped_int64,
)
from bayplan.plugins.dynamic_resources.features import DeviceFeatures
from bayplan.plugins.dynamic_resources.pools import AllocationError
from bayplan.state.device_table import Amounts

_UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"
_NEGATIVE = "capacity value is negative"


_Value = TypeVar("_Value")


class CapacityRules(Struct, frozen=True):
    """How names of capacities are compared, and in which units ranges count.

    A name without a domain has the driver's domain. If a device or a claim has both forms, the one
    with the domain counts. Before 1.38 names were compared as they are written; then ``driver`` is
    "".
    """

    driver: str = ""
    #: Whether a range counts in thousandths if all its numbers are whole thousandths (gate
    #: DRAFractionalCapacityRange).
    has_fractions: bool = False
    #: Whether a sum above 2^63-1 wraps around to -2^63, as before 1.37. Otherwise it is an error.
    wraps: bool = False

    def full(self, name: str) -> str:
        return name if not self.driver or "/" in name else f"{self.driver}/{name}"

    def effective(self, values: Mapping[str, _Value] | None) -> Mapping[str, _Value]:
        """The values that count, by their names as they are written."""
        given = values or {}
        return {n: v for n, v in given.items() if (full := self.full(n)) == n or full not in given}

    def by_full_name(self, values: Mapping[str, _Value] | None) -> Mapping[str, _Value]:
        return {self.full(name): value for name, value in self.effective(values).items()}


AS_WRITTEN = CapacityRules()


def rules_of(driver: str, features: DeviceFeatures) -> CapacityRules:
    """The rules for a driver's devices."""
    domain = driver if features.behaviour.capacity_names_have_domain else ""
    wraps = not features.behaviour.wrong_capacity_is_error
    return CapacityRules(domain, features.fractional_ranges, wraps)


def consumed_by(
    request: CapacityRequirements | None, device: Device, rules: CapacityRules = AS_WRITTEN
) -> dict[str, int] | None:
    """The amount that a request consumes of each capacity, by the names of the device; None: the
    device lacks a capacity.

    Raises AllocationError.
    """
    capacity = rules.effective(device.capacity)
    requested = rules.by_full_name(request.requests if request is not None else None)
    if not requested.keys() <= set(map(rules.full, capacity)):
        return None
    consumed: dict[str, int] = {}
    for name, each in capacity.items():
        amount = _consumed(name, requested.get(rules.full(name)), each, rules)
        if amount < 0 and not rules.wraps:
            raise AllocationError(f'capacity "{name}": {_NEGATIVE}')
        consumed[name] = amount
    return consumed


def fits(
    consumed: Amounts,
    device: Device,
    shares: Iterable[Amounts] = (),
    *,
    rules: CapacityRules = AS_WRITTEN,
) -> bool:
    """Whether a device has these amounts left besides its taken and tentative shares."""
    in_use = Counter[str]()
    for amounts in shares:
        for name, amount in amounts.items():
            in_use[rules.full(name)] += amount
    for name, each in rules.effective(device.capacity).items():
        amount = consumed[name]
        if _violates(amount, each.request_policy, rules):
            return False
        if amount + in_use[rules.full(name)] > nanos_of(each.value):
            return False
    return True


def _consumed(
    name: str, requested: Amount | None, capacity: DeviceCapacity, rules: CapacityRules
) -> int:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return nanos_of(capacity.value if default is None else default)
    amount = nanos_of(requested)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.minimum is not None:
        return _rounded_up(name, requested, policy.valid_range, rules)
    higher = [value for value in map(nanos_of, policy.valid_values or ()) if value >= amount]
    return higher[0] if higher else amount


def _rounded_up(name: str, requested: Amount, allowed: CapacityRange, rules: CapacityRules) -> int:
    """The amount rounded up to the next step above the minimum, in whole units or thousandths.

    Upstream: structured/internal/incubating/consumable_capacity.go, roundUpRange.
    """
    assert allowed.minimum is not None
    amount, minimum = nanos_of(requested), nanos_of(allowed.minimum)
    if amount < minimum:
        return minimum
    if allowed.step is None:
        return amount
    if rules.wraps:
        return _rounded_up_unchecked(amount, allowed)
    in_thousandths = rules.has_fractions and _is_in_thousandths(allowed)
    if in_thousandths and not _is_thousandths(amount):
        text = f"request {canonical(requested)} is not a representable milli value"
        raise _unrepresentable(name, text)
    if not in_thousandths and amount > INT64_MAX * NANOS:
        raise _unrepresentable(name, f"request {canonical(requested)} exceeds MaxInt64")
    count = thousandths_of if in_thousandths else units_of
    low, step = count(minimum), count(nanos_of(allowed.step))
    rounded = low + -(-(count(amount) - low) // step) * step if step else INT64_MAX + 1
    if rounded > INT64_MAX:
        past = "the milli-value range" if in_thousandths else "MaxInt64"
        text = f"rounding request {canonical(requested)} up to the next step passes {past}"
        raise _unrepresentable(name, text)
    return rounded * (NANOS_PER_MILLI if in_thousandths else NANOS)


def _rounded_up_unchecked(amount: int, allowed: CapacityRange) -> int:
    """The rounded amount in int64 that wraps around, so that a large request may fit. A request
    above 2^63-1 counts as 0; only a suffix, as in 20E, can write one."""
    low, step = units_of(nanos_of(allowed.minimum or 0)), units_of(nanos_of(allowed.step or 0))
    requested = -(-amount // NANOS)
    added = wrapped_int64((requested if requested <= INT64_MAX else 0) - low)
    steps, remainder = divmod(abs(added), step) if step else (0, 0)
    count = (steps if added >= 0 else -steps) + bool(remainder)
    return wrapped_int64(low + wrapped_int64(step * count)) * NANOS


def _is_in_thousandths(allowed: CapacityRange) -> bool:
    """Whether a range counts in thousandths. Upstream: useMilli."""
    numbers = (allowed.minimum, allowed.maximum, allowed.step)
    if not all(_is_thousandths(nanos_of(each)) for each in numbers if each is not None):
        return False
    return allowed.step is None or nanos_of(allowed.step) >= NANOS_PER_MILLI


def _is_thousandths(amount: int) -> bool:
    return amount % NANOS_PER_MILLI == 0 and abs(amount // NANOS_PER_MILLI) <= INT64_MAX


def _unrepresentable(name: str, text: str) -> AllocationError:
    return AllocationError(f'capacity "{name}": {_UNREPRESENTABLE}: {text}')


def _violates(amount: int, policy: CapacityRequestPolicy | None, rules: CapacityRules) -> bool:
    if policy is None or (policy.default is not None and amount == nanos_of(policy.default)):
        return False
    if policy.valid_range is not None:
        return _violates_range(amount, policy.valid_range, rules)
    values = policy.valid_values
    return bool(values) and amount not in map(nanos_of, values or ())


def _violates_range(amount: int, allowed: CapacityRange, rules: CapacityRules) -> bool:
    if allowed.maximum is not None and amount > nanos_of(allowed.maximum):
        return True
    if allowed.step is None:
        return False
    in_thousandths = rules.has_fractions and _is_in_thousandths(allowed)
    if in_thousandths and not _is_thousandths(amount):
        return True
    count = thousandths_of if in_thousandths else units_of
    step, low = count(nanos_of(allowed.step)), count(nanos_of(allowed.minimum or 0))
    return bool(step) and wrapped_int64(count(amount) - low) % step != 0


def nanos_of(amount: Amount) -> int:
    """A quantity in billionths. Raises AllocationError."""
    try:
        return nanos(amount)
    except QuantityError as problem:
        raise AllocationError(str(problem)) from None


def written(amounts: Mapping[str, int]) -> dict[str, str | int | float]:
    """An amount in billionths as the API writes quantities."""
    return {name: _quantity(amount) for name, amount in amounts.items()}


def _quantity(amount: int) -> str:
    for unit, suffix in ((NANOS, ""), (NANOS // 1000, "m"), (NANOS // 10**6, "u"), (1, "n")):
        if not amount % unit:
            return f"{amount // unit}{suffix}"
    raise AssertionError("every amount is a number of billionths")
