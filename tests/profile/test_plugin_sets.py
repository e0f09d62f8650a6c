"""Plugin sets give the same lists as in kube-scheduler.

``plugin_sets.jsonl.gz`` holds configurations, most of them drawn at random, some with feature
gates, and what kube-scheduler v1.37.0 makes of each: the plugins of every extension point in order,
with the weights of those that score (Framework.ListPlugins), or a refusal.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.config import ConfigError, config_from
from bayplan.config.schema import PluginEntry, Plugins, PluginSet
from bayplan.plugins.node_name import NodeNameOrder
from bayplan.plugins.registry import Registry
from bayplan.profile.plugin_sets import (
    WEIGHTED,
    absence,
    expand,
    list_problems,
    plugin_name,
    set_problems,
)
from bayplan.profile.resolved_config import resolve
from tests.engine.plugin_kit import Binder, Both, Gate, Sort, registry

RECORDED = Path(__file__).with_name("plugin_sets.jsonl.gz")


def recorded() -> list[Any]:
    with gzip.open(RECORDED, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("case", recorded())
def test_lists_equal_those_of_kube_scheduler(case: dict[str, Any]) -> None:
    registry = Registry()
    config = config_from(case["config"], feature_gates=case.get("gates", ""))
    if case.get("refused"):
        with pytest.raises(ConfigError):
            resolve(config, registry)
        return
    for profile in resolve(config, registry).profiles:
        for point, expected in case["lists"][profile.name].items():
            weighted = point in WEIGHTED
            here = [name for name in expected if registry.find(name[0] if weighted else name)]
            entries = profile.lists[point]
            results = [[e.name, e.weight] if weighted else e.name for e in entries]
            assert results == here, point


def names(*names: str, **weights: int) -> tuple[PluginEntry, ...]:
    return tuple(PluginEntry(name=name, weight=weights.get(name, 0)) for name in names)


def score_list(plugins: Plugins, *defaults: str) -> list[tuple[str, int]]:
    lists = expand(plugins, names(*defaults), registry(Both, Gate))
    return [(entry.name, entry.weight) for entry in lists["score"]]


def test_a_weight_at_score_overrides_the_one_at_multi_point_even_if_it_is_omitted() -> None:
    multi_point = PluginSet(enabled=names("Both", Both=5))
    assert score_list(Plugins(multi_point=multi_point)) == [("Both", 5)]
    score = PluginSet(enabled=names("Both"))
    assert score_list(Plugins(multi_point=multi_point, score=score)) == [("Both", 1)]


def problems(plugins: Plugins, *classes: Any) -> list[str]:
    results = set_problems(plugins, registry(*classes), "plugins")
    return [str(problem) for problem in results]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Bot", 'no plugin "Bot"; did you mean "Both"?'),
        ("Bot/rack", 'no plugin "Bot"; did you mean "Both"?'),
        ("Xyz", 'no plugin "Xyz"; wanted "Binder", "Both" or "Sort"'),
        ("EBSLimits", 'no plugin "EBSLimits"; kube-scheduler has removed it'),
    ],
)
def test_an_unknown_plugin_is_reported_with_the_nearest_name(name: str, message: str) -> None:
    [problem] = problems(Plugins(multi_point=PluginSet(enabled=names("Both", name))), Both)
    assert problem.startswith(f"plugins.multiPoint.enabled[1].name: {message}")


def test_an_unknown_name_among_many_plugins_is_reported_with_a_command_that_lists_them() -> None:
    assert absence("Xyz", Registry()) == (
        'no plugin "Xyz"',
        (
            "a plugin in a file is loaded by --plugin FILE.py; "
            "`bayplan plugins` lists those that are here"
        ),
    )


def test_kube_schedulers_plugins_may_be_disabled_and_misspelled_names_are_reported() -> None:
    name_list = names("*", "DefaultPreemption", "EBSLimits", "Both", "Both/a", "Bothh")
    assert problems(Plugins(score=PluginSet(disabled=name_list)), Both) == [
        'plugins.score.disabled[5].name: no plugin "Bothh"; did you mean "Both"?'
    ]


def test_a_tie_break_key_is_a_score_plugin_or_a_plugin_with_tie_break_only() -> None:
    both, order = Both, NodeNameOrder
    plugins = Plugins(tie_break=PluginSet(enabled=names("Both/b", "NodeNameOrder", "Both")))
    assert problems(plugins, both, order) == []
    lists = expand(plugins, names("Both"), registry(both, order))
    keys = [entry.name for entry in lists["tieBreak"]]
    assert keys == ["Both/b", "NodeNameOrder", "Both"]
    assert expand(Plugins(), names("Both"), registry(both))["tieBreak"] == []
    assert problems(Plugins(tie_break=PluginSet(enabled=names("Gate"))), Gate) == [
        'plugins.tieBreak.enabled[0].name: "Gate" has no tieBreak; it has filter'
    ]
    assert problems(Plugins(score=PluginSet(enabled=names("NodeNameOrder"))), order) == [
        'plugins.score.enabled[0].name: "NodeNameOrder" has no score; it has tieBreak'
    ]


def test_a_tie_break_key_has_no_weight() -> None:
    plugins = Plugins(tie_break=PluginSet(enabled=names("Both", Both=2)))
    [problem] = problems(plugins, Both)
    assert problem.startswith("plugins.tieBreak.enabled[0].weight: 2; wanted none: ")


def needs(plugins: Plugins, *defaults: str) -> list[str]:
    lists = expand(plugins, names(*defaults), registry(Both))
    return [str(problem) for problem in list_problems(lists, "plugins")]


def test_a_profile_sorts_and_binds() -> None:
    assert needs(Plugins(), "Sort", "Binder") == []
    assert needs(Plugins()) == [
        "plugins.queueSort: no queue sort; wanted exactly one",
        "plugins.bind: no plugin that binds; wanted one at least",
    ]
    two = Plugins(queue_sort=PluginSet(enabled=names("Sort/a")))
    assert needs(two, "Sort", "Binder") == [
        "plugins.queueSort: 2 queue sorts: Sort, Sort/a; wanted exactly one"
    ]


def test_weighted_scores_fit_into_63_bits() -> None:
    most = (2**63 - 1) // 100

    def with_weight(weight: int) -> list[str]:
        entries = (PluginEntry(name="Both", weight=weight), PluginEntry(name="Both/a"))
        return needs(Plugins(score=PluginSet(enabled=entries)), "Sort", "Binder")

    assert with_weight(most - 1) == []
    [problem] = with_weight(most)
    assert problem.startswith(f"plugins.score: weights that come to {most + 1}; wanted {most}")


def test_the_name_of_an_instance_starts_with_that_of_its_plugin() -> None:
    plugin_registry = registry(Both)
    assert plugin_name("Both/rack") == plugin_name("Both") == "Both"
    assert {Sort, Binder} == {plugin_registry.find("Sort"), plugin_registry.find("Binder")}
