"""A metric of one's own: what a comparison tells about each run.

A metric is a class. One instance watches one run: it is told of every change of a node or a pod
while it is made, and of every journal record, and says its numbers at the end. Classes are found by
the entry point group `bayplan.metrics`:

    [project.entry-points."bayplan.metrics"]
    NodesUsed = "my_package.metrics:NodesUsed"

    class NodesUsed(RunMetric):
        name = "nodes_used"

        def __init__(self):
            self._nodes = set()

        def pod(self, old, new):
            if new is not None and new.node_name:
                self._nodes.add(new.node_name)

        def values(self, result):
            return {"nodes_used": len(self._nodes)}
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from bayplan.api.objects import Node
from bayplan.journal import Record
from bayplan.sim.output.result import SimulationResult
from bayplan.state.pods import PodInfo

#: Points (x, y) of a curve, x ascending.
Curve = Sequence[tuple[float, float]]


class RunMetric(ABC):
    """Numbers about one run. A class is made without arguments, once per run."""

    #: What it is asked for by, in an experiment's `metrics`.
    name: ClassVar[str]

    def node(self, old: Node | None, new: Node | None) -> None:  # noqa: B027 - optional on purpose
        """A node came (old is None), changed, or went (new is None)."""

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:  # noqa: B027
        """A pod came, changed (it may be on a node now, or have ended), or went."""

    def record(self, record: Record) -> None:  # noqa: B027
        """The scheduler decided something."""

    @abstractmethod
    def values(self, result: SimulationResult) -> Mapping[str, float]:
        """Name → number; the same names for every run that has such a number."""

    def curves(self) -> Mapping[str, Curve]:
        """Name → a curve to draw; the names of axes stand in it as "y over x"."""
        return {}
