"""What the Handle, and the engine, know of an extender: whether it is asked, not how.

Upstream: k8s.io/kube-scheduler/framework, Extender. What it is asked goes out as an effect
(ports.AskExtender), so nothing here asks.
"""

from typing import Protocol

from bayplan.ports import ExtenderVerb
from bayplan.state.pods import PodInfo


class Extender(Protocol):
    """Something outside the profile's plugins that has a say about nodes."""

    @property
    def name(self) -> str: ...
    @property
    def verbs(self) -> frozenset[ExtenderVerb]:
        """What it may be asked for. Upstream: IsFilter, IsPrioritizer, IsBinder,
        SupportsPreemption."""
        ...

    @property
    def weight(self) -> int:
        """Of its scores."""
        ...

    @property
    def ignorable(self) -> bool:
        """Whether an attempt goes on without its answer where none comes."""
        ...

    def is_interested(self, pod: PodInfo) -> bool: ...
