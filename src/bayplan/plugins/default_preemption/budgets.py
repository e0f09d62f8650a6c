"""Disruption budgets: which victims are protected by a budget.

A budget states how many more of its pods may be evicted. Victims are counted from the most
important on, and each victim takes one from the budgets that select it; a victim whose budget is
used up violates the budget. Budgets are read in order of namespace and name (upstream: in any
order). Upstream: framework/preemption/util.go, FilterVictimsWithPDBViolation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import final

from msgspec import Struct

from bayplan.api.disruption_objects import PodDisruptionBudget
from bayplan.api.selectors import Selector, SelectorError, label_selector
from bayplan.state.pods import PodInfo, PodShape


class _Budget(Struct, frozen=True):
    namespace: str
    selector: Selector
    allowed_count: int
    #: Their eviction has been charged already.
    disrupted: Mapping[str, str]
    #: Whether it may select pods without labels.
    selects_unlabelled: bool

    def selects(self, shape: PodShape) -> bool:
        is_known = bool(shape.labels) or self.selects_unlabelled
        return (
            is_known and shape.namespace == self.namespace and self.selector.matches(shape.labels)
        )


@final
class Budgets:
    """All budgets of the cluster at one moment."""

    def __init__(
        self, budgets: Iterable[PodDisruptionBudget] = (), *, protect_all: bool = False
    ) -> None:
        """``protect_all``: whether an empty selector selects all pods, and a budget pods without
        labels. Before 1.38 neither was selected."""
        compiled = (_compiled(each, protect_all) for each in budgets)
        self._budgets = [each for each in compiled if each is not None]
        #: By shape: which budgets select its pods.
        self._selecting: dict[PodShape, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._budgets)

    def selecting(self, pod: PodInfo) -> tuple[int, ...]:
        """Numbers of the budgets that select a pod."""
        indices = self._selecting.get(pod.shape)
        if indices is None:
            numbers = (n for n, each in enumerate(self._budgets) if each.selects(pod.shape))
            indices = self._selecting[pod.shape] = tuple(numbers)
        return indices

    def violated_by(self, victims: Sequence[PodInfo]) -> list[bool]:
        """Of each victim, most important first, whether some budget is used up for it."""
        left = [each.allowed_count for each in self._budgets]
        return [self._is_violated(pod, left) for pod in victims]

    def _is_violated(self, pod: PodInfo, left: list[int]) -> bool:
        """Stops at the first budget that is used up; later budgets are not charged."""
        for number in self.selecting(pod):
            if pod.name in self._budgets[number].disrupted:
                continue
            left[number] -= 1
            if left[number] < 0:
                return True
        return False


def _compiled(budget: PodDisruptionBudget, protect_all: bool) -> _Budget | None:
    """None: it selects nothing."""
    try:
        selector = label_selector(budget.spec.selector)
    except SelectorError:
        return None
    if selector.nothing or (selector.is_everything and not protect_all):
        return None
    status = budget.status
    return _Budget(
        budget.metadata.namespace or "",
        selector,
        status.disruptions_allowed,
        status.disrupted_pods or {},
        protect_all,
    )
