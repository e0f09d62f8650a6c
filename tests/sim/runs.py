"""Whole simulations of a few objects, for tests of a run and its results."""

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from bayplan.config import SchedulerConfig, config_from
from bayplan.config.loading import DEFAULT_CONFIG
from bayplan.framework.plugin import Plugin
from bayplan.framework.profile import extension_points_of
from bayplan.plugins.registry import default_registry
from bayplan.sim.input.inputs import load_inputs
from bayplan.sim.input.workload import Step, Verb, Workload, create_step
from bayplan.sim.output.result import PodResult, SimulationResult
from bayplan.sim.simulation import Simulation
from tests.kit.manifests import Content


def workload(*initial: Content, steps: Iterable[Step] = (), **options: Any) -> Workload:
    """Objects in namespace default, and later steps."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    return Workload(initial=(namespace, *initial), steps=tuple(steps), **options)


def create(at_seconds: float, content: Content) -> Step:
    return create_step(float(at_seconds), content)


def patch(at_seconds: float, content: Content) -> Step:
    key = create_step(0, content).key
    return Step(at_seconds=float(at_seconds), verb=Verb.PATCH, key=key, content=content)


def delete(at_seconds: float, content: Content) -> Step:
    return Step(at_seconds=float(at_seconds), verb=Verb.DELETE, key=create_step(0, content).key)


def simulation(feed: Workload, *plugins: type[Plugin], **options: Any) -> Simulation:
    """A simulation with these plugins in addition to the default plugins."""
    registry = default_registry()
    for plugin in plugins:
        registry.add(plugin)
    config, sinks = options.pop("config", None), options.pop("sinks", ())
    run = Simulation(feed, config or _with(*plugins), registry, **options)
    for sink in sinks:
        run.keep_journal(sink)
    return run


def simulate(*initial: Content, plugins: Iterable[type[Plugin]] = ()) -> SimulationResult:
    return simulation(workload(*initial), *plugins).run()


def _with(*plugins: type[Plugin]) -> SchedulerConfig:
    sets: dict[str, Any] = {}
    for plugin in plugins:
        for point in extension_points_of(plugin):
            sets.setdefault(point, {"enabled": []})["enabled"].append({"name": plugin.name})
    return profile(plugins=sets)


def profile(**fields: Any) -> SchedulerConfig:
    """A configuration of one profile."""
    named = {"schedulerName": "default-scheduler", **fields}
    return config_from({**DEFAULT_CONFIG, "profiles": [named]})


def load_objects(folder: Path, *contents: Content) -> Workload:
    path = folder / "input.yaml"
    # JSON is YAML, and is written in a fraction of the time.
    text = "".join(f"---\n{json.dumps(content)}\n" for content in contents)
    path.write_text(text, encoding="utf-8")
    return load_inputs([str(path)])


def living(result: SimulationResult) -> dict[str, PodResult]:
    """The pods that were not deleted."""
    return {name: one for name, one in result.pods.items() if one.deleted_at is None}


#: Finding the installed plugins takes longer than some simulations.
_default_registry = lru_cache(maxsize=1)(default_registry)


def run_by_default(feed: Workload) -> SimulationResult:
    return Simulation(feed, config_from(DEFAULT_CONFIG), _default_registry()).run()
