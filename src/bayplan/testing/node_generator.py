"""Draws nodes, facet by facet: a redrawn facet changes that facet of a row and no other."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from bayplan.state.change_log import Facet
from bayplan.testing.factories import NodeOptions
from bayplan.testing.generators import READ_KEY_VALUES, Draws

_TAINTS: Final = (
    "dedicated=a:NoSchedule",
    "dedicated=b:NoExecute",
    "spot:PreferNoSchedule",
    "old=x:PreferNoSchedule",
    "node.kubernetes.io/unschedulable:NoSchedule",
)
_MEBI: Final = 1 << 20
_SIZES: Final = (900 * _MEBI, 100 * _MEBI, 5 * _MEBI)


def draw_node(draws: Draws) -> NodeOptions:
    """All facets of a node, without a name."""
    options: NodeOptions = {}
    for draw in FACET_DRAWS.values():
        options = merged(options, draw(draws))
    return options


def merged(options: NodeOptions, more: NodeOptions) -> NodeOptions:
    return cast(NodeOptions, {**options, **more})


def _allocatable(draws: Draws) -> NodeOptions:
    resources = draws.vocabulary.resources
    return {
        "cpu": draws.one(("500m", 2, 4, 8)),
        "memory": draws.one(("512Mi", "4Gi", "16Gi")),
        "pods": draws.one((1, 4, 110, 110)),
        "allocatable": {name: draws.one((0, 2, 8)) for name in draws.some(resources, 2)},
    }


def _labels(draws: Draws) -> NodeOptions:
    return {"labels": draws.pairs(draws.vocabulary.node_labels)}


def _taints(draws: Draws) -> NodeOptions:
    taints = draws.some(_TAINTS, 2) if draws.happens(0.6) else []
    return {"taints": taints, "unschedulable": draws.happens(0.2)}


def _images(draws: Draws) -> NodeOptions:
    """An image has one size, wherever it is."""
    sizes = {
        name: _SIZES[index % len(_SIZES)] for index, name in enumerate(draws.vocabulary.images)
    }
    return {"images": {name: sizes[name] for name in draws.some(draws.vocabulary.images, 3)}}


def _annotations(draws: Draws) -> NodeOptions:
    vocabulary = {"example.com/note": ("a", "b", "c"), **draws.vocabulary.node_annotations}
    return {"annotations": draws.pairs(vocabulary, 0.7)}


def _conditions(draws: Draws) -> NodeOptions:
    kinds = ("Ready", "MemoryPressure", "DiskPressure")
    conditions = {kind: draws.one(("True", "False", "Unknown")) for kind in draws.some(kinds, 3)}
    return {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]}


def _declared(draws: Draws) -> NodeOptions:
    features = ("GuaranteedQoSPodCPUResize", "UserNamespaces", "Other")
    paths = [path for path in draws.vocabulary.node_fields if draws.happens(0.7)]
    return {
        "features": draws.some(features, 2),
        "declared": {path: draws.one(READ_KEY_VALUES) for path in paths},
    }


#: Facets that the node object decides; the other facets follow from placed pods.
FACET_DRAWS: Final[Mapping[Facet, Callable[[Draws], NodeOptions]]] = {
    Facet.ALLOCATABLE: _allocatable,
    Facet.LABELS: _labels,
    Facet.TAINTS: _taints,
    Facet.IMAGES: _images,
    Facet.ANNOTATIONS: _annotations,
    Facet.CONDITIONS: _conditions,
    Facet.DECLARED: _declared,
}
