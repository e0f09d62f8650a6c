"""An extender of the engine without a connection."""

from collections.abc import Callable
from dataclasses import dataclass

from bayplan.ports import ExtenderVerb
from bayplan.state.pods import PodInfo


@dataclass(frozen=True)
class FakeExtender:
    """``selects``: whether the extender is called for a pod."""

    name: str = "far"
    ignorable: bool = False
    verbs: frozenset[ExtenderVerb] = frozenset((ExtenderVerb.FILTER,))
    weight: int = 1
    selects: Callable[[PodInfo], bool] = lambda _: True

    def is_interested(self, pod: PodInfo) -> bool:
        return self.selects(pod)
