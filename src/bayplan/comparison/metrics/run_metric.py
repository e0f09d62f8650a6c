"""The interface of a metric: numbers about each run of a comparison.

A metric is a class. One instance observes one run: it gets each change of a node or a pod during
the change, and each record of the journal, and returns its numbers at the end. Packages register
classes in the entry point group `bayplan.metrics`:

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
    """Numbers about one run. The class is instantiated without arguments, once per run."""

    #: The name of the metric in an experiment's `metrics`.
    name: ClassVar[str]

    def node(self, old: Node | None, new: Node | None) -> None:  # noqa: B027 - optional on purpose
        """A node was created (old is None), changed, or was deleted (new is None)."""

    def pod(self, old: PodInfo | None, new: PodInfo | None) -> None:  # noqa: B027
        """A pod was created, changed (it may be bound now, or have ended), or was deleted."""

    def record(self, record: Record) -> None:  # noqa: B027
        """The scheduler made a decision."""

    @abstractmethod
    def values(self, result: SimulationResult) -> Mapping[str, float]:
        """Name → number; equal names for all runs that have such a number."""

    def curves(self) -> Mapping[str, Curve]:
        """Name → a curve to draw. The name contains the names of the axes: "y over x"."""
        return {}
