"""Images: which nodes have which image, and its size.

Upstream has one size per image name for all nodes: the size that the first node reported, until no
node has the image. The number of nodes with an image enters the score of each of them, so a change
of that number changes all their rows.
"""

import numpy as np

from bayplan.api.objects import Node
from bayplan.state.columns import Rows


class ImageState:
    """One image name: its size and the rows that hold it."""

    __slots__ = ("_rows_array", "rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self._rows_array: Rows | None = None

    @property
    def node_count(self) -> int:
        return len(self.rows)

    def rows_array(self) -> Rows:
        """The rows, ascending."""
        if self._rows_array is None:
            self._rows_array = np.array(sorted(self.rows), np.intp)
        return self._rows_array

    def add(self, row: int) -> None:
        self.rows.add(row)
        self._rows_array = None

    def discard(self, row: int) -> None:
        self.rows.discard(row)
        self._rows_array = None


class ImageIndex:
    """Image name → ImageState, updated from the nodes' reports."""

    def __init__(self) -> None:
        self._images: dict[str, ImageState] = {}
        self._names_by_row: dict[int, frozenset[str]] = {}

    def find(self, name: str) -> ImageState | None:
        return self._images.get(name)

    def on_row(self, row: int) -> frozenset[str]:
        return self._names_by_row.get(row, frozenset())

    def __len__(self) -> int:
        """The number of image names on all nodes."""
        return len(self._images)

    def set_row(self, row: int, node: Node | None) -> set[int]:
        """Set a row's images from its node. Returns the rows whose scores change."""
        changed = self.set_names(row, node)
        return {
            touched
            for name in changed
            if (image := self._images.get(name)) is not None
            for touched in image.rows
        }

    def set_names(self, row: int, node: Node | None) -> frozenset[str]:
        """Set a row's images from its node.

        Returns the names that were added or removed, or whose size changed.
        """
        sizes = image_sizes(node) if node is not None else {}
        before, after = self._names_by_row.get(row, frozenset[str]()), frozenset(sizes)
        resized = self._resize(row, {name: sizes[name] for name in before & after})
        for name in before - after:
            image = self._images[name]
            image.discard(row)
            if not image.rows:
                del self._images[name]
        for name in after - before:
            image = self._images.get(name)
            if image is None:
                image = self._images[name] = ImageState(sizes[name])
            image.add(row)
        if after:
            self._names_by_row[row] = after
        else:
            self._names_by_row.pop(row, None)
        return (before ^ after) | resized

    def _resize(self, row: int, sizes: dict[str, int]) -> frozenset[str]:
        """Update sizes of images that only this row has. Returns the changed names."""
        alone = {
            name: image
            for name, size_bytes in sizes.items()
            if (image := self._images[name]).size_bytes != size_bytes and image.node_count == 1
        }
        for name, image in alone.items():
            image.size_bytes = sizes[name]
        return frozenset(alone)


def image_sizes(node: Node) -> dict[str, int]:
    """Image name → size in bytes, for all images of a node; the first report of a name counts."""
    sizes: dict[str, int] = {}
    for image in node.status.images or ():
        for name in image.names or ():
            sizes.setdefault(name, image.size_bytes or 0)
    return sizes
