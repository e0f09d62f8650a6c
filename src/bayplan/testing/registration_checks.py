"""Checks of a plugin's attributes and events, before it is called."""

from collections.abc import Sequence
from typing import Any, Final

from bayplan.framework.events import (
    ALL,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from bayplan.framework.object_changes import node_events, pod_events
from bayplan.framework.plugin import Caching, EnqueueExtensions
from bayplan.plugins.registry import Registry
from bayplan.problems import ConfigError
from bayplan.profile.profiles import REJECTING
from bayplan.state.change_log import ALL_FACETS, Facet
from bayplan.testing.cases import PluginSubject, Scene
from bayplan.testing.factories import node, pod
from bayplan.testing.generators import FACET_DRAWS, draw_node, draw_placed_pod, draw_variant, merged

_CHANGES: Final = 6


def is_well_declared(subject: PluginSubject, scene: Scene) -> None:
    """Name, extension points, scope, fields, facets and kinds."""
    plugin_class = subject.plugin_class
    try:
        Registry(()).add(plugin_class)
    except ConfigError as error:
        raise subject.failed(str(error)) from error
    caching: Any = plugin_class.caching
    if caching is not None and not isinstance(caching, Caching):
        raise subject.failed(f"caching is {caching!r}; wanted a Caching(…), or None")
    facets: Any = caching.facets if caching is not None else ALL_FACETS
    if not isinstance(facets, Facet) or facets & ~ALL_FACETS:
        raise subject.failed(f"caching: facets={facets!r}; wanted some of Facet, as Facet.LABELS")
    for kind in plugin_class.kinds:
        if kind.count(" ") != 1:
            raise subject.failed(f'kinds has {kind!r}; wanted e.g. "v1 Service"')


def registers_its_events(subject: PluginSubject, scene: Scene) -> None:
    """Events exist, hints return values, and a plugin that can reject registers events."""
    plugin = scene.plugin
    if not isinstance(plugin, EnqueueExtensions):
        return
    registered = list(plugin.events_to_register())
    for each in registered:
        entry: Any = each
        if not isinstance(entry, ClusterEventWithHint):
            raise subject.failed(f"registers {entry!r}; wanted a ClusterEventWithHint")
        _check_event(subject, each.event)
    if isinstance(plugin, REJECTING) and not registered:
        raise subject.failed(
            "registers no event, although it can reject pods: they would only be tried again "
            "after five minutes; register what may help them, or leave EnqueueExtensions out"
        )
    for _ in range(_CHANGES):
        _ask_about_a_node(subject, scene, registered)
        _ask_about_a_pod(subject, scene, registered)


def _check_event(subject: PluginSubject, event: ClusterEvent) -> None:
    resource = str(event.resource)
    is_resource = resource in {str(each) for each in EventResource} or "/" in resource
    if not is_resource:
        raise subject.failed(
            f"registers for {resource!r}, which no event has; wanted one of EventResource, "
            f'or "group/Kind" for a resource of your own'
        )
    if not event.action or event.action & ~ALL:
        raise subject.failed(f"registers for {resource} with no action of ActionType")


def _ask_about_a_node(
    subject: PluginSubject, scene: Scene, registered: Sequence[ClusterEventWithHint]
) -> None:
    """A node is added, changes in one facet, is deleted."""
    options = draw_node(scene.draws)
    facet = scene.draws.one(list(FACET_DRAWS))
    old = node("changing", **options)
    new = node("changing", **merged(options, FACET_DRAWS[facet](scene.draws)))
    for before, after in ((None, new), (old, new), (old, None)):
        for event in node_events(before, after):
            _ask_hints(subject, scene, registered, event, change=(before, after))


def _ask_about_a_pod(
    subject: PluginSubject, scene: Scene, registered: Sequence[ClusterEventWithHint]
) -> None:
    """A placed pod comes, changes and goes; the waiting pod itself changes."""
    name = scene.draws.one(sorted(scene.nodes))
    options = draw_placed_pod(scene.draws)
    old = pod("other", **options).on_node(name)
    new = pod("other", **draw_variant(scene.draws, options)).on_node(name)
    waiting, current = scene.pods[0]
    updated = pod(current.name, **draw_variant(scene.draws, waiting))
    for before, after in ((None, new), (old, new), (old, None), (current, updated)):
        for event in pod_events(before, after):
            _ask_hints(subject, scene, registered, event, change=(before, after))


def _ask_hints(
    subject: PluginSubject,
    scene: Scene,
    registered: Sequence[ClusterEventWithHint],
    event: ClusterEvent,
    *,
    change: tuple[Any, Any],
) -> None:
    for each in registered:
        if each.hint is None or not each.event.match(event):
            continue
        for _, waiting in scene.pods:
            try:
                result: Any = each.hint(waiting, *change)
            except Exception as problem:
                raise subject.failed(
                    f"its hint for {event.label} fails: {type(problem).__name__}: {problem}"
                ) from problem
            if not isinstance(result, QueueingHint):
                raise subject.failed(
                    f"its hint for {event.label} returned {result!r}; wanted a QueueingHint"
                )
