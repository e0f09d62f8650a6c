"""Example policies as a user runs them: a file for --plugin, a configuration, a cluster."""

from collections.abc import Sequence
from pathlib import Path

from bayplan import Node, Plugin, PodInfo
from bayplan.config import load_config
from bayplan.engine.cycle import Cycle
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.runtime import Framework
from bayplan.framework.types import QueuedPodInfo
from bayplan.plugins.registry import Registry
from bayplan.profile.profiles import build_profiles
from bayplan.testing import SampleCluster, cluster
from bayplan.testing.clusters import handle_for

EXAMPLES = Path(__file__).parents[2] / "examples"


def policy(name: str) -> type[Plugin]:
    """The only plugin of an example, loaded as --plugin loads it."""
    registry = Registry(())
    [plugin_name] = registry.load_file(EXAMPLES / f"{name}.py")
    plugin = registry.find(plugin_name)
    assert plugin is not None
    return plugin


def cycle_with(example: str, nodes: Sequence[Node], pod: PodInfo) -> Cycle:
    """A scheduling cycle under the example's configuration."""
    file = EXAMPLES / f"{example}.config.yaml"
    config = load_config(file.read_text(encoding="utf-8"), file.name)
    registry = Registry()
    registry.load_file(EXAMPLES / f"{example}.py")
    world: SampleCluster = cluster(nodes, [])
    [built] = build_profiles(
        config, registry, lambda profile, name, plugin: handle_for(world, plugin, name)
    )
    framework = Framework(built.plugins, world.nominator)
    cycle = Cycle(QueuedPodInfo(pod, 0.0), framework, world.lend())
    assert CycleRunner(world.nominator, seed=1, extenders=()).run(cycle) is None
    return cycle


def chosen(cycle: Cycle) -> str:
    assert cycle.choice is not None, cycle.status
    return cycle.choice.node_name
