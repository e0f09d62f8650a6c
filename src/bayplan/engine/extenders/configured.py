"""The extenders of a configuration, and those that are Python classes, as the engine knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from bayplan.api.objects import Container
from bayplan.config.schema import Extender, named_extenders, verb_paths
from bayplan.framework.in_process_extender import InProcessExtender
from bayplan.ports import ExtenderVerb
from bayplan.state.pods import PodInfo, PodShape


@final
@dataclass(frozen=True, slots=True)
class ConfiguredExtender:
    """engine.extenders.results.Extender for one entry."""

    name: str
    verbs: frozenset[ExtenderVerb]
    weight: int = 1
    ignorable: bool = False
    #: Resources that it manages; none: it is interested in every pod.
    managed_resources: frozenset[str] = frozenset()

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether some container asks for a resource it manages. Upstream: IsInterested."""
        if not self.managed_resources:
            return True
        return pod.shape.once((ConfiguredExtender, self.managed_resources), self._is_requested)

    def _is_requested(self, shape: PodShape) -> bool:
        containers = (*(shape.spec.containers or ()), *(shape.spec.init_containers or ()))
        return any(not self.managed_resources.isdisjoint(_named(each)) for each in containers)


def configured_extenders(entries: Sequence[Extender]) -> list[ConfiguredExtender]:
    """In the order of the configuration."""
    return [
        ConfiguredExtender(
            name,
            verbs=frozenset(verb_paths(entry)),
            weight=entry.weight,
            ignorable=entry.ignorable,
            managed_resources=frozenset(resource.name for resource in entry.managed_resources),
        )
        for name, entry in named_extenders(entries).items()
    ]


def in_process_extenders(extenders: Sequence[InProcessExtender]) -> list[ConfiguredExtender]:
    """Extenders that are Python classes, in their order."""
    return [
        ConfiguredExtender(
            each.name,
            verbs=each.verbs(),
            weight=each.weight,
            ignorable=each.ignorable,
            managed_resources=frozenset(each.managed_resources),
        )
        for each in extenders
    ]


def _named(container: Container) -> set[str]:
    resources = container.resources
    return set() if resources is None else {*(resources.requests or ()), *(resources.limits or ())}
