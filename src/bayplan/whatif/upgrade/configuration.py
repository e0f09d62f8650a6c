"""What an upgrade changes about a configuration: each finding with its place, and what to write.

A finding is about something that is written (a gate, a field, a plugin or an argument that the new
version refuses or ignores), or about a default that nobody wrote. What both versions refuse is no
finding, because the configuration is wrong today.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, final

import msgspec

from bayplan.answers.document import Value
from bayplan.config import SchedulerConfig
from bayplan.config.feature_gates import (
    ALIASES,
    FeatureGates,
    every_gate_of,
    gate_names_of,
    last_of,
)
from bayplan.config.gate_table import SUCCESSORS
from bayplan.config.loading import FEATURE_GATES_FLAG
from bayplan.config.upgrades import GateChange, gate_changes
from bayplan.config.upstream import default_plugins
from bayplan.config.validation import ALL_PLUGINS
from bayplan.plugins.registry import Registry
from bayplan.problems import ConfigError, Problem, joined
from bayplan.profile.resolved_config import resolve
from bayplan.yaml_places import place_in

Subject = Literal["gate", "plugin", "argument", "field"]

_UNKNOWN = ("unknown field", "no plugin", "unrecognized feature gate")


@final
class ConfigFinding(Value, frozen=True, kw_only=True):
    """Something about the configuration."""

    #: gone: the new version does not know it; locked: the gate has one value only; refused: the new
    #: version refuses the value; default: the default of something that nobody wrote is different.
    what: Literal["gone", "locked", "refused", "default"]
    subject: Subject
    #: The name of the gate, plugin or field.
    name: str
    #: The path, such as featureGates.A or profiles[0].pluginConfig[1].args.shape.
    path: str
    #: The file, or the flag; "": nobody wrote it, or it came from no file.
    source: str = ""
    line: int | None = None
    column: int | None = None
    text: str
    #: What to write instead; for a default, what keeps the earlier behaviour.
    write: str
    #: Whether the new version does not start with it.
    is_blocking: bool = msgspec.field(default=False, name="blocks")

    @property
    def place(self) -> str:
        """The place of the finding, for a reader."""
        if not self.source:
            return "nowhere written"
        if self.line is None:
            return (
                self.source if self.source == FEATURE_GATES_FLAG else f"{self.source}: {self.path}"
            )
        return f"{self.source}:{self.line}:{self.column}"


def config_findings(
    before: SchedulerConfig, after: SchedulerConfig, registry: Registry
) -> Iterator[ConfigFinding]:
    """All findings. Those that stop the new version come first."""
    of_gates = [*_named_gates(before, after)]
    gate_paths = {finding.path for finding in of_gates}
    problems = [p for p in _new_problems(before, after, registry) if p.path not in gate_paths]
    findings = [*of_gates, *(_refusal(problem, after) for problem in problems)]
    yield from sorted(findings, key=lambda finding: not finding.is_blocking)
    for change in gate_changes(before.gates, after.gates):
        if change.name not in before.gates.named:
            yield _default_gate(change, after.gates)
    yield from _default_plugins(before, after)


# ---- gates that are written ----------------------------------------------------------------


def _named_gates(before: SchedulerConfig, after: SchedulerConfig) -> Iterator[ConfigFinding]:
    for origin, settings in after.gate_sources:
        outdated = {
            written: finding
            for written, value in settings.items()
            if (finding := _gate_text(ALIASES.get(written, written), value, before, after))
        }
        valid = {name: value for name, value in settings.items() if name not in outdated}
        for written, (what, text, is_blocking) in outdated.items():
            successor = SUCCESSORS.get(written, "") if settings[written] else ""
            successor = "" if successor in valid else successor
            path = joined(origin, written)
            is_flag = origin == FEATURE_GATES_FLAG
            yield _written(
                after,
                what=what,
                subject="gate",
                name=written,
                path=path,
                text=text,
                write=_flag(valid, successor)
                if is_flag
                else _setting(written, settings[written], successor),
                is_blocking=is_blocking,
            )


def _gate_text(
    name: str, value: bool, before: SchedulerConfig, after: SchedulerConfig
) -> tuple[Literal["gone", "locked"], str, bool] | None:
    """(what, text, whether the new version refuses it); None: there is nothing to say."""
    old, new = before.gates.version, after.gates.version
    if name not in gate_names_of(new):
        last = last_of(name, new)
        state = f"; it stays {_spelled(last.default)}" if last and last.is_locked else ""
        return "gone", f"kube-scheduler {new} has no gate {name}{state}", True
    gate, was = last_of(name, new), last_of(name, old)
    if gate is None or not gate.is_locked or (was is not None and was.is_locked):
        return None
    state = f"the gate {name} is locked to {_spelled(gate.default)} in {new}"
    if value is not gate.default:
        return "locked", state, True
    return "locked", f"{state}, and a later version removes it", False


def _setting(name: str, value: bool, successor: str) -> str:
    written = f"{name}: {_spelled(value)}"
    return f"write {successor}: true in its place" if successor else f"delete {written}"


def _flag(valid: Mapping[str, bool], successor: str) -> str:
    settings = dict(valid) | ({successor: True} if successor else {})
    if not settings:
        return f"leave {FEATURE_GATES_FLAG} out"
    return f"write {_flag_text(settings.items())}"


def _flag_text(settings: Iterable[tuple[str, bool]]) -> str:
    """The gates as kube-scheduler takes them. It has no field for them in its configuration."""
    text = ",".join(f"{name}={_spelled(value)}" for name, value in settings)
    return f"{FEATURE_GATES_FLAG}={text}"


# ---- what the new version refuses ----------------------------------------------------------


def _new_problems(
    before: SchedulerConfig, after: SchedulerConfig, registry: Registry
) -> Iterator[Problem]:
    known = {(problem.path, problem.actual) for problem in _problems(before, registry)}
    for problem in _problems(after, registry):
        if (problem.path, problem.actual) not in known:
            yield problem


def _problems(config: SchedulerConfig, registry: Registry) -> tuple[Problem, ...]:
    try:
        resolve(config, registry)
    except ConfigError as error:
        return error.problems
    return ()


def _refusal(problem: Problem, after: SchedulerConfig) -> ConfigFinding:
    actual, _, advice = problem.actual.partition("; ")
    is_gone = actual.startswith(_UNKNOWN)
    subject = _subject(problem.path)
    if subject == "plugin":
        return _refused_plugin(problem, after, is_gone=is_gone)
    is_unwanted = is_gone or actual == "unwanted"
    name = problem.path.rpartition(".")[2]
    expected = problem.expected or advice
    if actual == "unwanted":
        # An example is "belongs to the gate A, which is off".
        reason = f", which {expected}"
    else:
        reason = f": {actual}" + (f", {expected}" if is_unwanted and expected else "")
    return _written(
        after,
        what="gone" if is_gone else "refused",
        subject=subject,
        name=name,
        path=problem.path,
        text=f"kube-scheduler {after.gates.version} refuses {name}{reason}",
        write=f"delete {name}" if is_unwanted else expected or f"change {name}",
        is_blocking=True,
    )


def _refused_plugin(problem: Problem, after: SchedulerConfig, *, is_gone: bool) -> ConfigFinding:
    """An entry of a list of plugins or arguments. The problem quotes the name of its plugin."""
    name = problem.actual.partition('"')[2].partition('"')[0]
    reason = f"{problem.actual}, {problem.expected}" if problem.expected else problem.actual
    return _written(
        after,
        what="gone" if is_gone else "refused",
        subject="plugin",
        name=name,
        path=problem.path,
        text=f"kube-scheduler {after.gates.version} refuses this plugin: {reason}",
        write=f"delete the entry {name}",
        is_blocking=True,
    )


def _subject(path: str) -> Subject:
    if path.startswith(("featureGates", FEATURE_GATES_FLAG)):
        return "gate"
    if ".args" in path:
        return "argument"
    return "plugin" if path.endswith(".name") else "field"


# ---- defaults that differ ------------------------------------------------------------------


def _default_gate(change: GateChange, gates: FeatureGates) -> ConfigFinding:
    settings = _settings_to_keep(change, gates)
    if settings is None:
        write = f"cannot be kept, {gates.version} has no other value"
    else:
        write = _flag_text(settings)
    return ConfigFinding(
        what="default",
        subject="gate",
        name=change.name,
        path=joined("featureGates", change.name),
        text=change.text,
        write=write,
    )


def _settings_to_keep(change: GateChange, gates: FeatureGates) -> list[tuple[str, bool]] | None:
    """The gate as it was, with the gates that need it switched off, or those that it needs
    switched on; None: one of them has no other value."""
    known = every_gate_of(gates.version)
    names = [change.name]
    for name in names:
        if name not in known or known[name].is_locked:
            return None
        related = (
            known[name].needs
            if change.before
            else [each for each, gate in known.items() if name in gate.needs]
        )
        names += [
            each
            for each in related
            if each in known
            and each not in names
            and gates.values.get(each, known[each].default) is not change.before
        ]
    return [(name, change.before) for name in names]


def _default_plugins(before: SchedulerConfig, after: SchedulerConfig) -> Iterator[ConfigFinding]:
    """The new default plugins. Some profile gets them, or does not get them because it disables all
    defaults."""
    old = {entry.name for entry in default_plugins(before.gates)}
    added = [entry.name for entry in default_plugins(after.gates) if entry.name not in old]
    for index, profile in enumerate(after.spec.profiles):
        multi_point = profile.plugins.multi_point
        disabled = [entry.name for entry in multi_point.disabled]
        enabled = {entry.name for entry in multi_point.enabled}
        at = f"profiles[{index}].plugins.multiPoint"
        for name in added:
            if name in enabled or name in disabled:
                continue
            is_left_out = ALL_PLUGINS in disabled
            if is_left_out:
                text = f"{name} is a new default plugin, and the profile disables all defaults"
                write = f"add {{name: {name}}} to {at}.enabled to have it"
            else:
                text = f"{name} is a new default plugin of the profile {profile.scheduler_name}"
                write = f"add {{name: {name}}} to {at}.disabled to do without it"
            path = f"{at}.disabled[{disabled.index(ALL_PLUGINS)}]" if is_left_out else at
            yield _written(
                after,
                what="default",
                subject="plugin",
                name=name,
                path=path,
                text=text,
                write=write,
            )


# ---- places --------------------------------------------------------------------------------


def _written(
    config: SchedulerConfig,
    *,
    what: Literal["gone", "locked", "refused", "default"],
    subject: Subject,
    name: str,
    path: str,
    text: str,
    write: str,
    is_blocking: bool = False,
) -> ConfigFinding:
    """A finding about something that the configuration or the flag has."""
    source, place = config.source, None
    if path.startswith(FEATURE_GATES_FLAG):
        source = FEATURE_GATES_FLAG
    elif config.text:
        place = place_in(config.text, path)
    line, column = place or (None, None)
    return ConfigFinding(
        what=what,
        subject=subject,
        name=name,
        path=path,
        source=source,
        line=line,
        column=column,
        text=text,
        write=write,
        is_blocking=is_blocking,
    )


def _spelled(value: bool) -> str:
    return "true" if value else "false"
