"""Pods and nodes of `bayplan.testing`, with fields of the spec as keywords.

pod("web", "n1", labels={"app": "web"}, cpu="500m", hostNetwork=True)
node("n1", zone="a", labels={"pool": "x"})
"""

from typing import Any

from bayplan import testing
from bayplan.api.objects import Node
from bayplan.state.pods import PodInfo
from bayplan.testing import PodOptions

POD_OPTIONS = PodOptions.__optional_keys__ - {"spec"}
#: Fields of a spec that have an option with another name.
OPTION_OF = {
    "initContainers": "init_containers",
    "nodeName": "node",
    "nodeSelector": "node_selector",
    "schedulerName": "scheduler_name",
    "topologySpreadConstraints": "spread",
}


def pod(name: str = "p", on: str | None = None, **fields: Any) -> PodInfo:
    """A pod, on node ``on`` if that is set.

    ``fields``: options of `bayplan.testing.pod`; any other name is a field of the pod's spec.
    An option that is None is left out.
    """
    present = {OPTION_OF.get(key, key): value for key, value in fields.items() if value is not None}
    options = {key: value for key, value in present.items() if key in POD_OPTIONS}
    spec = {key: value for key, value in present.items() if key not in POD_OPTIONS}
    if on is not None:
        options["node"] = on
    return testing.pod(name, **options, spec=spec)


def node(name: str = "n1", **fields: Any) -> Node:
    """A node. ``fields``: options of `bayplan.testing.node`. An option that is None is left out."""
    return testing.node(name, **{key: value for key, value in fields.items() if value is not None})
