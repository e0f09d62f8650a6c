"""The model of a cluster for a question: settings, schedulers, refusals."""

from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.questions import open_model
from bayplan.config import ConfigError
from bayplan.problems import BadInputError
from tests.cli.command_line import profile, write_objects
from tests.kit.manifests import node, pod


def options(*cluster: Path, **changed: Any) -> dict[str, Any]:
    defaults = {
        "kubeconfig": None,
        "context_name": "",
        "at": None,
        "enabled": "",
        "disabled": "",
        "plugins": (),
        "config_path": None,
        "feature_gates": "",
        "kubernetes": "",
        "seed": 0,
    }
    return {"cluster": tuple(map(str, cluster)), **defaults, **changed}


def test_without_a_configuration_all_pods_are_for_the_default_scheduler(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    stranger = pod("a", schedulerName="volcano")
    with open_model(options(cluster)) as opened:
        assert opened.read([stranger]).pods[0].spec.scheduler_name == "default-scheduler"
    config = write_objects(tmp_path / "config.yaml", profile())
    with open_model(options(cluster, config_path=str(config))) as opened:
        assert opened.read([stranger]).pods[0].spec.scheduler_name == "volcano"


def test_plugins_are_closed_at_the_end(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    with open_model(options(cluster)) as opened:
        scheduler = opened.model.scheduler
        assert list(scheduler.kinds)
    assert not scheduler.declared_fields  # all plugins are closed


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"context_name": "staging"}, "found files of a cluster and --kubeconfig or --context"),
        ({"plugins": ("nowhere.py",)}, "nowhere.py: cannot be read"),
    ],
)
def test_invalid_options_are_refused(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    with pytest.raises(BadInputError, match=message), open_model(options(cluster, **wrong)):
        raise AssertionError("it opened")


def test_standard_input_is_read_once() -> None:
    with (
        pytest.raises(BadInputError, match="standard input: found - twice"),
        open_model(options(Path("-")), "-"),
    ):
        raise AssertionError("it opened")


def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1"))
    config = write_objects(tmp_path / "config.yaml", profile(score=["NoSuchPlugin"]))
    with (
        pytest.raises(ConfigError, match="NoSuchPlugin"),
        open_model(options(cluster, config_path=str(config))),
    ):
        raise AssertionError("it opened")
