"""examples/racks and examples/composed_rack: the same racks by a pipeline and by code (S-10)."""

import re
from typing import Any

import pytest

from bayplan.config import ConfigError, SchedulerConfig, load_config
from bayplan.engine.cycle import Cycle
from bayplan.engine.schedule_one import CycleRunner
from bayplan.framework.runtime import Framework
from bayplan.framework.types import QueuedPodInfo
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.pod_topology_spread import PodTopologySpread
from bayplan.plugins.registry import Registry
from bayplan.profile.dry_start import dry_start
from bayplan.profile.profiles import build_profiles
from bayplan.state.pods import PodInfo
from bayplan.testing import SampleCluster, check_plugin, node, pod
from bayplan.testing.clusters import handle_for
from tests.examples.policies import EXAMPLES

#: name → (rack, used cpu and Gi)
NODES = {
    "n1": ("r1", 4),
    "n2": ("r1", 1),
    "n3": ("r2", 2),
    "n4": ("r2", 2),
    "n5": ("r3", 3),
    "n6": ("", 0),
}
COMPOSED, PIPELINE = EXAMPLES / "composed_rack" / "config.yaml", EXAMPLES / "racks" / "config.yaml"


def example_registry() -> Registry:
    registry = Registry()
    registry.load_file(EXAMPLES / "composed_rack" / "composed_rack.py")
    return registry


def config_of(text: str) -> SchedulerConfig:
    return load_config(text, "racks")


def world() -> SampleCluster:
    cluster = SampleCluster()
    for name, (rack, used) in NODES.items():
        labels = {"rack": rack} if rack else {}
        cluster.add(node(name, cpu=10, memory="10Gi", labels=labels))
        if used:
            cluster.add(pod(f"on-{name}", cpu=used, memory=f"{used}Gi").on_node(name))
    return cluster


WAITING = pod("p", cpu=1, memory="1Gi")


def cycle_of(text: str, registry: Registry | None = None, waiting: PodInfo = WAITING) -> Cycle:
    cluster = world()
    [built] = build_profiles(
        config_of(text),
        registry or example_registry(),
        lambda profile, name, plugin: handle_for(cluster, plugin, name),
    )
    framework = Framework(built.plugins, cluster.nominator)
    cycle = Cycle(QueuedPodInfo(waiting, 0.0), framework, cluster.lend())
    runner = CycleRunner(cluster.nominator, seed=1, extenders=())
    assert runner.run(cycle) is None
    assert cycle.choice is not None, cycle.status
    return cycle


def totals(text: str) -> dict[str, int]:
    table = cycle_of(text).table
    assert table is not None
    return dict(zip(table.nodes.names(), table.totals.tolist(), strict=True))


def chosen(text: str) -> str:
    choice = cycle_of(text).choice
    assert choice is not None
    return choice.node_name


def test_one_value_selects_the_fullest_or_the_emptiest_racks() -> None:
    fullest = PIPELINE.read_text(encoding="utf-8")
    emptiest = re.sub(r"(?m)^(    args: .*)MostAllocated", r"\1LeastAllocated", fullest)
    changed = [
        (one, other)
        for one, other in zip(fullest.split(), emptiest.split(), strict=True)
        if one != other
    ]
    assert changed == [("MostAllocated}}", "LeastAllocated}}")]
    assert chosen(fullest) == "n1"
    assert chosen(emptiest) == "n3"


def test_code_and_pipeline_give_the_same_totals() -> None:
    """The totals are the scores of the racks (100, 66, 0) plus those of the nodes."""
    composed = COMPOSED.read_text(encoding="utf-8")
    expected = {"n1": 150, "n2": 120, "n3": 96, "n4": 96, "n5": 40, "n6": 10}
    assert totals(composed) == expected
    pipeline = PIPELINE.read_text(encoding="utf-8").replace(
        "[{name: TopologyScorer/rack}]", "[{name: TopologyScorer/rack}, {name: NodeResourcesFit}]"
    )
    assert totals(pipeline) == expected


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, method: str) -> list[str]:
    """Records the calls of the method."""
    calls: list[str] = []
    original = getattr(owner, method)

    def recorded(*arguments: Any) -> Any:
        calls.append(f"{owner.name}.{method}")
        return original(*arguments)

    monkeypatch.setattr(owner, method, recorded)
    return calls


def test_the_coded_plugin_computes_twice_what_a_pipeline_computes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    composed, pipeline = (file.read_text(encoding="utf-8") for file in (COMPOSED, PIPELINE))
    calls = counted(monkeypatch, NodeResourcesFit, "score")
    cycle_of(composed)
    assert len(calls) == 2
    calls.clear()
    cycle_of(pipeline)
    assert len(calls) == 1
    strategies = [
        sum("scoringStrategy" in line for line in text.splitlines())
        for text in (composed, pipeline)
    ]
    assert strategies == [2, 1]


def test_the_outer_normalization_replaces_the_inner_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = example_registry()
    composed: Any = registry.find("ComposedRack")
    outer = counted(monkeypatch, composed, "normalize")
    inner = counted(monkeypatch, PodTopologySpread, "normalize")
    text = COMPOSED.read_text(encoding="utf-8").replace(
        "inner: {scoringStrategy: {type: MostAllocated}}", "plugin: PodTopologySpread"
    )
    softly = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    spread = {**softly, "labelSelector": {"matchLabels": {"app": "p"}}}
    cycle_of(text, registry, pod("p", labels={"app": "p"}, spread=[spread]))
    assert (outer, inner) == (["ComposedRack.normalize"], [])


def test_the_args_of_the_inner_plugin_are_checked_under_their_full_path() -> None:
    text = COMPOSED.read_text(encoding="utf-8")
    wrong = "Mots".join(text.rsplit("MostAllocated", 1))
    with pytest.raises(ConfigError) as caught:
        dry_start(config_of(wrong), example_registry())
    [problem] = caught.value.problems
    assert problem.path == "profiles[0].pluginConfig[1].args.inner.scoringStrategy.type"
    for word in ('"Mots"', "MostAllocated", "args of NodeResourcesFit, made by ComposedRack"):
        assert word in str(problem)


@pytest.mark.parametrize("args", [None, {"inner": {"scoringStrategy": {"type": "MostAllocated"}}}])
def test_the_composed_plugin_satisfies_check_plugin(args: Any) -> None:
    plugin = example_registry().find("ComposedRack")
    assert plugin is not None
    check_plugin(plugin, args, clusters=5)


def test_the_inner_plugin_may_use_its_pre_score_state() -> None:
    """Only Score is delegated; PodTopologySpread scores from the state that its PreScore stored."""
    text = COMPOSED.read_text(encoding="utf-8").replace(
        "inner: {scoringStrategy: {type: MostAllocated}}", "plugin: PodTopologySpread"
    )
    assert chosen(text) in NODES
