"""Named levels of the topology: their checks, and what annotations of groups make of them."""

from typing import Any

import pytest

from bayplan.config import config_from
from tests.scenarios.gangs import FIT, members, message, put_group, racks, racks_of
from tests.scenarios.world import World, scenario

LEVELS = [{"name": "pod", "nodeLabel": "block"}, {"name": "shelf", "nodeLabel": "rack"}]
CONFIG = {"podGroups": {"topology": LEVELS}}


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ({"name": "", "nodeLabel": "a"}, "topology[2].name"),
        ({"name": "a/b", "nodeLabel": "a"}, "wanted a name such as rack, without a slash"),
        ({"name": "x", "nodeLabel": ""}, "topology[2].nodeLabel"),
        ({"name": "x", "nodeLabel": "a b"}, "wanted the label of nodes that share a domain"),
        ({"name": "pod", "nodeLabel": "a"}, '"pod" again'),
        ({"name": "x", "nodeLabel": "rack"}, '"rack" again'),
        ({"name": "x", "nodelabel": "rack"}, 'did you mean "nodeLabel"?'),
    ],
)
def test_an_invalid_level_is_refused(level: dict[str, str], text: str) -> None:
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    config = config_from({**header, "podGroups": {"topology": [*LEVELS, level]}})
    assert text in " ".join(map(str, config.problems))


@pytest.mark.parametrize(
    "annotations",
    [
        {"bayplan.dev/required-topology": "shelf"},
        {"bayplan.dev/required-topology": "rack"},
        {"bayplan.dev/preferred-topology": "shelf, pod"},
        {"bayplan.dev/topology-slices": "pod=2, shelf=2"},
    ],
)
@scenario(plugins=FIT, config=CONFIG)
async def test_annotations_name_levels_or_their_labels(
    world: World, annotations: dict[str, str]
) -> None:
    racks(world, (1,), (1, 1))
    put_group(world, "g", 2, annotations=annotations)
    names = members(world, 1, 1)
    await world.until(1)
    assert racks_of(world, *names) == ["r1", "r1"]


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        (
            {"bayplan.dev/required-topology": "shelv"},
            (
                'annotation bayplan.dev/required-topology: "shelv" is no level of the '
                'topology; did you mean "shelf"?'
            ),
        ),
        (
            {"bayplan.dev/exclusive-topology": "row"},
            (
                'annotation bayplan.dev/exclusive-topology: "row" is no level of the '
                'topology; wanted "pod" or "shelf"'
            ),
        ),
        (
            {"bayplan.dev/topology-slices": "shelf=2, pod=2"},
            (
                "annotation bayplan.dev/topology-slices: level shelf does not contain level "
                "pod; wanted the outermost first"
            ),
        ),
    ],
)
@scenario(plugins=FIT, config=CONFIG)
async def test_a_group_that_names_no_level_is_not_tried(
    world: World, annotations: dict[str, str], text: str
) -> None:
    racks(world, (8,))
    put_group(world, "g", 1, annotations=annotations)
    names: Any = members(world, 1)
    await world.until(1)
    assert racks_of(world, *names) == [""]
    assert message(world, names[0]) == f"group default/g: {text}"
