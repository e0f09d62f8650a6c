"""ImageLocality: prefer nodes that already hold the images of a pod, by their size.

The more nodes have an image, the more the image counts, so that a rare image does not attract all
its pods to one node. The nodes of each image are indexed: only the pod's images are read. Upstream:
plugins/imagelocality.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import final

import numpy as np
from msgspec import Struct

from bayplan.api.objects import PodSpec
from bayplan.api.pod_requests import all_containers
from bayplan.framework.arithmetic import divide, uniform
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Caching, ScorePlugin, SignPlugin
from bayplan.framework.types import MAX_NODE_SCORE
from bayplan.state.change_log import Facet
from bayplan.state.columns import Int64s, NodeScores
from bayplan.state.nodes import NodeView
from bayplan.state.pods import PodInfo, PodShape

_MIB = 1024 * 1024
#: Images with a smaller total size do not count.
SIZE_BYTES_MIN = 23 * _MIB
#: A larger image counts as if it had this size.
SIZE_BYTES_MAX_PER_IMAGE = 1000 * _MIB


@final
class ImageLocality(ScorePlugin, SignPlugin):
    """Scores nodes by how many bytes of a pod's images they hold."""

    name = "ImageLocality"
    caching = Caching(facets=Facet.IMAGES, signs_template=True)

    def setup(self) -> None:
        behaviour = self.handle.behaviour
        self._rules = _ImageRules(
            behaviour.image_volumes_are_images, behaviour.image_volumes_are_containers
        )
        self._key = f"ImageLocality.images {self._rules}"

    def _images(self, pod: PodInfo) -> "_Images":
        return pod.shape.once_per_spec(self._key, self._rules.images)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> NodeScores:
        """int64[nodes]: 0..100 between the least and the largest size that counts."""
        images = self._images(pod)
        present_bytes: Int64s | None = None
        for name, times in images.times.items():
            image = nodes.image(name)
            if image is None:
                continue
            spread = image.node_count / nodes.table.node_count
            size_bytes = times * int(image.size_bytes * spread)
            image_bytes = nodes.table.mask(image.rows_array()) * np.int64(size_bytes)
            present_bytes = image_bytes if present_bytes is None else present_bytes + image_bytes
        if present_bytes is None:
            return uniform(0, len(nodes))
        most = SIZE_BYTES_MAX_PER_IMAGE * images.count
        counted = np.clip(present_bytes, SIZE_BYTES_MIN, most) - SIZE_BYTES_MIN
        return divide(counted * MAX_NODE_SCORE, most - SIZE_BYTES_MIN)

    def sign_pod(self, pod: PodInfo) -> Hashable | None:
        """All images, image volumes included, each as often as the pod names it."""
        return self._images(pod).signature


class _Images(Struct, frozen=True):
    #: Full name → number of containers and volumes that name it.
    times: dict[str, int]
    count: int
    signature: Hashable


class _ImageRules(Struct, frozen=True):
    """Whether image volumes count in the sum of sizes, and where it is divided."""

    volumes_add: bool
    volumes_divide: bool

    def images(self, shape: PodShape) -> _Images:
        containers = [container.image or "" for container in all_containers(shape.spec)]
        volumes = list(_of_volumes(shape.spec))
        added = volumes if self.volumes_add else []
        names = sorted(map(_full_name, (*containers, *added)))
        count = len(containers) + (len(volumes) if self.volumes_divide else 0)
        return _Images(dict(Counter(names)), count, (*names, count))


def _of_volumes(spec: PodSpec) -> Iterator[str]:
    yield from (v.image.reference or "" for v in spec.volumes or () if v.image is not None)


def _full_name(image: str) -> str:
    """As nodes report it: without a tag, ``:latest`` is meant. A colon before "/" is a port's."""
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
