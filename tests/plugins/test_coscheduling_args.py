"""CoschedulingArgs: both sets of fields decode, and values out of range are reported."""

from typing import Any

import msgspec
import pytest

from bayplan.config import ConfigError, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.plugins.coscheduling import CoschedulingArgs
from bayplan.plugins.registry import Registry
from bayplan.profile.effective_config import remarks
from bayplan.profile.resolved_config import resolve
from tests.plugins.coscheduling_kit import coscheduling, nodes


def args(**value: Any) -> CoschedulingArgs:
    coscheduling_args = coscheduling(nodes(), **value).args
    assert isinstance(coscheduling_args, CoschedulingArgs)
    return coscheduling_args


def test_defaults_are_upstreams() -> None:
    result = CoschedulingArgs()
    assert (result.placement, result.wait_seconds, result.denied_seconds) == ("group", 60, 0)
    assert result.pod_group_reject_percentage == 10


def test_upstreams_set_decodes() -> None:
    options = {"permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 5}
    result = args(**options, podGroupRejectPercentage=0, kind="CoschedulingArgs")
    assert (result.wait_seconds, result.denied_seconds) == (10, 5)
    assert result.pod_group_reject_percentage == 0


def test_the_older_set_decodes() -> None:
    access = {"kubeMaster": "", "kubeConfigPath": "/etc/kubernetes/admin.conf"}
    result = args(permitWaitingTimeSeconds=10, deniedPGExpirationTimeSeconds=3, **access)
    assert (result.wait_seconds, result.denied_seconds) == (10, 3)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("permitWaitingTimeSeconds", -1),
        ("podGroupBackoffSeconds", -1),
        ("deniedPGExpirationTimeSeconds", -1),
        ("podGroupRejectPercentage", 101),
        ("podGroupRejectPercentage", -1),
    ],
)
def test_a_value_out_of_range_is_reported(path: str, value: int) -> None:
    config = msgspec.convert({path: value}, CoschedulingArgs)
    assert [problems for problems, _ in config.problems()] == [path]


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    enabled = {"queueSort": {"enabled": [{"name": "Coscheduling"}]}}
    args = [{"name": "Coscheduling", "args": {"permitWaitingTimeSecond": 5}}]
    profile = {"schedulerName": "bayplan", "plugins": enabled, "pluginConfig": args}
    with pytest.raises(ConfigError) as caught:
        resolve(config_from({**DEFAULT_CONFIG, "profiles": [profile]}), Registry())
    expected = 'permitWaitingTimeSecond: unknown field; did you mean "permitWaitingTimeSeconds"?'
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ({}, []),
        ({"kubeMaster": "https://example.com"}, ["kubeMaster"]),
        (
            {"permitWaitingTimeSeconds": 60, "deniedPGExpirationTimeSeconds": 20},
            ["permitWaitingTimeSeconds", "deniedPGExpirationTimeSeconds"],
        ),
        (
            {"placement": "pod", "permitWaitingTimeSeconds": 5, "kubeConfigPath": "x"},
            ["kubeConfigPath"],
        ),
    ],
)
def test_a_field_without_effect_has_a_remark(content: dict[str, Any], names: list[str]) -> None:
    plugins = {
        "queueSort": {"disabled": [{"name": "PrioritySort"}]},
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    }
    profile = {"plugins": plugins, "pluginConfig": [{"name": "Coscheduling", "args": content}]}
    config = config_from({**DEFAULT_CONFIG, "profiles": [profile]})
    lines = [line for line in remarks(config, Registry()) if ".args." in line]
    begin = "profiles[0].pluginConfig[0].args"
    assert [line.partition(": has no effect: ")[0] for line in lines] == [
        f"{begin}.{name}" for name in names
    ]
