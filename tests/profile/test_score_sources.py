"""Which instances a profile's plugins read, and how a wrong name is refused."""

from typing import Any

import pytest

from bayplan.config import ConfigError, SchedulerConfig
from bayplan.profile.profiles import build_profiles
from bayplan.profile.resolved_config import ResolvedProfile, resolve
from tests.engine.plugin_kit import REGISTRY, complaints, config, handles, profile, reads


def of(enabled: list[str], args: dict[str, Any], **points: Any) -> SchedulerConfig:
    return config(profile(enabled, args, **points))


def resolved(enabled: list[str], args: dict[str, Any], **points: Any) -> ResolvedProfile:
    return resolve(of(enabled, args, **points), REGISTRY).profiles[0]


def refusal(enabled: list[str], args: dict[str, Any], **points: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        resolve(of(enabled, args, **points), REGISTRY)
    return complaints(caught.value)


# ---- sources ------------------------------------------------------------------------------


def test_sources_that_are_not_enabled_are_made_with_their_args_or_the_defaults() -> None:
    result = resolved(
        ["Mean/d"],
        {
            "Mean/d": {"scoreFrom": ["Invert/b", "Both"]},
            "Invert/b": reads("Both/a"),
            "Both/a": {},
        },
    )
    assert result.sources == ("Both/a", "Invert/b", "Both")
    assert set(result.instances) == {"Sort", "Binder", "Mean/d", "Both/a", "Invert/b", "Both"}
    assert list(result.instances)[-3:] == ["Both/a", "Invert/b", "Both"]
    assert [entry.name for entry in result.lists["score"]] == ["Mean/d"]


def test_a_tie_break_key_may_have_a_source() -> None:
    result = resolved([], {"Invert/k": reads("Both")}, tieBreak={"enabled": [{"name": "Invert/k"}]})
    assert result.sources == ("Both",)


def test_one_instance_serves_every_extension_point_and_all_readers() -> None:
    without = {"disabled": [{"name": "Both"}]}
    sources = of(
        ["Both", "Invert/x", "Invert/y"],
        {"Invert/x": reads("Both"), "Invert/y": reads("Both")},
        score=without,
    )
    [built] = build_profiles(sources, REGISTRY, handles(REGISTRY))
    [source] = built.plugins.sources
    assert source is built.plugins.filter[0]
    names = [each.instance_name for each in built.plugins.instances()]
    assert names.count("Both") == 1


# ---- what is refused ------------------------------------------------------------------------


def test_a_misspelled_source_is_reported_with_its_path_and_the_nearest_name() -> None:
    assert refusal(["Invert/a"], {"Invert/a": reads("Bot")}) == [
        'profiles[0].pluginConfig[0].args.scoreFrom: no plugin "Bot"; did you mean "Both"?'
    ]
    args = {"Both": {}, "Mean/a": {"scoreFrom": ["Both", "Bot"]}}
    [problem] = refusal(["Mean/a"], args)
    assert problem.startswith("profiles[0].pluginConfig[1].args.scoreFrom[1]: no plugin")


def test_a_misspelled_label_is_reported_and_makes_no_instance() -> None:
    args = {"Invert/a": reads("Both/rak"), "Both/rack": {}}
    assert refusal(["Invert/a"], args) == [
        (
            'profiles[0].pluginConfig[0].args.scoreFrom: no instance "Both/rak"; '
            'did you mean "Both/rack"?'
        )
    ]


@pytest.mark.parametrize("name", ["Gate", "NodeNameOrder"])
def test_a_source_must_score(name: str) -> None:
    [problem] = refusal(["Invert/a"], {"Invert/a": reads(name)})
    assert problem.startswith(
        f'profiles[0].pluginConfig[0].args.scoreFrom: "{name}" is not a score plugin; it has '
    )


def test_an_instance_cannot_read_itself() -> None:
    assert refusal(["Invert/a"], {"Invert/a": reads("Invert/a")}) == [
        "profiles[0].pluginConfig[0].args.scoreFrom: Invert/a reads itself; wanted another's name"
    ]


def test_a_cycle_is_reported_once_with_its_path() -> None:
    args = {"Invert/a": reads("Invert/b"), "Invert/b": reads("Invert/a")}
    expected = (
        "profiles[0].pluginConfig[1].args.scoreFrom: a cycle of scores, "
        "Invert/a → Invert/b → Invert/a; wanted one that ends"
    )
    assert refusal(["Invert/a"], args) == [expected]
    assert refusal(["Invert/a", "Invert/b"], args) == [expected]
    into_it = {**args, "Invert/c": reads("Invert/a")}
    assert refusal(["Invert/c"], into_it) == [expected]


def test_a_cycle_of_disabled_instances_is_reported_too() -> None:
    args = {"Invert/a": reads("Invert/b"), "Invert/b": reads("Invert/a")}
    [problem] = refusal([], args)
    assert "Invert/a → Invert/b → Invert/a" in problem


def test_an_unused_instance_is_refused() -> None:
    assert refusal(["Both"], {"Both": {}, "Both/a": {}, "Invert": reads("Both")}) == [
        (
            f'profiles[0].pluginConfig[{index}].name: "{name}" is neither enabled nor read; '
            "wanted it enabled, or named in another's scoreFrom"
        )
        for index, name in ((1, "Both/a"), (2, "Invert"))
    ]


def test_args_of_a_plugin_without_a_label_may_be_unused_as_in_kube_scheduler() -> None:
    assert resolved([], {"Both": {}}).sources == ()


def test_the_target_of_a_misspelled_source_is_not_reported_as_unused() -> None:
    args = {"Invert/a": reads("Bothh"), "Both/a": {}}
    assert len(refusal(["Invert/a"], args)) == 1
