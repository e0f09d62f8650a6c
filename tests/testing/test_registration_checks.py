"""Planted plugins with false declarations about themselves."""

from collections.abc import Callable, Sequence
from typing import Any, cast, final

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import (
    Caching,
    EnqueueExtensions,
    Plugin,
    ScalarFilterPlugin,
    ScalarScorePlugin,
)
from bayplan.framework.status import Status
from bayplan.state.nodes import NodeInfo
from bayplan.state.pods import PodInfo
from bayplan.testing import CheckFailed, check_plugin

NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


def failure_of(plugin_class: type[Plugin]) -> str:
    with pytest.raises(CheckFailed) as failed:
        check_plugin(plugin_class, clusters=1)
    return str(failed.value)


def registering(events: Sequence[Any]) -> type[Plugin]:
    """A filter plugin that registers ``events``."""

    @final
    class Registers(ScalarFilterPlugin, EnqueueExtensions):
        name = "Registers"

        def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            return None

        def events_to_register(self) -> Sequence[ClusterEventWithHint]:
            return events

    return Registers


def hinted(hint: Callable[[Any, Any, Any], Any]) -> list[Any]:
    return [ClusterEventWithHint(NODE_ADDED, hint)]


def failing(pod: Any, old: Any, new: Any) -> QueueingHint:
    return old.metadata.labels


@pytest.mark.parametrize(
    ("events", "words"),
    [
        pytest.param([], "registers no event, although it can reject pods", id="none"),
        pytest.param([NODE_ADDED], "wanted a ClusterEventWithHint", id="a bare event"),
        pytest.param(
            [ClusterEventWithHint(ClusterEvent("Nodes", ActionType.ADD))],
            "registers for 'Nodes', which no event has",
            id="an unknown resource",
        ),
        pytest.param(
            [ClusterEventWithHint(ClusterEvent("Node", ActionType(0)))],
            "registers for Node with no action",
            id="no action",
        ),
        pytest.param(
            hinted(lambda pod, old, new: True),
            "its hint for NodeAdd returned True; wanted a QueueingHint",
            id="a hint with a wrong result",
        ),
        pytest.param(
            hinted(failing), "its hint for NodeAdd fails: AttributeError", id="an exception"
        ),
    ],
)
def test_a_wrong_registration_is_detected(events: Sequence[Any], words: str) -> None:
    assert words in failure_of(registering(events))


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([ClusterEventWithHint(NODE_ADDED)], id="without a hint"),
        pytest.param(hinted(lambda pod, old, new: QueueingHint.QUEUE), id="with a hint"),
        pytest.param(
            [ClusterEventWithHint(ClusterEvent("test.org/Policy", ActionType.ADD))],
            id="a resource of its own",
        ),
    ],
)
def test_a_correct_registration_passes(events: Sequence[Any]) -> None:
    check_plugin(registering(events), clusters=1)


@final
class NoName(ScalarScorePlugin):
    """Has a label in its name."""

    name = "Has/Label"

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


@final
class WrongFacets(ScalarScorePlugin):
    """Declares its facets as strings."""

    name = "WrongFacets"
    caching: Any = Caching(facets=cast("Any", "LABELS"))

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


@final
class WrongKinds(ScalarScorePlugin):
    """Declares a kind without a version."""

    name = "WrongKinds"
    kinds = ("Service",)

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


@final
class WrongFields(ScalarScorePlugin):
    """Declares a field without the kind of its object."""

    name = "WrongFields"
    fields = ("status.nodeInfo",)

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0


@pytest.mark.parametrize(
    ("plugin_class", "words"),
    [
        (NoName, "name is 'Has/Label'"),
        (WrongFacets, "facets='LABELS'; wanted some of Facet"),
        (WrongKinds, "kinds has 'Service'; wanted e.g."),
        (WrongFields, "fields has 'status.nodeInfo'; wanted Node or Pod and a path"),
    ],
)
def test_a_wrong_declaration_is_detected(plugin_class: type[Plugin], words: str) -> None:
    assert words in failure_of(plugin_class)
