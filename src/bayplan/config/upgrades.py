"""The changes between two versions, any of which can be applied without the others.

A change is a row of `behaviour` or a gate with another default. `with_changes` gives the gates of
the old version with some changes of the new one: what they alter, they cause.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from bayplan.config.behaviour import changes_between
from bayplan.config.feature_gates import FeatureGates


class NamedChange(Struct, frozen=True):
    """One change. ``field``: of the behaviour; "": the change is that of a gate."""

    title: str
    field: str = ""
    gate: str = ""


class GateChange(Struct, frozen=True):
    """A gate whose value differs, although nobody set it."""

    name: str
    before: bool
    after: bool

    @property
    def text(self) -> str:
        return f"{_spelled(self.before)} before, {_spelled(self.after)} now"


def named_changes(old: FeatureGates, new: FeatureGates) -> Iterator[NamedChange]:
    """All changes, those of behaviour first."""
    for change in changes_between(old.version, new.version):
        yield NamedChange(f"{change.title} ({change.since})", field=change.field)
    for gate in gate_changes(old, new):
        yield NamedChange(f"feature gate {gate.name} ({gate.text})", gate=gate.name)


def with_changes(
    old: FeatureGates, new: FeatureGates, changes: Iterable[NamedChange]
) -> FeatureGates:
    """The old gates and behaviour with these changes."""
    values, fields = dict(old.values), dict[str, object]()
    for change in changes:
        if change.gate:
            values[change.gate] = new.enabled(change.gate)
        else:
            fields[change.field] = getattr(new.behaviour, change.field)
    return replace(old, values=values, behaviour=replace(old.behaviour, **fields))


def gate_changes(old: FeatureGates, new: FeatureGates) -> Iterator[GateChange]:
    """Gates whose values differ."""
    for name in sorted({*old.values, *new.values}):
        before, after = old.enabled(name), new.enabled(name)
        if before is not after:
            yield GateChange(name, before, after)


def _spelled(value: bool) -> str:
    return "on" if value else "off"
