"""One instance: its args, decoded and checked."""

from typing import Any

import pytest

from bayplan.engine.instances import checked_args
from bayplan.plugins.registry import Registry
from tests.engine.plugin_kit import Gate, GateArgs, RackArgs


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


def test_args_may_come_as_a_struct() -> None:
    assert checked_args(Gate, GateArgs(limit=5)) == (GateArgs(limit=5), [])
    assert [str(p) for p in checked_args(Gate, GateArgs(limit=-1))[1]] == [
        "limit: -1; wanted 0 or more"
    ]
    assert [str(p) for p in checked_args(Gate, RackArgs(topology_key="a"))[1]] == [
        "RackArgs; wanted GateArgs"
    ]
