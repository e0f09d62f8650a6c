"""Objects that a server has stored and that kube-apiserver v1.37 would refuse as new ones.

The dump of a cluster may hold them: a server of an older version accepted them, an update passes
what was invalid before, a feature gate was on, or a newer server knows values that this version
does not. Such an object is taken as it is, because the cluster's scheduler sees it so, too. If it
cannot be read at all (a number where a list must be, an amount that is none), it is left out, and
its note says what follows for the answer. A problem that many objects share is one note.
"""

from collections.abc import Mapping, Sequence
from typing import final

from bayplan.answers.amounts import counted
from bayplan.api import objects
from bayplan.api.admission_objects import LIMIT_RANGE, RESOURCE_QUOTA, RUNTIME_CLASS
from bayplan.objects.keys import ObjectKey
from bayplan.problems import Problem
from bayplan.sim.input.controller_kinds import CONTROLLERS
from bayplan.sim.input.errors import LINES_MAX
from bayplan.sim.input.workload import Content

_UNUSABLE = "pods that need it cannot be placed"
#: What is different without an object of a kind.
_CONSEQUENCES: Mapping[str, str] = {
    objects.NODE: "no pod is placed on it, and its pods are on a node that the input lacks",
    objects.PERSISTENT_VOLUME: _UNUSABLE,
    objects.PERSISTENT_VOLUME_CLAIM: _UNUSABLE,
    objects.STORAGE_CLASS: _UNUSABLE,
    RUNTIME_CLASS: "new pods of this class are refused",
    objects.PRIORITY_CLASS: "new pods of this class are refused",
    objects.POD_DISRUPTION_BUDGET: "evictions do not respect it",
    LIMIT_RANGE: "new pods do not get its defaults, and it refuses none",
    RESOURCE_QUOTA: "it refuses no new pods",
    **dict.fromkeys(CONTROLLERS, "pods that it lacks are not created"),
}
_WITHOUT = "the answer is as if it did not exist"


def _consequence(kind: str, content: Content) -> str:
    if kind != objects.POD:
        return _CONSEQUENCES.get(kind, _WITHOUT)
    spec = content.get("spec")
    node = spec.get("nodeName") if isinstance(spec, dict) else None
    return f"what it takes of node {node} counts as free" if node else "no answer counts it"


@final
class StoredObjects:
    """Collects the notes about such objects while an input is read."""

    def __init__(self) -> None:
        #: Kind, problem and what follows → the first place, and the number of objects.
        self._unreadable: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._invalid: dict[tuple[str, str], tuple[str, int]] = {}
        #: Each object that is left out, and why it cannot be read.
        self.left_out: dict[ObjectKey, str] = {}

    def leave_out(
        self, place: str, problems: Sequence[Problem], key: ObjectKey | None, content: Content
    ) -> None:
        """``key``: None if the object has no name or kind."""
        kind = "" if key is None else key.kind
        text = "; ".join(map(str, problems))
        if key is not None:
            self.left_out[key] = text
        mark = (kind, text, _consequence(kind, content))
        first, count = self._unreadable.get(mark, (place, 0))
        self._unreadable[mark] = first, count + 1

    def take(self, kind: str, place: str, problems: Sequence[Problem]) -> None:
        """Note what a server would refuse about an object that is taken as it is."""
        for problem in problems:
            first, count = self._invalid.get((kind, str(problem)), (place, 0))
            self._invalid[kind, str(problem)] = first, count + 1

    def notes(self) -> list[str]:
        """Notes for the reader."""
        left_out = [
            f"{_named(*places)} left out, for it cannot be read ({text}): {consequence}"
            for (_, text, consequence), places in self._unreadable.items()
        ]
        taken = [
            f"{_named(*places)} taken as the server stored it; a new one is refused: {text}"
            for (_, text), places in self._invalid.items()
        ]
        hidden = len(taken) - LINES_MAX
        more = [f"and {counted(hidden, 'more problem')} of stored objects"] if hidden > 0 else []
        return [*left_out, *taken[:LINES_MAX], *more]


def _named(first: str, count: int) -> str:
    return f"{first} is" if count == 1 else f"{first} and {count - 1:,} more are"
