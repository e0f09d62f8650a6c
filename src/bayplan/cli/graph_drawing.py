"""Draws a score graph as text, as DOT for Graphviz, or as SVG."""

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from bayplan.profile.plugin_table import ProfileGraph

_BOX_WIDTH, _BOX_HEIGHT = 220, 44
_GAP_ACROSS, _GAP_DOWN, _MARGIN = 60, 24, 20
_TITLE_HEIGHT = 30


# ---- text ----------------------------------------------------------------------------------


def as_text(graphs: Sequence[ProfileGraph]) -> str:
    return "\n\n".join("\n".join(_lines(graph)) for graph in graphs) + "\n"


def _lines(graph: ProfileGraph) -> Iterator[str]:
    """One tree for each plugin that adds to the total. A repeated branch is not drawn again."""
    yield f"profile {graph.profile}"
    drawn: set[str] = set()
    for name in dict.fromkeys((*(name for name, _ in graph.added), *graph.tie_break)):
        yield f"  {name} ({graph.role(name)})"
        yield from _branches(graph, name, "  ", drawn)
    if graph.edges:
        yield "  reads:"
    for edge in graph.edges:
        over = "  (over all nodes)" if edge.over_all else ""
        yield f"    {edge.source} → {edge.reader}{over}"


def _branches(graph: ProfileGraph, name: str, indent: str, drawn: set[str]) -> Iterator[str]:
    sources = graph.sources_of(name)
    if name in drawn and sources:
        yield f"{indent}└─ …"
        return
    drawn.add(name)
    for source in sources:
        is_last = source == sources[-1]
        yield f"{indent}{'└' if is_last else '├'}─ {source} ({graph.role(source)})"
        yield from _branches(graph, source, indent + ("   " if is_last else "│  "), drawn)


# ---- DOT -----------------------------------------------------------------------------------


def as_dot(graphs: Sequence[ProfileGraph]) -> str:
    lines = ["digraph scores {", "  rankdir=LR;", "  node [shape=box];"]
    for index, graph in enumerate(graphs):
        lines += [f"  subgraph cluster_{index} {{", f"    label={_quoted(graph.profile)};"]
        for name in graph.names:
            label = _quoted(f"{name}\n{graph.role(name)}")
            lines.append(f"    {_quoted(f'{index} {name}')} [label={label}];")
        for edge in graph.edges:
            ends = (_quoted(f"{index} {name}") for name in (edge.source, edge.reader))
            lines.append(f"    {' -> '.join(ends)}{' [label=all]' if edge.over_all else ''};")
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# ---- SVG -----------------------------------------------------------------------------------


def as_svg(graphs: Sequence[ProfileGraph]) -> str:
    """Sources to the left of their readers, one profile under another."""
    root = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg")
    root.set("font-family", "sans-serif")
    width, top = 0, _MARGIN
    for graph in graphs:
        title = ElementTree.SubElement(root, "text", x=str(_MARGIN), y=str(top + 16))
        title.set("font-weight", "bold")
        title.text = f"profile {graph.profile}"
        places = _places(graph, top + _TITLE_HEIGHT)
        for edge in graph.edges:
            _arrow(root, places[edge.source], places[edge.reader])
        for name, place in places.items():
            _box(root, place, (name, graph.role(name)))
        width = max([width, *(x + _BOX_WIDTH for x, _ in places.values())])
        lowest = max((y + _BOX_HEIGHT for _, y in places.values()), default=top + _TITLE_HEIGHT)
        top = lowest + _GAP_DOWN
    root.set("width", str(width + _MARGIN))
    root.set("height", str(top))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _places(graph: ProfileGraph, top: int) -> dict[str, tuple[int, int]]:
    """The upper left corner of each box."""
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for name in graph.names:
        column = _depth(graph, name)
        row = rows[column] = rows.get(column, -1) + 1
        x = _MARGIN + column * (_BOX_WIDTH + _GAP_ACROSS)
        places[name] = x, top + row * (_BOX_HEIGHT + _GAP_DOWN)
    return places


def _depth(graph: ProfileGraph, name: str) -> int:
    """The length of the longest path of edges to the plugin."""
    return 1 + max((_depth(graph, source) for source in graph.sources_of(name)), default=-1)


def _box(root: ElementTree.Element, place: tuple[int, int], lines: tuple[str, str]) -> None:
    x, y = place
    box = {"x": x, "y": y, "width": _BOX_WIDTH, "height": _BOX_HEIGHT, "rx": 4}
    attributes = {key: str(value) for key, value in box.items()}
    ElementTree.SubElement(root, "rect", attributes, fill="white", stroke="black")
    for line, (text, size) in enumerate(zip(lines, ("13", "11"), strict=True)):
        label = ElementTree.SubElement(root, "text", x=str(x + 8), y=str(y + 18 + 17 * line))
        label.set("font-size", size)
        label.text = text


def _arrow(root: ElementTree.Element, source: tuple[int, int], reader: tuple[int, int]) -> None:
    """From the right edge of one box to the left edge of the other, with a point."""
    x1, y1 = source[0] + _BOX_WIDTH, source[1] + _BOX_HEIGHT // 2
    x2, y2 = reader[0], reader[1] + _BOX_HEIGHT // 2
    path = f"M{x1},{y1} L{x2},{y2} M{x2 - 8},{y2 - 5} L{x2},{y2} L{x2 - 8},{y2 + 5}"
    ElementTree.SubElement(root, "path", d=path, fill="none", stroke="black")
