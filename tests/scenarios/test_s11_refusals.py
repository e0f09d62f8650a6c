"""S-11, part B: configurations that every command refuses before the first cycle."""

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
    """One profile in which only these plugins score. ``args``: instance → its args, with ``_`` in
    place of ``/``: ``Invert_a`` is Invert/a."""
    enabled = [{"name": name} for name in names]
    config = [{"name": name.replace("_", "/"), "args": value} for name, value in args.items()]
    score = {"disabled": [{"name": "*"}], "enabled": enabled}
    return whole({"schedulerName": "bayplan", "plugins": {"score": score}, "pluginConfig": config})


def sorted_by(*names: str, **more: Any) -> Config:
    """A profile with these QueueSort plugins."""
    enabled = [{"name": name} for name in names]
    queue_sort = {"disabled": [{"name": "*"}], "enabled": enabled}
    return {"schedulerName": "bayplan", "plugins": {"queueSort": queue_sort}, **more}


BROKEN_EVENTS = """
from bayplan import EnqueueExtensions, ScalarFilterPlugin


class BrokenEvents(ScalarFilterPlugin, EnqueueExtensions):
    name = "BrokenEvents"

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
        id="a reader of itself",
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
        whole(sorted_by("PrioritySort", "Coscheduling")), ["queueSort"], id="two QueueSort plugins"
    ),
    pytest.param(whole(sorted_by()), ["queueSort"], id="no QueueSort plugin"),
    pytest.param(
        whole(sorted_by("PrioritySort"), {**sorted_by("Coscheduling"), "schedulerName": "another"}),
        ["queueSort"],
        id="profiles with different QueueSort plugins",
    ),
    pytest.param(
        whole(percentageOfNodesToScore=101),
        ["percentageOfNodesToScore", "101"],
        id="a percentage above 100",
    ),
    pytest.param(
        whole(featureGates={"OpportunisticBatchin": True}),
        ["OpportunisticBatchin; ", '"OpportunisticBatching"'],
        id="a misspelled gate",
    ),
]

#: Errors at the creation of plugins. `run` creates plugins after it has read the server's kinds.
BUILT_PLUGIN_ROWS = [
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
        id="an inner plugin that does not exist",
    ),
    pytest.param(
        whole(
            {
                "schedulerName": "bayplan",
                "plugins": {"filter": {"enabled": [{"name": "BrokenEvents"}]}},
            }
        ),
        ["BrokenEvents", "no events today"],
        id="a plugin that raises in events_to_register",
    ),
]


@pytest.mark.parametrize(
    ("command", "config", "words"),
    [
        pytest.param(command, *row.values, id=f"{command}: {row.id}")
        for command in ("config check", "simulate", "run")
        for row in (ROWS if command == "run" else [*ROWS, *BUILT_PLUGIN_ROWS])
    ],
)
def test_the_configuration_is_refused_in_one_line_with_its_path(
    tmp_path: Path, command: str, config: Config, words: list[str]
) -> None:
    file = write_objects(tmp_path / "c.yaml", config)
    own = write_objects(tmp_path / "broken_events.py", BROKEN_EVENTS)
    plugins = ("--plugin", EXAMPLES / "composed_rack" / "composed_rack.py", "--plugin", own)
    command_line: tuple[Any, ...] = ("config", "check", file)
    if command == "simulate":
        command_line = (
            "simulate",
            write_objects(tmp_path / "n.yaml", node_with_cpu("n1")),
            "--config",
            file,
        )
    elif command == "run":
        command_line = ("run", "--config", file, "--kubeconfig", tmp_path / "none")
    lines = refusal(*command_line, *plugins)
    assert [line for line in lines if all(word in line for word in words)], lines
