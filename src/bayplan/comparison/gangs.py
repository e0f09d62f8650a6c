"""How long groups of pods waited until enough of their members ran."""

from collections.abc import Iterator, Mapping
from typing import final

from bayplan.comparison.run_metric import RunMetric
from bayplan.comparison.spans import told_spans
from bayplan.sim.result import PodGroupResult, PodResult, SimulationResult
from bayplan.state.pods import PodInfo


@final
class Gangs(RunMetric):
    """Of groups with an object: how many got their minimum, and the virtual seconds from the moment
    when so many members were there to the moment when so many were bound."""

    name = "gangs"

    def __init__(self) -> None:
        #: Pod → group, both as "namespace/name".
        self._groups: dict[str, str] = {}

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if new is not None and new.group_key is not None:
            self._groups[new.key] = str(new.group_key)

    def values(self, result: SimulationResult) -> Mapping[str, float]:
        if not result.podgroups:
            return {}
        members: dict[str, list[PodResult]] = {name: [] for name in result.podgroups}
        for pod, group in self._groups.items():
            if group in members and pod in result.pods:
                members[group].append(result.pods[pod])
        spans = [
            span
            for name, group in result.podgroups.items()
            for span in _waited(group, members[name])
        ]
        return {
            "gangs_placed": float(len(spans)),
            "gangs_waiting": float(len(result.podgroups) - len(spans)),
            **told_spans("gang_waiting_seconds", spans),
        }


def _waited(group: PodGroupResult, members: list[PodResult]) -> Iterator[float]:
    """Nothing where too few were ever bound."""
    came = sorted(pod.created_at for pod in members if pod.created_at is not None)
    bound = sorted(pod.bound_at for pod in members if pod.bound_at is not None)
    needed = max(group.min_member, 1)
    if len(bound) >= needed:
        yield max(bound[needed - 1] - came[needed - 1], 0.0)
