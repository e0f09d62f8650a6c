"""A plugin outside the tree that raises by chance, at each of its extension points."""

from collections.abc import Callable
from typing import Any

from bayplan.framework.plugin import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from bayplan.rng import Stream

RAISING = "Raising"
_CHANCE = 0.03


class PluginOutOfOrder(Exception):
    """The exception of the plugin."""


def drawn_plugin(
    random: Stream, is_calm: Callable[[], bool], filter_raises: Callable[[], None]
) -> type[Plugin]:
    """A class for one scheduler. It accepts every pod and node unless it raises.

    ``filter_raises``: called before its Filter raises. In a dry run of preemption such a node
    counts as one that does not fit, so a victim more is evicted.
    """

    def raise_by_chance() -> None:
        if not is_calm() and random.random() < _CHANCE:
            raise PluginOutOfOrder("out of order")

    class Raising(
        PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin, PreBindPlugin, PostBindPlugin
    ):
        name = RAISING

        def pre_filter(self, state: Any, pod: Any, nodes: Any) -> Any:
            raise_by_chance()

        def filter(self, state: Any, pod: Any, nodes: Any, feasible: Any) -> Any:
            try:
                raise_by_chance()
            except PluginOutOfOrder:
                filter_raises()
                raise
            return ()

        def reserve(self, state: Any, pod: Any, node_name: str) -> None:
            raise_by_chance()

        def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
            raise_by_chance()

        def permit(self, state: Any, pod: Any, node_name: str) -> Any:
            raise_by_chance()
            return None, 0.0

        async def pre_bind(self, state: Any, pod: Any, node_name: str, port: Any) -> None:
            raise_by_chance()

        async def post_bind(self, state: Any, pod: Any, node_name: str, port: Any) -> None:
            raise_by_chance()

    return Raising
