"""Which nodes have which image, compared with a plain model of upstream's cache."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.objects import NODE, Node, decode
from bayplan.state.images import ImageIndex, image_sizes

#: (name, bytes) in the order in which the node reports them.
Reported = list[tuple[str, int]]


def node_with_images(reported: Reported) -> Node:
    listed: list[dict[str, Any]] = [{"names": [n], "sizeBytes": size} for n, size in reported]
    node = decode(NODE, {"metadata": {"name": "n"}, "status": {"images": listed}})
    assert isinstance(node, Node)
    return node


class Model:
    """An image has the size that its first node reported, until no node has the image."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.rows: dict[int, set[str]] = {}

    def report(self, row: int, reported: Reported) -> None:
        """As upstream updates a node: remove all of its images, then add the new ones."""
        self.rows[row] = set()
        present = set().union(*self.rows.values())
        self.sizes = {name: size for name, size in self.sizes.items() if name in present}
        for name, size in reported:
            self.sizes.setdefault(name, size)
            self.rows[row].add(name)

    def holders(self, name: str) -> list[int]:
        return sorted(row for row, names in self.rows.items() if name in names)

    def seen_from(self, row: int) -> dict[str, tuple[int, int]]:
        """The inputs of a row's score: the size and the number of nodes of each of its images."""
        return {n: (self.sizes[n], len(self.holders(n))) for n in self.rows.get(row, ())}


NAMES = ("a", "b", "c")
REPORTS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([1, 2, 3])), max_size=4)
STEPS = st.lists(st.tuples(st.integers(0, 3), REPORTS), max_size=8)


@given(STEPS)
def test_the_index_reports_holders_sizes_and_changed_rows(
    steps: list[tuple[int, Reported]],
) -> None:
    index, model = ImageIndex(), Model()
    for row, reported in steps:
        before = {each: model.seen_from(each) for each in range(4)}
        touched = index.set_row(row, node_with_images(reported) if reported else None)
        model.report(row, reported)
        assert len(index) == len(model.sizes)
        for name in NAMES:
            image = index.find(name)
            rows = [] if image is None else image.rows_array().tolist()
            assert rows == model.holders(name)
            assert image is None or (image.size_bytes, image.node_count) == (
                model.sizes[name],
                len(rows),
            )
        for each in range(4):
            assert index.on_row(each) == model.rows.get(each, set())
            assert each in touched | {row} or model.seen_from(each) == before[each]


@pytest.mark.parametrize(
    ("images", "sizes"),
    [
        pytest.param([{"names": ["a", "a:1"], "sizeBytes": 5}], {"a": 5, "a:1": 5}, id="names"),
        pytest.param(
            [{"names": ["a"], "sizeBytes": 5}, {"names": ["a"], "sizeBytes": 6}],
            {"a": 5},
            id="the first of two counts",
        ),
        pytest.param([{"names": ["a"]}, {"sizeBytes": 5}], {"a": 0}, id="missing parts"),
    ],
)
def test_every_name_of_an_image_has_its_size(
    images: list[dict[str, Any]], sizes: dict[str, int]
) -> None:
    node = decode(NODE, {"status": {"images": images}})
    assert isinstance(node, Node)
    assert image_sizes(node) == sizes
