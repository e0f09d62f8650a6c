"""The effective configuration, and remarks about settings without effect.

Settings that kube-scheduler would not understand have remarks, too.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.config import ConfigError, SchedulerConfig, load_config
from bayplan.config.feature_gates import gates_of
from bayplan.config.kubernetes_versions import NEWEST
from bayplan.framework.profile import EXTENSION_POINTS
from bayplan.plugins.registry import Registry
from bayplan.profile.effective_config import effective, foreign, plain_args, remarks
from tests.engine.plugin_kit import (
    HEAD,
    Both,
    Gate,
    GateArgs,
    NoEvents,
    Rack,
    Talkative,
    config,
    profile,
    registry,
)

# ---- effective ------------------------------------------------------------------------------


REGISTRY = registry(Both, Gate, Rack, Talkative, NoEvents)
FULL = Path(__file__).with_name("full_config.yaml")


def names(profile_config: dict[str, Any], point: str) -> list[str]:
    return [entry["name"] for entry in profile_config["profiles"][0]["plugins"][point]["enabled"]]


def remark(*profiles: dict[str, Any], **fields: Any) -> list[str]:
    """Remarks, without those about the default configuration."""
    usual = remarks(config(profile()), REGISTRY)
    return [line for line in remarks(config(*profiles, **fields), REGISTRY) if line not in usual]


# ---- effective -----------------------------------------------------------------------------


def test_every_list_of_the_default_profile_is_printed() -> None:
    effective_config = effective(SchedulerConfig(), Registry())
    assert set(effective_config["profiles"][0]["plugins"]) == {"multiPoint", *EXTENSION_POINTS}
    assert names(effective_config, "filter")[:6] == [
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ]
    score = effective_config["profiles"][0]["plugins"]["score"]["enabled"]
    assert {"name": "TaintToleration", "weight": 3} in score


def test_args_are_filled_in() -> None:
    result = effective(config(profile(["Gate/a"], {"Gate/a": {"limit": 5}})), REGISTRY)
    assert result["profiles"][0]["pluginConfig"] == [
        {"name": "Gate/a", "args": {"key": "a", "limit": 5}}
    ]
    fit = next(
        entry["args"]
        for entry in effective(SchedulerConfig(), Registry())["profiles"][0]["pluginConfig"]
        if entry["name"] == "NodeResourcesFit"
    )
    assert fit["scoringStrategy"] == {
        "type": "LeastAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }


def test_the_type_of_args_stands_in_front() -> None:
    args = GateArgs(api_version="v1", kind="GateArgs")
    assert list(plain_args(args)) == ["apiVersion", "kind", "key", "limit"]


def test_defaults_outside_of_profiles_are_filled_in() -> None:
    result = effective(SchedulerConfig(), Registry())
    assert result["podInitialBackoffSeconds"] == 1
    assert result["leaderElection"]["leaseDuration"] == "15s"
    assert result["enableContentionProfiling"] is True
    assert set(result["featureGates"]) == set(gates_of(NEWEST))
    assert result["profiles"][0]["percentageOfNodesToScore"] == 0


def test_a_profile_prints_its_own_percentage() -> None:
    result = effective(config(profile(), percentageOfNodesToScore=30), REGISTRY)
    assert result["profiles"][0]["percentageOfNodesToScore"] == 30


@pytest.mark.parametrize("text", [FULL.read_text(encoding="utf-8"), yaml.safe_dump(HEAD)])
def test_the_effective_configuration_of_an_effective_configuration_is_itself(text: str) -> None:
    registry = Registry()
    effective_config = effective(load_config(text, ""), registry)
    printed = yaml.safe_dump(effective_config, sort_keys=False)
    assert effective(load_config(printed, ""), registry) == effective_config


def test_a_refused_configuration_has_no_effective_configuration() -> None:
    with pytest.raises(ConfigError, match="parallelism"):
        effective(config(profile(), parallelism=0), REGISTRY)


# ---- remarks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"parallelism": 32},
            "parallelism: 32 has no effect: all nodes are evaluated in one array operation",
        ),
        (
            {"enableProfiling": False},
            "enableProfiling: false has no effect: there is no Go profiler to serve",
        ),
        (
            {"clientConnection": {"qps": 5}},
            (
                "clientConnection.contentType: application/vnd.kubernetes.protobuf has no effect: "
                "JSON is used"
            ),
        ),
        (
            {"extenders": [{"urlPrefix": "http://a/"}]},
            "extenders[0]: http://a/ has no verb, so it is not called",
        ),
        (
            {"featureGates": {"SchedulerAsyncAPICalls": True}},
            "featureGates: SchedulerAsyncAPICalls has no effect on any answer",
        ),
        ({"featureGates": {"NodeSwap": True}}, "featureGates: NodeSwap has no effect"),
    ],
)
def test_a_field_without_effect_is_reported(fields: dict[str, Any], message: str) -> None:
    assert remark(profile(), **fields)[0].startswith(message)


@pytest.mark.parametrize(
    "fields",
    [
        {"clientConnection": {"contentType": "application/json"}},
        {"featureGates": {"SchedulerPopFromBackoffQ": False}},
        {"featureGates": {"SchedulerAsyncAPICalls": False}},
        {"featureGates": {"DRANodeAllocatableResources": True}},
        {"podMaxBackoffSeconds": 20},
    ],
)
def test_a_field_with_an_effect_or_the_default_is_not_reported(fields: dict[str, Any]) -> None:
    assert remark(profile(), **fields) == []


def test_an_explicit_percentage_of_0_is_reported_as_all_nodes() -> None:
    def is_reported(*profiles: dict[str, Any], **fields: Any) -> bool:
        lines = remarks(config(*profiles, **fields), REGISTRY)
        return any("percentageOfNodesToScore: 0: all nodes are evaluated" in li for li in lines)

    assert not is_reported(profile())
    assert is_reported(profile(), percentageOfNodesToScore=0)
    assert not is_reported(profile(), percentageOfNodesToScore=30)
    some = [profile() | {"schedulerName": "a"}, profile() | {"schedulerName": "b"}]
    whole = some[0] | {"percentageOfNodesToScore": 30}
    assert is_reported(whole, some[1], percentageOfNodesToScore=0)
    assert not is_reported(whole, percentageOfNodesToScore=0)


@pytest.mark.parametrize(
    ("scheduler", "election", "remark"),
    [
        ("mine", {"resourceName": "kube-scheduler"}, "kube-scheduler is kube-scheduler's own"),
        ("mine", {"resourceName": "kube-scheduler", "leaderElect": False}, ""),
        ("mine", {"resourceName": "mine"}, ""),
        ("mine", {"leaseDuration": "30s"}, "bayplan on purpose, where kube-scheduler has"),
        ("default-scheduler", {"leaseDuration": "30s"}, ""),
        ("default-scheduler", {"resourceName": "bayplan"}, "bayplan is not kube-scheduler's"),
        ("default-scheduler", {"leaderElect": False}, ""),
    ],
)
def test_a_lease_that_lets_two_schedulers_collide_is_reported(
    scheduler: str, election: dict[str, Any], remark: str
) -> None:
    one = profile() | {"schedulerName": scheduler}
    lines = remarks(config(one, leaderElection=election), REGISTRY)
    reports = [line for line in lines if line.startswith("leaderElection")]
    assert len(reports) == bool(remark)
    assert all(line.startswith(f"leaderElection.resourceName: {remark}") for line in reports)


def test_args_without_an_enabled_plugin_are_reported() -> None:
    args: dict[str, Any] = {"Gate": {}}
    assert remark(profile(["Gate/a"], {**args, "Gate/a": {}})) == [
        "profiles[0].pluginConfig[0]: Gate is not enabled: its args have no effect",
    ]


def test_weights_of_plugins_that_do_not_score_are_reported() -> None:
    both = [{"name": "Both", "weight": 2}]
    sets = {"filter": {"enabled": both}, "score": {"enabled": both}}
    multi_point = {"multiPoint": {"enabled": [*both, {"name": "Gate", "weight": 3}]}}
    base = profile()["plugins"]["multiPoint"]["enabled"]
    multi_point["multiPoint"]["enabled"] += base
    text = remark({"plugins": sets | multi_point})
    assert [line.split(" has no effect")[0] for line in text] == [
        "profiles[0].plugins.multiPoint.enabled[1]: the weight of Gate",
        "profiles[0].plugins.filter.enabled[0]: the weight of Both",
    ]


def test_events_of_a_plugin_that_only_scores_are_reported() -> None:
    assert remark(profile(["Talkative/a"])) == [
        "profiles[0]: Talkative/a is not asked for its events: it cannot reject a pod"
    ]


def test_a_post_filter_plugin_without_its_extension_point_is_reported() -> None:
    names = ("Coscheduling", "NodeResourcesFit", "DefaultBinder")
    everything = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}
    points = {"queueSort": {"enabled": [{"name": "Coscheduling"}]}, "multiPoint": everything}

    def lines(**more: Any) -> list[str]:
        texts = remarks(config({"plugins": {**points, **more}}), Registry())
        return [line for line in texts if "postFilter" in line]

    expected = (
        "profiles[0]: Coscheduling is enabled, but not at postFilter, where it has something to do"
    )
    assert lines(postFilter={"disabled": [{"name": "Coscheduling"}]}) == [expected]
    assert lines() == []
    only_sorts = {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names[1:]]}
    assert lines(multiPoint=only_sorts) == []


def test_a_refused_configuration_has_no_remarks() -> None:
    with pytest.raises(ConfigError):
        remarks(config(profile(), parallelism=0), REGISTRY)


# ---- foreign --------------------------------------------------------------------------------


def lines(plugins: dict[str, Any], args: dict[str, Any] | None = None, **fields: Any) -> list[str]:
    configured = [{"name": name, "args": each} for name, each in (args or {}).items()]
    return foreign(config({"plugins": plugins, "pluginConfig": configured}, **fields))


def test_fields_and_plugins_of_kube_scheduler_have_no_remarks() -> None:
    score = {"enabled": [{"name": "NodeResourcesFit"}], "disabled": [{"name": "*"}]}
    assert lines({"score": score}, {"VolumeBinding": {}}, parallelism=4) == []
    assert foreign(SchedulerConfig()) == []


def test_instances_and_own_plugins_are_reported_once_with_all_places() -> None:
    score = {"enabled": [{"name": "Combine/D"}, {"name": "NodeResourcesFit/a"}]}
    args = {"Scale/B": {}, "Invert/C": {}, "Combine/D": {}}
    assert lines({"score": score}, args) == [
        (
            "profiles[0].plugins.score.enabled[0], profiles[0].pluginConfig[2]: "
            "Combine/D: kube-scheduler has no such plugin"
        ),
        (
            "profiles[0].plugins.score.enabled[1]: NodeResourcesFit/a: "
            "kube-scheduler has one NodeResourcesFit in a profile, without a label"
        ),
        "profiles[0].pluginConfig[0]: Scale/B: kube-scheduler has no such plugin",
        "profiles[0].pluginConfig[1]: Invert/C: kube-scheduler has no such plugin",
    ]


def test_fields_that_kube_scheduler_lacks_are_reported() -> None:
    keys = {"tieBreak": {"enabled": [{"name": "NodeNameOrder"}]}}
    text_lines = lines(keys, featureGates={"OpportunisticBatching": False})
    assert [line.split(":")[0] for line in text_lines] == [
        "featureGates",
        "profiles[0].plugins.tieBreak",
    ]
