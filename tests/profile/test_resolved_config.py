"""Configurations with the plugins that they name: every name and all args are checked.

One instance: its args, decoded and checked.
"""

from pathlib import Path
from typing import Any

import pytest

from bayplan.config import ConfigError, SchedulerConfig, config_from, load_config
from bayplan.config.kubernetes_versions import KubernetesVersion
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.registry import Registry
from bayplan.profile.resolved_config import ResolvedProfile, checked_args, resolve
from tests.engine.plugin_kit import (
    HEAD,
    Both,
    Gate,
    GateArgs,
    Rack,
    RackArgs,
    complaints,
    config,
    profile,
    registry,
)

# ---- resolved config ------------------------------------------------------------------------


REGISTRY = registry(Both, Gate, Rack)


def resolved(*profiles: dict[str, Any], **fields: Any) -> ResolvedProfile:
    return resolve(config(*profiles, **fields), REGISTRY).profiles[0]


def refusal(*profiles: dict[str, Any], **fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        resolve(config(*profiles, **fields), REGISTRY)
    return complaints(caught.value)


# ---- what comes out ------------------------------------------------------------------------


def test_the_default_profile_has_upstreams_plugins_as_far_as_they_are_implemented() -> None:
    [profile] = resolve(SchedulerConfig(), Registry()).profiles
    assert profile.name == "default-scheduler"
    filters = [entry.name for entry in profile.lists["filter"]]
    assert filters[:6] == [
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ]
    weights = {entry.name: entry.weight for entry in profile.lists["score"]}
    assert (weights["TaintToleration"], weights["NodeResourcesFit"]) == (3, 1)
    assert profile.queue_sort.name == "PrioritySort"


# ---- args ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"keys": "b"}, 'keys: unknown field; did you mean "key"?'),
        ({"limit": "x"}, 'limit: "x"; wanted an integer'),
        ({"limit": -1}, "limit: -1; wanted 0 or more"),
    ],
)
def test_wrong_args_are_reported_with_their_full_path(args: Any, complaint: str) -> None:
    assert refusal(profile(["Gate"], {"Gate/a": {}, "Gate": args})) == [
        f"profiles[0].pluginConfig[1].args.{complaint}"
    ]


def test_a_plugin_without_args_takes_none() -> None:
    args = {"apiVersion": "example.com/v1", "kind": "BothArgs"}
    assert resolved(profile(["Both"], {"Both": args})).instances["Both"].args is None
    assert refusal(profile(["Both"], {"Both": {"a": 1}})) == [
        "profiles[0].pluginConfig[0].args.a: unknown field; Both takes no args"
    ]


def test_a_missing_arg_without_default_is_reported() -> None:
    assert refusal(profile(["Rack/zone"])) == [
        "profiles[0].pluginConfig[Rack/zone].args.topologyKey: missing; wanted a string"
    ]


def test_args_of_a_plugin_that_does_not_exist_are_refused() -> None:
    assert refusal(profile([], {"Gaet": {}})) == [
        'profiles[0].pluginConfig[0].name: no plugin "Gaet"; did you mean "Gate"?'
    ]


# ---- all at once ---------------------------------------------------------------------------


def test_all_errors_are_reported_at_once() -> None:
    first = profile(["Gaet"], {"Gate": {"limit": -1}}) | {"schedulerName": "a"}
    second = profile(score={"enabled": [{"name": "Sort"}]}) | {"schedulerName": "a"}
    paths = [line.split(":")[0] for line in refusal(first, second, parallelism=0)]
    assert paths == [
        "parallelism",
        "profiles[1].schedulerName",
        "profiles[0].plugins.multiPoint.enabled[2].name",
        "profiles[0].pluginConfig[0].args.limit",
        "profiles[1].plugins.score.enabled[0].name",
    ]


def test_a_profile_with_wrong_names_is_not_checked_for_missing_plugins() -> None:
    sort = {"enabled": [{"name": "Srt"}], "disabled": [{"name": "*"}]}
    [complaint] = refusal(profile(queueSort=sort))
    assert complaint.startswith("profiles[0].plugins.queueSort.enabled[0].name: no plugin")
    [complaint] = refusal(profile(queueSort={"disabled": [{"name": "*"}]}))
    assert complaint.startswith("profiles[0].plugins.queueSort: no queue sort")


def test_all_profiles_have_the_same_queue_sort() -> None:
    first, second = {"schedulerName": "a"}, {"schedulerName": "b"}
    other = {"plugins": {"multiPoint": {"enabled": [{"name": "Sort/a"}, {"name": "Binder"}]}}}
    assert refusal(profile() | first, other | second) == [
        (
            "profiles[1].plugins.queueSort: Sort/a; "
            "all profiles share one queue: wanted Sort as in profiles[0]"
        )
    ]


def test_the_file_is_named() -> None:
    text = "\n".join(f"{key}: {value}" for key, value in HEAD.items())
    with pytest.raises(ConfigError, match=r"^my\.yaml: profiles\[0\]\.plugins\.queueSort: "):
        resolve(load_config(text, "my.yaml"), Registry([Both]))


# ---- upstream's own documents --------------------------------------------------------------

FULL = Path(__file__).with_name("full_config.yaml")


def test_every_field_that_upstream_documents_is_accepted() -> None:
    config = load_config(FULL.read_bytes(), FULL.name)
    [profile] = resolve(config, Registry()).profiles
    assert profile.name == "bayplan"
    assert profile.percentage_of_nodes_to_score == 50
    assert "ImageLocality" not in profile.instances
    assert {e.name: e.weight for e in profile.lists["score"]}["NodeResourcesFit"] == 2


# ---- extenders ------------------------------------------------------------------------------


def test_resources_that_extenders_manage_replace_the_ignored_resources_in_args() -> None:
    """As upstream: buildExtenders."""
    managed = [
        {"name": "example.com/fpga", "ignoredByScheduler": True},
        {"name": "example.com/gpu"},
    ]
    extender = {"urlPrefix": "http://127.0.0.1:1/", "managedResources": managed}
    ignored = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/other"]}}
    extended = config(
        {"schedulerName": "first", "pluginConfig": [ignored]},
        {"schedulerName": "second"},
        extenders=[extender],
    )
    profiles = resolve(extended, Registry()).profiles
    assert len(profiles) == 2
    for each in profiles:
        args = each.instances["NodeResourcesFit"].args
        assert getattr(args, "ignored_resources", None) == ("example.com/fpga",)


# ---- instances ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"kind": "FitArgs"}, 'kind: "FitArgs"; wanted NodeResourcesFitArgs'),
        ({"apiVersion": "v1"}, 'apiVersion: "v1"; wanted kubescheduler.config.k8s.io/v1'),
        (
            {"scoringStrategy": {"type": "MostAlocated"}},
            (
                'scoringStrategy.type: "MostAlocated"; wanted "LeastAllocated", "MostAllocated" or '
                '"RequestedToCapacityRatio"; did you mean "MostAllocated"?'
            ),
        ),
    ],
)
def test_upstreams_plugins_have_upstreams_args(args: Any, complaint: str) -> None:
    plugin = Registry().find("NodeResourcesFit")
    assert plugin is not None
    assert [str(problem) for problem in checked_args(plugin, args)[1]] == [complaint]


def test_args_may_be_a_struct() -> None:
    assert checked_args(Gate, GateArgs(limit=5)) == (GateArgs(limit=5), [])
    assert [str(p) for p in checked_args(Gate, GateArgs(limit=-1))[1]] == [
        "limit: -1; wanted 0 or more"
    ]
    assert [str(p) for p in checked_args(Gate, RackArgs(topology_key="a"))[1]] == [
        "RackArgs; wanted GateArgs"
    ]


@pytest.mark.parametrize("version", list(KubernetesVersion))
def test_results_are_used_again_in_every_version_unless_the_gate_is_off(
    version: KubernetesVersion,
) -> None:
    [profile] = resolve(config_from(DEFAULT_CONFIG, kubernetes=version), Registry()).profiles
    assert profile.reuse_bytes_max > 0
