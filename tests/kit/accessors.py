"""The accessors of NodeView: those on the view, and "group.name" for those in its groups."""

from bayplan.state.nodes import GROUPS, REPLACED, NodeView


def accessors() -> list[str]:
    """All current accessors, sorted; deprecated names are left out."""
    flat = [name for name in _public(NodeView) if name not in GROUPS and name not in REPLACED]
    grouped = [f"{name}.{each}" for name, group in GROUPS.items() for each in _public(group)]
    return sorted(flat + grouped)


def _public(owner: type) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]
