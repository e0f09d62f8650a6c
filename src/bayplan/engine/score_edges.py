"""A profile's score graph as somebody looks at it: who scores, who reads whom, who breaks ties."""

from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.config.loading import SchedulerConfig
from bayplan.engine.resolved_config import ResolvedProfile, resolve
from bayplan.framework.score_sources import reads_of
from bayplan.plugins.registry import Registry


@dataclass(frozen=True, slots=True)
class ScoreEdge:
    """One plugin reads another."""

    source: str
    reader: str
    #: Over all nodes, and not only the feasible ones.
    over_all: bool


@dataclass(frozen=True, slots=True)
class ProfileGraph:
    """One profile's scores. Instances by name."""

    profile: str
    #: (instance, weight) of those that are added up, in order.
    added: tuple[tuple[str, int], ...]
    tie_break: tuple[str, ...]
    #: Computed because others read them.
    read_only: tuple[str, ...]
    edges: tuple[ScoreEdge, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all instances, each once."""
        added = (name for name, _ in self.added)
        return tuple(dict.fromkeys((*added, *self.tie_break, *self.read_only)))

    def sources_of(self, reader: str) -> list[str]:
        return [edge.source for edge in self.edges if edge.reader == reader]

    def role(self, name: str) -> str:
        """What becomes of an instance's scores, in words."""
        weights = dict(self.added)
        roles = [f"weight {weights[name]}"] if name in weights else []
        if name in self.tie_break:
            roles.append(f"tie-break key {self.tie_break.index(name) + 1}")
        return ", ".join(roles) or "read only"


def profile_graphs(config: SchedulerConfig, registry: Registry) -> list[ProfileGraph]:
    """One for each profile, in order. Raises ConfigError for a configuration that is refused."""
    return [_graph(profile) for profile in resolve(config, registry).profiles]


def _graph(profile: ResolvedProfile) -> ProfileGraph:
    added = tuple((entry.name, entry.weight) for entry in profile.lists["score"])
    keys = tuple(entry.name for entry in profile.lists["tieBreak"])
    scoring = dict.fromkeys((*(name for name, _ in added), *keys, *profile.sources))
    edges = tuple(edge for name in scoring for edge in _edges(profile, name))
    return ProfileGraph(profile.name, added, keys, profile.sources, edges)


def _edges(profile: ResolvedProfile, name: str) -> Iterator[ScoreEdge]:
    reads = reads_of(profile.instances[name].args)
    for source in reads.names:
        yield ScoreEdge(source, name, reads.over_all)
