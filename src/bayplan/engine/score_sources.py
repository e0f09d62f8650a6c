"""Which instances a profile's plugins read, found by name and checked before anything starts.

A source must be a score plugin, and nobody may read himself, not even through others. One that
carries a label must be configured or enabled somewhere: a slip in a label would otherwise make an
instance with default args that nobody meant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from bayplan.config.validation import LABEL_SEPARATOR
from bayplan.engine.instances import Instance
from bayplan.engine.plugin_sets import PluginLists, absence, plugin_name
from bayplan.framework.profile import EXTENSION_POINTS, extension_points_of
from bayplan.framework.score_sources import reads_of
from bayplan.plugins.registry import Registry
from bayplan.problems import Problem, joined, suggestion

#: An instance that is configured nowhere, with default args.
Unconfigured = Callable[[str], Instance]


@final
@dataclass(slots=True)
class SourceFinder:
    """The instances of one profile that others read, and what is wrong with how they are named."""

    registry: Registry
    #: Enabled ones and those with args of their own, by name.
    known: Mapping[str, Instance]
    unconfigured: Unconfigured
    problems: list[Problem] = field(default_factory=list[Problem])
    _found: dict[str, Instance] = field(default_factory=dict[str, Instance])
    #: Of cycles that were told.
    _told: set[frozenset[str]] = field(default_factory=set[frozenset[str]])

    def sources_of(self, readers: Sequence[str]) -> dict[str, Instance]:
        """All that these instances read, directly or through others; sources come first."""
        for name in readers:
            self._visit(self.known[name], (name,))
        return self._found

    def look_for_cycles(self, names: Sequence[str]) -> None:
        """Also among instances that are not enabled: each would pass for read by the others."""
        apart = SourceFinder(self.registry, self.known, self.unconfigured, self.problems)
        apart.sources_of(names)

    def _visit(self, reader: Instance, path: tuple[str, ...]) -> None:
        for at, name in reads_of(reader.args).named:
            problem = self._problem(name, path)
            if problem is not None:
                self.problems.append(problem.under(joined(reader.args_path, at)))
            elif name not in path and name not in self._found:
                source = self.known.get(name) or self.unconfigured(name)
                self._visit(source, (*path, name))
                self._found[name] = source

    def _problem(self, name: str, path: tuple[str, ...]) -> Problem | None:
        if name in path:
            return self._cycle((*path[path.index(name) :], name))
        plugin = self.registry.find(plugin_name(name))
        if plugin is None:
            return Problem("", *absence(name, self.registry))
        if not issubclass(plugin, EXTENSION_POINTS["score"]):
            implemented = ", ".join(extension_points_of(plugin))
            return Problem("", f'"{name}" is not a score plugin', f"it has {implemented}")
        if LABEL_SEPARATOR in name and name not in self.known:
            labelled = [known for known in self.known if LABEL_SEPARATOR in known]
            meant = suggestion(name, labelled)
            return Problem("", f'no instance "{name}"', meant or "its args stand in pluginConfig")
        return None

    def _cycle(self, names: tuple[str, ...]) -> Problem | None:
        members = frozenset(names)
        if members in self._told:
            return None
        self._told.add(members)
        if len(members) == 1:
            return Problem("", f"{names[0]} reads itself", "wanted another's name")
        return Problem("", f"a cycle of scores, {' → '.join(names)}", "wanted one that ends")


def is_reader(instance: Instance) -> bool:
    """Whether it reads anybody's scores."""
    return bool(reads_of(instance.args).names)


def scoring(lists: PluginLists) -> list[str]:
    """The instances of a profile whose scores are wanted."""
    return list(dict.fromkeys(e.name for point in ("score", "tieBreak") for e in lists[point]))
