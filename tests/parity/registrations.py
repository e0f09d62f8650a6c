"""hints-registered.json: the events that plugins register for."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.framework.events import UPDATE, ActionType, ClusterEventWithHint
from bayplan.framework.plugin import PreEnqueuePlugin
from tests.parity.tally import Sheet
from tests.parity.world import World, make_world

Json = dict[str, Any]
Registered = Mapping[str, Sequence[ClusterEventWithHint]]

SUITE = "hints-registered"
_ANSWERS = frozenset(("registered", "handlers", "withoutEvents", "preEnqueue"))
#: kube-scheduler retries groups without a placement after any event; here the plugin says which.
_PLACEMENTS = "TopologyPlacementGenerator"

#: Name in the record → args that do not change registrations.
_ARGS_TRIED: Mapping[str, tuple[str, Json]] = {
    "PodTopologySpread List, hard default constraint": (
        "PodTopologySpread",
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        },
    ),
    "NodeAffinity addedAffinity": (
        "NodeAffinity",
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
                    ]
                }
            }
        },
    ),
    "NodeResourcesFit ignoredResources": (
        "NodeResourcesFit",
        {"ignoredResources": ["example.com/foo"]},
    ),
    "InterPodAffinity ignorePreferredTermsOfExistingPods": (
        "InterPodAffinity",
        {"ignorePreferredTermsOfExistingPods": True, "hardPodAffinityWeight": 7},
    ),
}


def compare_registrations(recorded: Json, sheet: Sheet) -> None:
    """Compare the whole file."""
    for name in sorted(set(recorded) - {"default", "notInDefaultProfile", "sameAsDefaultWith"}):
        sheet.not_understood(name, is_answer=True)
    default: Json = recorded.get("default") or {}
    for name in sorted(set(default) - _ANSWERS):
        sheet.not_understood(f"default.{name}", is_answer=True)
    world = make_world(None, sheet.kubernetes)
    registered = default.get("registered") or {}
    _compare_registered(registered, world, sheet)
    _compare_handlers(default.get("handlers") or {}, world, sheet)
    _compare_silent(default.get("withoutEvents") or (), world, sheet)
    _compare_gating(default.get("preEnqueue") or (), world, sheet)
    for plugin, entries in sorted((recorded.get("notInDefaultProfile") or {}).items()):
        if plugin == _PLACEMENTS:
            sheet.deviates("notInDefaultProfile", "retries of groups without a placement")
        else:
            _compare_further(plugin, entries, sheet)
    for text in recorded.get("sameAsDefaultWith") or ():
        _compare_with_args(text, world, sheet)


def _events_as_json(events: Sequence[ClusterEventWithHint]) -> list[Json]:
    """Events in the format of the file, sorted."""
    entries = [
        {
            "resource": str(each.event.resource),
            "actions": _actions(each.event.action),
            "hint": each.hint is not None,
        }
        for each in events
    ]
    return _sorted(entries)


def _sorted(entries: Sequence[Json]) -> list[Json]:
    return sorted(entries, key=lambda e: (e["resource"], e["actions"], e["hint"]))


def _actions(action: ActionType) -> list[str]:
    """Add and Delete first; "Update" for all updates together."""
    first = [str(a) for a in (ActionType.ADD, ActionType.DELETE) if action & a]
    if action & UPDATE == UPDATE:
        return [*first, str(UPDATE)]
    return [*first, *(str(bit) for bit in action & UPDATE)]


def _registered(world: World) -> Registered:
    [built] = world.built.values()
    return built.events


def _compare_registered(recorded: Mapping[str, list[Json]], world: World, sheet: Sheet) -> None:
    actual = _registered(world)
    for plugin in sorted({*recorded, *actual}):
        expected = [_with_sorted_actions(entry) for entry in recorded.get(plugin, [])]
        ours = [_with_sorted_actions(entry) for entry in _events_as_json(actual.get(plugin, ()))]
        sheet.compare("registered", _sorted(expected), _sorted(ours), plugin)


def _compare_further(plugin: str, recorded: Sequence[Json], sheet: Sheet) -> None:
    """Compare plugins that are enabled besides those of the default profile."""
    enabled = {"multiPoint": {"enabled": [{"name": plugin}]}}
    world = make_world(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": enabled}],
        },
        sheet.kubernetes,
    )
    expected = [_with_sorted_actions(entry) for entry in recorded]
    ours = [
        _with_sorted_actions(entry) for entry in _events_as_json(_registered(world).get(plugin, ()))
    ]
    sheet.compare("notInDefaultProfile", _sorted(expected), _sorted(ours), plugin)


def _with_sorted_actions(entry: Json) -> Json:
    return {**entry, "actions": sorted(entry["actions"])}


def _compare_handlers(recorded: Mapping[str, list[str]], world: World, sheet: Sheet) -> None:
    """Compare, per resource, all actions that some plugin registers for."""
    actual: dict[str, ActionType] = {}
    for events in _registered(world).values():
        for each in events:
            resource = str(each.event.resource)
            actual[resource] = actual.get(resource, ActionType(0)) | each.event.action
    for resource in sorted({*recorded, *actual}):
        ours = sorted(_actions(actual.get(resource, ActionType(0))))
        sheet.compare("handlers", sorted(recorded.get(resource, ())), ours, resource)


def _compare_silent(recorded: Sequence[str], world: World, sheet: Sheet) -> None:
    """Compare the plugins without events."""
    [built] = world.built.values()
    names = {plugin.instance_name for plugin in built.plugins.instances()}
    actual = {name for name in names if not built.events.get(name)}
    for plugin in sorted({*recorded, *actual}):
        sheet.compare("withoutEvents", plugin in recorded, plugin in actual, plugin)


def _compare_gating(recorded: Sequence[str], world: World, sheet: Sheet) -> None:
    """Compare the plugins that can gate a pod."""
    [built] = world.built.values()
    instances = built.plugins.instances()
    actual = {each.instance_name for each in instances if isinstance(each, PreEnqueuePlugin)}
    for plugin in sorted({*recorded, *actual}):
        sheet.compare("preEnqueue", plugin in recorded, plugin in actual, plugin)


def _compare_with_args(text: str, world: World, sheet: Sheet) -> None:
    """Check that args of a plugin do not change its registrations."""
    if text not in _ARGS_TRIED:
        sheet.not_understood(f"sameAsDefaultWith {text}", is_answer=True)
        return
    plugin, args = _ARGS_TRIED[text]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}],
    }
    changed = _registered(make_world(config, sheet.kubernetes))
    actual = {name: _events_as_json(events) for name, events in changed.items()}
    default = {name: _events_as_json(events) for name, events in _registered(world).items()}
    sheet.compare("sameAsDefaultWith", default, actual, text)
