"""Drawings of score graphs."""

from xml.etree import ElementTree

from bayplan.cli.graph_drawing import as_dot, as_svg, as_text
from bayplan.profile.plugin_table import ProfileGraph, ScoreEdge

DIAMOND = ProfileGraph(
    "bayplan",
    added=(("D", 2),),
    tie_break=("A",),
    read_only=("B", "C"),
    edges=(
        ScoreEdge("B", "D", False),
        ScoreEdge("C", "D", False),
        ScoreEdge("A", "B", False),
        ScoreEdge("A", "C", True),
    ),
)


def test_text_has_a_tree_and_every_edge() -> None:
    assert as_text([DIAMOND]).splitlines() == [
        "profile bayplan",
        "  D (weight 2)",
        "  ├─ B (read only)",
        "  │  └─ A (tie-break key 1)",
        "  └─ C (read only)",
        "     └─ A (tie-break key 1)",
        "  A (tie-break key 1)",
        "  reads:",
        "    B → D",
        "    C → D",
        "    A → B",
        "    A → C  (over all nodes)",
    ]


def test_dot_has_every_instance_and_edge() -> None:
    dot = as_dot([DIAMOND])
    assert '"0 D" [label="D\\nweight 2"];' in dot
    assert '"0 A" -> "0 B";' in dot
    assert '"0 A" -> "0 C" [label=all];' in dot


def test_a_picture_has_sources_left_of_their_readers() -> None:
    root = ElementTree.fromstring(as_svg([DIAMOND]))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [int(box.get("x", "0")) for box in root.iter(f"{space}rect")]
    names = [label.text for label in root.iter(f"{space}text")][1::2]
    places = dict(zip(names, boxes, strict=True))
    assert places["A"] < places["B"] == places["C"] < places["D"]
    assert len(list(root.iter(f"{space}path"))) == 4
    assert int(root.get("width", "0")) > max(boxes)
