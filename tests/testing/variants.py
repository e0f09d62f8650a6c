"""Every plugin of the tree, with its defaults and with args that make it answer otherwise."""

from typing import Any

import pytest

from bayplan.plugins.registry import IN_TREE_PLUGINS

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
}

#: (class, args)
VARIANTS = [
    pytest.param(plugin, args, id=f"{plugin.name}-{number}")
    for plugin in IN_TREE_PLUGINS
    for number, args in enumerate([None, *ARGS.get(plugin.name, [])])
]
