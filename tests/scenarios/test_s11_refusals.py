"""S-11, part B: configurations that are refused before the first cycle, by every command alike."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import refusal, write_objects
from tests.comparison.kit import node_with_cpu
from tests.examples.policies import EXAMPLES

Config = dict[str, Any]


def whole(*profiles: Config, **fields: Any) -> Config:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles) or [{"schedulerName": "bayplan"}],
        **fields,
    }


def scored(*names: str, **args: Any) -> Config:
    """One profile: these score, and the others are there to be read or not. ``Invert_a`` is
    Invert/a."""
    enabled = [{"name": name} for name in names]
    config = [{"name": name.replace("_", "/"), "args": value} for name, value in args.items()]
    score = {"disabled": [{"name": "*"}], "enabled": enabled}
    return whole({"schedulerName": "bayplan", "plugins": {"score": score}, "pluginConfig": config})


def sorted_by(*names: str, **more: Any) -> Config:
    """A profile whose queue these sort."""
    enabled = [{"name": name} for name in names]
    queue_sort = {"disabled": [{"name": "*"}], "enabled": enabled}
    return {"schedulerName": "bayplan", "plugins": {"queueSort": queue_sort}, **more}


WAKES_NOBODY = """
from bayplan import EnqueueExtensions, ScalarFilterPlugin


class WakesNobody(ScalarFilterPlugin, EnqueueExtensions):
    name = "WakesNobody"

    def filter_node(self, state, pod, node):
        return None

    def events_to_register(self):
        raise ValueError("no events today")
"""

ROWS = [
    pytest.param(
        scored(
            "TopologyScorer/rack",
            TopologyScorer_rack={"scoreFrom": "NodeResourceFit", "topologyKey": "rack"},
        ),
        ["profiles[0].pluginConfig[0].args.scoreFrom", '"NodeResourceFit"', "NodeResourcesFit"],
        id="a misspelled source",
    ),
    pytest.param(
        scored("Invert/a", Invert_a={"scoreFrom": "Invert/b"}, Invert_b={"scoreFrom": "Invert/a"}),
        ["Invert/a → Invert/b → Invert/a"],
        id="a cycle",
    ),
    pytest.param(
        scored("Invert/a", Invert_a={"scoreFrom": "Invert/a"}),
        ["Invert/a", "itself"],
        id="one that reads itself",
    ),
    pytest.param(
        scored("Invert/a", Invert_a={"scoreFrom": "NodePorts"}),
        ["NodePorts", "not a score plugin"],
        id="a source without scores",
    ),
    pytest.param(
        scored(
            "TopologyScorer/rack",
            TopologyScorer_rack={
                "scoreFrom": "NodeResourcesFit",
                "topologyKey": "rack",
                "agregate": "sum",
            },
        ),
        ["agregate", '"aggregate"'],
        id="a misspelled argument",
    ),
    pytest.param(
        scored("ImageLocality", "ImageLocality"), ["ImageLocality"], id="one plugin enabled twice"
    ),
    pytest.param(
        whole(sorted_by("PrioritySort", "Coscheduling")), ["queueSort"], id="two that sort"
    ),
    pytest.param(whole(sorted_by()), ["queueSort"], id="nobody that sorts"),
    pytest.param(
        whole(sorted_by("PrioritySort"), {**sorted_by("Coscheduling"), "schedulerName": "another"}),
        ["queueSort"],
        id="profiles that sort differently",
    ),
    pytest.param(
        whole(percentageOfNodesToScore=101),
        ["percentageOfNodesToScore", "101"],
        id="a percentage above 100",
    ),
    pytest.param(
        whole(featureGates={"OpportunisticBatchin": True}),
        ['"OpportunisticBatchin"', '"OpportunisticBatching"'],
        id="a misspelled gate",
    ),
]

#: What is found when plugins are made. `run` makes them once an API server has told of its kinds.
MADE_ROWS = [
    pytest.param(
        scored("ComposedRack", ComposedRack={"inner": {"scoringStrategy": {"type": "Mots"}}}),
        [
            "profiles[0].pluginConfig[0].args.inner.scoringStrategy.type",
            '"Mots"',
            "MostAllocated",
            "NodeResourcesFit, made by ComposedRack",
        ],
        id="inner args",
    ),
    pytest.param(
        scored("ComposedRack", ComposedRack={"plugin": "NodeResourceFit"}),
        ["profiles[0].pluginConfig[0].args.plugin", '"NodeResourceFit"', "NodeResourcesFit"],
        id="an inner plugin that is none",
    ),
    pytest.param(
        whole(
            {
                "schedulerName": "bayplan",
                "plugins": {"filter": {"enabled": [{"name": "WakesNobody"}]}},
            }
        ),
        ["WakesNobody", "no events today"],
        id="a plugin whose events cannot be told",
    ),
]


@pytest.mark.parametrize(
    ("command", "config", "words"),
    [
        pytest.param(command, *row.values, id=f"{command}: {row.id}")
        for command in ("config check", "simulate", "run")
        for row in (ROWS if command == "run" else [*ROWS, *MADE_ROWS])
    ],
)
def test_the_configuration_is_refused_in_one_line_with_its_path(
    tmp_path: Path, command: str, config: Config, words: list[str]
) -> None:
    file = write_objects(tmp_path / "c.yaml", config)
    own = write_objects(tmp_path / "wakes_nobody.py", WAKES_NOBODY)
    plugins = ("--plugin", EXAMPLES / "composed_rack" / "composed_rack.py", "--plugin", own)
    given: tuple[Any, ...] = ("config", "check", file)
    if command == "simulate":
        given = (
            "simulate",
            write_objects(tmp_path / "n.yaml", node_with_cpu("n1")),
            "--config",
            file,
        )
    elif command == "run":
        given = ("run", "--config", file, "--kubeconfig", tmp_path / "none")
    lines = refusal(*given, *plugins)
    assert [line for line in lines if all(word in line for word in words)], lines
