"""Planted plugins with false declarations about themselves."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.plugin import (
    Caching,
    Plugin,
)
from bayplan.testing import check_plugin
from tests.framework.answering import answering
from tests.testing.broken_plugins import failure_of

NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)


def registering(events: Sequence[Any]) -> type[Plugin]:
    """A filter plugin that registers ``events``."""

    return answering("Registers", filter_node=None, events_to_register=lambda: events)


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
    assert words in failure_of(registering(events), clusters=1)


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


def declaring(name: str = "Declares", **members: Any) -> type[Plugin]:
    return answering(name, score_node=0, **members)


@pytest.mark.parametrize(
    ("plugin_class", "words"),
    [
        (declaring("Has/Label"), "name is 'Has/Label'"),
        (
            declaring(caching=Caching(facets=cast("Any", "LABELS"))),
            "facets='LABELS'; wanted some of Facet",
        ),
        (declaring(kinds=("Service",)), "kinds has 'Service'; wanted e.g."),
        (
            declaring(fields=("status.nodeInfo",)),
            "fields has 'status.nodeInfo'; wanted Node or Pod and a path",
        ),
    ],
)
def test_a_wrong_declaration_is_detected(plugin_class: type[Plugin], words: str) -> None:
    assert words in failure_of(plugin_class, clusters=1)
