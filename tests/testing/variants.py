"""Every in-tree plugin, with its defaults and with args that change its results."""

from typing import Any

import pytest

from bayplan.framework.plugin import Plugin, SignPlugin
from bayplan.framework.profile import extension_points_of
from bayplan.plugins.registry import in_tree_plugins

ARGS: dict[str, list[Any]] = {
    "NodeResourcesFit": [
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "memory"}]}},
        {"ignoredResources": ["nvidia.com/gpu"]},
    ],
    "NodeAffinity": [
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disktype", "operator": "Exists"}]}
                    ]
                }
            }
        }
    ],
    "PodTopologySpread": [
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        }
    ],
    "InterPodAffinity": [{"hardPodAffinityWeight": 7}],
    "Coscheduling": [{"placement": "pod"}],
    "TopologyScorer": [
        {"scoreFrom": "TaintToleration", "topologyKey": "rack", "aggregate": "mean"},
        {"scoreFrom": "NodeAffinity", "topologyKey": "zone", "over": "all", "stage": "raw"},
    ],
    "Combine": [{"scoreFrom": ["NodeResourcesFit/a", "ImageLocality"], "weights": [1, 3]}],
}

#: Args of plugins without defaults.
REQUIRED: dict[str, Any] = {
    "TopologyScorer": {"scoreFrom": "NodeResourcesFit", "topologyKey": "rack"},
    "Invert": {"scoreFrom": "NodeResourcesFit"},
    "Normalize": {"scoreFrom": "TaintToleration", "stage": "raw"},
    "Scale": {"scoreFrom": "NodeResourcesFit", "factor": 0.7},
    "Steps": {
        "scoreFrom": "NodeResourcesFit",
        "shape": [{"at": 10, "score": 90}, {"at": 60, "score": 0}],
    },
    "Combine": {"scoreFrom": ["NodeResourcesFit", "ImageLocality"], "with": "product"},
}

#: (class, args)
VARIANTS = [
    pytest.param(plugin, args, id=f"{plugin.name}-{number}")
    for plugin in in_tree_plugins()
    for number, args in enumerate([REQUIRED.get(plugin.name), *ARGS.get(plugin.name, [])])
]


def _signs_results(plugin: type[Plugin]) -> bool:
    """Whether the plugin signs pods and filters or scores."""
    return issubclass(plugin, SignPlugin) and bool(
        {"filter", "score"} & set(extension_points_of(plugin))
    )


#: Of `VARIANTS`, the plugins whose results are cached by signature.
SIGNING = [each for each in VARIANTS if _signs_results(each.values[0])]  # type: ignore[arg-type]
