"""Profiles made of instances: each is made once and closed if another fails."""

from typing import Any

import pytest

from bayplan.config import ConfigError
from bayplan.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    default_events,
)
from bayplan.framework.plugin import Plugin
from bayplan.plugins.registry import Registry
from bayplan.profile.dry_start import idle_handle
from bayplan.profile.profiles import (
    REJECTING,
    BuiltProfile,
    NestedArgsError,
    build_profiles,
    make_plugin,
)
from tests.engine.plugin_kit import (
    NODE_ADDED,
    Both,
    Gate,
    NoEvents,
    NoStart,
    Rack,
    Talkative,
    complaints,
    config,
    handles,
    profile,
    registry,
)
from tests.framework.answering import answering

REGISTRY = registry(Both, Gate, Rack, Talkative, NoStart, NoEvents)


def built(*profiles: dict[str, Any], plugins: Registry = REGISTRY) -> list[BuiltProfile]:
    return build_profiles(config(*profiles), plugins, handles(plugins))


def refusal(*profiles: dict[str, Any], plugins: Registry = REGISTRY) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        built(*profiles, plugins=plugins)
    return complaints(caught.value)


# ---- instances -----------------------------------------------------------------------------


def test_each_profile_has_instances_and_handles_of_its_own() -> None:
    calls: list[tuple[str, str, type[Plugin]]] = []

    def handle_for(profile_name: str, instance_name: str, plugin: type[Plugin]) -> Any:
        calls.append((profile_name, instance_name, plugin))
        return idle_handle(REGISTRY, profile_name, instance_name, plugin)

    profiles = [profile(["Gate/a"]) | {"schedulerName": name} for name in "xy"]
    first, second = build_profiles(config(*profiles), REGISTRY, handle_for)
    assert first.plugins.filter[0] is not second.plugins.filter[0]
    assert ("x", "Gate/a", Gate) in calls
    assert ("y", "Gate/a", Gate) in calls
    assert second.plugins.filter[0].handle.profile_name == "y"


def test_a_refused_configuration_makes_no_instance() -> None:
    Gate.events_read.clear()
    assert len(refusal(profile(["Gate"]) | {"percentageOfNodesToScore": 101})) == 1
    assert Gate.events_read == []


# ---- events and signatures -----------------------------------------------------------------


def test_events_of_instances_that_can_reject_are_read_once() -> None:
    Gate.events_read.clear()
    [result] = built(profile(["Gate", "Gate/a", "Both", "Talkative"]))
    assert Gate.events_read == ["Gate", "Gate/a"]
    assert [registered.event for registered in result.events["Gate/a"]] == [NODE_ADDED]
    assert result.events["Both"] == default_events()
    assert set(result.events) == {"Gate", "Gate/a", "Both"}


def test_plugins_that_can_reject_have_default_events() -> None:
    assert issubclass(Both, REJECTING)
    assert not issubclass(Talkative, REJECTING)


# ---- failures ------------------------------------------------------------------------------


def test_a_plugin_that_does_not_start_is_reported_with_its_error() -> None:
    assert refusal(profile(["NoStart/a"])) == [
        "profiles[0]: plugin NoStart/a cannot start: ValueError: no licence"
    ]


def test_a_plugin_whose_events_fail_is_reported_with_its_error() -> None:
    message = "events of plugin NoEvents: ValueError: cannot think of any (plugin_kit.py:144)"
    assert refusal(profile(["NoEvents"])) == [f"profiles[0]: {message}"]


def registering(resource: str, **members: Any) -> type[Any]:
    event = ClusterEventWithHint(ClusterEvent(resource, ActionType.ADD))
    return answering("Waits", filter=[], events_to_register=[event], **members)


def test_events_of_kinds_that_are_not_watched_are_refused() -> None:
    waits = registering("example.com/Quota")
    [message] = refusal(profile(["Waits"]), plugins=registry(waits))
    assert message == (
        "profiles[0]: plugin Waits registers events of example.com/Quota, which is not watched; "
        'register them by kind, such as "example.com/v1 Quota", or declare the kind in `kinds`'
    )


@pytest.mark.parametrize(
    "waits",
    [
        pytest.param(registering("example.com/v1 Quota"), id="registered by kind"),
        pytest.param(
            registering("example.com/Quota", kinds=("example.com/v1 Quota",)), id="a declared kind"
        ),
        pytest.param(registering("scheduling.x-k8s.io/PodGroup"), id="groups of pods"),
        pytest.param(registering("*"), id="every resource"),
    ],
)
def test_events_of_watched_kinds_are_accepted(waits: type[Any]) -> None:
    [built_config] = built(profile(["Waits"]), plugins=registry(waits))
    assert len(built_config.events["Waits"]) == 1


def test_a_kind_that_is_looked_up_and_not_declared_is_refused_before_the_start() -> None:
    def looks(self: Any, *_: Any) -> None:
        self.handle.objects("example.com/v1 Quota")

    plugin = answering("Looks", score_node=1, look=looks)
    [message] = refusal(profile(["Looks"]), plugins=registry(plugin))
    for word in ("plugin Looks", "`kinds`", 'apiGroups ["example.com"]', 'resources ["quotas"]'):
        assert word in message


def test_all_plugins_that_fail_are_named_and_every_started_plugin_is_closed_once() -> None:
    Gate.closed.clear()
    first = profile(["Gate/a", "NoStart"]) | {"schedulerName": "x"}
    second = profile(["NoEvents", "Gate/b"]) | {"schedulerName": "y"}
    assert [line.split(":")[0] for line in refusal(first, second)] == ["profiles[0]", "profiles[1]"]
    assert Gate.closed == ["Gate/a", "Gate/b"]


# ---- composition ---------------------------------------------------------------------------


def handle(registry: Registry = REGISTRY) -> Any:
    return idle_handle(registry, "", "Rack/a", Rack)


def test_a_nested_plugin_has_its_own_args_and_handle() -> None:
    plugin_handle = handle()
    made = make_plugin(REGISTRY, "Gate/a", None, plugin_handle, path="inner")
    assert made.instance_name == f"{plugin_handle.instance_name}.Gate/a"
    assert made.handle.profile_name == plugin_handle.profile_name


def test_a_nested_plugin_that_cannot_be_made_is_refused_with_its_path() -> None:
    with pytest.raises(ConfigError, match=r'^inner: no plugin "Gaet"; did you mean "Gate"'):
        make_plugin(REGISTRY, "Gaet", None, handle(), path="inner")
    with pytest.raises(NestedArgsError, match=r"^inner\.limit: -1; wanted 0 or more"):
        make_plugin(REGISTRY, "Gate", {"limit": -1}, handle(), path="inner")


def test_args_within_args_are_checked_under_their_full_path() -> None:
    inner = {"name": "Gate", "args": {"limit": -1, "kye": "x"}}
    args = {"Rack/zone": {"topologyKey": "zone", "scorer": inner}}
    assert refusal(profile(["Rack/zone"], {"Gate": {}} | args)) == [
        (
            "profiles[0].pluginConfig[1].args.scorer.args.kye: unknown field; "
            'did you mean "key"? (args of Gate, made by Rack/zone)'
        )
    ]
    inner["args"] = {"limit": -1}
    assert refusal(profile(["Rack/zone"], args)) == [
        (
            "profiles[0].pluginConfig[0].args.scorer.args.limit: -1; wanted 0 or more "
            "(args of Gate, made by Rack/zone)"
        )
    ]


def test_a_nested_plugin_that_does_not_start_is_named_with_its_outer_plugin_and_the_cause() -> None:
    args = {"Rack/zone": {"topologyKey": "zone", "scorer": {"name": "NoStart", "args": {}}}}
    [problem] = refusal(profile(["Rack/zone"], args))
    for word in ("Rack/zone", "NoStart", "no licence"):
        assert word in problem


def test_a_nested_plugin_that_does_not_exist_is_refused_where_it_is_named() -> None:
    name = "".join(["Ga", "et"])  # a new object, as a parser makes it; a literal could be shared
    args = {"Rack": {"topologyKey": "zone", "scorer": {"name": name, "args": {}}}}
    assert refusal(profile(["Rack"], args)) == [
        'profiles[0].pluginConfig[0].args.scorer.name: no plugin "Gaet"; did you mean "Gate"?'
    ]
