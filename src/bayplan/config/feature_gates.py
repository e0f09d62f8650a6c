"""Feature gates: upstream's names and defaults in each version.

`gate_table` has the gates that kube-scheduler reads. A gate is set by kube-scheduler's
`--feature-gates` string or by the key `featureGates`; the string wins. Gates of other components
(`other_gates`) are checked, too, because clusters pass one list to all components. The effect of a
gate is decided once, when objects are created, and not during scheduling. A setting that
kube-scheduler refuses is refused in its words.
Upstream: pkg/features/kube_features.go, component-base/featuregate.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from bayplan.config import other_gates
from bayplan.config.behaviour import NEWEST_BEHAVIOUR, Behaviour, behaviour_of
from bayplan.config.gate_table import HISTORY, NEEDS_SINCE
from bayplan.config.kubernetes_versions import NEWEST, KubernetesVersion
from bayplan.problems import Problem, joined, suggestion

ALPHA = "alpha"
BETA = "beta"
GA = "ga"

#: Switches that set all gates of a stage that are not set by name.
STAGE_SWITCHES = {"AllAlpha": ALPHA, "AllBeta": BETA}

#: The gate of the plugin GangScheduling; before 1.37 it is one of its own.
GANGS = "GenericWorkload"
_OWN_GATE_OF_GANGS = "GangScheduling"

#: Names used in documents → the gate.
ALIASES = {"SchedulerOpportunisticBatching": "OpportunisticBatching"}

#: The component that may precede a gate on the command line.
COMPONENT_PREFIX = "kube:"

TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class Gate(Struct, frozen=True):
    """A feature gate. ``needs``: gates that must be on if this gate is on, where the version has
    them."""

    stage: str
    default: bool
    is_locked: bool = False
    needs: tuple[str, ...] = ()


#: Gate → (the first version, the gate from this version on, or None: it is gone).
_Lives = Mapping[str, list[tuple[KubernetesVersion, Gate | None]]]


def _read_lives() -> _Lives:
    lives: dict[str, list[tuple[KubernetesVersion, Gate | None]]] = {}
    for row in re.split(r"\n(?=\S)", HISTORY.strip()):
        name, _, life = row.partition(": ")
        stages, _, needs = life.partition(";")
        needed = tuple(needs.split()[1:])
        lives[name] = [_from_version(each, needed) for each in stages.split(", ")]
    return lives


def _other_lives() -> _Lives:
    lives: dict[str, list[tuple[KubernetesVersion, Gate | None]]] = {}
    for row in re.split(r"\n(?=\S)", other_gates.LIVES.strip()):
        life, _, names = row.partition(":")
        states = [_from_version(each, ()) for each in life.split(", ")]
        lives |= dict.fromkeys(names.split(), states)
    return lives


def _from_version(text: str, needs: tuple[str, ...]) -> tuple[KubernetesVersion, Gate | None]:
    version, stage, *state = text.split()
    if stage == "gone":
        return KubernetesVersion(version), None
    return KubernetesVersion(version), Gate(stage, state[0] == "on", "locked" in state, needs)


_READ, _OTHERS = _read_lives(), _other_lives()


def _alive(lives: _Lives, version: KubernetesVersion) -> dict[str, Gate]:
    gates: dict[str, Gate] = {}
    for name, life in lives.items():
        lived = [gate for since, gate in life if since.position <= version.position]
        if lived and lived[-1] is not None:
            gates[name] = lived[-1]
    return gates


@cache
def gates_of(version: KubernetesVersion) -> Mapping[str, Gate]:
    """The gates that kube-scheduler of this version reads, by name."""
    gates = _alive(_READ, version)
    if version.position >= NEEDS_SINCE.position:
        return gates
    return {name: replace(gate, needs=()) for name, gate in gates.items()}


@cache
def other_gates_of(version: KubernetesVersion) -> Mapping[str, Gate]:
    """The gates of this version that kube-scheduler accepts and does not read, by name."""
    gates = _alive(_OTHERS, version)
    for row in other_gates.NEEDS.strip().splitlines():
        head, _, needs = row.partition(": ")
        name, _, since = head.partition(" from ")
        first = KubernetesVersion(since) if since else NEEDS_SINCE
        if name in gates and version.position >= first.position:
            gate = gates[name]
            gates[name] = replace(gate, needs=(*gate.needs, *needs.split()))
    return gates


def last_of(name: str, version: KubernetesVersion) -> Gate | None:
    """The last state of a gate until a version; None: it is newer, or no version has it."""
    life = _READ.get(name) or _OTHERS.get(name, ())
    lived = [gate for since, gate in life if since.position <= version.position]
    return next(filter(None, reversed(lived)), None)


@cache
def every_gate_of(version: KubernetesVersion) -> Mapping[str, Gate]:
    """All gates that kube-scheduler of this version accepts, by name."""
    return {**gates_of(version), **other_gates_of(version)}


@cache
def gate_names_of(version: KubernetesVersion) -> frozenset[str]:
    """Every name that may be set, aliases and stage switches included."""
    return frozenset((*every_gate_of(version), *STAGE_SWITCHES, *ALIASES))


class FeatureGates(Struct, frozen=True):
    """All gates of the scheduler and their state."""

    values: Mapping[str, bool]
    #: The gates that were set by name, in order.
    named: tuple[str, ...] = ()
    version: KubernetesVersion = NEWEST
    #: What kube-scheduler of the version does, besides what gates decide.
    behaviour: Behaviour = NEWEST_BEHAVIOUR

    def enabled(self, name: str) -> bool:
        """Whether a gate is on. A gate that is gone is what it was locked to; any other gate that
        only other versions have is off. Raises KeyError for an unknown gate."""
        if name in self.values or name not in _READ:
            return self.values[name]
        last = last_of(name, self.version)
        return last is not None and last.is_locked and last.default

    @property
    def schedules_gangs(self) -> bool:
        """Whether the default profile has the plugin GangScheduling."""
        return self.values.get(_OWN_GATE_OF_GANGS, self.enabled(GANGS))


def default_gates(version: KubernetesVersion = NEWEST) -> FeatureGates:
    gates = {name: gate.default for name, gate in gates_of(version).items()}
    return FeatureGates(gates, version=version, behaviour=behaviour_of(version))


def parse_gates(text: str, origin: str) -> tuple[dict[str, bool], list[Problem]]:
    """ "A=true,kube:B=false" → {A: True, B: False}, and the errors of the other parts."""
    settings: dict[str, bool] = {}
    problems: list[Problem] = []
    for part in filter(None, text.split(",")):
        written, equals, value = (piece.strip() for piece in part.partition("="))
        component, _, name = written.rpartition(":")
        if component.strip() not in ("", "kube"):
            actual = f'unknown component "{component.strip()}"'
            problems.append(
                Problem(joined(origin, written), actual, "wanted kube, or no component")
            )
        elif value in TRUE or value in FALSE:
            settings[name.strip()] = value in TRUE
        else:
            actual = f'"{value}"' if equals else "no value"
            problems.append(Problem(joined(origin, name), actual, "wanted true or false"))
    return settings, problems


def is_prefixed(part: str) -> bool:
    """Whether a gate of `--feature-gates` names its component."""
    return ":" in part.partition("=")[0]


def resolve_gates(
    *sources: tuple[str, Mapping[str, bool]], version: KubernetesVersion = NEWEST
) -> tuple[FeatureGates, list[Problem]]:
    """The gates of a version after ``sources``, each (path, name → value). Later sources win."""
    every = every_gate_of(version)
    problems: list[Problem] = []
    named: dict[str, bool] = {}
    origins: dict[str, str] = {}
    for origin, settings in sources:
        for written, value in settings.items():
            name = ALIASES.get(written, written)
            problem = _setting_problem(name, value, joined(origin, written), version)
            if problem is not None:
                problems.append(problem)
            else:
                named[name], origins[name] = value, joined(origin, written)
    states = {name: _value(name, gate, named) for name, gate in every.items()}
    if not problems:
        problems += _missing_needs(every, states, origins)
    values = {name: states[name] for name in gates_of(version)}
    return FeatureGates(values, tuple(named), version, behaviour_of(version)), problems


def _setting_problem(
    name: str, value: bool, path: str, version: KubernetesVersion
) -> Problem | None:
    gates, all_names = gates_of(version), gate_names_of(version)
    if name not in all_names:
        meant = suggestion(name, (*gates, *STAGE_SWITCHES)) or suggestion(name, all_names)
        return Problem(path, f"unrecognized feature gate: {name}", _versions_with(name) or meant)
    gate = every_gate_of(version).get(name)
    if gate is not None and gate.is_locked and value is not gate.default:
        locked = f"feature is locked to {_spelled(gate.default)}"
        return Problem(path, f"cannot set feature gate {name} to {_spelled(value)}, {locked}")
    return None


def _versions_with(name: str) -> str:
    """Which versions have a gate; "": none has it."""
    versions = [each for each in KubernetesVersion if name in gate_names_of(each)]
    if not versions:
        return ""
    if versions[-1] is list(KubernetesVersion)[-1]:
        return f"Kubernetes {versions[0]} is the first version with it"
    return f"Kubernetes {versions[-1]} is the last version with it"


def _value(name: str, gate: Gate, named: Mapping[str, bool]) -> bool:
    if name in named:
        return named[name]
    for switch, stage in STAGE_SWITCHES.items():
        if switch in named and gate.stage == stage and not gate.is_locked:
            return named[switch]
    return gate.default


def _missing_needs(
    gates: Mapping[str, Gate], values: Mapping[str, bool], origins: Mapping[str, str]
) -> Iterator[Problem]:
    for name, gate in gates.items():
        missing = sorted(other for other in gate.needs if not values.get(other, True))
        if values[name] and missing:
            # The gate may be on by default and another one switched off.
            culprits: Iterable[str] = (name, *missing, *STAGE_SWITCHES)
            path = next((origins[c] for c in culprits if c in origins), "featureGates")
            disabled = f"features that are disabled: [{' '.join(missing)}]"
            yield Problem(path, f"{name} is enabled, but depends on {disabled}")


def _spelled(value: bool) -> str:
    return "true" if value else "false"
