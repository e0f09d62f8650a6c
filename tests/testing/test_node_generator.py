"""Drawing one facet of a node again changes that facet only."""

import pytest

from bayplan.rng import stream
from bayplan.state.change_log import Facet
from bayplan.state.node_table import changed_facets
from bayplan.testing import node
from bayplan.testing.generators import FACET_DRAWS, Draws, Vocabulary, draw_node, merged


@pytest.mark.parametrize("facet", FACET_DRAWS, ids=lambda facet: facet.name)
def test_drawing_one_facet_again_changes_no_other_facet(facet: Facet) -> None:
    vocabulary = Vocabulary(node_fields=("status.nodeInfo.osImage",))
    draws = Draws(stream(1, "nodes"), vocabulary)
    changed = Facet(0)
    for _ in range(30):
        options = draw_node(draws)
        other = node("a", **merged(options, FACET_DRAWS[facet](draws)))
        changed |= changed_facets(node("a", **options), other)
    assert changed == facet


def test_an_image_has_one_size_everywhere() -> None:
    draws = Draws(stream(1, "images"))
    sizes: dict[str, set[int]] = {}
    for _ in range(30):
        for name, size in draw_node(draws).get("images", {}).items():
            sizes.setdefault(name, set()).add(size)
    assert sizes
    assert all(len(distinct_sizes) == 1 for distinct_sizes in sizes.values())
