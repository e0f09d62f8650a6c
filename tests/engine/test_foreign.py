"""What kube-scheduler would not understand."""

from typing import Any

from bayplan.config import SchedulerConfig
from bayplan.engine.foreign import foreign
from tests.engine.plugin_kit import config


def lines(plugins: dict[str, Any], args: dict[str, Any] | None = None, **fields: Any) -> list[str]:
    configured = [{"name": name, "args": each} for name, each in (args or {}).items()]
    return foreign(config({"plugins": plugins, "pluginConfig": configured}, **fields))


def test_what_kube_scheduler_has_is_understood() -> None:
    score = {"enabled": [{"name": "NodeResourcesFit"}], "disabled": [{"name": "*"}]}
    assert lines({"score": score}, {"VolumeBinding": {}}, parallelism=4) == []
    assert foreign(SchedulerConfig()) == []


def test_instances_and_plugins_of_ours_are_told_once_each_with_all_their_places() -> None:
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


def test_fields_of_ours_are_told() -> None:
    keys = {"tieBreak": {"enabled": [{"name": "NodeNameOrder"}]}}
    told = lines(keys, featureGates={"OpportunisticBatching": False})
    assert [line.split(":")[0] for line in told] == ["featureGates", "profiles[0].plugins.tieBreak"]
