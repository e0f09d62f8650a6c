"""`podGroups.topology`: named levels of the topology, the outermost first.

A level is a name for a node label. Annotations of a group may use the name in place of the label.
A word without a slash that is neither the name nor the label of a level is probably a misspelled
name, so a group with such an annotation is not tried. Without levels, each word is a node label.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, final

from msgspec.structs import replace

from bayplan.api.pod_groups import (
    EXCLUSIVE_TOPOLOGY,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    TOPOLOGY_SLICES,
    PodGroup,
)
from bayplan.api.selectors import is_label_key
from bayplan.config.schema import TopologyLevelSettings
from bayplan.problems import Problem, shown, suggestion

_PATH: Final = "podGroups.topology"


def level_problems(settings: Sequence[TopologyLevelSettings]) -> Iterator[Problem]:
    """The errors of the configured levels."""
    names: dict[str, int] = {}
    labels: dict[str, int] = {}
    for index, level in enumerate(settings):
        path = f"{_PATH}[{index}]"
        if "/" in level.name or not is_label_key(level.name):
            expected = "wanted a name such as rack, without a slash"
            yield Problem(f"{path}.name", shown(level.name), expected)
        if not is_label_key(level.node_label):
            expected = "wanted the label of nodes that share a domain, such as example.com/rack"
            yield Problem(f"{path}.nodeLabel", shown(level.node_label), expected)
        for field, value, seen in (
            ("name", level.name, names),
            ("nodeLabel", level.node_label, labels),
        ):
            first = seen.setdefault(value, index)
            if first != index:
                expected = f"{_PATH}[{first}] is the same level"
                yield Problem(f"{path}.{field}", f"{shown(value)} again", expected)


@final
class TopologyLevels:
    """The levels of a configuration."""

    def __init__(self, settings: Sequence[TopologyLevelSettings] = ()) -> None:
        self._label_of = {level.name: level.node_label for level in settings}
        self._name_of = {level.node_label: level.name for level in settings}
        self._order = {level.node_label: place for place, level in enumerate(settings)}

    def name(self, node_label: str) -> str:
        """The name of the level of a node label; without one, the label itself."""
        return self._name_of.get(node_label, node_label)

    def resolved(self, group: PodGroup) -> PodGroup:
        """The group with node labels in place of the names of levels. A name that is no level
        becomes the problem of the group."""
        if not self._label_of:
            return group
        required = group.required_topology
        words = [(PREFERRED_TOPOLOGY, word) for word in group.preferred_topologies]
        words += [(TOPOLOGY_SLICES, part.key) for part in group.slices]
        words.append((EXCLUSIVE_TOPOLOGY, group.exclusive_topology))
        if not group.is_upstream:
            # The constraint of Kubernetes' own kind is a node label.
            words.insert(0, (REQUIRED_TOPOLOGY, required))
            required = self._label(required)
        problems = (self._problem(annotation, word) for annotation, word in words if word)
        slices = tuple(part._replace(key=self._label(part.key)) for part in group.slices)
        problem = next(filter(None, problems), "") or self._problem_of_order(
            [part.key for part in slices]
        )
        return replace(
            group,
            required_topology=required,
            preferred_topologies=tuple(map(self._label, group.preferred_topologies)),
            slices=slices,
            exclusive_topology=self._label(group.exclusive_topology),
            topology_problem=group.topology_problem or problem,
        )

    def _label(self, word: str) -> str:
        return self._label_of.get(word, word)

    def _problem(self, annotation: str, word: str) -> str:
        if "/" in word or word in self._label_of or word in self._order:
            return ""
        hint = suggestion(word, tuple(self._label_of))
        text = f"annotation {annotation}: {shown(word)} is no level of the topology"
        return f"{text}; {hint}" if hint else text

    def _problem_of_order(self, keys: Sequence[str]) -> str:
        """Slices of an inner level cannot contain those of an outer one."""
        order = self._order
        for outer, inner in pairwise([key for key in keys if key in order]):
            if order[outer] >= order[inner]:
                names = f"level {self.name(outer)} does not contain level {self.name(inner)}"
                return f"annotation {TOPOLOGY_SLICES}: {names}; wanted the outermost first"
        return ""
