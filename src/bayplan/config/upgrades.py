"""The changes between two versions, each of which can be applied alone.

A change is a row of `behaviour` or a gate with another default. `NamedChange.applied` gives the
gates of the old version with this one change of the new one: what it alters, it causes.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from bayplan.config.behaviour import changes_between
from bayplan.config.feature_gates import FeatureGates


class NamedChange(Struct, frozen=True):
    """One change. ``field``: of the behaviour; "": the change is that of a gate."""

    title: str
    field: str = ""
    gate: str = ""

    def applied(self, old: FeatureGates, new: FeatureGates) -> FeatureGates:
        """The old gates and behaviour with this change."""
        if self.gate:
            return replace(old, values={**old.values, self.gate: new.enabled(self.gate)})
        value = getattr(new.behaviour, self.field)
        return replace(old, behaviour=replace(old.behaviour, **{self.field: value}))


class GateChange(Struct, frozen=True):
    """A gate whose value differs, although nobody set it."""

    name: str
    text: str


def named_changes(old: FeatureGates, new: FeatureGates) -> Iterator[NamedChange]:
    """All changes, those of behaviour first."""
    for change in changes_between(old.version, new.version):
        yield NamedChange(f"{change.title} ({change.since})", field=change.field)
    for gate in gate_changes(old, new):
        yield NamedChange(f"feature gate {gate.name} ({gate.text})", gate=gate.name)


def gate_changes(old: FeatureGates, new: FeatureGates) -> Iterator[GateChange]:
    """Gates whose values differ."""
    for name in sorted({*old.values, *new.values}):
        before, after = old.enabled(name), new.enabled(name)
        if before is not after and name in new.values:
            yield GateChange(name, f"{_spelled(before)} before, {_spelled(after)} now")


def _spelled(value: bool) -> str:
    return "on" if value else "off"
